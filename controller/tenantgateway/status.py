"""The status of a TenantGateway. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from apiserver.meta.resource import Object
from controller.runtime.conditions import Finding, build_conditions
from controller.tenantgateway.hostname_validation import LISTENERS_TRUNCATED
from controller.tenantgateway.listener_status import (
    ConditionState,
    certificate_states,
    condition_state,
    listener_states,
    listeners,
)
from controller.tenantgateway.model import OmittedHostname, Plan, TenantGateway

READY = "Ready"
RECONCILE_ERROR = "ReconcileError"
# Conditions that are there only while they are true; none of them makes the TenantGateway not ready.
HOSTNAMES_LEFT_OUT = "HostnamesLeftOut"
ATTACHED_ELSEWHERE = "AttachedElsewhere"
PLAINTEXT_ROUTES = "PlaintextRoutes"

_MAX_MESSAGE = 32768


@dataclass(frozen=True, slots=True, kw_only=True)
class ReconcileResult:
    """What there is of a TenantGateway after its reconcile.

    `current` is the Gateway (None if there is none, or if it is foreign), `certificates` are its Certificates by name.
    `errors` are the steps that failed, in their order, a sentence each; `lost` the namespaces that it lists and
    another gateway has, with that one's namespace; `previous` the status as it was.
    """

    gateway: TenantGateway
    plan: Plan
    current: Object | None = None
    certificates: Mapping[str, Object] = field(default_factory=dict)
    errors: Sequence[str] = ()
    attached_elsewhere: Mapping[str, str] = field(default_factory=dict)
    previous: Object | None = None


def render_status(found: ReconcileResult, *, now: str) -> Object:
    """The whole status (R-223 to R-230), equal to `found.previous` if nothing changed. `now` is RFC 3339."""
    states = listener_states(found.plan, found.current)
    certificates = certificate_states(found.plan, found.certificates)
    findings = [_ready(found, states, certificates), *_informational(found)]
    return {
        "observedGeneration": found.gateway.generation,
        "conditions": build_conditions(
            findings, (found.previous or {}).get("conditions"), generation=found.gateway.generation, now=now
        ),
        "listeners": listeners(found.plan, states, certificates),
    }


def _ready(
    found: ReconcileResult, states: Mapping[str, ConditionState], certificates: Mapping[str, ConditionState]
) -> Finding:
    """The first that is not as it should be, in the order in which one follows from the other."""
    errors = [*found.errors, *(each.message for each in found.plan.omitted if _is_own(each))]
    if errors:
        return _not_ready(RECONCILE_ERROR, "; ".join(errors))
    name = f"gateway {found.gateway.key.namespace}/{found.gateway.key.name}"
    for type_, reason in (("Accepted", "GatewayNotAccepted"), ("Programmed", "GatewayNotProgrammed")):
        state = condition_state(found.current, type_)
        if not state.ready:
            return _not_ready(reason, f"{name}: {state.reason}: {state.message}")
    if late := [
        f"{listener}: {state.reason}: {state.message}" for listener, state in states.items() if not state.ready
    ]:
        return _not_ready("ListenersNotReady", _join_within_limit("listeners that are not ready", late))
    # a hostname's own certificate is told with its listener: one that waits for its DNS is no fault of the others
    shared = (each.name for each in found.plan.certificates if not each.per_listener)
    if late := [f"{each}: {certificates[each].message}" for each in shared if not certificates[each].ready]:
        return _not_ready("CertificatesNotReady", _join_within_limit("certificates that are not ready", late))
    return Finding(READY, "True", "Reconciled", "the Gateway and its listeners are as wanted")


def _informational(found: ReconcileResult) -> Iterator[Finding]:
    truncated = [each for each in found.plan.omitted if each.reason == LISTENERS_TRUNCATED]
    if truncated:
        hostnames = sorted({each.hostname for each in truncated})
        yield _true(
            LISTENERS_TRUNCATED, "TooManyListeners", _join_within_limit("hostnames without a listener", hostnames)
        )
    others = [each for each in found.plan.omitted if each.reason != LISTENERS_TRUNCATED and not _is_own(each)]
    if others:
        yield _true(HOSTNAMES_LEFT_OUT, "NotRendered", _join_within_limit("left out", map(_describe, others)))
    if found.attached_elsewhere:
        lost = (
            f"{namespace} is attached to {found.attached_elsewhere[namespace]}"
            for namespace in sorted(found.attached_elsewhere)
        )
        yield _true(
            ATTACHED_ELSEWHERE, "OtherGateway", _join_within_limit("attachedNamespaces that another gateway has", lost)
        )
    if found.plan.plaintext:
        routes = map(str, found.plan.plaintext)
        why = "routes that port 80 serves without TLS, until they name a sectionName or the port 443"
        yield _true(PLAINTEXT_ROUTES, "NoSectionName", _join_within_limit(why, routes))


def _is_own(omitted: OmittedHostname) -> bool:
    """Whether the TenantGateway itself asks for what cannot be, so that it is its own fault to mend."""
    return omitted.route is None and not omitted.namespace and omitted.reason != LISTENERS_TRUNCATED


def _describe(omitted: OmittedHostname) -> str:
    who = f"{omitted.route.kind} {omitted.route}" if omitted.route else f"namespace {omitted.namespace}"
    return f"{omitted.message} ({who})"


def _not_ready(reason: str, message: str) -> Finding:
    return Finding(READY, "False", reason, message[:_MAX_MESSAGE])


def _true(type_: str, reason: str, message: str) -> Finding:
    return Finding(type_, "True", reason, message)


def _join_within_limit(what: str, items: Iterable[str]) -> str:
    """`what: a, b, c`, as far as a condition holds it, with the number of those that it does not."""
    listed = list(items)
    room = _MAX_MESSAGE - len(what) - 64
    shown = 0
    for item in listed:
        room -= len(item) + 2
        if room < 0:
            break
        shown += 1
    rest = f", and {len(listed) - shown} more" if shown < len(listed) else ""
    return f"{what}: {', '.join(listed[:shown])}{rest}"
