"""Conditions of a status, in the shape of metav1.Condition. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from apiserver.meta.resource import Object

MAX_MESSAGE = 32 * 1024
"""The characters that a message may have in metav1.Condition: the cluster rejects a status with a longer one."""

# A message names this many items of a list.
_MAX_ITEMS = 10


@dataclass(frozen=True, slots=True)
class Finding:
    """One condition as a reconciler found it: without observedGeneration and lastTransitionTime."""

    type: str
    status: Literal["True", "False", "Unknown"]
    reason: str
    message: str = ""


def build_conditions(
    findings: Iterable[Finding], previous: object, *, generation: int, now: str, max_message: int = MAX_MESSAGE
) -> list[Object]:
    """The conditions of `findings`, sorted by type. `now` is RFC 3339; lastTransitionTime changes only with the status.

    `previous` is the list that was written before; malformed entries are ignored. Longer messages are cut: they may
    quote text of users (ATTACK-16).
    """
    before = conditions_by_type(previous)
    return [
        {
            "type": each.type,
            "status": each.status,
            "observedGeneration": generation,
            "lastTransitionTime": _transition(each, before.get(each.type), now),
            "reason": each.reason,
            "message": _cut(each.message, max_message),
        }
        for each in sorted(findings, key=lambda finding: finding.type)
    ]


def find_condition(conditions_: object, type_: str) -> Mapping[str, Any] | None:
    """The condition of this type, or None. `conditions_` is `status.conditions` of an object, possibly malformed."""
    return conditions_by_type(conditions_).get(type_)


def is_stale(condition_: Mapping[str, Any], obj: Object) -> bool:
    """True if the condition is about an older generation of the object."""
    observed, generation = condition_.get("observedGeneration"), obj["metadata"].get("generation")
    return isinstance(observed, int) and isinstance(generation, int) and observed < generation


def join_limited(items: Sequence[str]) -> str:
    """The first ten items, and the number of those that are left out."""
    more = f" and {len(items) - _MAX_ITEMS} more" if len(items) > _MAX_ITEMS else ""
    return ", ".join(items[:_MAX_ITEMS]) + more


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 3] + "..."


def _transition(finding: Finding, before: Mapping[str, Any] | None, now: str) -> str:
    if before is not None and before.get("status") == finding.status:
        time = before.get("lastTransitionTime")
        if isinstance(time, str) and time:
            return time
    return now


def conditions_by_type(conditions_: object) -> dict[str, dict[str, Any]]:
    """`conditions_` is `status.conditions` of an object; malformed entries are left out."""
    items: Sequence[object] = conditions_ if isinstance(conditions_, list) else ()
    return {each["type"]: each for each in items if isinstance(each, dict) and isinstance(each.get("type"), str)}
