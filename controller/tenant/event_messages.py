"""What of a Tenant's conditions is told in Events: what became wrong, what came right, and what is waited for. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from controller.runtime.conditions import condition
from controller.runtime.event_recorder import Occurrence
from controller.tenant.finalizer import TERMINATING

_RECONCILE, _DELETE = "Reconcile", "Delete"
_READY = "Ready"
# A state, and no news: a tenant without a Gateway.
_INFORMATION = frozenset(("NoGateway",))


def occurrences(before: object, after: Sequence[Mapping[str, Any]]) -> Sequence[Occurrence]:
    """`before` are the conditions as they were, whatever that may be. The same sentence is told once."""
    changed = [each for each in after if _is_news(condition(before, str(each["type"])), each)]
    found: dict[str, Occurrence] = {}
    # Ready repeats what another condition says in full
    for each in sorted(changed, key=lambda each: each["type"] == _READY):
        for occurrence in _told(each):
            found.setdefault(occurrence.note, occurrence)
    return tuple(found.values())


def _is_news(before: Mapping[str, Any] | None, after: Mapping[str, Any]) -> bool:
    if before is None:
        return True
    return (before.get("status"), before.get("reason")) != (after["status"], after["reason"])


def _told(found: Mapping[str, Any]) -> Iterator[Occurrence]:
    type_, status, reason, message = (str(found[each]) for each in ("type", "status", "reason", "message"))
    if reason in _INFORMATION:
        return
    if type_ == TERMINATING:
        yield Occurrence("Normal", reason, _DELETE, message)
    elif _is_good(type_):
        if status == "False":
            yield Occurrence("Warning", reason, _RECONCILE, message)
        elif status == "True" and type_ == _READY:
            yield Occurrence("Normal", reason, _RECONCILE, message)
    elif status == "True":
        yield Occurrence("Warning", type_, _RECONCILE, message)


def _is_good(type_: str) -> bool:
    """Whether True is how it should be. All other types are there only while something is wrong."""
    return type_.endswith((_READY, "Applied"))
