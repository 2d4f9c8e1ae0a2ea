"""Parses routes into the roots and vertices of delegation. Pure; parsing never fails."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from apiserver.meta.resource import Key, Object
from controller.tenantgateway.consent.references import CORE, references
from controller.tenantgateway.delegation.matches import EVERYTHING, parse_match, parse_method_match, whole
from controller.tenantgateway.delegation.model import DelegatedMatch, DelegationRule, Participant
from controller.tenantgateway.model import ROUTE_KINDS, RouteId, RouteKind
from controller.tenantgateway.names import GATEWAY_API_GROUP
from controller.tenantgateway.parse import hostnames, mapping, mappings, parent_refs, parent_target, route_id, string
from registry.cluster.interface import is_terminating
from registry.names import canonical_host
from registry.tenantgateway.types import GROUP, KIND

# The fields of a rule that may be copied to the root's namespace: none of them names an object there.
_RULE_FIELDS = frozenset(("name", "matches", "filters", "backendRefs", "timeouts", "retry", "sessionPersistence"))
_BACKEND_FIELDS = frozenset(("group", "kind", "name", "namespace", "port", "weight", "filters"))
_FILTER_FIELDS = frozenset(
    (
        "type",
        "requestHeaderModifier",
        "responseHeaderModifier",
        "requestMirror",
        "requestRedirect",
        "urlRewrite",
        "cors",
    )
)
_UNSUPPORTED: Mapping[RouteKind, str] = {
    "HTTPRoute": "a path that is neither Exact nor PathPrefix, or unclear",
    "GRPCRoute": "a method that is not Exact",
}
_DELEGATING_RULE_FIELDS = frozenset(("name", "matches", "backendRefs"))


def participant(obj: Object, kind: RouteKind) -> Participant | None:
    """The route as a root or a vertex; None if it is neither, or if its deletion has begun."""
    identity = route_id(obj, kind)
    parents = [*parent_refs(obj)]
    gateways = (parent_tenantgateway(each, identity.namespace) for each in parents)
    routes = (parent_route(each, identity) for each in parents)
    found = Participant(
        id=identity,
        uid=obj["metadata"]["uid"],
        hostnames=tuple(sorted({canonical_host(each) for each in hostnames(obj)})),
        gateways=tuple(dict.fromkeys(filter(None, gateways))),
        parents=tuple(dict.fromkeys(filter(None, routes))),
    )
    if is_terminating(obj) or not (found.gateways or found.parents):
        return None
    return _with_rules(found, obj)


def parent_tenantgateway(parent: Mapping[str, Any], namespace: str) -> Key | None:
    """The TenantGateway that a parentRef of a route in `namespace` refers to; None if it refers to another kind."""
    target = parent_target(parent, namespace)
    return Key(target.namespace, target.name) if target[:2] == (GROUP, KIND) and target.name else None


def lacks_group(parent: Mapping[str, Any]) -> bool:
    """True if a parentRef means a TenantGateway by its kind, but has not the group of that kind: without a group, it
    refers to one of Gateway API, which has no such kind."""
    return parent_target(parent, "")[:2] == (GATEWAY_API_GROUP, KIND)


def parent_route(parent: Mapping[str, Any], child: RouteId) -> RouteId | None:
    """The route of the same kind that a parentRef refers to; None if it refers to another kind."""
    target = parent_target(parent, child.namespace)
    if target[:2] != (GATEWAY_API_GROUP, child.kind) or not target.name:
        return None
    return RouteId(target.namespace, target.name, child.kind)


def _with_rules(found: Participant, obj: Object) -> Participant:
    rules, served, problems, unsupported = [], [], [], []
    for number, rule in enumerate(mappings(mapping(obj.get("spec")).get("rules")), 1):
        targets, parsed = tuple(_targets(rule, found.id)), _matches(rule, found)
        rules.append(DelegationRule(tuple(each for each in parsed if each is not None), targets))
        if None in parsed:
            unsupported.append(f"rule {number} matches {_UNSUPPORTED[found.id.kind]}")
        if other := _other_kind(rule, found.id):
            problems.append(f"rule {number} names an {other}: a {found.id.kind} delegates to {found.id.kind}s")
        elif not targets:
            served.append(dict(rule))
        elif not _only_delegates(rule, targets):
            problems.append(f"rule {number} delegates, so that it may have matches and routes only")
        elif None in parsed:
            problems.append(f"rule {number} delegates {_UNSUPPORTED[found.id.kind]}")
    if found.id.kind == "TLSRoute" and served and any(each.targets for each in rules):
        problems.append("a TLSRoute either delegates or serves, because its rules have no matches")
    problem = next(iter(problems), "")
    services = frozenset(each for each in references(obj) if (each.group, each.kind) == (CORE, "Service"))
    return replace(
        found,
        rules=tuple(rules),
        served=served,
        problem=problem,
        vertex_problem=problem or next(iter(unsupported), "") or _foreign_content(found, obj, served),
        services=services,
    )


def _matches(rule: Mapping[str, Any], found: Participant) -> Sequence[DelegatedMatch | None]:
    """The selections of a rule; None stands for a match that is not supported."""
    if found.id.kind == "TLSRoute":
        return [whole(each) for each in found.hostnames]
    parse = parse_match if found.id.kind == "HTTPRoute" else parse_method_match
    return [parse(each) for each in mappings(rule.get("matches"))] or [EVERYTHING]


def _other_kind(rule: Mapping[str, Any], route: RouteId) -> str:
    """The kind of a backend that is a route of another kind; empty if there is none."""
    named = (each for each in mappings(rule.get("backendRefs")) if string(each, "group") == GATEWAY_API_GROUP)
    kinds = (string(each, "kind") for each in named)
    return next((each for each in kinds if each in ROUTE_KINDS and each != route.kind), "")


def _targets(rule: Mapping[str, Any], route: RouteId) -> Iterator[RouteId]:
    for each in mappings(rule.get("backendRefs")):
        if (string(each, "group"), string(each, "kind")) == (GATEWAY_API_GROUP, route.kind) and string(each, "name"):
            yield RouteId(string(each, "namespace") or route.namespace, string(each, "name"), route.kind)


def _only_delegates(rule: Mapping[str, Any], targets: Sequence[RouteId]) -> bool:
    """Filters and other settings of such a rule would be lost: they are not those of the delegated routes."""
    backends = [*mappings(rule.get("backendRefs"))]
    return (
        set(rule) <= _DELEGATING_RULE_FIELDS
        and len(backends) == len(targets)
        and not any(each.get("filters") for each in backends)
    )


def _hostname_problem(found: Participant) -> str:
    """The reason why a route with such hostnames is no vertex; empty if there is none."""
    if found.id.kind != "TLSRoute":
        return "a delegated route has no hostnames" if found.hostnames else ""
    if found.gateways:
        return "a route that refers to a TenantGateway is not delegated to"
    return "" if found.hostnames else "a delegated TLSRoute lists the hostnames that it gets"


def _foreign_content(found: Participant, obj: Object, served: Sequence[Object]) -> str:
    """The reason why the rules must not be copied to another namespace: there, what they name would be judged by that
    namespace's rights and consents (R-378). Empty if there is none."""
    if problem := _hostname_problem(found):
        return problem
    for each in references(obj):
        is_target = (each.group, each.kind) == (GATEWAY_API_GROUP, found.id.kind)
        if not is_target and each[:3] != (CORE, "Service", found.id.namespace):
            return f"{each}: a delegated route refers to Services of its own namespace only"
    for rule in served:
        if unknown := sorted(set(rule) - _RULE_FIELDS):
            return f"a delegated route may not have the field {unknown[0]} in its rules"
        for holder in (rule, *mappings(rule.get("backendRefs"))):
            if holder is not rule and (unknown := sorted(set(holder) - _BACKEND_FIELDS)):
                return f"a delegated route may not have the field {unknown[0]} in its backendRefs"
            if unknown := sorted(
                {field for each in mappings(holder.get("filters")) for field in each} - _FILTER_FIELDS
            ):
                return f"a delegated route may not have the filter {unknown[0]}"
    return ""
