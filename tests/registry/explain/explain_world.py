"""A cluster with Tenants, and what one user may get of it, for tests of explanations."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from apiserver.authorization.authorizer import AccessAttributes, Authorizer, Decision
from apiserver.encoding.encoded_object import encode
from apiserver.meta.resource import Key, Object
from apiserver.request.context import User
from apiserver.storage.visibility import Visibility, VisibilityChange, VisibleObjects
from apiserver.storage.watch_cache import WatchCache
from registry.cluster.interface import ClusterResource
from registry.explain.reading_slots import ReadingSlots
from registry.explain.sources import ExplainSources
from registry.explain.status_hosts import StatusHosts
from registry.explain.storage import Explainer
from registry.explain.subject import parse_subject
from registry.explain.types import explanation_resource
from registry.names import GROUP
from registry.tenant.quota_keys import EQUAL, AllocationRatios
from registry.tenant.summary import summarize
from registry.tenant.tree import TenantTree, effective_gateway, effective_host
from registry.tenant.types import tenant_resource
from tests.fake_cluster import CallHook, FakeCluster
from tests.tenant_objects import ROOT_HOST, tenant

EVE = User(name="eve", groups=("tenant-alice-admin", "system:authenticated"))
ALICE = Key("tenant-root", "alice")
Stored = tuple[ClusterResource, Object]


class Everything:
    """Allows everything but the `denied` resources."""

    def __init__(self, denied: Collection[str] = ()) -> None:
        self._denied = denied

    async def authorize(self, attributes: AccessAttributes) -> Decision:
        return Decision(allowed=attributes.resource not in self._denied)


class ButVerb(Everything):
    """Allows everything but one verb."""

    def __init__(self, verb: str) -> None:
        super().__init__()
        self._verb = verb

    async def authorize(self, attributes: AccessAttributes) -> Decision:
        return Decision(allowed=attributes.verb != self._verb)


class InNamespaces:
    """Allows every verb in some namespaces, and what `also` names: resource, namespace and name."""

    def __init__(self, namespaces: Collection[str], also: Collection[tuple[str, str, str]] = ()) -> None:
        self._namespaces = namespaces
        self._also = also

    async def authorize(self, attributes: AccessAttributes) -> Decision:
        named = attributes.resource, attributes.namespace, attributes.name
        return Decision(allowed=attributes.namespace in self._namespaces or named in self._also)


class Recorded:
    """Decides as another authorizer does, and records the reviews that it makes."""

    def __init__(self, authorizer: Everything | InNamespaces) -> None:
        self.authorizer = authorizer
        self.reviews: list[AccessAttributes] = []

    async def authorize(self, attributes: AccessAttributes) -> Decision:
        self.reviews.append(attributes)
        return await self.authorizer.authorize(attributes)


class _VisibleByGet:
    """Lists show the Tenants that a user may get. The users that it was asked about go to `asked`."""

    def __init__(self, authorizer: Authorizer, keys: Iterable[Key], asked: list[str]) -> None:
        self._asked = asked
        self._authorizer = authorizer.authorizer if isinstance(authorizer, Recorded) else authorizer
        self._keys = tuple(keys)
        self._known: dict[str, Visibility] = {}

    async def for_user(self, user: User) -> Visibility:
        self._asked.append(user.name)
        if user.name not in self._known:
            keys = [each for each in self._keys if await self._may_get(user, each)]
            self._known[user.name] = _Fixed(VisibleObjects(keys=frozenset(keys)))
        return self._known[user.name]

    async def _may_get(self, user: User, key: Key) -> bool:
        access = AccessAttributes(
            user=user, verb="get", group=GROUP, resource="tenants", namespace=key.namespace, name=key.name
        )
        return (await self._authorizer.authorize(access)).allowed


@dataclass(frozen=True)
class _Fixed:
    visible: VisibleObjects

    def change_since(self, rv: int, sent: tuple[float, float]) -> VisibilityChange | None:
        return None

    def subscribe(self, callback: Callable[[VisibilityChange], None]) -> Callable[[], None]:
        return lambda: None


@dataclass
class ExplainWorld:
    """`tenants` by key with their specs; their statuses are those that the controllers would write, with the
    `conditions` of each. Where statuses lag, the controllers wrote them when Tenants had the specs of `told`: one that
    is not in it had no domain and no Gateway yet. Tenants without an age in `created` are the oldest.
    `asked` has a name for each time that the visibility in lists was asked for."""

    tenants: Mapping[Key, Mapping[str, Any]]
    objects: Sequence[Stored] = ()
    conditions: Mapping[Key, Sequence[Object]] = field(default_factory=dict)
    authorizer: Everything | InNamespaces | Recorded = field(default_factory=Everything)
    ratios: AllocationRatios = EQUAL
    may_set_host: bool = False
    before: CallHook | None = None
    told: Mapping[Key, Mapping[str, Any]] | None = None
    created: Mapping[Key, str] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    slots: ReadingSlots = field(default_factory=ReadingSlots)

    def tenants_with_status(self) -> Sequence[Object]:
        return self._objects()[1]

    def _objects(self) -> tuple[TenantTree, list[Object]]:
        plain = [tenant(key.name, key.namespace, spec=spec) for key, spec in self.tenants.items()]
        for each in plain:
            key = Key(each["metadata"]["namespace"], each["metadata"]["name"])
            each["metadata"]["creationTimestamp"] = self.created.get(key, "")
        tree = self._tree(plain)
        told = self.tenants if self.told is None else self.told
        as_told = tree if self.told is None else self._tree([tenant(*reversed(key), spec=told[key]) for key in told])
        for each in plain:
            key = Key(each["metadata"]["namespace"], each["metadata"]["name"])
            summary = as_told.get(key)
            host = effective_host(as_told, summary) if summary is not None else None
            gateway = effective_gateway(as_told, summary) if summary is not None else None
            each["status"] |= {
                "host": host.as_object() if host is not None else None,
                "gateway": gateway.as_object() if gateway is not None else None,
                "conditions": list(self.conditions.get(key, [condition("Ready")])),
            }
        return self._tree(plain), plain

    def _tree(self, tenants: Sequence[Object]) -> TenantTree:
        return TenantTree(map(summarize, tenants), root_host=ROOT_HOST, ratios=self.ratios)

    async def explain(self, about: str, of: Key = ALICE, user: User = EVE, groups: Sequence[str] = ()) -> bytes:
        """The answer as the API encodes it."""
        return await self.started(of, user, groups)(about)

    def started(
        self, of: Key = ALICE, user: User = EVE, groups: Sequence[str] = ()
    ) -> Callable[[str], Awaitable[bytes]]:
        """Answers about one Tenant, any number of times."""
        tree, tenants = self._objects()
        cluster, resource_of_tenants = FakeCluster(before=self.before), tenant_resource()
        cache, hosts = WatchCache(resource_of_tenants), StatusHosts(tree)
        cache.subscribe(hosts.on_event)
        cache.replace([encode(resource_of_tenants, each) for each in tenants], 1)
        for resource, obj in self.objects:
            cluster.add(resource, obj)
        sources = ExplainSources(
            tree=tree,
            tenants=cache,
            hosts=hosts,
            visibility=_VisibleByGet(self.authorizer, self.tenants, self.asked),
            gateway_name="cozystack",
            may_set_host=lambda one: self.may_set_host or "system:masters" in one.groups,
        )
        explainer = Explainer(cluster=cluster, authorizer=self.authorizer, sources=sources, slots=self.slots)

        async def explain(about: str) -> bytes:
            found = await cache.get(of)
            assert found is not None
            answer = await explainer.explain(user, found.object(), parse_subject(about, groups))
            return encode(explanation_resource(), answer).json

        return explain


def condition(type_: str, status: str = "True", reason: str = "Reconciled", message: str = "") -> Object:
    return {"type": type_, "status": status, "reason": reason, "message": message}


def metadata(name: str, namespace: str = "") -> Object:
    return {"name": name, "namespace": namespace} if namespace else {"name": name}


def route(name: str, namespace: str, *hostnames: str, conditions: Sequence[Object] = ()) -> Object:
    parent = {"name": "cozystack", "namespace": "tenant-alice"}
    told = {
        "parentRef": {"group": "gateway.networking.k8s.io", "kind": "Gateway", **parent},
        "controllerName": "gateway.cozystack.io/tenantgateway-controller",
        "conditions": list(conditions),
    }
    return {
        "metadata": metadata(name, namespace),
        "spec": {"hostnames": list(hostnames), "parentRefs": [parent]},
        "status": {"parents": [told] if conditions else []},
    }


def tenantgateway(namespace: str, listeners: Sequence[Object], *conditions: Object) -> Object:
    return {
        "metadata": metadata("cozystack", namespace),
        "spec": {"apex": "alice.example.org"},
        "status": {"conditions": list(conditions), "listeners": list(listeners)},
    }
