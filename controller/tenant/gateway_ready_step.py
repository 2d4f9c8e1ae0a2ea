"""The condition GatewayReady, from the state of the Gateway that serves a Tenant, and the index of that state.

For a Tenant that inherits its Gateway, the Gateway must be accepted and the listeners of the Tenant's own hostnames
ready. A hostname belongs to the Tenant with the longest domain that contains it, so a failing listener does not
make other Tenants unready.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from apiserver.meta.resource import Key, Object
from controller.runtime.apply import ClusterWriter
from controller.runtime.conditions import Finding, find_condition, is_stale, join_limited
from controller.runtime.workqueue import Enqueue
from controller.tenant.observe import ObservedTenant
from registry.cluster.event_handlers import ProjectionStore
from registry.cluster.interface import ClusterResource
from registry.names import canonical_host
from registry.tenant.summary import TenantSummary
from registry.tenant.tree import TenantTree, effective_gateway
from registry.tenantgateway.types import TENANTGATEWAY_NAME, TENANTGATEWAYS

GATEWAY_READY = "GatewayReady"
GATEWAYS = ClusterResource("gateway.networking.k8s.io", "v1", "gateways", "Gateway")
_LISTENERS = "ListenersNotReady"


class ConditionState(NamedTuple):
    """A condition of an object; Unknown if it is about an older generation."""

    status: Literal["True", "False", "Unknown"]
    reason: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ListenerState:
    hostname: str
    ready: bool
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayState:
    """The state of the TenantGateway `cozystack` of a Namespace and of its Gateway. `tenantgateway` has metadata only
    and is None if it does not exist; `accepted` is None if there is no Gateway."""

    tenantgateway: Object | None = None
    ready: ConditionState | None = None
    listeners: Sequence[ListenerState] = ()
    accepted: ConditionState | None = None


NO_GATEWAY = GatewayState()


def gateway_finding(observed: ObservedTenant, state: GatewayState, owns: Callable[[str], bool]) -> Finding | None:
    """`state` is the state in the owner's Namespace; `owns` returns whether a hostname belongs to this Tenant. None if
    neither the Tenant nor an ancestor has a Gateway."""
    owner = observed.gateway.namespace
    if not owner:
        return None
    is_own = owner == observed.tenant.namespace
    shared = _owner_state(state) if is_own else _heir_state(state)
    # the users of an heir need not be allowed to get anything in the owner's namespace
    remedy = f"kubectl -n {owner} describe tgw {TENANTGATEWAY_NAME}" if is_own else "ask those who administer it"
    if shared.status != "True":
        message = f'the Gateway of "{owner}": {shared.message}; {remedy}'
        return Finding(GATEWAY_READY, shared.status, shared.reason, message)
    not_ready = [each for each in state.listeners if not each.ready and owns(each.hostname)]
    if not_ready:
        listeners = join_limited(
            [f"{each.hostname} ({each.reason})" if each.reason else each.hostname for each in not_ready]
        )
        message = f'the Gateway of "{owner}": listeners not ready: {listeners}; {remedy}'
        return Finding(GATEWAY_READY, "False", _LISTENERS, message)
    return Finding(GATEWAY_READY, "True", "Reconciled", f'the Gateway of "{owner}" serves the tenant')


def _owner_state(state: GatewayState) -> ConditionState:
    if state.ready is None:
        return ConditionState("Unknown", "Pending", "its TenantGateway does not exist yet or has no status")
    # the caller decides about listeners, because only those of the Tenant's own hostnames count
    return ConditionState("True", "", "") if state.ready.reason == _LISTENERS else state.ready


def _heir_state(state: GatewayState) -> ConditionState:
    if state.accepted is None:
        return ConditionState("Unknown", "Pending", "it does not exist yet")
    if state.accepted.status == "True":
        return state.accepted
    # the message may name objects of the owner's namespace, which the heir's users need not be allowed to get
    return ConditionState(state.accepted.status, "GatewayNotAccepted", state.accepted.reason)


def hostname_owners(tree: TenantTree, hostname: str) -> Sequence[TenantSummary]:
    """The Tenants that own a hostname: several only if they share a domain. A wildcard belongs to its domain."""
    name = canonical_host(hostname).removeprefix("*.")
    while name:
        if found := tree.tenants_with_host(name):
            return found
        name = name.partition(".")[2]
    return ()


class GatewayIndex:
    """The index of the state of Gateways and TenantGateways by Namespace. It also deletes TenantGateways.

    A change of a listener enqueues the owners of its hostname, a change of the Gateway all Tenants that inherit it.
    """

    def __init__(self, *, writer: ClusterWriter, tree: TenantTree, enqueue: Enqueue) -> None:
        self._writer = writer
        self._tree = tree
        self._enqueue = enqueue
        self.tenantgateways = ProjectionStore(project=_tenantgateway_state, on_change=self._on_tenantgateway_change)
        self.gateways = ProjectionStore(project=_accepted_state, on_change=self._on_gateway_change)

    def get(self, namespace: str) -> GatewayState:
        key = Key(namespace, TENANTGATEWAY_NAME)
        return replace(self.tenantgateways.get(key) or NO_GATEWAY, accepted=self.gateways.get(key))

    def tenantgateway(self, namespace: str) -> Object | None:
        return self.get(namespace).tenantgateway

    async def delete(self, tenantgateway: Object) -> None:
        # with foreground deletion it exists until all its dependents are deleted
        await self._writer.delete(TENANTGATEWAYS, tenantgateway, propagation="Foreground")

    def owns_hostname(self, tenant: TenantSummary, hostname: str) -> bool:
        return any(each.key == tenant.key for each in hostname_owners(self._tree, hostname))

    def _on_tenantgateway_change(self, key: Key, before: GatewayState | None, now: GatewayState | None) -> None:
        old, new = before or NO_GATEWAY, now or NO_GATEWAY
        owner = self._tree.by_namespace(key.namespace)
        if owner is not None and (old.ready, _deletion_state(old)) != (new.ready, _deletion_state(new)):
            self._enqueue(owner.key)
        changed = set(old.listeners) ^ set(new.listeners)
        for hostname in {each.hostname for each in changed}:
            for tenant in hostname_owners(self._tree, hostname):
                self._enqueue(tenant.key)

    def _on_gateway_change(self, key: Key, before: ConditionState | None, now: ConditionState | None) -> None:
        owner = self._tree.by_namespace(key.namespace)
        for each in self._tree.descendants(owner) if owner is not None else ():
            if effective_gateway(self._tree, each).namespace == key.namespace:
                self._enqueue(each.key)


class GatewayReadyStep:
    """Finding: GatewayReady if there is a Gateway. The step writes no objects."""

    name = "Gateway"
    condition = GATEWAY_READY

    def __init__(self, *, gateways: GatewayIndex) -> None:
        self._gateways = gateways

    async def run(self, observed: ObservedTenant) -> Sequence[Finding]:
        state = self._gateways.get(observed.gateway.namespace)
        found = gateway_finding(observed, state, lambda name: self._gateways.owns_hostname(observed.tenant, name))
        return [found] if found is not None else []


def _tenantgateway_state(tenantgateway: Object) -> GatewayState | None:
    if tenantgateway["metadata"]["name"] != TENANTGATEWAY_NAME:
        return None
    return GatewayState(
        tenantgateway=_deletion_metadata(tenantgateway),
        ready=_condition_state(tenantgateway, "Ready"),
        listeners=_listeners(tenantgateway),
    )


def _accepted_state(gateway: Object) -> ConditionState | None:
    return _condition_state(gateway, "Accepted") if gateway["metadata"]["name"] == TENANTGATEWAY_NAME else None


def _deletion_metadata(obj: Object) -> Object:
    """Only the metadata that a deletion needs."""
    metadata = obj["metadata"]
    fields = ("namespace", "name", "uid", "resourceVersion", "labels", "finalizers", "deletionTimestamp")
    return {"metadata": {each: metadata[each] for each in fields if each in metadata}}


def _deletion_state(state: GatewayState) -> tuple[object, ...]:
    """The parts of a TenantGateway that a pending deletion depends on, for comparison."""
    metadata = state.tenantgateway["metadata"] if state.tenantgateway is not None else {}
    return state.tenantgateway is None, metadata.get("deletionTimestamp"), metadata.get("finalizers")


def _condition_state(obj: Object, type_: str) -> ConditionState | None:
    found = find_condition((obj.get("status") or {}).get("conditions"), type_)
    if found is None:
        return None
    if is_stale(found, obj):
        return ConditionState("Unknown", "Pending", f"its condition {type_} is about an older generation")
    status = found.get("status")
    known_status: Literal["True", "False", "Unknown"] = (
        "True" if status == "True" else "False" if status == "False" else "Unknown"
    )
    return ConditionState(known_status, str(found.get("reason") or type_), str(found.get("message") or ""))


def _listeners(obj: Object) -> Sequence[ListenerState]:
    listeners = (obj.get("status") or {}).get("listeners")
    return tuple(_hostnames(listeners if isinstance(listeners, list) else ()))


def _hostnames(listeners: Iterable[object]) -> Iterable[ListenerState]:
    """The listeners with a hostname. The one for HTTP has none: it serves all Tenants."""
    for each in listeners:
        if isinstance(each, dict) and isinstance(each.get("hostname"), str):
            yield ListenerState(
                hostname=each["hostname"], ready=each.get("ready") is True, reason=str(each.get("reason") or "")
            )
