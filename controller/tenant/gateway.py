"""How the Gateway that serves a Tenant fares: the condition GatewayReady, and what leads to it being looked at.

An heir asks whether the Gateway is accepted, and for the listeners of its own hostnames: a hostname is of the Tenant
with the longest domain that it is under. One Tenant's fault never makes a neighbour not ready.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from apiserver.errors import StatusError
from apiserver.resource import Object
from controller.apply import Apply
from controller.conditions import Finding, condition
from controller.tenant.events import Enqueue
from controller.tenant.observed import Observed
from controller.tenant.tenantgateway import NAME, TENANTGATEWAYS
from registry.host import HostResource
from registry.names import canonical_host
from registry.tenant.facts import TenantFacts
from registry.tenant.tree import TenantTree, effective_gateway

GATEWAY_READY = "GatewayReady"
GATEWAYS = HostResource("gateway.networking.k8s.io", "v1", "gateways", "Gateway")
_LISTENERS = "ListenersNotReady"
# A condition shows what is wrong, and not all of it.
_SHOWN = 10


class State(NamedTuple):
    """What a condition says, or that it says nothing of the object as it is: Unknown."""

    status: Literal["True", "False", "Unknown"]
    reason: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Listener:
    hostname: str
    ready: bool
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayState:
    """Of the TenantGateway `cozystack` of a Namespace and its Gateway. `tenantgateway` holds metadata alone, None if
    there is none; `accepted` is None where there is no Gateway."""

    tenantgateway: Object | None = None
    ready: State | None = None
    listeners: Sequence[Listener] = ()
    accepted: State | None = None


NO_GATEWAY = GatewayState()


def gateway_finding(observed: Observed, state: GatewayState, own: Callable[[str], bool]) -> Finding:
    """`state` is that of the owner's Namespace; `own` tells whether a hostname is this Tenant's.

    NoGateway is information: nothing is made to wait for it.
    """
    owner = observed.gateway.namespace
    if not owner:
        return Finding(GATEWAY_READY, "False", "NoGateway", "neither the tenant nor an ancestor has a Gateway")
    shared = _of_owner(state) if owner == observed.facts.namespace else _of_heir(state)
    if shared.status != "True":
        return Finding(GATEWAY_READY, shared.status, shared.reason, f'the Gateway of "{owner}": {shared.message}')
    late = [each for each in state.listeners if not each.ready and own(each.hostname)]
    if late:
        return Finding(GATEWAY_READY, "False", _LISTENERS, f'at the Gateway of "{owner}": {_listed(late)}')
    return Finding(GATEWAY_READY, "True", "Reconciled", f'the Gateway of "{owner}" serves the tenant')


def _of_owner(state: GatewayState) -> State:
    if state.ready is None:
        return State("Unknown", "Pending", "it has no status yet")
    # which of the listeners are its own, and which an heir's, is looked at apart
    return State("True", "", "") if state.ready.reason == _LISTENERS else state.ready


def _of_heir(state: GatewayState) -> State:
    if state.accepted is None:
        return State("Unknown", "Pending", "it does not exist yet")
    if state.accepted.status == "True":
        return state.accepted
    return State(state.accepted.status, "GatewayNotAccepted", f"{state.accepted.reason}: {state.accepted.message}")


def _listed(listeners: Sequence[Listener]) -> str:
    told = [f"{each.hostname} ({each.reason})" if each.reason else each.hostname for each in listeners[:_SHOWN]]
    more = f" and {len(listeners) - _SHOWN} more" if len(listeners) > _SHOWN else ""
    return f"not ready yet: {', '.join(told)}{more}"


def tenants_of(tree: TenantTree, hostname: str) -> Sequence[TenantFacts]:
    """Whose hostname it is: several Tenants only if they share a domain. A wildcard is its domain's."""
    name = canonical_host(hostname).removeprefix("*.")
    while name:
        if found := tree.tenants_with_host(name):
            return found
        name = name.partition(".")[2]
    return ()


@dataclass(slots=True)
class _Part:
    """A handler of the informer of one kind: `put` takes an object of the name that counts, or None for one that is
    gone, by its namespace; it tells whom that concerns by itself."""

    put: Callable[[str, Object | None], None]
    held: set[str] = field(default_factory=set)

    def replace(self, items: Sequence[Object], rv: int) -> None:
        gone = set(self.held)
        for obj in items:
            gone.discard(obj["metadata"]["namespace"])
            self._take(obj, there=True)
        for namespace in gone:
            self.held.discard(namespace)
            self.put(namespace, None)

    def apply(self, type: str, obj: Object, rv: int) -> None:
        self._take(obj, there=type != "DELETED")

    def bookmark(self, rv: int) -> None:
        """Nothing to do."""

    def unreachable(self, error: StatusError | None) -> None:
        """Nothing to do: what was missed comes with `replace`."""

    def _take(self, obj: Object, *, there: bool) -> None:
        metadata = obj["metadata"]
        if metadata["name"] != NAME:
            return
        if there:
            self.held.add(metadata["namespace"])
        else:
            self.held.discard(metadata["namespace"])
        self.put(metadata["namespace"], obj if there else None)


class GatewayIndex:
    """What is known of Gateways and TenantGateways, by Namespace, and how they are deleted.

    A change leads to the Tenants that it concerns: of one listener to its hostname's, of the Gateway to all heirs.
    """

    def __init__(self, *, apply: Apply, tree: TenantTree, enqueue: Enqueue) -> None:
        self._apply = apply
        self._tree = tree
        self._enqueue = enqueue
        self._states: dict[str, GatewayState] = {}
        self.tenantgateways = _Part(self._put_tenantgateway)
        self.gateways = _Part(self._put_gateway)

    def get(self, namespace: str) -> GatewayState:
        return self._states.get(namespace, NO_GATEWAY)

    def tenantgateway(self, namespace: str) -> Object | None:
        return self.get(namespace).tenantgateway

    async def delete(self, tenantgateway: Object) -> None:
        # in the foreground it stays until what it owns is gone
        await self._apply.delete(TENANTGATEWAYS, tenantgateway, propagation="Foreground")

    def is_own(self, facts: TenantFacts, hostname: str) -> bool:
        return any(each.key == facts.key for each in tenants_of(self._tree, hostname))

    def _put_tenantgateway(self, namespace: str, obj: Object | None) -> None:
        before = self.get(namespace)
        after = GatewayState(
            tenantgateway=_identity(obj) if obj is not None else None,
            ready=_state(obj, "Ready") if obj is not None else None,
            listeners=_listeners(obj) if obj is not None else (),
            accepted=before.accepted,
        )
        self._store(namespace, after)
        owner = self._tree.by_namespace(namespace)
        if owner is not None and (before.ready, _lasting(before)) != (after.ready, _lasting(after)):
            self._enqueue(owner.key)
        changed = set(before.listeners) ^ set(after.listeners)
        for hostname in {each.hostname for each in changed}:
            for facts in tenants_of(self._tree, hostname):
                self._enqueue(facts.key)

    def _put_gateway(self, namespace: str, obj: Object | None) -> None:
        before = self.get(namespace)
        accepted = _state(obj, "Accepted") if obj is not None else None
        after = GatewayState(
            tenantgateway=before.tenantgateway, ready=before.ready, listeners=before.listeners, accepted=accepted
        )
        self._store(namespace, after)
        if accepted != before.accepted:
            self._tell_heirs(self._tree.by_namespace(namespace))

    def _store(self, namespace: str, state: GatewayState) -> None:
        if state == NO_GATEWAY:
            self._states.pop(namespace, None)
        else:
            self._states[namespace] = state

    def _tell_heirs(self, owner: TenantFacts | None) -> None:
        if owner is None:
            return
        for each in self._tree.descendants(owner):
            if effective_gateway(self._tree, each).namespace == owner.namespace:
                self._enqueue(each.key)


class GatewayStep:
    """Finding: GatewayReady. It writes nothing."""

    name = "Gateway"
    condition = GATEWAY_READY

    def __init__(self, *, gateways: GatewayIndex) -> None:
        self._gateways = gateways

    async def run(self, observed: Observed) -> Sequence[Finding]:
        state = self._gateways.get(observed.gateway.namespace)
        return [gateway_finding(observed, state, lambda name: self._gateways.is_own(observed.facts, name))]


def _identity(obj: Object) -> Object:
    """What a deletion has to know, and no more."""
    metadata = obj["metadata"]
    kept = ("namespace", "name", "uid", "resourceVersion", "labels", "finalizers", "deletionTimestamp")
    return {"metadata": {each: metadata[each] for each in kept if each in metadata}}


def _lasting(state: GatewayState) -> tuple[object, ...]:
    """Of a TenantGateway, what a deletion waits for."""
    metadata = state.tenantgateway["metadata"] if state.tenantgateway is not None else {}
    return state.tenantgateway is None, metadata.get("deletionTimestamp"), metadata.get("finalizers")


def _state(obj: Object, type_: str) -> State | None:
    found = condition((obj.get("status") or {}).get("conditions"), type_)
    if found is None:
        return None
    if _is_former(found, obj["metadata"].get("generation")):
        return State("Unknown", "Pending", f"its condition {type_} is of a former generation")
    status = found.get("status")
    known: Literal["True", "False", "Unknown"] = (
        "True" if status == "True" else "False" if status == "False" else "Unknown"
    )
    return State(known, str(found.get("reason") or type_), str(found.get("message") or ""))


def _is_former(found: Mapping[str, Any], generation: object) -> bool:
    seen = found.get("observedGeneration")
    return isinstance(seen, int) and isinstance(generation, int) and seen < generation


def _listeners(obj: Object) -> Sequence[Listener]:
    held = (obj.get("status") or {}).get("listeners")
    return tuple(_hostnames(held if isinstance(held, list) else ()))


def _hostnames(held: Iterable[object]) -> Iterable[Listener]:
    """Those that have a hostname; the one for HTTP is everybody's."""
    for each in held:
        if isinstance(each, dict) and isinstance(each.get("hostname"), str):
            yield Listener(
                hostname=each["hostname"], ready=each.get("ready") is True, reason=str(each.get("reason") or "")
            )
