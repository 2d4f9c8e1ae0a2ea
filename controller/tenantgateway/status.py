"""Renders the status of a TenantGateway. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from apiserver.meta.resource import Object
from controller.runtime.conditions import MAX_MESSAGE, Finding, build_conditions
from controller.tenantgateway.hostname_ownership import describe_route, may_be_named
from controller.tenantgateway.hostname_validation import LISTENERS_TRUNCATED
from controller.tenantgateway.listener_status import (
    ConditionState,
    certificate_states,
    condition_state,
    listener_states,
    render_listeners,
)
from controller.tenantgateway.model import OmittedHostname, Plan, RouteId, TenantGateway

READY = "Ready"
RECONCILE_ERROR = "ReconcileError"
# Conditions that exist only while they are true, and that do not affect Ready.
HOSTNAMES_LEFT_OUT = "HostnamesLeftOut"
ATTACHED_ELSEWHERE = "AttachedElsewhere"
PLAINTEXT_ROUTES = "PlaintextRoutes"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReconcileResult:
    """The state of a TenantGateway after a reconcile.

    `current` is the Gateway (None if missing or foreign), `certificates` are its Certificates by name. `errors` are the
    messages of failed steps in order. `attached_elsewhere` maps namespaces that the TenantGateway lists to the gateway
    namespace that has them instead. `previous` is the status before the reconcile.
    """

    gateway: TenantGateway
    plan: Plan
    current: Object | None = None
    certificates: Mapping[str, Object] = field(default_factory=dict)
    errors: Sequence[str] = ()
    attached_elsewhere: Mapping[str, str] = field(default_factory=dict)
    previous: Object | None = None


def render_status(result: ReconcileResult, *, now: str) -> Object:
    """The whole status (R-223 to R-230), equal to `result.previous` if nothing changed. `now` is RFC 3339."""
    states = listener_states(result.plan, result.current)
    certificates = certificate_states(result.plan, result.certificates)
    findings = [_ready(result, states, certificates), *_informational(result)]
    return {
        "observedGeneration": result.gateway.generation,
        "conditions": build_conditions(
            findings, (result.previous or {}).get("conditions"), generation=result.gateway.generation, now=now
        ),
        "listeners": render_listeners(result.plan, states, certificates),
    }


def _ready(
    result: ReconcileResult, states: Mapping[str, ConditionState], certificates: Mapping[str, ConditionState]
) -> Finding:
    """Reports the first problem in this order: errors, Gateway, listeners, certificates."""
    errors = [*result.errors, *(each.message for each in result.plan.omitted if _is_own(each))]
    if errors:
        return _not_ready(RECONCILE_ERROR, "; ".join(errors))
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
    truncated = [each for each in result.plan.omitted if each.reason == LISTENERS_TRUNCATED]
    if truncated:
        hostnames = sorted({each.hostname for each in truncated})
        yield _true(
            LISTENERS_TRUNCATED, "TooManyListeners", _join_within_limit("hostnames without a listener", hostnames)
        )
    others = [each for each in result.plan.omitted if each.reason != LISTENERS_TRUNCATED and not _is_own(each)]
    if others:
        omitted = dict.fromkeys(_describe(each, result.gateway.key.namespace) for each in others)
        yield _true(HOSTNAMES_LEFT_OUT, "NotRendered", _join_within_limit("hostnames that are not served", omitted))
    if result.attached_elsewhere:
        # the other gateway is not named: users of this one need not be allowed to get it
        elsewhere = sorted(result.attached_elsewhere)
        yield _true(
            ATTACHED_ELSEWHERE, "OtherGateway", _join_within_limit("namespaces that another gateway has", elsewhere)
        )
    if result.plan.plaintext:
        routes = _describe_routes(result.plan.plaintext, result.gateway.key.namespace)
        title = "routes that port 80 serves without TLS, because they name neither a sectionName nor port 443"
        yield _true(PLAINTEXT_ROUTES, "NoSectionName", _join_within_limit(title, routes))


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
