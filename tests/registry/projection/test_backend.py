"""Writes through a projection: of Secrets, over the fake cluster."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from apiserver.meta import errors
from apiserver.meta.errors import StatusError
from apiserver.meta.resource import GroupKind, GroupResource, Key, Object
from apiserver.request.options import DeleteOptions
from apiserver.storage.watch_cache import WatchCache
from registry.cluster.informer import Informer
from registry.cluster.interface import SECRETS, ClusterResource, ClusterUnreachable, NotServed
from registry.generic.store import Store
from registry.projection.backend import ProjectionBackend, ProjectionParts
from registry.projection.feed import ProjectionFeed
from registry.projection.readable import readable
from registry.tenantsecret.convert import SECRET_SELECTOR, SecretConversion, to_identity
from registry.tenantsecret.strategy import TenantSecretStrategy
from tests.fake_cluster import FakeCluster
from tests.registry.projection.projections import request

NAMESPACE = "tenant-a"
KEY = Key(NAMESPACE, "db")
LABELS = {"internal.cozystack.io/tenantresource": "true"}


@asynccontextmanager
async def admitted(new: Object | None, old: Object | None) -> AsyncIterator[None]:
    yield


class Secrets:
    """TenantSecrets with an informer that runs."""

    def __init__(self) -> None:
        self.cluster = FakeCluster()
        strategy, conversion = TenantSecretStrategy(), SecretConversion()
        self.cache = WatchCache(strategy.resource)
        self.informer = Informer(self.cluster, SECRETS, label_selector=SECRET_SELECTOR, store_objects=False)
        self.feed = feed = ProjectionFeed(
            self.cache, shows=conversion.shows, convert=conversion.to_object, convert_deleted=to_identity
        )
        self.informer.add_handler(feed)
        parts = ProjectionParts(
            cluster=self.cluster, stored=SECRETS, feed=feed, conversion=conversion, check=readable(feed)
        )
        self.store = Store(backend=ProjectionBackend(parts), strategy=strategy)

    def put(self, name: str = "db", *, labelled: bool = True, **fields: Any) -> None:
        metadata = {"name": name, "namespace": NAMESPACE, "labels": LABELS if labelled else {}}
        self.cluster.add(SECRETS, {"metadata": metadata, "type": "Opaque", "data": {"a": "eA=="}, **fields})

    def stored(self, name: str = "db") -> Object:
        found = self.cluster.peek(SECRETS, NAMESPACE, name)
        assert found is not None
        return found

    async def create(self, obj: Object, *, dry_run: bool = False) -> Object:
        obj = {"metadata": {"name": "db", "namespace": NAMESPACE}, "type": "Opaque", **obj}
        return await self.store.create(request("create"), obj, admitted, dry_run=dry_run)

    async def update(self, change: Any, *, dry_run: bool = False) -> Object:
        async def changed(current: Object | None) -> Object:
            found: Object = change(copy.deepcopy(current))
            return found

        stored, _ = await self.store.update(request("update"), KEY, changed, admitted, dry_run=dry_run)
        return stored

    async def delete(self) -> Any:
        return await self.store.delete(request("delete"), KEY, DeleteOptions(), admitted)


@pytest.fixture
async def secrets() -> AsyncIterator[Secrets]:
    found = Secrets()
    task = asyncio.create_task(found.informer.run())
    await found.informer.synced.wait()
    yield found
    task.cancel()


def with_data(**data: str) -> Any:
    return lambda obj: {**obj, "data": data}


async def test_a_secret_is_created_read_changed_and_deleted(secrets: Secrets) -> None:
    created = await secrets.create({"stringData": {"a": "x"}})
    assert created["data"] == {"a": "eA=="}
    assert secrets.stored()["metadata"]["labels"] == LABELS
    assert (await secrets.store.get(request(), KEY)).object()["data"] == {"a": "eA=="}
    changed = await secrets.update(with_data(b="eQ=="))
    assert secrets.stored()["data"] == changed["data"] == {"b": "eQ=="}
    assert (await secrets.store.get(request(), KEY)).object() == changed
    assert (await secrets.delete()).removed
    with pytest.raises(errors.NotFound, match="tenantsecrets"):
        await secrets.store.get(request(), KEY)


async def test_a_dry_run_stores_nothing(secrets: Secrets) -> None:
    await secrets.create({}, dry_run=True)
    assert secrets.cluster.peek_all(SECRETS) == []
    secrets.put()
    await secrets.update(with_data(b="eQ=="), dry_run=True)
    assert secrets.stored()["data"] == {"a": "eA=="}


async def test_a_secret_without_the_label_does_not_exist(secrets: Secrets) -> None:
    """It is not read, changed, deleted or adopted, and nothing of it is told."""
    secrets.put(labelled=False)
    before = secrets.stored()
    with pytest.raises(errors.NotFound):
        await secrets.store.get(request(), KEY)
    with pytest.raises(errors.NotFound):
        await secrets.update(with_data(b="eQ=="))
    with pytest.raises(errors.NotFound):
        await secrets.delete()
    with pytest.raises(errors.Conflict, match="in use by a Secret that is no TenantSecret") as caught:
        await secrets.create({})
    assert "eA==" not in str(caught.value)
    assert secrets.stored() == before
    assert secrets.cluster.writes == []


async def test_what_the_server_may_not_read_is_not_created() -> None:
    """RBAC cannot limit `create` to names: an account that may read no Secrets may create them."""
    secrets = Secrets()
    secrets.feed.set_cluster_error(errors.Forbidden(GroupResource("", "secrets"), "", "no"))
    for dry_run in (True, False):
        with pytest.raises(errors.ServiceUnavailable, match="may not read or write what tenantsecrets are made from"):
            await secrets.create({}, dry_run=dry_run)
    assert secrets.cluster.writes == []


async def test_a_secret_that_loses_its_label_while_it_is_written_is_not_written(secrets: Secrets) -> None:
    secrets.put()
    assert await secrets.cache.reaches(secrets.cluster.rv, 5)

    def lose_label(current: Object) -> Object:
        secrets.put(labelled=False)
        return {**current, "data": {"b": "eQ=="}}

    with pytest.raises(errors.NotFound):
        await secrets.update(lose_label)
    assert secrets.cluster.writes == []


async def test_a_stale_version_loses(secrets: Secrets) -> None:
    secrets.put()
    assert await secrets.cache.reaches(secrets.cluster.rv, 5)
    stale = (await secrets.store.get(request(), KEY)).object()
    secrets.put(data={"a": "eQ=="})
    with pytest.raises(errors.Conflict):
        await secrets.update(lambda current: {**stale, "data": {"a": "eg=="}})
    assert secrets.stored()["data"] == {"a": "eQ=="}


async def test_concurrent_changes_without_a_version_are_all_stored(secrets: Secrets) -> None:
    secrets.put()

    def add(key: str) -> Any:
        return lambda obj: {**obj, "data": {**obj["data"], key: "eA=="}}

    await asyncio.gather(*(secrets.update(add(key)) for key in "bcde"))
    assert sorted(secrets.stored()["data"]) == list("abcde")


async def test_what_others_have_stored_besides_stays(secrets: Secrets) -> None:
    secrets.put(immutable=False)
    await secrets.update(with_data(b="eQ=="))
    assert secrets.stored()["immutable"] is False


async def test_an_existing_secret_is_a_conflict_of_names(secrets: Secrets) -> None:
    secrets.put()
    with pytest.raises(errors.AlreadyExists, match="already exists"):
        await secrets.create({})


@pytest.mark.parametrize(
    ("raised", "code", "message"),
    [
        pytest.param(
            errors.Invalid(GroupKind("", "Secret"), "db", [errors.required("data[tls.crt]")]),
            422,
            'TenantSecret.core.cozystack.io "db" is invalid',
            id="invalid",
        ),
        pytest.param(
            StatusError(
                403,
                "Forbidden",
                'secrets "db" is forbidden: exceeded quota: q',
                details={"name": "db", "kind": "secrets"},
            ),
            403,
            'tenantsecrets.core.cozystack.io "db" is forbidden: exceeded quota: q',
            id="quota",
        ),
        pytest.param(
            StatusError(
                403,
                "Forbidden",
                'secrets "db" is forbidden: User "us" cannot create resource "secrets" in API group',
                details={"name": "db", "kind": "secrets"},
            ),
            503,
            "the server may not read or write what tenantsecrets are made from",
            id="our own rights",
        ),
        pytest.param(ClusterUnreachable(), 503, "kube-apiserver cannot be reached", id="unreachable"),
        pytest.param(NotServed(), 503, "kube-apiserver does not serve secrets", id="group not served"),
        pytest.param(
            StatusError(404, "NotFound", "the server could not find the requested resource"),
            503,
            "kube-apiserver does not serve secrets",
            id="kind not served",
        ),
    ],
)
async def test_errors_are_about_the_object_that_the_client_knows(
    secrets: Secrets, raised: StatusError, code: int, message: str
) -> None:
    async def refuse(verb: str, res: ClusterResource, key: Key) -> None:
        if verb == "create":
            raise raised

    secrets.cluster.before = refuse
    with pytest.raises(StatusError) as caught:
        await secrets.create({})
    assert caught.value.code == code
    assert caught.value.message.startswith(message)
