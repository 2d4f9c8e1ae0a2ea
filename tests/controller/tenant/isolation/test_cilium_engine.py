"""Cilium's own policy engine, compiled from its sources, reads our policies and judges connections as our model does.

It takes minutes to compile, so that it is run if CILIUM_ENGINE names the program: `go build` in `cilium_engine`.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from apiserver.meta.resource import Object
from controller.runtime.apply import drop_nulls
from registry.tenant.summary import TenantSummary
from tests.controller.tenant.isolation import policy_model as model
from tests.controller.tenant.isolation.cells import CELLS, DASHBOARD, DEFAULT, KUBE_DNS, SEED, SYSTEM
from tests.controller.tenant.isolation.policy_model import End, Pod, as_seen, may_connect
from tests.controller.tenant.isolation.tenant_forest import (
    ETCD,
    INGRESS,
    TO_API_SERVER,
    TO_ETCD,
    VMINSERT,
    Forest,
)
from tests.tenant_objects import root_summary, tenant_summary

_TREES, _CONNECTIONS = 40, 150
_LABELS: Sequence[Mapping[str, str]] = ({}, ETCD, INGRESS, VMINSERT, TO_ETCD, TO_API_SERVER, {**TO_ETCD, **INGRESS})
_OTHERS: Sequence[End] = (
    model.WORLD,
    model.HOST,
    model.REMOTE_NODE,
    model.GATEWAY,
    model.API_SERVER,
    model.EXTERNAL_API_SERVER,
    DEFAULT,
    KUBE_DNS,
    SYSTEM,
    DASHBOARD,
)
_Connection = tuple[End, End, int]


@pytest.fixture
def engine() -> Path:
    found = os.environ.get("CILIUM_ENGINE")
    if not found:
        pytest.skip("CILIUM_ENGINE does not name the program of tests/controller/tenant/isolation/cilium_engine")
    return Path(found)


def test_ciliums_own_engine_judges_as_the_model_does(engine: Path) -> None:
    """R-076, R-078 to R-081: in the tree of seed 001 and in random ones. The policies have no field that Cilium does
    not know, and it accepts each of them."""
    documents: list[Object] = []
    expected: list[bool] = []
    for forest, connections in ((SEED, _cells()), *_random_trees()):
        policies = forest.cilium()
        names = {each.namespace for each in forest.tenants}
        documents.append(
            {
                "policies": [drop_nulls({"apiVersion": "cilium.io/v2", **each}) for each in policies],
                "connections": [_rendered(len(expected) + i, each, names) for i, each in enumerate(connections)],
            }
        )
        expected += [may_connect(policies, sender, receiver, port=port) for sender, receiver, port in connections]
    text = "".join(map(json.dumps, documents))
    done = subprocess.run([engine], input=text, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    verdicts = [f"{number} {'allowed' if each else 'denied'}" for number, each in enumerate(expected)]
    assert done.stdout.splitlines() == verdicts
    assert {True, False} == set(expected)


def _cells() -> Sequence[_Connection]:
    return [(each.sender, each.receiver, each.judged_port) for each in CELLS]


def _random_trees() -> Iterator[tuple[Forest, Sequence[_Connection]]]:
    chance = random.Random(17)
    for _ in range(_TREES):
        tenants: list[TenantSummary] = [root_summary()]
        for name in chance.sample("abcdefgh", chance.randint(1, 7)):
            parent = chance.choice(tenants).namespace
            flags = chance.sample(["etcd", "ingress", "monitoring"], chance.randint(0, 3))
            tenants.append(tenant_summary(name, parent, spec=dict.fromkeys(flags, True)))
        forest = Forest.of(tenants)
        ends = [forest.pod(each.namespace, labels) for each in tenants for labels in _LABELS]
        yield (
            forest,
            [
                (
                    chance.choice(ends),
                    chance.choice(ends if chance.random() < 0.8 else _OTHERS),
                    chance.choice([443, 2379, 6443, 8443]),
                )
                for _ in range(_CONNECTIONS // 2)
            ]
            + [(chance.choice(_OTHERS), chance.choice(ends), 8443) for _ in range(_CONNECTIONS // 2)],
        )


def _rendered(number: int, connection: _Connection, tenants: set[str]) -> Object:
    sender, receiver, port = connection
    sender, receiver = as_seen(sender), as_seen(receiver)
    return {
        "name": str(number),
        "from": _labels(sender),
        "to": _labels(receiver),
        "senderIsJudged": isinstance(sender, Pod) and sender.namespace in tenants,
        "receiverIsJudged": isinstance(receiver, Pod) and receiver.namespace in tenants,
        "port": port,
    }


def _labels(end: End) -> Sequence[str]:
    """The labels of the identity that Cilium gives to it. An entity is a reserved label; `cluster` and `all` stand for
    many of them."""
    if isinstance(end, Pod):
        return [f"k8s:{key}={value}" for key, value in end.identity.items()]
    return [f"reserved:{each}=" for each in sorted(end.entities - {"all", "cluster"})]
