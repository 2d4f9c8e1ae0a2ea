"""Each replica serves the definitions of the cluster, whatever is in the ConfigMap of the forms."""

from __future__ import annotations

import asyncio
import base64
import copy
import gzip
import json
import random
import tracemalloc
from typing import Any

import orjson
import pytest

from apiserver.meta.resource import Key, Object
from registry.application.kept_forms import MAX_BYTES, NAME, read_sources, to_data
from registry.cluster.interface import APPLICATIONDEFINITIONS, CONFIGMAPS, LEASES, ClusterResource, NotServed
from tenant_apiserver.wiring.applications.forms_keeper import LEASE
from tests.fake_cluster import FakeCluster
from tests.registry.application.applications import ApplicationWorld, definition, definition_object
from tests.tenant_apiserver.wiring.test_applications import (
    OTHER,
    REDIS,
    ServingReplica,
    change,
    cluster_with,
    holder,
    kept,
    serving,
    until,
)


def compressed(source: object) -> str:
    return packed(orjson.dumps(source))


def packed(text: bytes) -> str:
    return base64.b64encode(gzip.compress(text)).decode()


def keep(cluster: FakeCluster, **data: str) -> None:
    """Somebody who may write ConfigMaps in cozy-system stores this."""
    cluster.add(CONFIGMAPS, {"metadata": {"name": NAME, "namespace": "cozy-system"}, "binaryData": data})


def source(**changes: Any) -> Object:
    """The form in force of REDIS, with other fields of its spec."""
    found = copy.deepcopy(definition().source)
    for part, fields in changes.items():
        found["spec"][part] |= fields
    return found


def deep(levels: int) -> Any:
    found: Any = {}
    for _ in range(levels):
        found = {"a": found}
    return found


NO_GENERATION = {"metadata": {"name": "redis"}, "spec": {}}
BROKEN = [
    pytest.param(compressed(NO_GENERATION), id="no generation"),
    pytest.param(compressed({"metadata": {"name": "redis", "annotations": [1]}, "spec": {"release": 3}}), id="types"),
    pytest.param(compressed({"metadata": {"name": "redis", "uid": {}, "generation": "x"}, "spec": {}}), id="metadata"),
    pytest.param(packed(b'{"a":' * 5000 + b"1" + b"}" * 5000), id="deep"),
    pytest.param(compressed(source(release={"healthCheckExprs": [deep(200)]})), id="deep expressions"),
    pytest.param(compressed(source(application={"more": deep(240)})), id="deep and unknown"),
    pytest.param(compressed(source(application={"openAPISchema": "[" * 100_000})), id="deep schema"),
    pytest.param(compressed(source(application={"kind": "Tenant", "plural": "tenants"})), id="kind of Tenants"),
    pytest.param(compressed(source(application={"kind": "Status", "plural": "namespaces"})), id="core names"),
    pytest.param("not base64 \u00e9", id="no base64"),
]


@pytest.mark.parametrize("text", BROKEN)
async def test_a_form_that_is_none_keeps_no_kind_from_being_served(text: str) -> None:
    cluster = cluster_with(REDIS, OTHER)
    keep(cluster, redis=text, **{"no-definition": text})
    async with serving(cluster) as replica:
        assert replica.kinds == {"redis": "redis-", "other": "other-"}
        await until(lambda: kept(cluster) == {"redis": "redis-", "other": "other-"})
        keep(cluster, redis=text)
        await change(cluster, "redis", prefix="new-")
        await until(lambda: replica.kinds["redis"] == "new-")


async def test_a_form_that_claims_the_names_of_others_gives_them_back() -> None:
    cluster = cluster_with(REDIS, OTHER)
    claims = {"kind": "Other", "plural": "others", "singular": "other"}
    keep(cluster, redis=compressed(source(application=claims, release={"prefix": "other-"})))
    async with serving(cluster) as replica:
        assert {each.definition.kind for each in replica.api.served} == {"Redis", "Other"}
        assert replica.kinds == {"redis": "redis-", "other": "other-"}


async def test_a_deleted_configmap_is_written_again_while_the_server_runs() -> None:
    cluster = cluster_with(REDIS)
    async with serving(cluster) as replica:
        for _ in range(2):
            await until(lambda: kept(cluster) == {"redis": "redis-"})
            await cluster.delete(CONFIGMAPS, "cozy-system", NAME)
        await until(lambda: kept(cluster) == {"redis": "redis-"})
        assert replica.kinds == {"redis": "redis-"}


def test_a_small_configmap_cannot_fill_the_memory() -> None:
    """A form of 2 MiB that compresses to a thousandth of it, once for each definition that there is."""
    lists = b"[" + b"{}," * 600_000 + b"0]"
    text = b'{"metadata":{"name":"%s","uid":"u","generation":1},"spec":{"release":{"healthCheckExprs":' + lists + b"}}}"
    names = [f"kind{number}" for number in range(6)]
    data = {name: packed(text % name.encode()) for name in names}
    assert sum(map(len, data.values())) < 200_000
    world = ApplicationWorld()
    tracemalloc.start()
    try:
        asyncio.run(world.kinds.adopt(read_sources({"binaryData": data}, names)))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert world.kinds.in_force == {}
    # about that of one form: of all, it would be six times that
    assert peak < 200_000_000


def test_forms_of_others_are_not_even_decoded() -> None:
    data = {"redis": to_data({"redis": definition()}).data["redis"], "other": "not read"}
    found = dict(read_sources({"binaryData": data}, {"redis"}))
    assert list(found) == ["redis"]


async def test_of_200_definitions_whose_forms_exceed_a_configmap_all_are_served_and_those_that_fit_are_kept(
    caplog: pytest.LogCaptureFixture,
) -> None:
    noise = random.Random(1)
    definitions = [
        definition_object(
            f"kind{number}",
            kind=f"Kind{number}",
            plural=f"kind{number}s",
            prefix=f"kind{number}-",
            openAPISchema=json.dumps({"type": "object", "description": noise.randbytes(6000).hex()}),
        )
        for number in range(200)
    ]
    cluster = cluster_with(*definitions)
    async with serving(cluster) as replica:
        await until(lambda: 80 < len(kept(cluster)) < 200)
        assert len(replica.kinds) == 200
        stored = cluster.peek(CONFIGMAPS, "cozy-system", NAME) or {}
        assert sum(map(len, stored["binaryData"].values())) < MAX_BYTES
        assert "has no room for these kinds" in caplog.text
    async with serving(cluster) as replica:
        assert len(replica.kinds) == 200
        await until(lambda: len(cluster.writes) == 1)


async def test_without_the_kind_of_definitions_the_forms_stay_as_they_are() -> None:
    """Its CustomResourceDefinition may come back, as after a restore."""
    cluster = cluster_with(REDIS)
    async with serving(cluster, chosen=()):
        await until(lambda: kept(cluster) == {"redis": "redis-"})
    cluster.before, writes = _no_definitions, len(cluster.writes)
    replica = ServingReplica(cluster, leads=False, chosen=())
    tasks = [asyncio.create_task(each()) for each in replica.tasks]
    try:
        await until(lambda: holder(cluster) and "Tenants are the only kind" in _described(replica))
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
    assert {each.resource for each in cluster.writes[writes:]} <= {LEASES}
    assert kept(cluster) == {"redis": "redis-"}
    cluster.before = None
    await change(cluster, "redis", prefix="Bad!")
    async with serving(cluster, chosen=()) as after:
        assert after.kinds == {"redis": "redis-"}


async def _no_definitions(verb: str, res: ClusterResource, key: Key) -> None:
    if res == APPLICATIONDEFINITIONS:
        raise NotServed


def _described(replica: ServingReplica) -> str:
    try:
        return replica.api.describe()
    except RuntimeError as error:
        return str(error)


async def test_a_dead_holder_of_the_lease_delays_only_what_is_kept() -> None:
    cluster = cluster_with(REDIS)
    spec = {"holderIdentity": "dead", "leaseDurationSeconds": 1, "renewTime": "2026-01-01T00:00:00.000000Z"}
    cluster.add(LEASES, {"metadata": {"name": LEASE, "namespace": "cozy-system"}, "spec": spec})
    async with serving(cluster, chosen=()) as replica:
        assert replica.kinds == {"redis": "redis-"}
        assert (holder(cluster), kept(cluster)) == ("dead", {})
        await until(lambda: kept(cluster) == {"redis": "redis-"})
        assert holder(cluster) not in ("", "dead")
