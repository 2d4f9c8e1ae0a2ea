"""Figures of a workload, as one row of the table."""

from __future__ import annotations

import json
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

Row = dict[str, Any]


def row(workload: str, seconds: Sequence[float] = (), **more: object) -> Row:
    """Turns the `seconds` of single requests into milliseconds: median, p99 and range."""
    if not seconds:
        return {"workload": workload, **more}
    ordered = sorted(each * 1000 for each in seconds)
    return {
        "workload": workload,
        "n": len(ordered),
        "median_ms": round(statistics.median(ordered), 2),
        "p99_ms": round(ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))], 2),
        "min_ms": round(ordered[0], 2),
        "max_ms": round(ordered[-1], 2),
        **more,
    }


def format_row(each: Row) -> str:
    rest = "  ".join(f"{key}={_format_value(value)}" for key, value in each.items() if key != "workload")
    return f"{each['workload']:<40} {rest}"


def report(target: str, rows: Sequence[Row], file: Path | None) -> None:
    """Prints the rows, and writes them as JSON if a `file` is given."""
    for each in rows:
        print(format_row(each), flush=True)
    if file is not None:
        file.write_text(json.dumps({"target": target, "rows": rows}, indent=2) + "\n")


def _format_value(value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {number:g}" for key, number in value.items()) or "none"
    return str(value)
