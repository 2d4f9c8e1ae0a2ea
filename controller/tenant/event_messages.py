"""Turns changes of a Tenant's conditions into Events: new problems, recovery, and what a deletion waits for. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from controller.runtime.conditions import find_condition
from controller.runtime.event_recorder import Event
from controller.tenant.finalizer import HELD_UP, TERMINATING
from controller.tenant.isolation.step import ON_PURPOSE
from controller.tenant.quota.first_limits import NOT_ENFORCED

_RECONCILE, _DELETE = "Reconcile", "Delete"
_READY = "Ready"
_EXPECTED = {*ON_PURPOSE, NOT_ENFORCED}


def events_for_tenant_conditions(before: object, after: Sequence[Mapping[str, Any]]) -> Sequence[Event]:
    """`before` are the previous conditions, possibly malformed. Of several events with one note, the first is
    returned."""
    changed = [each for each in after if _is_change(find_condition(before, str(each["type"])), each)]
    found: dict[str, Event] = {}
    # Ready comes last: it repeats the message of another condition
    for each in sorted(changed, key=lambda each: each["type"] == _READY):
        for event in _events(each):
            found.setdefault(event.note, event)
    return tuple(found.values())


def _is_change(before: Mapping[str, Any] | None, after: Mapping[str, Any]) -> bool:
    if before is None:
        return True
    return (before.get("status"), before.get("reason")) != (after["status"], after["reason"])


def _events(condition: Mapping[str, Any]) -> Iterator[Event]:
    type_, status, reason, message = (str(condition[each]) for each in ("type", "status", "reason", "message"))
    if type_ == TERMINATING:
        yield Event("Warning" if reason in HELD_UP else "Normal", reason, _DELETE, message)
    elif _is_positive(type_):
        if status == "False" and reason not in _EXPECTED:
            yield Event("Warning", reason, _RECONCILE, message)
        elif status == "True" and type_ == _READY:
            yield Event("Normal", reason, _RECONCILE, message)
    elif status == "True":
        yield Event("Warning", type_, _RECONCILE, message)


def _is_positive(type_: str) -> bool:
    """True if the condition is True in the normal case. All other types exist only while there is a problem."""
    return type_.endswith((_READY, "Applied"))
