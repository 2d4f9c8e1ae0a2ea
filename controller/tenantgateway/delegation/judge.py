"""Decides on the parentRefs of roots and vertices: what their status tells."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from apiserver.meta.resource import Key
from controller.runtime.conditions import MAX_MESSAGE, Finding, find_condition, join_limited
from controller.tenantgateway.consent.reference_grants import ReferenceGrants
from controller.tenantgateway.consent.resolved_refs import missing_grant
from controller.tenantgateway.delegation.edges import referrer
from controller.tenantgateway.delegation.flat_routes import FlatRouteId
from controller.tenantgateway.delegation.flat_states import (
    RECONCILE_ERROR,
    Acceptance,
    FlatState,
    FlatStates,
    acceptance,
    of_others,
)
from controller.tenantgateway.delegation.index import DelegationIndex
from controller.tenantgateway.delegation.model import (
    BACKEND_NOT_FOUND,
    DelegationVerdict,
    Participant,
)
from controller.tenantgateway.delegation.participants import lacks_group, parent_route, parent_tenantgateway
from controller.tenantgateway.delegation.write_errors import WriteErrors
from controller.tenantgateway.hostname_validation import (
    NO_MATCHING_PARENT,
    ORPHANED,
    HostnameRejection,
)
from controller.tenantgateway.model import ParentRefVerdict, RouteId
from controller.tenantgateway.names import GATEWAY_API_GROUP, REF_NOT_PERMITTED, RESOLVED_REFS
from controller.tenantgateway.parse import string
from controller.tenantgateway.route_verdicts import RouteVerdicts
from controller.tenantgateway.watched_kinds import WatchedKinds
from registry.tenantgateway.types import GROUP, KIND

DELEGATED = "Delegated"
"""The condition of a route that names routes which get nothing of it."""

# the characters of the reason for each route that is named in the condition
_MAX_TEXT = 512
_UNCONFIRMED = "not yet confirmed by the Gateway's controller"
_SERVED = "its hostnames are served, and those parts of them that are delegated with consent"
_NOTHING_SERVED = (
    "nothing of its hostnames is served: neither it nor a route that it delegates to has rules that are in effect"
)
NO_SUCH_KIND = HostnameRejection(
    NO_MATCHING_PARENT,
    f"group {GATEWAY_API_GROUP}, the default of a parentRef, has no kind {KIND}: set its group to {GROUP}",
)
_NOT_RESOLVED = (REF_NOT_PERMITTED, BACKEND_NOT_FOUND)


class DelegationJudge:
    """Judges by the graph, by the plans of the Gateways that serve flat routes, and by what other controllers say of
    those."""

    def __init__(
        self,
        *,
        index: DelegationIndex,
        grants: ReferenceGrants,
        kinds: WatchedKinds,
        verdicts: RouteVerdicts,
        errors: WriteErrors,
    ) -> None:
        self._index = index
        self._grants = grants
        self._kinds = kinds
        self._verdicts = verdicts
        self._errors = errors
        self._flat = FlatStates(index=index, kinds=kinds, verdicts=verdicts, errors=errors)

    def is_undecided(self, route: RouteId, parent: Mapping[str, Any]) -> bool:
        """True for every parentRef of delegation: a verdict is to come."""
        named = parent_tenantgateway(parent, route.namespace) or parent_route(parent, route)
        return named is not None or lacks_group(parent)

    def judge(self, route: RouteId, parent: Mapping[str, Any]) -> ParentRefVerdict | None:
        """The verdict on a parentRef; None if it is undecided, or none of delegation."""
        if lacks_group(parent):
            return _verdict(parent, NO_SUCH_KIND)
        found = self._index.graph.get(route)
        if found is None or not self._kinds.grants.synced:
            return None
        if (gateway := parent_tenantgateway(parent, route.namespace)) is not None:
            return self._judge_root(found, parent, gateway)
        if (above := parent_route(parent, route)) is not None:
            return self._judge_vertex(found, parent, above)
        return None

    def _judge_root(self, root: Participant, parent: Mapping[str, Any], gateway: Key) -> ParentRefVerdict | None:
        rejection = self._index.reject_root(root, gateway)
        if rejection is not None:
            return _verdict(parent, rejection)
        planned = self._verdicts.get(gateway)
        if planned is None:
            return None
        if planned.refusal is not None:
            return _verdict(parent, planned.refusal)
        told = [(each, acceptance(self._flat.get(each))) for each in self._flat.below(root)]
        message = _served_message(root, [(flat.id, each.state) for flat, each in told])
        verdict = _verdict(parent, self._reject_flat_routes(root, gateway, told), message)
        return replace(verdict, references=self._references(root), more=self._not_delegated(root))

    def _reject_flat_routes(
        self, root: Participant, gateway: Key, told: Sequence[tuple[FlatRouteId, Acceptance]]
    ) -> HostnameRejection | None:
        """The reason why flat routes of a root are not served: all of them, or that with its own rules. Those of a
        vertex that the data plane refuses are the matter of the vertex, and of the condition Delegated."""
        errors = (HostnameRejection(RECONCILE_ERROR, each) for each in self._errors.of_root(root.id))
        unserved = (self._flat.rejection((gateway,), flat) for flat, _ in told)
        own = self._flat.find(root, root)
        refused = (
            HostnameRejection(each.reason, f"{flat.id.kind} {flat.id.name}: {each.describe()}")
            for flat, each in told
            if flat == own and each.state == "Refused"
        )
        return next(filter(None, (*errors, *unserved, *refused)), None)

    def _judge_vertex(self, vertex: Participant, parent: Mapping[str, Any], above: RouteId) -> ParentRefVerdict | None:
        connection = self._index.graph.connection(vertex.id, above)
        if reason := connection.edge.reason:
            orphaned = reason in _NOT_RESOLVED
            return _verdict(parent, HostnameRejection(ORPHANED if orphaned else reason, connection.edge.message))
        roots = [each for each in map(self._index.graph.get, connection.roots) if each is not None]
        states = {root.id: self._flat.of(root, vertex) for root in roots}
        served = [each for each in roots if (state := states[each.id]) is not None and state.rejection is None]
        if not served:
            return next((each for root in roots if (each := _refuse(parent, root, states[root.id]))), None)
        confirmed = all(state.confirmed for root in served if (state := states[root.id]))
        message = self._connected_message(vertex, served, connection, above, confirmed=confirmed)
        references, more = self._vertex_references(vertex, served), self._not_delegated(vertex)
        return replace(_verdict(parent, None, message), references=references, more=more)

    def _not_delegated(self, delegator: Participant) -> tuple[Finding, ...]:
        """The condition Delegated, which is there only while it is False: a summary of the routes that get nothing.
        Details of consent are in ResolvedRefs."""
        problems = [(target, *self._problem(delegator, target)) for target in delegator.targets]
        problems = sorted(each for each in problems if each[1])
        if not problems:
            return ()
        listed = join_limited(
            [
                f"{target.kind} {target} ({reason}: {text[:_MAX_TEXT]})"
                if text
                else f"{target.kind} {target} ({reason})"
                for target, reason, text in problems
            ]
        )
        message = f"not delegated to {len(problems)} of {len(delegator.targets)} routes: {listed}"
        return (Finding(DELEGATED, "False", min(reason for _, reason, _ in problems), message),)

    def _problem(self, delegator: Participant, target: RouteId) -> HostnameRejection:
        """The reason why a route gets nothing of what a delegator names it for, as the delegator's readers may know it;
        without a reason, it does."""
        edge = self._index.graph.edge(delegator.id, target)
        if edge.reason in _NOT_RESOLVED:
            return HostnameRejection(edge.reason, "")
        vertex = self._index.graph.get(target)
        if edge.reason or vertex is None or not delegator.gateways:
            return HostnameRejection(edge.reason, edge.for_parent)
        state = self._flat.of(delegator, vertex)
        return (state.rejection if state is not None else None) or HostnameRejection("", "")

    def _connected_message(
        self,
        vertex: Participant,
        roots: Sequence[Participant],
        connection: DelegationVerdict,
        above: RouteId,
        *,
        confirmed: bool,
    ) -> str:
        """For example `www.example.org/finance, delegated by HTTPRoute tenant-root/www` (R-348)."""
        hostnames = sorted({each for root in roots for each in root.hostnames})
        places = join_limited([place for match in connection.edge.delegated for place in match.places(hostnames)])
        message = f"{places}, delegated by {above.kind} {above}{'' if confirmed else f'; {_UNCONFIRMED}'}"
        open_to = sorted(
            {root.id.namespace for root in roots if self._opens_all(root, vertex)} if vertex.services else ()
        )
        if open_to:
            message += (
                f"; ReferenceGrants open every Service of namespace {vertex.id.namespace} to {vertex.id.kind}s of "
                f"{join_limited(open_to)}: name the Services"
            )
        return message

    def _opens_all(self, root: Participant, vertex: Participant) -> bool:
        return self._grants.permit_all(referrer(root.id), vertex.id.namespace, "", "Service")

    def _references(self, delegator: Participant) -> Finding | None:
        """ResolvedRefs of a route that delegates; True only if there is nothing else that it refers to."""
        problems = list(self._unresolved(delegator))
        if problems:
            return _unresolved(problems)
        if not delegator.targets or delegator.served:
            return None
        return Finding(RESOLVED_REFS, "True", RESOLVED_REFS, "all routes that it delegates to consent")

    def _vertex_references(self, vertex: Participant, roots: Sequence[Participant]) -> Finding | None:
        services = [
            (REF_NOT_PERMITTED, missing_grant(referrer(root.id), each))
            for root in roots
            for each in sorted(vertex.services)
            if not self._grants.permit(referrer(root.id), each)
        ]
        if services:
            return _unresolved([*services, *self._unresolved(vertex)])
        found = self._references(vertex)
        flat_routes = [self._flat.find(root, vertex) for root in roots]
        told = [each for flat in flat_routes if flat is not None for each in self._told_of_references(flat)]
        refused = [(controller, each) for controller, each in told if each.get("status") == "False"]
        if (found is None or found.status == "True") and refused:
            controller, condition = refused[0]
            reason = string(condition, "reason") or BACKEND_NOT_FOUND
            return Finding(RESOLVED_REFS, "False", reason, f"{controller} reports {reason} for a backend of this route")
        if found is None and told:
            return Finding(RESOLVED_REFS, "True", RESOLVED_REFS, f"{told[0][0]} resolves the backends of this route")
        return found

    def _unresolved(self, delegator: Participant) -> Iterator[tuple[str, str]]:
        for target in delegator.targets:
            edge = self._index.graph.edge(delegator.id, target)
            if edge.reason in _NOT_RESOLVED:
                yield edge.reason, edge.message

    def _told_of_references(self, flat: FlatRouteId) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """The conditions ResolvedRefs that other controllers wrote on a flat route, with their names."""
        for controller, entry in of_others(self._flat.get(flat)):
            if (condition := find_condition(entry.get("conditions"), RESOLVED_REFS)) is not None:
                yield controller, condition


def _served_message(root: Participant, flat_routes: Sequence[tuple[RouteId, str]]) -> str:
    """The state of the hostnames of a root that is accepted, by the conditions that the Gateway's controller writes on
    its flat routes: a hostname is served if those are accepted as they are now."""
    if pending := [f"{flat.kind} {flat.name}" for flat, state in flat_routes if state == "Pending"]:
        return f"{_UNCONFIRMED}: {join_limited(pending)}"
    if any(state == "Accepted" for _, state in flat_routes):
        return _SERVED
    if root.served:
        return _UNCONFIRMED
    return _NOTHING_SERVED


def _refuse(parent: Mapping[str, Any], root: Participant, state: FlatState | None) -> ParentRefVerdict | None:
    """The verdict on a vertex that is not served below a root; None if that is undecided."""
    if state is None or state.rejection is None:
        return None
    reason, text = state.rejection
    return _verdict(parent, HostnameRejection(reason, f"{join_limited(root.hostnames)}: {text}"))


def _verdict(parent: Mapping[str, Any], rejection: HostnameRejection | None, message: str = "") -> ParentRefVerdict:
    """No other controller judges such a parentRef, so that acceptance is always told."""
    reason, text = rejection if rejection is not None else ("Accepted", message)
    return ParentRefVerdict(
        dict(parent), accepted=rejection is None, reason=reason, message=text[:MAX_MESSAGE], is_sole=True
    )


def _unresolved(problems: Sequence[tuple[str, str]]) -> Finding:
    ordered = sorted(problems, key=lambda each: (each[0] != REF_NOT_PERMITTED, each))
    return Finding(RESOLVED_REFS, "False", ordered[0][0], join_limited([message for _, message in ordered]))
