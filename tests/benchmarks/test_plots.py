"""The plots of the benchmarks, drawn from figures as the programs write them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from benchmarks.plots import charts_of, main, svg_of


def _spread(median: float) -> dict[str, float]:
    return {"median": median, "low": median / 2, "high": median * 2}


def _compared(workload: str, **sides: float) -> list[dict[str, Any]]:
    return [
        {"workload": workload, "side": side, "time_ms": _spread(median), "serving_cpu_ms": _spread(median)}
        for side, median in sides.items()
    ]


_ROWS = [
    *_compared("LIST 1000, JSON", direct=3.0, custom=200.0, **{"cozystack-api": 40.0}),
    *_compared("LIST 1000, JSON, gzip", direct=1.0),
    *_compared("LIST 100, JSON", direct=1.0, custom=20.0),
    *_compared("WATCH, 100 watchers, 10 changes a second", direct=20.0, custom=7.0),
    {"workload": "LIST 1000, JSON", "median_ms": 3.0},
    {"workload": "memory, 0 tenants", "rss_mib": 84},
    {"workload": "memory, 1000 tenants", "rss_mib": 110},
    {"workload": "memory, 1000 tenants", "rss_mib": 150},
]


def test_a_chart_has_the_figures_of_its_workload_by_size() -> None:
    lists, delays, memory = charts_of(_ROWS)
    assert {name: [(each.x, each.median) for each in points] for name, points in lists.series.items()} == {
        "tenant-apiserver": [(1000, 3.0), (100, 1.0)],
        "kube-apiserver, custom resources": [(1000, 200.0), (100, 20.0)],
        "cozystack-api": [(1000, 40.0)],
    }
    assert list(delays.series) == [
        "tenant-apiserver, 10 changes a second",
        "kube-apiserver, custom resources, 10 changes a second",
    ]
    assert [(each.x, each.median) for each in memory.series["tenant-apiserver"]] == [(0, 84), (1000, 110)]


def test_a_chart_without_figures_is_not_drawn() -> None:
    assert [chart.name for chart in charts_of(_ROWS[-3:])] == ["memory"]
    assert charts_of([]) == []


@pytest.mark.parametrize("number", [0, 1, 2])
def test_an_svg_says_what_it_shows_in_units_and_has_the_same_bytes_each_time(number: int) -> None:
    chart = charts_of(_ROWS)[number]
    found = svg_of(chart)
    assert found == svg_of(chart)
    texts = [each.text or "" for each in ElementTree.fromstring(found).iter("{http://www.w3.org/2000/svg}text")]
    assert {chart.title, chart.x_label, chart.y_label, *chart.series} <= set(texts)
    assert b"<dc:date" not in found


def test_the_program_writes_a_file_for_each_chart(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one, other = tmp_path / "one.json", tmp_path / "other.json"
    one.write_text(json.dumps({"rows": _ROWS[:3]}))
    other.write_text(json.dumps({"rows": _ROWS[-1:]}))
    main([str(one), str(other), "--to", str(tmp_path / "plots")])
    assert sorted(each.name for each in (tmp_path / "plots").iterdir()) == ["lists.svg", "memory.svg"]
    assert "lists.svg" in capsys.readouterr().out
