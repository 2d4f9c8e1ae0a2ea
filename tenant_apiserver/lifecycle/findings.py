"""The findings of preflight, as a table and as JSON. Pure."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from itertools import groupby, zip_longest


class Level(Enum):
    OK = "OK"
    INFO = "INFO"
    WARN = "WARN"
    UNKNOWN = "UNKNOWN"
    """It cannot be read, so nobody can say whether the step would break something."""
    FAIL = "FAIL"
    """The step would break something."""


@dataclass(frozen=True, slots=True)
class Check:
    """A line of the table. `remedy` says what to do; a FAIL, a WARN and an UNKNOWN always have one. Lines with the same
    `kind` and message are one in the short form of the table."""

    section: str
    level: Level
    subject: str
    message: str
    remedy: str = ""
    kind: str = ""


def exit_status(checks: Sequence[Check]) -> int:
    """1 if the step would break something, 2 if nobody can say, else 0."""
    levels = {each.level for each in checks}
    return 1 if Level.FAIL in levels else 2 if Level.UNKNOWN in levels else 0


def as_table(checks: Sequence[Check], *, full: bool = False) -> str:
    """A heading for each section, a line for each check, and below it what to do. Long lists of objects are counted by
    kind, unless it is `full`."""
    checks = checks if full else list(_folded(checks))
    width = min(max((len(each.subject) for each in checks), default=0), 52)
    lines = []
    for section, members in groupby(checks, key=lambda each: each.section):
        lines += ["", section]
        of_section = list(members)
        for each, following in zip_longest(of_section, of_section[1:]):
            lines.append(f"  {each.level.value[:4]:<4}  {each.subject:<{width}}  {each.message}")
            if each.remedy and not _is_told_below(each, following):
                lines.append(f"        -> {each.remedy}")
    return "\n".join([*lines[1:], "", _summary(checks), ""])


def _is_told_below(check: Check, following: Check | None) -> bool:
    """True if the next line has the same remedy, for objects that cannot be read, of which there may be many."""
    unknown = check.level is Level.UNKNOWN
    return following is not None and unknown and (following.level, following.remedy) == (check.level, check.remedy)


def _folded(checks: Sequence[Check]) -> Iterator[Check]:
    sizes = Counter((each.section, each.kind, each.message) for each in checks if each.kind)
    for each in checks:
        key = each.section, each.kind, each.message
        size = sizes.get(key, 1)
        if size > 1:
            yield replace(each, subject=f"{each.kind} ({size})")
            # the others are in this line
            sizes[key] = 0
        elif size == 1:
            yield each


def _summary(checks: Sequence[Check]) -> str:
    verdict = ("breaks nothing that is known here", "would break something", "cannot be judged")[exit_status(checks)]
    counts = Counter(each.level for each in checks)
    shown = [Level.FAIL, Level.WARN, *([Level.UNKNOWN] if counts[Level.UNKNOWN] else ())]
    return f"The step {verdict}: {', '.join(f'{counts[each]} {each.value}' for each in shown)}. Nothing was written."


def as_json(checks: Sequence[Check]) -> str:
    items = [
        {
            "section": each.section,
            "level": each.level.value,
            "subject": each.subject,
            "message": each.message,
            "remedy": each.remedy,
        }
        for each in checks
    ]
    return json.dumps({"ok": exit_status(checks) == 0, "checks": items}, indent=2) + "\n"
