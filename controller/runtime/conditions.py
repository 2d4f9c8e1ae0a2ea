"""Conditions of a status, in the shape of metav1.Condition. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from apiserver.meta.resource import Object

# A message names this many items of a list.
_MAX_ITEMS = 10


@dataclass(frozen=True, slots=True)
class Finding:
    """One condition as a reconciler found it: without observedGeneration and lastTransitionTime."""

    type: str
    status: Literal["True", "False", "Unknown"]
    reason: str
    message: str = ""


def build_conditions(findings: Iterable[Finding], previous: object, *, generation: int, now: str) -> list[Object]:
    """The conditions of `findings`, sorted by type. `now` is RFC 3339; lastTransitionTime changes only with the status.

    `previous` is the list that was written before; malformed entries are ignored.
    """
    before = _by_type(previous)
    return [
        {
            "type": each.type,
            "status": each.status,
            "observedGeneration": generation,
            "lastTransitionTime": _transition(each, before.get(each.type), now),
            "reason": each.reason,
            "message": each.message,
        }
        for each in sorted(findings, key=lambda finding: finding.type)
    ]


def find_condition(conditions_: object, type_: str) -> Mapping[str, Any] | None:
    """The condition of this type, or None. `conditions_` is `status.conditions` of an object, possibly malformed."""
    return _by_type(conditions_).get(type_)


def is_stale(condition_: Mapping[str, Any], obj: Object) -> bool:
    """True if the condition is about an older generation of the object."""
    observed, generation = condition_.get("observedGeneration"), obj["metadata"].get("generation")
    return isinstance(observed, int) and isinstance(generation, int) and observed < generation


def join_limited(items: Sequence[str]) -> str:
    """The first ten items, and the number of those that are left out."""
    more = f" and {len(items) - _MAX_ITEMS} more" if len(items) > _MAX_ITEMS else ""
    return ", ".join(items[:_MAX_ITEMS]) + more


def _transition(finding: Finding, before: Mapping[str, Any] | None, now: str) -> str:
    if before is not None and before.get("status") == finding.status:
        time = before.get("lastTransitionTime")
        if isinstance(time, str) and time:
            return time
    return now


def _by_type(conditions_: object) -> dict[str, Mapping[str, Any]]:
    items: Sequence[object] = conditions_ if isinstance(conditions_, list) else ()
    return {each["type"]: each for each in items if isinstance(each, dict) and isinstance(each.get("type"), str)}
