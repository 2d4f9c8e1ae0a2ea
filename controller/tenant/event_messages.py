"""What of a Tenant's conditions is told in Events: what became wrong, what came right, and what is waited for. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from controller.runtime.conditions import find_condition
from controller.runtime.event_recorder import Event
from controller.tenant.finalizer import TERMINATING

_RECONCILE, _DELETE = "Reconcile", "Delete"
_READY = "Ready"
# A state, and no news: a tenant without a Gateway.
_INFORMATION = frozenset(("NoGateway",))


def events_for_conditions(before: object, after: Sequence[Mapping[str, Any]]) -> Sequence[Event]:
    """`before` are the conditions as they were, whatever that may be. The same sentence is told once."""
    changed = [each for each in after if _is_news(find_condition(before, str(each["type"])), each)]
    found: dict[str, Event] = {}
    # Ready repeats what another condition says in full
    for each in sorted(changed, key=lambda each: each["type"] == _READY):
        for occurrence in _told(each):
            found.setdefault(occurrence.note, occurrence)
    return tuple(found.values())


def _is_news(before: Mapping[str, Any] | None, after: Mapping[str, Any]) -> bool:
    if before is None:
        return True
    return (before.get("status"), before.get("reason")) != (after["status"], after["reason"])


def _told(found: Mapping[str, Any]) -> Iterator[Event]:
    type_, status, reason, message = (str(found[each]) for each in ("type", "status", "reason", "message"))
    if reason in _INFORMATION:
        return
    if type_ == TERMINATING:
        yield Event("Normal", reason, _DELETE, message)
    elif _is_good(type_):
        if status == "False":
            yield Event("Warning", reason, _RECONCILE, message)
        elif status == "True" and type_ == _READY:
            yield Event("Normal", reason, _RECONCILE, message)
    elif status == "True":
        yield Event("Warning", type_, _RECONCILE, message)


def _is_good(type_: str) -> bool:
    """Whether True is how it should be. All other types are there only while something is wrong."""
    return type_.endswith((_READY, "Applied"))
