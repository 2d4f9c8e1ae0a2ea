"""Two replicas in one process, on one fake cluster and in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any, cast

from prometheus_client import CollectorRegistry

from admission.chain import Chain
from admission.complete_caches import CompleteCaches
from admission.tenant.plugins import tree_plugins
from admission.tenant.quota import validate_quota_change
from apiserver import rest
from apiserver.admission import Attributes, Operation
from apiserver.meta import errors
from apiserver.meta.resource import Key, Object
from apiserver.request.options import DeleteOptions
from apiserver.storage.watch_cache import WatchCache
from registry.cluster.informer import Informer
from registry.cluster.interface import HELMRELEASES, ClusterClient
from registry.generic.store import Store
from registry.names import RELEASE_SELECTOR
from registry.tenant.convert import to_tenant
from registry.tenant.release_cache import ReleaseCache
from registry.tenant.release_settings import ReleaseSettings
from registry.tenant.storage import ReleaseBackend
from registry.tenant.strategy import TenantStrategy
from registry.tenant.summary import summarize
from registry.tenant.tree import TenantTree, effective_host
from registry.tenant.watch_feed import TenantFeed
from tenant_apiserver.wiring.claims import Replica, TenantState, claiming_backend
from tests.admission.tenant.claims.turns import SteppedCluster, Turns
from tests.fakes import FakeCluster
from tests.tenant_objects import ADMIN, ROOT_HOST, FakeNamespaces, attributes, release, tenant

NAMES = ("one", "two")
_RETRIES = 100


@dataclass(frozen=True, slots=True)
class Call:
    """A write, sent to one replica or to another."""

    verb: str
    key: Key
    spec: Object

    async def send(self, server: Server) -> Object:
        """Raises StatusError."""
        match self.verb:
            case "create":
                return await server.create(self.key, self.spec)
            case "change":
                return await server.change(self.key, self.spec)
            case _:
                return await server.delete(self.key)

    async def send_until_decided(self, server: Server) -> Object:
        """Waits and sends again after each 429. Raises any other StatusError."""
        for _ in range(_RETRIES):
            try:
                return await self.send(server)
            except errors.TooManyRequests as e:
                await asyncio.sleep(e.retry_after)
        raise AssertionError(f"{_RETRIES} times 429: {self}")


def create(name: str, namespace: str = "tenant-root", **spec: Any) -> Call:
    return Call("create", Key(namespace, name), spec)


def change(name: str, namespace: str = "tenant-root", **spec: Any) -> Call:
    return Call("change", Key(namespace, name), spec)


def delete(name: str, namespace: str = "tenant-root") -> Call:
    return Call("delete", Key(namespace, name), {})


class Server:
    """A replica's store of Tenants."""

    def __init__(self, name: str, cluster: ClusterClient) -> None:
        strategy = TenantStrategy()
        self.cache = WatchCache(strategy.resource, clock=_now)
        self.tree = TenantTree(root_host=ROOT_HOST)
        self.cache.subscribe(self.tree.on_event)
        self.informer = Informer(cluster, HELMRELEASES, label_selector=RELEASE_SELECTOR)
        feed = TenantFeed(resource=strategy.resource, cache=self.cache)
        self.informer.add_handler(feed)
        inner = ReleaseBackend(
            cluster=cluster,
            cache=self.cache,
            feed=feed,
            releases=ReleaseCache(self.informer.store),
            settings=ReleaseSettings,
        )
        plugins = tree_plugins(tree=self.tree, namespaces=FakeNamespaces({"tenant-root": "Active"}))
        self.metrics = CollectorRegistry()
        backend, self.record = claiming_backend(
            inner,
            TenantState(
                cluster=cluster,
                cache=self.cache,
                tree=self.tree,
                feed=feed,
                caches=CompleteCaches([self.informer.complete]),
            ),
            Replica(identity=name, namespace="cozy-system", metrics=self.metrics, clock=_now),
            plugins=plugins,
        )
        self._store = Store(backend=backend, strategy=strategy)
        self._chain = Chain(plugins)

    async def create(self, key: Key, spec: Object, *, dry_run: bool = False) -> Object:
        new = tenant(key.name, key.namespace, spec=spec)
        return await self._store.create(ATTRIBUTES.context, new, self._validate("CREATE"), dry_run=dry_run)

    async def change(self, key: Key, spec: Object, *, dry_run: bool = False) -> Object:
        async def changed(current: Object | None) -> Object:
            assert current is not None
            return current | {"spec": current["spec"] | spec}

        stored, _ = await self._store.update(
            ATTRIBUTES.context, key, changed, self._validate("UPDATE"), dry_run=dry_run
        )
        return stored

    async def delete(self, key: Key, *, dry_run: bool = False) -> Object:
        options = DeleteOptions(dry_run=dry_run)
        return (await self._store.delete(ATTRIBUTES.context, key, options, self._validate("DELETE"))).object

    def _validate(self, operation: Operation) -> rest.ValidateFunc:
        return lambda new, old: self._chain.validating(_attributes(operation, new, old))


def _now() -> float:
    return asyncio.get_running_loop().time()


ATTRIBUTES = attributes("CREATE", tenant("any"), user=ADMIN)


def _attributes(operation: Operation, new: Object | None, old: Object | None) -> Attributes:
    """The HTTP request is always the same one: it is not read, and building one is slow."""
    subject = new if new is not None else old
    assert subject is not None
    namespace, name = subject["metadata"]["namespace"], subject["metadata"]["name"]
    return replace(ATTRIBUTES, operation=operation, object=new, old_object=old, namespace=namespace, name=name)


@dataclass(frozen=True, slots=True)
class World:
    cluster: FakeCluster
    turns: Turns
    servers: Sequence[Server]

    def stored(self) -> TenantTree:
        """The tree of what the cluster stores, without what is being deleted."""
        found = [summarize(to_tenant(each)) for each in self.cluster.peek_all(HELMRELEASES)]
        return TenantTree([each for each in found if not each.terminating], root_host=ROOT_HOST)

    def hosts(self) -> Sequence[str]:
        tree = self.stored()
        return [host.value for each in tree if (host := effective_host(tree, each)) is not None]

    def orphans(self) -> Sequence[Key]:
        """The Tenants whose parent does not exist."""
        tree = self.stored()
        return [each.key for each in tree if not each.is_root and tree.parent(each) is None]


def check_consistent(world: World) -> None:
    """Fails if two Tenants have one host, a Tenant has no parent, or a quota is exceeded."""
    hosts, tree = world.hosts(), world.stored()
    assert len(set(hosts)) == len(hosts)
    assert not world.orphans()
    assert not any(validate_quota_change(tree, each, None) for each in tree)


@asynccontextmanager
async def running(*tenants: Object, choices: Sequence[int] = ()) -> AsyncIterator[World]:
    """A root, these HelmReleases, and two replicas that have seen them."""
    cluster, turns = FakeCluster(), Turns(choices)
    cluster.add(HELMRELEASES, release("root"), *tenants)
    servers = [Server(name, cast(ClusterClient, SteppedCluster(name, cluster, turns))) for name in NAMES]
    tasks = [asyncio.ensure_future(task()) for each in servers for task in (each.informer.run, each.record)]
    for each in servers:
        await each.informer.complete.wait()
    try:
        yield World(cluster, turns, servers)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
