"""Readiness of the listeners and Certificates of a Gateway, from their conditions. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from apiserver.meta.resource import Object
from controller.runtime.conditions import find_condition, is_stale
from controller.tenantgateway.model import Plan, PlannedListener

# the entries of status.listeners: all of them have to fit into one object of etcd, which may have 1.5 MiB
MAX_SHOWN = 1024
PENDING = "Pending"
CERTIFICATE_NOT_READY = "CertificateNotReady"


class Readiness(NamedTuple):
    """The readiness of a listener or object; `reason` (CamelCase) and `message` are empty if `ready` is true."""

    ready: bool
    reason: str = ""
    message: str = ""


READY = Readiness(True)


def condition_state(obj: Object | None, type_: str) -> Readiness:
    """The state of one condition; a condition that is missing or of an earlier generation is pending."""
    if obj is None:
        return Readiness(False, PENDING, "does not exist yet")
    found = find_condition((obj.get("status") or {}).get("conditions"), type_)
    if found is not None and is_stale(found, obj):
        return Readiness(False, PENDING, f"has a condition {type_} of an earlier generation")
    return _condition_state(found, type_)


def listener_states(plan: Plan, current: Object | None, sets: Mapping[str, Object]) -> Mapping[str, Readiness]:
    """The state that the Gateway's controller reports for each planned listener, by name. `sets` are the existing
    ListenerSets by name: as long as one is not accepted and programmed, none of its listeners is."""
    own = _statuses(current)
    states = {each.name: listener_state(own.get(each.name)) for each in plan.listeners}
    for planned in plan.sets:
        found = sets.get(planned.name)
        refused, statuses = _refused_set(planned.name, found), _statuses(found)
        states |= {each.name: refused or listener_state(statuses.get(each.name)) for each in planned.listeners}
    return states


def _statuses(obj: Object | None) -> Mapping[str, Mapping[str, Any]]:
    """The status of each listener of a Gateway or ListenerSet, by name."""
    return {each.get("name"): each for each in ((obj or {}).get("status") or {}).get("listeners") or ()}


def _refused_set(name: str, found: Object | None) -> Readiness | None:
    """The reason why no listener of a ListenerSet is ready; None if it is accepted and programmed, or an earlier
    generation was: then its listeners tell their own states."""
    if found is None:
        return Readiness(False, PENDING, f"listenerset {name} does not exist yet")
    conditions = (found.get("status") or {}).get("conditions")
    for type_ in ("Accepted", "Programmed"):
        state = _condition_state(find_condition(conditions, type_), type_)
        if not state.ready:
            return state._replace(message=f"listenerset {name}: {state.message}")
    return None


def certificate_states(plan: Plan, certificates: Mapping[str, Object]) -> Mapping[str, Readiness]:
    """The state that cert-manager reports for each planned Certificate, by name."""
    return {each.name: condition_state(certificates.get(each.name), "Ready") for each in plan.certificates}


def render_listeners(
    plan: Plan, states: Mapping[str, Readiness], certificates: Mapping[str, Readiness]
) -> Sequence[Mapping[str, object]]:
    """status.listeners of the TenantGateway; the reason of a certificate that is not ready takes precedence. An object
    has room for `MAX_SHOWN` of them: beyond that, those that are ready are left out."""
    placed = [("", each) for each in plan.listeners]
    placed += [(found.name, each) for found in plan.sets for each in found.listeners]
    rendered = [
        _render_listener(each, name, states[each.name], certificates.get(each.certificate, READY))
        for name, each in placed
    ]
    if len(rendered) <= MAX_SHOWN:
        return rendered
    kept = sorted(range(len(rendered)), key=lambda index: (bool(rendered[index]["ready"]), index))[:MAX_SHOWN]
    return [rendered[index] for index in sorted(kept)]


def count_listeners(
    plan: Plan, states: Mapping[str, Readiness], certificates: Mapping[str, Readiness]
) -> Mapping[str, object]:
    """The numbers of all listeners and of those that are ready; none without ListenerSets."""
    if not plan.sets:
        return {}
    listeners = [*plan.listeners, *(each for found in plan.sets for each in found.listeners)]
    ready = sum(states[each.name].ready and certificates.get(each.certificate, READY).ready for each in listeners)
    return {"listenersTotal": len(listeners), "listenersReady": ready}


def _render_listener(
    listener: PlannedListener, listener_set: str, state: Readiness, certificate: Readiness
) -> Mapping[str, object]:
    ready = state.ready and certificate.ready
    fields = {
        "name": listener.name,
        "hostname": listener.hostname,
        "listenerSet": listener_set,
        "certificateName": listener.certificate,
        "reason": "" if ready else state.reason if certificate.ready else CERTIFICATE_NOT_READY,
    }
    return {**{field: value for field, value in fields.items() if value}, "ready": ready}


def listener_state(status: Mapping[str, Any] | None) -> Readiness:
    """Ready means accepted, programmed and not conflicted (R-230); some controllers omit conditions that are fine.

    An unresolved reference is the cause of a listener that is not programmed. A listener that is programmed may have
    one: Cilium reports so the route kinds that it does not know.
    """
    if status is None:
        return Readiness(False, PENDING, "has no status yet")
    return next((each for each in _deciding_states(status.get("conditions")) if not each.ready), READY)


def _deciding_states(conditions: object) -> Iterator[Readiness]:
    accepted, references = find_condition(conditions, "Accepted"), find_condition(conditions, "ResolvedRefs")
    if accepted is not None:
        yield _condition_state(accepted, "Accepted")
    programmed = _condition_state(find_condition(conditions, "Programmed"), "Programmed")
    if references is not None and not programmed.ready:
        yield _condition_state(references, "ResolvedRefs")
    yield programmed
    conflicted = find_condition(conditions, "Conflicted")
    if conflicted is not None and conflicted.get("status") == "True":
        yield Readiness(False, str(conflicted.get("reason") or "Conflicted"), str(conflicted.get("message") or ""))


def _condition_state(found: Mapping[str, Any] | None, type_: str) -> Readiness:
    if found is None:
        return Readiness(False, PENDING, f"has no condition {type_} yet")
    if found.get("status") == "True":
        return READY
    return Readiness(False, str(found.get("reason") or f"Not{type_}"), str(found.get("message") or f"is not {type_}"))
