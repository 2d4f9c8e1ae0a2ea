"""The tables of docs/admission.md."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

_PAGE = Path(__file__).parents[2] / "docs" / "admission.md"
_ROW = re.compile(r"\| (?P<function>.+?) \| `(?P<example>.+?)` \|(?: (?P<why>.+?) \|)?")


@dataclass(frozen=True, slots=True)
class Row:
    function: str
    example: str
    missing: bool


def _rows() -> list[Row]:
    found = [_ROW.fullmatch(line) for line in _PAGE.read_text().splitlines()]
    return [Row(row["function"], row["example"], row["why"] is not None) for row in found if row is not None]


WORKING = [row for row in _rows() if not row.missing]
MISSING = [row for row in _rows() if row.missing]
