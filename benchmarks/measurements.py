"""The result of one side's turn, and the statistics of all turns of several sides. Pure."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from benchmarks import figures
from benchmarks.figures import Row


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """One turn of one side. `seconds` are those of single calls; their number is also the number of calls, unless
    `calls` is set. `serving` and `cpu` are seconds of processor time: of the processes that answer, and of every
    process by name. With `parallel` the time of a call is the wall clock time divided by the number of calls."""

    seconds: Sequence[float]
    wall: float
    serving: float
    cpu: Mapping[str, float]
    client: float
    calls: int = 0
    parallel: bool = False
    received: int = 0
    more: Mapping[str, float] = field(default_factory=dict)

    @property
    def count(self) -> int:
        return self.calls or len(self.seconds)

    @property
    def time(self) -> float:
        """The seconds by which turns are compared."""
        return self.wall / len(self.seconds) if self.parallel else statistics.median(self.seconds)


@dataclass(frozen=True, slots=True)
class Spread:
    """The median, the minimum and the maximum of the turns."""

    median: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.median:.3g} ({self.low:.3g}-{self.high:.3g})"

    def row(self) -> Row:
        return {"median": self.median, "low": self.low, "high": self.high}


def spread(values: Sequence[float]) -> Spread:
    """Raises ValueError if there are no values."""
    if not values:
        raise ValueError("no turn was measured")
    return Spread(statistics.median(values), min(values), max(values))


def ratio(base: Sequence[float], other: Sequence[float]) -> Spread | None:
    """Returns how many times `base` the `other` is, turn by turn, so that the load of the machine affects both alike.
    None if a turn of the base took no measurable time. Raises ValueError if the numbers of turns differ."""
    if len(base) != len(other):
        raise ValueError(f"{len(base)} turns and {len(other)}")
    if not all(base):
        return None
    return spread([other_time / base_time for base_time, other_time in zip(base, other, strict=True)])


def compare(workload: str, sides: Mapping[str, Sequence[Measurement]]) -> Sequence[Row]:
    """Returns a row for each side, in order. The others are compared with the first, per call: `times` is the ratio of
    the times, `times_cpu` of the processor times of the processes that answer. Times are milliseconds."""
    base = next(iter(sides.values()))
    return [{"workload": workload, "side": title, **_row(turns, base)} for title, turns in sides.items()]


def _row(turns: Sequence[Measurement], base: Sequence[Measurement]) -> Row:
    singles = [seconds for turn in turns for seconds in turn.seconds]
    row = figures.row("", singles)
    del row["workload"]
    more: dict[str, Any] = {
        "turns": len(turns),
        "per_second": spread([len(turn.seconds) / turn.wall for turn in turns]).row(),
        "time_ms": spread([turn.time * 1000 for turn in turns]).row(),
        "serving_cpu_ms": spread([1000 * each for each in _serving_seconds(turns)]).row(),
        "cpu_ms": _milliseconds_by_process(turns),
        "client_cpu_ms": statistics.median(turn.client * 1000 / turn.count for turn in turns),
        "client_busy": max(turn.client / turn.wall for turn in turns),
        "kib": round(max(turn.received for turn in turns) / 1024, 1),
    }
    for name in turns[0].more:
        more[name] = spread([turn.more[name] for turn in turns]).row()
    if turns is not base:
        times = ratio([turn.time for turn in base], [turn.time for turn in turns])
        more["times"] = times.row() if times else None
        cpu = ratio(_serving_seconds(base), _serving_seconds(turns))
        more["times_cpu"] = cpu.row() if cpu else None
    return {**row, **more}


def _serving_seconds(turns: Sequence[Measurement]) -> Sequence[float]:
    return [turn.serving / turn.count for turn in turns]


def _milliseconds_by_process(turns: Sequence[Measurement]) -> Mapping[str, float]:
    return {name: statistics.median(turn.cpu[name] * 1000 / turn.count for turn in turns) for name in turns[0].cpu}


def format_row(row: Row) -> str:
    """Returns a line of the table whose heading is HEAD."""
    cpu = ", ".join(f"{name} {value:.3g}" for name, value in row["cpu_ms"].items()) or "-"
    cells = [
        f"{row['side']:<22}",
        f"{_format_spread(row['time_ms']):>24}",
        f"{row['p99_ms']:>9g}",
        f"{row['per_second']['median']:>8.4g}",
        f"{row['kib']:>9g}",
        f"{_format_spread(row.get('times')):>20}",
        f"{_format_spread(row.get('times_cpu')):>20}",
        f"{row['client_cpu_ms']:>8.3g}",
        f" {cpu}",
        *(f" {name} {_format_spread(row[name])}" for name in row if name in _EXTRA_COLUMNS),
    ]
    return " ".join(cells)


_EXTRA_COLUMNS = ("delivered", "cut", "opening_s", "growth_mib", "rss_mib", "late_ms")
HEAD = (
    f"{'':<22} {'ms a call (turns)':>24} {'p99 ms':>9} {'a second':>8} {'KiB':>9} {'x first, time':>20} "
    f"{'x first, its CPU':>20} {'client':>8}  CPU ms a call, by process"
)


def _format_spread(value: Mapping[str, float] | None) -> str:
    return str(Spread(value["median"], value["low"], value["high"])) if value else ""
