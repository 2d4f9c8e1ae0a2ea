"""Readiness of the listeners and Certificates of a Gateway, from their conditions. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from apiserver.meta.resource import Object
from controller.runtime.conditions import find_condition, is_stale
from controller.tenantgateway.model import Plan, PlannedListener

PENDING = "Pending"
CERTIFICATE_NOT_READY = "CertificateNotReady"


class ConditionState(NamedTuple):
    """The readiness of a listener or object; `reason` (CamelCase) and `message` are empty if `ready` is true."""

    ready: bool
    reason: str = ""
    message: str = ""


READY = ConditionState(True)


def condition_state(obj: Object | None, type_: str) -> ConditionState:
    """The state of one condition; a condition that is missing or of an earlier generation is pending."""
    if obj is None:
        return ConditionState(False, PENDING, "does not exist yet")
    found = find_condition((obj.get("status") or {}).get("conditions"), type_)
    if found is not None and is_stale(found, obj):
        return ConditionState(False, PENDING, f"has a condition {type_} of an earlier generation")
    return _condition_state(found, type_)


def listener_states(plan: Plan, current: Object | None) -> Mapping[str, ConditionState]:
    """The state that the Gateway's controller reports for each planned listener, by name."""
    statuses = {each.get("name"): each for each in ((current or {}).get("status") or {}).get("listeners") or ()}
    return {each.name: _listener_state(statuses.get(each.name)) for each in plan.listeners}


def certificate_states(plan: Plan, certificates: Mapping[str, Object]) -> Mapping[str, ConditionState]:
    """The state that cert-manager reports for each planned Certificate, by name."""
    return {each.name: condition_state(certificates.get(each.name), "Ready") for each in plan.certificates}


def render_listeners(
    plan: Plan, states: Mapping[str, ConditionState], certificates: Mapping[str, ConditionState]
) -> Sequence[Mapping[str, object]]:
    """status.listeners of the TenantGateway; the reason of a certificate that is not ready takes precedence."""
    return [
        _render_listener(each, states[each.name], certificates.get(each.certificate, READY)) for each in plan.listeners
    ]


def _render_listener(
    listener: PlannedListener, state: ConditionState, certificate: ConditionState
) -> Mapping[str, object]:
    ready = state.ready and certificate.ready
    fields = {
        "name": listener.name,
        "hostname": listener.hostname,
        "certificateName": listener.certificate,
        "reason": "" if ready else state.reason if certificate.ready else CERTIFICATE_NOT_READY,
    }
    return {**{field: value for field, value in fields.items() if value}, "ready": ready}


def _listener_state(status: Mapping[str, Any] | None) -> ConditionState:
    """Ready means accepted, programmed and not conflicted (R-230); some controllers omit conditions that are fine.

    An unresolved reference is the cause of a listener that is not programmed. A listener that is programmed may have
    one: Cilium reports so the route kinds that it does not know.
    """
    if status is None:
        return ConditionState(False, PENDING, "has no status yet")
    return next((each for each in _deciding_states(status.get("conditions")) if not each.ready), READY)


def _deciding_states(conditions: object) -> Iterator[ConditionState]:
    accepted, references = find_condition(conditions, "Accepted"), find_condition(conditions, "ResolvedRefs")
    if accepted is not None:
        yield _condition_state(accepted, "Accepted")
    programmed = _condition_state(find_condition(conditions, "Programmed"), "Programmed")
    if references is not None and not programmed.ready:
        yield _condition_state(references, "ResolvedRefs")
    yield programmed
    conflicted = find_condition(conditions, "Conflicted")
    if conflicted is not None and conflicted.get("status") == "True":
        yield ConditionState(False, str(conflicted.get("reason") or "Conflicted"), str(conflicted.get("message") or ""))


def _condition_state(found: Mapping[str, Any] | None, type_: str) -> ConditionState:
    if found is None:
        return ConditionState(False, PENDING, f"has no condition {type_} yet")
    if found.get("status") == "True":
        return READY
    return ConditionState(
        False, str(found.get("reason") or f"Not{type_}"), str(found.get("message") or f"is not {type_}")
    )
