"""Two replicas in one process, on one fake cluster and in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Sequence
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
from apiserver.meta.errors import StatusError
from apiserver.meta.resource import Key, Object
from apiserver.request.options import DeleteOptions
from apiserver.storage.watch_cache import WatchCache
from registry.application.release_cache import ReleaseCache
from registry.cluster.informer import Informer
from registry.cluster.interface import HELMRELEASES, ClusterClient, ClusterResource
from registry.generic.store import Store
from registry.names import RELEASE_SELECTOR
from registry.tenant.convert import to_tenant
from registry.tenant.release_settings import ReleaseSettings
from registry.tenant.storage import TenantBackend
from registry.tenant.strategy import TenantStrategy
from registry.tenant.summary import summarize
from registry.tenant.tree import TenantTree, effective_host
from registry.tenant.watch_feed import TenantFeed
from tenant_apiserver.wiring.claims import Replica, ReplicaState, claiming_backend
from tests.admission.tenant.claims.turns import SteppedCluster, Turns
from tests.fake_cluster import CallHook, FakeCluster
from tests.tenant_objects import ADMIN, ROOT_HOST, FakeNamespaces, attributes, release, tenant

NAMES = ("one", "two")
TRAILING_SECONDS = 1.5
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

    def is_stored(self, world: World) -> bool:
        """True if the cluster has the result of this write."""
        found = world.stored().get(self.key)
        if found is None or self.verb == "delete":
            return (found is None) == (self.verb == "delete")
        return all(found.host == value for field, value in self.spec.items() if field == "host")


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
        inner = TenantBackend(
            cluster=cluster,
            cache=self.cache,
            feed=feed,
            releases=ReleaseCache(self.informer.store),
            settings=ReleaseSettings,
        )
        plugins = tree_plugins(tree=self.tree, namespaces=FakeNamespaces({"tenant-root": "Active"}))
        self.metrics = CollectorRegistry()
        claims = claiming_backend(
            inner,
            ReplicaState(
                cluster=cluster,
                cache=self.cache,
                tree=self.tree,
                feed=feed,
                caches=CompleteCaches([self.informer.complete]),
            ),
            Replica(identity=name, namespace="cozy-system", metrics=self.metrics, clock=_now),
            plugins=plugins,
        )
        self.tasks = claims.tasks
        self.may_be_withdrawn = claims.may_be_withdrawn
        self._store = Store(backend=claims.backend, strategy=strategy)
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
    servers: list[Server]
    tasks: list[asyncio.Future[None]]

    async def start(self, name: str) -> None:
        """Adds a replica, and waits until it has seen what is stored."""
        server = Server(name, cast(ClusterClient, SteppedCluster(name, self.cluster, self.turns)))
        self.servers.append(server)
        self.tasks.extend(asyncio.ensure_future(task()) for task in (server.informer.run, *server.tasks.values()))
        await server.informer.complete.wait()

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
    world = World(cluster, turns, [], [])
    for name in NAMES:
        await world.start(name)
    try:
        yield world
    finally:
        for task in world.tasks:
            task.cancel()
        await asyncio.gather(*world.tasks, return_exceptions=True)


async def outcome(call: Awaitable[Object]) -> int:
    """The code of the response."""
    try:
        await call
    except StatusError as e:
        return e.code
    return 200


def failing(verb: str, res: ClusterResource, error: StatusError) -> CallHook:
    async def fail(called: str, called_res: ClusterResource, key: Key) -> None:
        if (called, called_res) == (verb, res):
            raise error

    return fail
