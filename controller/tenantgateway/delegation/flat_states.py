"""The state of a flat route: planned, written, or accepted by the Gateway's own controller."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from apiserver.meta.resource import Key, Object
from controller.runtime.conditions import find_condition, is_stale
from controller.tenantgateway.delegation.flat_routes import FlatRouteId
from controller.tenantgateway.delegation.index import DelegationIndex
from controller.tenantgateway.delegation.model import DELEGATION_CONFLICT, Participant
from controller.tenantgateway.delegation.write_errors import WriteErrors
from controller.tenantgateway.hostname_validation import HOSTNAME_CONFLICT, NO_MATCHING_PARENT, HostnameRejection
from controller.tenantgateway.names import CONTROLLER_NAME
from controller.tenantgateway.parse import mapping, mappings, parent_identity, parent_refs, string
from controller.tenantgateway.route_verdicts import RouteVerdicts
from controller.tenantgateway.watched_kinds import WatchedKinds

RECONCILE_ERROR = "ReconcileError"


class Acceptance(NamedTuple):
    """The verdict of the Gateways' controllers on a route as it is now; `reason` and `controller` are set only if it
    is refused."""

    state: Literal["Accepted", "Pending", "Refused"]
    reason: str = ""
    controller: str = ""

    def describe(self) -> str:
        return f"{self.controller} does not accept it: {self.reason}"


def acceptance(route: Object) -> Acceptance:
    """Accepted if that is said for each of the route's parentRefs; refused if one is. A verdict on an earlier
    generation, or on a parentRef that the route has no longer, does not count. Pure."""
    namespace = route["metadata"]["namespace"]
    wanted = {parent_identity(each, namespace) for each in parent_refs(route)}
    accepted = set()
    for controller, entry in of_others(route):
        parent = parent_identity(mapping(entry.get("parentRef")), namespace)
        found = find_condition(entry.get("conditions"), "Accepted")
        if found is None or parent not in wanted or is_stale(found, route):
            continue
        if found.get("status") == "False" and string(found, "reason"):
            return Acceptance("Refused", string(found, "reason"), controller)
        if found.get("status") == "True":
            accepted.add(parent)
    return Acceptance("Accepted" if wanted and wanted == accepted else "Pending")


def of_others(route: Object) -> Sequence[tuple[str, Mapping[str, Any]]]:
    """The entries of other controllers in the status of a route, with their names."""
    entries = mappings(mapping(route.get("status")).get("parents"))
    return [
        (str(each.get("controllerName")), each) for each in entries if each.get("controllerName") != CONTROLLER_NAME
    ]


class FlatState(NamedTuple):
    """The reason why a flat route is not served, without a word about other namespaces; or else, if the Gateway's
    controller `confirmed` that it is."""

    rejection: HostnameRejection | None = None
    confirmed: bool = False


class FlatStates:
    def __init__(
        self, *, index: DelegationIndex, kinds: WatchedKinds, verdicts: RouteVerdicts, errors: WriteErrors
    ) -> None:
        self._index = index
        self._kinds = kinds
        self._verdicts = verdicts
        self._errors = errors

    def find(self, root: Participant, content: Participant) -> FlatRouteId | None:
        """The existing flat route with the rules of `content` below a root."""
        found = self._index.flat_routes_of(content.id)
        return next((each for each in found if (each.root, each.root_uid) == (root.id, root.uid)), None)

    def below(self, root: Participant) -> Sequence[FlatRouteId]:
        """The existing flat routes of a root, sorted."""
        return sorted(each for each in self._index.flat_routes_below(root.id) if each.root_uid == root.uid)

    def get(self, flat: FlatRouteId) -> Object:
        """The flat route, empty if it has just been deleted."""
        return self._kinds.of_routes[flat.id.kind].get(Key(flat.id.namespace, flat.id.name)) or {
            "metadata": {"namespace": flat.id.namespace}
        }

    def of(self, root: Participant, content: Participant) -> FlatState | None:
        """The state of the rules of `content` below a root; None if it is undecided."""
        if self._errors.get(root.id, content.id):
            reason = "the route that the Gateway would serve cannot be written"
            return FlatState(HostnameRejection(RECONCILE_ERROR, reason))
        if not content.served:
            return FlatState(confirmed=True)
        flat = self.find(root, content)
        if flat is None or any(self._is_unplanned(flat, gateway) for gateway in root.gateways):
            return None
        if rejected := self.rejection(root.gateways, flat):
            reason = DELEGATION_CONFLICT if rejected.reason == HOSTNAME_CONFLICT else rejected.reason
            return FlatState(HostnameRejection(reason, f"the Gateway does not serve it: {rejected.reason}"))
        told = acceptance(self.get(flat))
        if told.state == "Refused":
            return FlatState(HostnameRejection(told.reason, told.describe()))
        return FlatState(confirmed=told.state == "Accepted")

    def rejection(self, gateways: Iterable[Key], flat: FlatRouteId) -> HostnameRejection | None:
        """The reason why the plan of one of the Gateways does not serve a flat route. That it does not name the
        object with the listener is none: its parentRefs follow."""
        planned = (self._verdicts.get(gateway) for gateway in gateways)
        found = (each.rejections.get(flat.id) for each in planned if each is not None)
        return next((each for each in found if each is not None and each.reason != NO_MATCHING_PARENT), None)

    def _is_unplanned(self, flat: FlatRouteId, gateway: Key) -> bool:
        planned = self._verdicts.get(gateway)
        return planned is None or flat.id not in planned.admitted
