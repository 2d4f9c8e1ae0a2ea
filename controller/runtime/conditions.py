"""Conditions: what was found, in the shape of metav1.Condition. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from apiserver.meta.resource import Object

# A condition shows what is wrong, and not all of it.
_SHOWN = 10


@dataclass(frozen=True, slots=True)
class Finding:
    """One condition, without the times."""

    type: str
    status: Literal["True", "False", "Unknown"]
    reason: str
    message: str = ""


def build_conditions(findings: Iterable[Finding], previous: object, *, generation: int, now: str) -> list[Object]:
    """The conditions of `findings`, by type. `now` is RFC 3339; lastTransitionTime moves only with the status.

    `previous` is what was written before, whatever that may be.
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
    """The condition of this type among those of an object's status."""
    return _by_type(conditions_).get(type_)


def is_stale(condition_: Mapping[str, Any], obj: Object) -> bool:
    """Whether that was said of a former generation of the object."""
    seen, generation = condition_.get("observedGeneration"), obj["metadata"].get("generation")
    return isinstance(seen, int) and isinstance(generation, int) and seen < generation


def join_limited(items: Sequence[str]) -> str:
    """The first of them, and how many more there are."""
    more = f" and {len(items) - _SHOWN} more" if len(items) > _SHOWN else ""
    return ", ".join(items[:_SHOWN]) + more


def _transition(finding: Finding, before: Mapping[str, Any] | None, now: str) -> str:
    if before is not None and before.get("status") == finding.status:
        time = before.get("lastTransitionTime")
        if isinstance(time, str) and time:
            return time
    return now


def _by_type(conditions_: object) -> dict[str, Mapping[str, Any]]:
    items: Sequence[object] = conditions_ if isinstance(conditions_, list) else ()
    return {each["type"]: each for each in items if isinstance(each, dict) and isinstance(each.get("type"), str)}
