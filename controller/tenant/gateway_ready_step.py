"""How the Gateway that serves a Tenant fares: the condition GatewayReady, and what leads to it being looked at.

An heir asks whether the Gateway is accepted, and for the listeners of its own hostnames: a hostname is of the Tenant
with the longest domain that it is under. One Tenant's fault never makes a neighbour not ready.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from apiserver.meta.resource import Key, Object
from controller.runtime.apply import ClusterWriter
from controller.runtime.conditions import Finding, find_condition, is_stale, join_limited
from controller.tenant.observe import ObservedTenant
from controller.tenant.tenantgateway_step import TENANTGATEWAY_NAME
from controller.tenant.watches import Enqueue
from registry.cluster.event_handlers import ProjectionStore
from registry.cluster.interface import ClusterResource
from registry.names import canonical_host
from registry.tenant.summary import TenantSummary
from registry.tenant.tree import TenantTree, effective_gateway
from registry.tenantgateway.types import TENANTGATEWAYS

GATEWAY_READY = "GatewayReady"
GATEWAYS = ClusterResource("gateway.networking.k8s.io", "v1", "gateways", "Gateway")
_LISTENERS = "ListenersNotReady"


class ConditionState(NamedTuple):
    """What a condition says, or that it says nothing of the object as it is: Unknown."""

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
    """Of the TenantGateway `cozystack` of a Namespace and its Gateway. `tenantgateway` holds metadata alone, None if
    there is none; `accepted` is None where there is no Gateway."""

    tenantgateway: Object | None = None
    ready: ConditionState | None = None
    listeners: Sequence[ListenerState] = ()
    accepted: ConditionState | None = None


NO_GATEWAY = GatewayState()


def gateway_finding(observed: ObservedTenant, state: GatewayState, own: Callable[[str], bool]) -> Finding:
    """`state` is that of the owner's Namespace; `own` tells whether a hostname is this Tenant's.

    NoGateway is information: nothing is made to wait for it.
    """
    owner = observed.gateway.namespace
    if not owner:
        return Finding(GATEWAY_READY, "False", "NoGateway", "neither the tenant nor an ancestor has a Gateway")
    shared = _of_owner(state) if owner == observed.tenant.namespace else _of_heir(state)
    if shared.status != "True":
        return Finding(GATEWAY_READY, shared.status, shared.reason, f'the Gateway of "{owner}": {shared.message}')
    late = [each for each in state.listeners if not each.ready and own(each.hostname)]
    if late:
        told = join_limited([f"{each.hostname} ({each.reason})" if each.reason else each.hostname for each in late])
        return Finding(GATEWAY_READY, "False", _LISTENERS, f'at the Gateway of "{owner}": not ready yet: {told}')
    return Finding(GATEWAY_READY, "True", "Reconciled", f'the Gateway of "{owner}" serves the tenant')


def _of_owner(state: GatewayState) -> ConditionState:
    if state.ready is None:
        return ConditionState("Unknown", "Pending", "its TenantGateway is not there yet, or has no status")
    # which of the listeners are its own, and which an heir's, is looked at apart
    return ConditionState("True", "", "") if state.ready.reason == _LISTENERS else state.ready


def _of_heir(state: GatewayState) -> ConditionState:
    if state.accepted is None:
        return ConditionState("Unknown", "Pending", "it does not exist yet")
    if state.accepted.status == "True":
        return state.accepted
    return ConditionState(
        state.accepted.status, "GatewayNotAccepted", f"{state.accepted.reason}: {state.accepted.message}"
    )


def hostname_owners(tree: TenantTree, hostname: str) -> Sequence[TenantSummary]:
    """Whose hostname it is: several Tenants only if they share a domain. A wildcard is its domain's."""
    name = canonical_host(hostname).removeprefix("*.")
    while name:
        if found := tree.tenants_with_host(name):
            return found
        name = name.partition(".")[2]
    return ()


class GatewayIndex:
    """What is known of Gateways and TenantGateways, by Namespace, and how they are deleted.

    A change leads to the Tenants that it concerns: of one listener to its hostname's, of the Gateway to all heirs.
    """

    def __init__(self, *, writer: ClusterWriter, tree: TenantTree, enqueue: Enqueue) -> None:
        self._writer = writer
        self._tree = tree
        self._enqueue = enqueue
        self.tenantgateways = ProjectionStore(project=_asked, on_change=self._asked_changed)
        self.gateways = ProjectionStore(project=_accepted, on_change=self._accepted_changed)

    def get(self, namespace: str) -> GatewayState:
        key = Key(namespace, TENANTGATEWAY_NAME)
        return replace(self.tenantgateways.get(key) or NO_GATEWAY, accepted=self.gateways.get(key))

    def tenantgateway(self, namespace: str) -> Object | None:
        return self.get(namespace).tenantgateway

    async def delete(self, tenantgateway: Object) -> None:
        # in the foreground it stays until what it owns is gone
        await self._writer.delete(TENANTGATEWAYS, tenantgateway, propagation="Foreground")

    def owns_hostname(self, tenant: TenantSummary, hostname: str) -> bool:
        return any(each.key == tenant.key for each in hostname_owners(self._tree, hostname))

    def _asked_changed(self, key: Key, before: GatewayState | None, now: GatewayState | None) -> None:
        old, new = before or NO_GATEWAY, now or NO_GATEWAY
        owner = self._tree.by_namespace(key.namespace)
        if owner is not None and (old.ready, _lasting(old)) != (new.ready, _lasting(new)):
            self._enqueue(owner.key)
        changed = set(old.listeners) ^ set(new.listeners)
        for hostname in {each.hostname for each in changed}:
            for tenant in hostname_owners(self._tree, hostname):
                self._enqueue(tenant.key)

    def _accepted_changed(self, key: Key, before: ConditionState | None, now: ConditionState | None) -> None:
        owner = self._tree.by_namespace(key.namespace)
        for each in self._tree.descendants(owner) if owner is not None else ():
            if effective_gateway(self._tree, each).namespace == key.namespace:
                self._enqueue(each.key)


class GatewayReadyStep:
    """Finding: GatewayReady. It writes nothing."""

    name = "Gateway"
    condition = GATEWAY_READY

    def __init__(self, *, gateways: GatewayIndex) -> None:
        self._gateways = gateways

    async def run(self, observed: ObservedTenant) -> Sequence[Finding]:
        state = self._gateways.get(observed.gateway.namespace)
        return [gateway_finding(observed, state, lambda name: self._gateways.owns_hostname(observed.tenant, name))]


def _asked(tenantgateway: Object) -> GatewayState | None:
    if tenantgateway["metadata"]["name"] != TENANTGATEWAY_NAME:
        return None
    return GatewayState(
        tenantgateway=_identity(tenantgateway),
        ready=_state(tenantgateway, "Ready"),
        listeners=_listeners(tenantgateway),
    )


def _accepted(gateway: Object) -> ConditionState | None:
    return _state(gateway, "Accepted") if gateway["metadata"]["name"] == TENANTGATEWAY_NAME else None


def _identity(obj: Object) -> Object:
    """What a deletion has to know, and no more."""
    metadata = obj["metadata"]
    kept = ("namespace", "name", "uid", "resourceVersion", "labels", "finalizers", "deletionTimestamp")
    return {"metadata": {each: metadata[each] for each in kept if each in metadata}}


def _lasting(state: GatewayState) -> tuple[object, ...]:
    """Of a TenantGateway, what a deletion waits for."""
    metadata = state.tenantgateway["metadata"] if state.tenantgateway is not None else {}
    return state.tenantgateway is None, metadata.get("deletionTimestamp"), metadata.get("finalizers")


def _state(obj: Object, type_: str) -> ConditionState | None:
    found = find_condition((obj.get("status") or {}).get("conditions"), type_)
    if found is None:
        return None
    if is_stale(found, obj):
        return ConditionState("Unknown", "Pending", f"its condition {type_} is of a former generation")
    status = found.get("status")
    known: Literal["True", "False", "Unknown"] = (
        "True" if status == "True" else "False" if status == "False" else "Unknown"
    )
    return ConditionState(known, str(found.get("reason") or type_), str(found.get("message") or ""))


def _listeners(obj: Object) -> Sequence[ListenerState]:
    held = (obj.get("status") or {}).get("listeners")
    return tuple(_hostnames(held if isinstance(held, list) else ()))


def _hostnames(held: Iterable[object]) -> Iterable[ListenerState]:
    """Those that have a hostname; the one for HTTP is everybody's."""
    for each in held:
        if isinstance(each, dict) and isinstance(each.get("hostname"), str):
            yield ListenerState(
                hostname=each["hostname"], ready=each.get("ready") is True, reason=str(each.get("reason") or "")
            )
