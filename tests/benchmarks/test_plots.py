"""The plots of the benchmarks, drawn from figures as the programs write them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from matplotlib.textpath import TextPath

from benchmarks.plots import Chart, Point, charts_of, main, svg_of

_IMAGES = Path(__file__).parents[2] / "docs" / "images"


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
    {"workload": "start, 1000 tenants", "rss_mib": 120},
    {"workload": "GET, 1 client, 1000 tenants", "cpu_ms": 0.2, "cpu_ms_least": 0.1, "cpu_ms_most": 0.3},
    {"workload": "event, 1000 tenants", "cpu_ms": 0.02, "cpu_ms_least": 0.02, "cpu_ms_most": 0.02},
    {"workload": "CREATE, 1 writer, 1000 tenants", "cpu_ms": 18.0, "cpu_ms_least": 17.0, "cpu_ms_most": 19.0},
]


def test_a_chart_has_the_figures_of_its_workload_by_size() -> None:
    lists, delays, memory, costs = charts_of(_ROWS)
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
    assert [(each.x, each.median) for each in memory.series["tenant-apiserver, converged Tenants"]] == [(1000, 120)]
    assert costs.series == {
        "GET": [Point(1000, 0.2, 0.1, 0.3)],
        "an event to a watcher": [Point(1000, 0.02, 0.02, 0.02)],
        "CREATE, until the controllers have written all": [Point(1000, 18.0, 17.0, 19.0)],
    }


def test_a_chart_without_figures_is_not_drawn() -> None:
    assert [chart.name for chart in charts_of(_ROWS[-5:])] == ["memory", "costs"]
    assert charts_of([]) == []


@pytest.mark.parametrize("number", [0, 1, 2, 3])
def test_an_svg_says_what_it_shows_in_units_and_has_the_same_bytes_each_time(number: int) -> None:
    chart = charts_of(_ROWS)[number]
    found = svg_of(chart)
    assert found == svg_of(chart)
    texts = [each.text or "" for each in ElementTree.fromstring(found).iter("{http://www.w3.org/2000/svg}text")]
    assert {chart.title, chart.x_label, chart.y_label, *chart.series} <= set(texts)
    assert b"<dc:date" not in found


def _extent(text: ElementTree.Element) -> tuple[float, float]:
    """Where a horizontal text begins and ends, in the units of the viewBox."""
    style = text.get("style", "")
    [size], [anchor] = re.findall(r"font-size: ([\d.]+)px", style), re.findall(r"text-anchor: (\w+)", style)
    width = float(TextPath((0, 0), text.text or "", size=float(size)).get_extents().width)
    start = float(text.get("x", "nan")) - width * {"start": 0, "middle": 0.5, "end": 1}[anchor]
    return start, start + width


def _assert_complete(svg: bytes) -> None:
    """No text begins or ends outside the viewBox. The vertical one, of the y axis, is not measured."""
    root = ElementTree.fromstring(svg)
    _, _, width, height = map(float, root.get("viewBox", "").split())
    texts = list(root.iter("{http://www.w3.org/2000/svg}text"))
    assert texts
    for text in texts:
        assert 0 < float(text.get("y", "nan")) <= height, text.text
        if "rotate(-90" not in text.get("transform", ""):
            start, end = _extent(text)
            assert 0 <= start <= end <= width, text.text


@pytest.mark.parametrize("number", [0, 1, 2, 3])
def test_no_text_of_an_svg_is_cut_off(number: int) -> None:
    _assert_complete(svg_of(charts_of(_ROWS)[number]))


@pytest.mark.parametrize("name", ["costs", "lists", "watch-delay", "memory"])
def test_no_text_of_the_plots_of_the_page_is_cut_off(name: str) -> None:
    _assert_complete((_IMAGES / f"{name}.svg").read_bytes())


def test_a_series_whose_name_cannot_be_shown_is_an_error() -> None:
    chart = Chart("lists", "title", "x", "y", series={"name " * 40: [Point(1, 1, 1, 1), Point(2, 2, 2, 2)]})
    with pytest.raises(ValueError, match="wider than the chart"):
        svg_of(chart)


def test_the_program_writes_a_file_for_each_chart(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one, other = tmp_path / "one.json", tmp_path / "other.json"
    one.write_text(json.dumps({"rows": _ROWS[:3]}))
    other.write_text(json.dumps({"rows": _ROWS[-4:-3]}))
    main([str(one), str(other), "--to", str(tmp_path / "plots")])
    assert sorted(each.name for each in (tmp_path / "plots").iterdir()) == ["lists.svg", "memory.svg"]
    assert "lists.svg" in capsys.readouterr().out


@pytest.mark.parametrize(
    "content",
    [
        pytest.param("", id="nothing"),
        pytest.param("no JSON", id="no JSON"),
        pytest.param("{}", id="no rows"),
        pytest.param("[]", id="a list"),
        pytest.param('{"rows": [{}]}', id="a row without a name"),
        pytest.param('{"rows": 1}', id="a number of rows"),
    ],
)
def test_a_file_that_no_benchmark_has_written_is_an_error_of_usage(
    content: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "rows.json"
    file.write_text(content)
    with pytest.raises(SystemExit) as stop:
        main([str(file), "--to", str(tmp_path / "plots")])
    assert stop.value.code == 2
    assert "must be a file that --json of a benchmark has written" in capsys.readouterr().err
    assert not (tmp_path / "plots").exists()


def test_a_folder_that_cannot_be_made_is_an_error_of_usage(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "rows.json"
    file.write_text('{"rows": []}')
    with pytest.raises(SystemExit) as stop:
        main([str(file), "--to", str(file / "plots")])
    assert stop.value.code == 2
    assert "--to" in capsys.readouterr().err
