"""The parts of a Tenant, each with its condition, and Ready, which is computed from them. Pure.

ReleaseReady is no part here: it is combined with Ready when the Tenant is read (`registry.tenant.readiness`), because
each report of Flux would otherwise cost a write.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from controller.runtime.conditions import Finding
from controller.tenant.bound_roles import ACCESS_READY
from controller.tenant.finalizer import TERMINATING
from controller.tenant.gateway_ready_step import GATEWAY_READY
from controller.tenant.isolation.step import ISOLATION_READY, ON_PURPOSE
from controller.tenant.namespace_step import NAMESPACE_READY
from controller.tenant.observe import ObservedTenant
from controller.tenant.quota.first_limits import NOT_ENFORCED, QUOTA_READY
from controller.tenant.tenantgateway_step import MISSING
from controller.tenant.values_secret_step import VALUES_READY
from registry.tenant.readiness import READY
from registry.tenant.spec import unreadable_quotas

REFUSED = "Refused"
_RECONCILED, _PENDING = "Reconciled", "Pending"
_WAITS_FOR_NAMESPACE = "waits for the namespace of the tenant"


def _always(observed: ObservedTenant) -> bool:
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """`asked_for` says whether the Tenant asks for the part: only then does its condition count for Ready. `ready` is
    the message if the step of the part found nothing wrong; without it, the condition is only there if a step finds
    it. `chosen` are reasons with which the condition is False because the platform wants it so: it does not count."""

    condition: str
    asked_for: Callable[[ObservedTenant], bool] = _always
    ready: str = ""
    chosen: Collection[str] = ()


PARTS: Sequence[Part] = (
    Part(condition=NAMESPACE_READY),
    Part(condition=ISOLATION_READY, chosen=ON_PURPOSE),
    Part(condition=VALUES_READY),
    Part(condition=ACCESS_READY, ready="the tenant's people and service accounts have their permissions"),
    Part(
        condition=QUOTA_READY,
        asked_for=lambda observed: bool(observed.tenant.quotas or unreadable_quotas(observed.release)),
        ready="the declared limits are in force",
        chosen=(NOT_ENFORCED,),
    ),
    # a Gateway that is inherited is shown, and is the matter of its owner
    Part(condition=GATEWAY_READY, asked_for=lambda observed: bool(observed.tenant.gateway)),
)
"""In the order in which Ready names them. A new part is one more line."""


def _sets_host(observed: ObservedTenant) -> bool:
    return bool(observed.tenant.host)


PROBLEMS: Mapping[str, Callable[[ObservedTenant], bool]] = {
    "HostInvalid": _sets_host,
    "HostTooLongForLabel": _sets_host,
    "HostConflict": _sets_host,
    "SchedulingClassInvalid": lambda observed: bool(observed.tenant.scheduling_class),
}
"""The conditions that are there only while a value of the spec cannot take effect, each with the check that it is the
Tenant's own value: an inherited one is the matter of the ancestor that sets it."""


def with_part_conditions(
    observed: ObservedTenant, findings: Sequence[Finding], ran: Collection[str]
) -> Sequence[Finding]:
    """The findings, with a condition for each part that the Tenant asks for. `ran` are the conditions of the steps that
    have run; the others wait for the Namespace."""
    merged = _with_missing_gateway(findings)
    found = {each.type for each in merged}
    silent = [part for part in PARTS if part.ready and part.condition not in found and part.asked_for(observed)]
    return [*merged, *(_found(part, part.condition in ran) for part in silent)]


def ready_finding(observed: ObservedTenant, findings: Sequence[Finding]) -> Finding:
    """Ready: True only if every part that the Tenant asks for is. False is stronger than Unknown, and decides the
    reason; the message is about both."""
    by_type = {each.type: each for each in findings}
    if (terminating := by_type.get(TERMINATING)) is not None:
        return Finding(READY, "False", TERMINATING, terminating.message)
    counting = [
        finding
        for part in PARTS
        if (finding := by_type.get(part.condition)) is not None
        and part.asked_for(observed)
        and finding.reason not in part.chosen
    ]
    refused = [each for each in findings if (each.status, each.reason) == ("False", REFUSED) and each not in counting]
    failing = [*(each for each in counting if each.status == "False"), *_own_problems(observed, by_type), *refused]
    not_ready = [*failing, *(each for each in counting if each.status == "Unknown" and not _follows(each, failing))]
    if not not_ready:
        return Finding(READY, "True", _RECONCILED, "the tenant is up to date")
    message = "; ".join(dict.fromkeys(each.message for each in not_ready))
    return Finding(READY, not_ready[0].status, not_ready[0].reason, message)


def _follows(finding: Finding, failing: Sequence[Finding]) -> bool:
    """True if the part only waits for another one, which fails and says why."""
    return bool(failing) and finding.message == _WAITS_FOR_NAMESPACE


def _own_problems(observed: ObservedTenant, by_type: Mapping[str, Finding]) -> Iterator[Finding]:
    for type_, is_own in PROBLEMS.items():
        if type_ in by_type and is_own(observed):
            yield Finding(READY, "False", type_, by_type[type_].message)


def _found(part: Part, has_run: bool) -> Finding:
    if has_run:
        return Finding(part.condition, "True", _RECONCILED, part.ready)
    return Finding(part.condition, "Unknown", _PENDING, _WAITS_FOR_NAMESPACE)


def _with_missing_gateway(findings: Sequence[Finding]) -> Sequence[Finding]:
    """A TenantGateway that cannot be created makes GatewayReady False: nothing is to be waited for."""
    missing = next((each for each in findings if each.type == MISSING), None)
    if missing is None:
        return findings
    others = [each for each in findings if each.type != GATEWAY_READY]
    return [*others, Finding(GATEWAY_READY, "False", missing.reason, missing.message)]
