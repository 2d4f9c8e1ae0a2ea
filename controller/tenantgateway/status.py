"""Renders the status of a TenantGateway. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from apiserver.meta.resource import Object
from controller.runtime.conditions import MAX_MESSAGE, Finding, build_conditions
from controller.tenantgateway.hostname_ownership import describe_route, may_be_named
from controller.tenantgateway.hostname_validation import LISTENERS_TRUNCATED, SECRET_MISSING
from controller.tenantgateway.listener_status import (
    Readiness,
    certificate_states,
    condition_state,
    count_listeners,
    listener_states,
    render_listeners,
)
from controller.tenantgateway.listenersets.existing_sets import remedy_for_truncation
from controller.tenantgateway.model import OmittedHostname, Plan, RouteId, TenantGateway
from controller.tenantgateway.names import REF_NOT_PERMITTED
from controller.tenantgateway.secrets.issuance import CERTIFICATES_PENDING
from controller.tenantgateway.secrets.replacement import describe_secret, is_invalid, remedy

READY = "Ready"
CERTIFICATES_READY = "CertificatesReady"
RECONCILE_ERROR = "ReconcileError"
NAMESPACE_NOT_ALLOWED = "NamespaceNotAllowed"
# Conditions that exist only while they are true, and that do not affect Ready.
HOSTNAMES_LEFT_OUT = "HostnamesLeftOut"
ATTACHED_ELSEWHERE = "AttachedElsewhere"
PLAINTEXT_ROUTES = "PlaintextRoutes"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReconcileResult:
    """The state of a TenantGateway after a reconcile.

    `current` is the Gateway (None if missing or foreign), `sets` are its ListenerSets and `certificates` its
    Certificates, both by name. The settings forbid the sets that the class supports if `sets_withheld`. `errors` are
    the messages of failed steps in order. `refused_namespace` is the reason why the TenantGateway is not served at all,
    and `refused_secret` the reason why the wildcard Secret of another namespace may not be used. `attached_elsewhere`
    maps namespaces that the TenantGateway lists to the gateway namespace that has them instead. `heirs` are the
    namespaces that use the Gateway beside its own. `delegations` is what becomes of the parts of hostnames that are
    delegated; None if there are none. `previous` is the status before the reconcile.
    """

    gateway: TenantGateway
    plan: Plan
    current: Object | None = None
    sets: Mapping[str, Object] = field(default_factory=dict)
    sets_withheld: bool = False
    certificates: Mapping[str, Object] = field(default_factory=dict)
    errors: Sequence[str] = ()
    refused_namespace: str = ""
    refused_secret: str = ""
    attached_elsewhere: Mapping[str, str] = field(default_factory=dict)
    heirs: Collection[str] = ()
    delegations: Object | None = None
    previous: Object | None = None


def render_tenantgateway_status(result: ReconcileResult, *, now: str) -> Object:
    """The whole status (R-223 to R-230), equal to `result.previous` if nothing changed. `now` is RFC 3339."""
    states = listener_states(result.plan, result.current, result.sets)
    certificates = certificate_states(result.plan, result.certificates)
    findings = [_ready(result, states, certificates), *_informational(result)]
    return {
        "observedGeneration": result.gateway.generation,
        "conditions": build_conditions(
            findings, (result.previous or {}).get("conditions"), generation=result.gateway.generation, now=now
        ),
        "listeners": render_listeners(result.plan, states, certificates),
        **_counts(result.previous, count_listeners(result.plan, states, certificates)),
        **_delegations(result),
    }


def _counts(previous: Object | None, counts: Mapping[str, object]) -> Mapping[str, object]:
    """The counts, or the removal of those that were written before."""
    return counts or dict.fromkeys(each for each in ("listenersTotal", "listenersReady") if each in (previous or {}))


def _delegations(result: ReconcileResult) -> Object:
    """The field, None if it must be removed: the status is written as a merge patch."""
    present = "delegations" in (result.previous or {})
    return {"delegations": result.delegations} if result.delegations is not None or present else {}


def _ready(result: ReconcileResult, states: Mapping[str, Readiness], certificates: Mapping[str, Readiness]) -> Finding:
    """Reports the first problem in this order: the namespace, errors, Gateway, listeners, certificates."""
    if result.refused_namespace:
        return _not_ready(NAMESPACE_NOT_ALLOWED, result.refused_namespace)
    errors = [*result.errors, *(each.message for each in result.plan.omitted if _is_own(each))]
    if errors:
        return _not_ready(RECONCILE_ERROR, "; ".join(errors))
    if result.refused_secret:
        return _not_ready(REF_NOT_PERMITTED, result.refused_secret)
    reason, message = result.plan.unproven_secret
    if reason:
        return _not_ready(reason, message)
    if _lacks_secret(result):
        secret = describe_secret(result.gateway)
        what = f"{secret} is missing or holds no certificate, as the Gateway's controller says"
        return _not_ready(SECRET_MISSING, f"{what}: {remedy(result.gateway)}")
    name = f"gateway {result.gateway.key.namespace}/{result.gateway.key.name}"
    for type_, reason in (("Accepted", "GatewayNotAccepted"), ("Programmed", "GatewayNotProgrammed")):
        state = condition_state(result.current, type_)
        if not state.ready:
            return _not_ready(reason, f"{name}: {state.reason}: {state.message}")
    if not_ready := [
        f"{listener}: {state.reason}: {state.message}" for listener, state in states.items() if not state.ready
    ]:
        return _not_ready("ListenersNotReady", _join_within_limit("listeners that are not ready", not_ready))
    # the certificate of a single hostname is reported by its listener only: no other hostname depends on its DNS record
    shared = (each.name for each in result.plan.certificates if not each.per_listener)
    if not_ready := [f"{each}: {certificates[each].message}" for each in shared if not certificates[each].ready]:
        return _not_ready("CertificatesNotReady", _join_within_limit("certificates that are not ready", not_ready))
    return Finding(READY, "True", "Reconciled", "the Gateway and all its listeners are ready")


def _informational(result: ReconcileResult) -> Iterator[Finding]:
    if result.refused_secret:
        message = f"{result.refused_secret}; until there is one, certificates stay as they are"
        yield Finding(CERTIFICATES_READY, "False", REF_NOT_PERMITTED, message)
    reason, unproven = result.plan.unproven_secret
    if reason:
        yield Finding(CERTIFICATES_READY, "False", reason, unproven)
    if held := result.plan.held:
        title = "hostnames that keep the certificate of before until their own is issued"
        yield Finding(CERTIFICATES_READY, "False", CERTIFICATES_PENDING, _join_within_limit(title, held))
    reported = [each for each in result.plan.omitted if _concerns_readers(each, result)]
    truncated = [each for each in reported if each.reason == LISTENERS_TRUNCATED]
    if truncated:
        hostnames = sorted({each.hostname for each in truncated})
        title = f"hostnames without a listener ({remedy_for_truncation(withheld=result.sets_withheld)})"
        yield _true(LISTENERS_TRUNCATED, "TooManyListeners", _join_within_limit(title, hostnames))
    others = [each for each in reported if each.reason != LISTENERS_TRUNCATED and not _is_own(each)]
    if others:
        omitted = dict.fromkeys(_describe(each, result.gateway.key.namespace) for each in others)
        yield _true(HOSTNAMES_LEFT_OUT, "NotRendered", _join_within_limit("hostnames that are not served", omitted))
    if result.attached_elsewhere:
        yield _elsewhere(result.attached_elsewhere)
    if result.plan.plaintext:
        routes = _describe_routes(result.plan.plaintext, result.gateway.key.namespace)
        title = "routes that port 80 serves without TLS, because they name neither a sectionName nor port 443"
        yield _true(PLAINTEXT_ROUTES, "NoSectionName", _join_within_limit(title, routes))


def _lacks_secret(result: ReconcileResult) -> bool:
    """True if the Gateway's controller says of a listener that the wildcard Secret cannot be used."""
    if result.gateway.cert_mode != "existingSecret":
        return False
    secret, planned = result.gateway.wildcard_secret, {each.name: each for each in result.plan.listeners}
    statuses = ((result.current or {}).get("status") or {}).get("listeners") or ()
    return any(
        is_invalid(each) and (found := planned.get(each.get("name"))) is not None and found.certificate == secret
        for each in statuses
    )


def _elsewhere(namespaces: Mapping[str, str]) -> Finding:
    # the other gateway is not named: users of this one need not be allowed to get it
    taken = sorted(name for name, owner in namespaces.items() if owner)
    reserved = sorted(namespaces.keys() - taken)
    parts = [
        _join_within_limit(title, names)
        for title, names in (
            ("namespaces that another gateway has", taken),
            ("namespaces of the platform, which only the Gateway of publishing.ingressName may have", reserved),
        )
        if names
    ]
    return _true(ATTACHED_ELSEWHERE, "OtherGateway" if taken else "PlatformNamespace", "; ".join(parts))


def _concerns_readers(omitted: OmittedHostname, result: ReconcileResult) -> bool:
    """False for a route of a namespace that the Gateway does not serve: only the route itself says so, to its own
    readers."""
    route = omitted.route
    return route is None or may_be_named(route, result.gateway.key.namespace) or route.namespace in result.heirs


def _is_own(omitted: OmittedHostname) -> bool:
    """True if the spec of the TenantGateway itself requests the hostname, so that it must be corrected there."""
    return omitted.route is None and not omitted.namespace and omitted.reason != LISTENERS_TRUNCATED


def _describe(omitted: OmittedHostname, own_namespace: str) -> str:
    if omitted.route is None:
        return f"{omitted.message} (a namespace that inherits the gateway)"
    return f"{omitted.message} ({describe_route(omitted.route, own_namespace)})"


def _describe_routes(routes: Sequence[RouteId], own_namespace: str) -> Sequence[str]:
    named = [str(each) for each in routes if may_be_named(each, own_namespace)]
    return named if len(named) == len(routes) else [*named, "routes of other namespaces"]


def _not_ready(reason: str, message: str) -> Finding:
    return Finding(READY, "False", reason, message[:MAX_MESSAGE])


def _true(type_: str, reason: str, message: str) -> Finding:
    return Finding(type_, "True", reason, message)


def _join_within_limit(title: str, items: Iterable[str]) -> str:
    """`title: a, b, c`, truncated to the limit of a condition message, with the number of omitted items."""
    listed = list(items)
    room = MAX_MESSAGE - len(title) - 64
    shown = 0
    for item in listed:
        room -= len(item) + 2
        if room < 0:
            break
        shown += 1
    rest = f", and {len(listed) - shown} more" if shown < len(listed) else ""
    return f"{title}: {', '.join(listed[:shown])}{rest}"
