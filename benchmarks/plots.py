"""python -m benchmarks.plots FILE… [--to FOLDER]: draws the figures that `--json` of the benchmarks has written.

A plot is drawn if a file has its figures: LIST against size, watch delay against watchers, memory against Tenants, and
the cost of a GET, an event and a CREATE against Tenants.
"""

from __future__ import annotations

import argparse
import io
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from benchmarks.figures import Row

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_OURS: Final = "tenant-apiserver"
_NAMES: Final = {
    "direct": _OURS,
    "aggregated": f"{_OURS}, behind kube-apiserver",
    "custom": "kube-apiserver, custom resources",
    "cozystack-api": "cozystack-api",
}
_COLOURS: Final = ("#2f5bd9", "#c2410c", "#4b5563", "#0f766e")
_LIST: Final = re.compile(r"LIST (\d+), JSON")
_WATCH: Final = re.compile(r"WATCH, (\d+) watchers, (\d+) changes a second")
_MEMORY: Final = re.compile(r"memory, (\d+) tenants")
_CONVERGED: Final = re.compile(r"start, (\d+) tenants")
_COST: Final = re.compile(r"(GET|event|CREATE)(?:, 1 client|, 1 writer)?, (\d+) tenants")
_COSTS: Final = {
    "GET": "GET",
    "event": "an event to a watcher",
    "CREATE": "CREATE, until the controllers have written all",
}
# an SVG has so many points an inch
_SVG_DPI: Final = 72
# the same bytes for the same figures: no date, no random ids, and text that stays text
_STYLE: Final[Any] = {
    "svg.hashsalt": "benchmarks",
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.size": 11,
}


class Point(NamedTuple):
    """A figure at `x`: the median of the turns, and the range."""

    x: int
    median: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Chart:
    """`series` are points by the name of what was measured. Charts with the `from_zero` have a linear scale."""

    name: str
    title: str
    x_label: str
    y_label: str
    from_zero: bool = False
    series: dict[str, list[Point]] = field(default_factory=dict)

    def add(self, series: str, point: Point) -> None:
        self.series.setdefault(series, []).append(point)


def charts_of(rows: Iterable[Row]) -> Sequence[Chart]:
    """The charts that have any figures. Of several memory figures for one size, the first one counts: those after it
    include watches and writes."""
    lists = Chart("lists", "LIST of all Tenants, JSON", "Tenants", "ms of the server's processor time")
    delays = Chart("watch-delay", "A change until a watcher has it", "watchers", "milliseconds, with the write of it")
    memory = Chart("memory", "Resident memory", "Tenants", "MiB", from_zero=True)
    costs = Chart("costs", "Cost beside a kube-apiserver", "converged Tenants", "ms of the server's processor time")
    sizes: set[int] = set()
    for row in rows:
        workload = row["workload"]
        if "side" in row and (found := _LIST.fullmatch(workload)):
            lists.add(_side(row), _point(int(found[1]), row["serving_cpu_ms"]))
        elif found := _WATCH.fullmatch(workload):
            delays.add(f"{_side(row)}, {found[2]} changes a second", _point(int(found[1]), row["time_ms"]))
        elif (found := _MEMORY.fullmatch(workload)) and int(found[1]) not in sizes:
            sizes.add(int(found[1]))
            memory.add(_OURS, Point(int(found[1]), *[row["rss_mib"]] * 3))
        elif found := _CONVERGED.fullmatch(workload):
            memory.add(f"{_OURS}, converged Tenants", Point(int(found[1]), *[row["rss_mib"]] * 3))
        elif "cpu_ms_least" in row and (found := _COST.fullmatch(workload)):
            point = Point(int(found[2]), row["cpu_ms"], row["cpu_ms_least"], row["cpu_ms_most"])
            costs.add(_COSTS[found[1]], point)
    return [chart for chart in (lists, delays, memory, costs) if chart.series]


def svg_of(chart: Chart) -> bytes:
    """The chart as SVG, on white in dark pages, too."""
    # takes half a second, in each process of the tests, of which one draws
    import matplotlib as mpl
    from matplotlib.figure import Figure
    from matplotlib.ticker import NullFormatter, NullLocator

    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=(7, 3.6), dpi=_SVG_DPI, layout="constrained", facecolor="white")
        axes = figure.add_subplot()
        for (name, points), colour in zip(chart.series.items(), _COLOURS * len(chart.series), strict=False):
            ordered = sorted(points)
            places = [point.x for point in ordered]
            axes.plot(places, [point.median for point in ordered], label=name, color=colour, marker="o", markersize=4)
            axes.fill_between(
                places, [each.low for each in ordered], [each.high for each in ordered], color=colour, alpha=0.15, lw=0
            )
        axes.set(title=chart.title, xlabel=chart.x_label, ylabel=chart.y_label)
        if chart.from_zero:
            axes.set_xlim(left=0)
            axes.set_ylim(bottom=0)
        else:
            axes.set(xscale="log", yscale="log")
            axes.set_xticks(sorted({point.x for points in chart.series.values() for point in points}))
            axes.xaxis.set_minor_locator(NullLocator())
            for axis in (axes.xaxis, axes.yaxis):
                axis.set_major_formatter("{x:,g}")
            axes.yaxis.set_minor_formatter(NullFormatter())
        axes.grid(visible=True, color="#e5e7eb")
        axes.spines[["top", "right"]].set_visible(False)
        _add_legend(figure)
        content = io.BytesIO()
        figure.savefig(content, format="svg", metadata={"Date": None, "Creator": None})
    return content.getvalue()


def _add_legend(figure: Figure) -> None:
    """A legend below the axes, in as many columns as fit into the width: constrained layout lets a wider one be cut
    off."""
    for columns in (2, 1):
        legend = figure.legend(loc="outside lower center", frameon=False, ncols=columns)
        figure.draw_without_rendering()
        if legend.get_window_extent().width <= figure.bbox.width:
            return
        legend.remove()
    raise ValueError("the name of a series is wider than the chart")


def _side(row: Mapping[str, object]) -> str:
    title = str(row["side"])
    return _NAMES.get(title, title)


def _point(x: int, values: Mapping[str, float]) -> Point:
    return Point(x, values["median"], values["low"], values["high"])


def _parse_rows(text: str) -> Sequence[Row]:
    """The rows of a file. Raises ArgumentTypeError."""
    try:
        document = json.loads(Path(text).read_bytes())
        if not isinstance(document, dict) or "rows" not in document:
            raise TypeError("it has no rows")
        rows = document["rows"]
        if not all(isinstance(row["workload"], str) for row in rows):
            raise TypeError("a row without a name")
    except (OSError, ValueError, LookupError, TypeError) as error:
        message = (
            f"must be a file that --json of a benchmark has written, not {text!r}: {error or type(error).__name__}"
        )
        raise argparse.ArgumentTypeError(message) from error
    found: Sequence[Row] = rows
    return found


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.plots")
    parser.add_argument("files", nargs="+", type=_parse_rows, metavar="FILE", help="written by --json of a benchmark")
    parser.add_argument("--to", type=Path, default=Path("build/plots"), metavar="FOLDER", help="else build/plots")
    parsed = parser.parse_args(arguments)
    try:
        parsed.to.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        parser.error(f"argument --to: must be a folder that can be written: {error}")
    for chart in charts_of(row for rows in parsed.files for row in rows):
        target = parsed.to / f"{chart.name}.svg"
        target.write_bytes(svg_of(chart))
        print(target)


if __name__ == "__main__":
    main()
