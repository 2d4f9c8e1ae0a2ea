"""Statistics of turns: ratios are computed turn by turn, and missing measurements stay missing."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from benchmarks.measurements import HEAD, Measurement, Spread, compare, format_row, ratio, spread


def turn(
    *seconds: float,
    serving: float = 0.0,
    cpu: dict[str, float] | None = None,
    wall: float = 0.0,
    parallel: bool = False,
) -> Measurement:
    return Measurement(
        seconds=seconds,
        wall=wall or sum(seconds),
        serving=serving,
        cpu=cpu or {},
        client=0.001,
        parallel=parallel,
        received=2048,
    )


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        pytest.param([3.0], Spread(3, 3, 3), id="one turn"),
        pytest.param([3.0, 1.0, 8.0], Spread(3, 1, 8), id="an odd number of turns"),
        pytest.param([4.0, 2.0], Spread(3, 2, 4), id="an even number of turns"),
    ],
)
def test_a_spread_has_median_minimum_and_maximum(values: Sequence[float], expected: Spread) -> None:
    assert spread(values) == expected


def test_a_spread_of_no_turns_is_an_error() -> None:
    with pytest.raises(ValueError, match="no turn"):
        spread([])


@pytest.mark.parametrize(
    ("base", "other", "expected"),
    [
        pytest.param(
            [1.0, 2.0, 4.0], [2.0, 4.0, 8.0], Spread(2, 2, 2), id="a slowdown of both sides does not change the ratio"
        ),
        pytest.param([1.0, 1.0, 1.0], [5.0, 2.0, 3.0], Spread(3, 2, 5), id="the median of the turns' own ratios"),
        pytest.param([1.0, 10.0, 1.0], [2.0, 10.0, 2.0], Spread(2, 1, 2), id="not the ratio of the medians"),
        pytest.param([1.0, 0.0], [5.0, 2.0], None, id="a turn without measurable time"),
    ],
)
def test_a_ratio_is_computed_turn_by_turn(
    base: Sequence[float], other: Sequence[float], expected: Spread | None
) -> None:
    assert ratio(base, other) == expected


def test_a_ratio_of_different_numbers_of_turns_is_an_error() -> None:
    with pytest.raises(ValueError, match="2 turns and 1"):
        ratio([1.0, 2.0], [1.0])


@pytest.mark.parametrize(
    ("measured", "expected"),
    [
        pytest.param(turn(0.1, 0.2, 0.9), 0.2, id="sequential calls: their median"),
        pytest.param(
            turn(0.1, 0.2, 0.9, wall=0.6, parallel=True), 0.2, id="parallel calls: wall clock time by their number"
        ),
    ],
)
def test_the_time_of_a_turn_is_the_time_of_one_call(measured: Measurement, expected: float) -> None:
    assert measured.time == pytest.approx(expected)


def test_sides_are_compared_with_the_first_side() -> None:
    ours = [turn(0.1, 0.1, serving=0.02, cpu={"serve": 0.02}), turn(0.2, 0.2, serving=0.04, cpu={"serve": 0.04})]
    theirs = [
        turn(1.0, 1.0, serving=0.6, cpu={"kube-apiserver": 0.6, "etcd": 0.1}),
        turn(4.0, 4.0, serving=0.8, cpu={"kube-apiserver": 0.8, "etcd": 0.1}),
    ]
    first, other = compare("LIST", {"direct": ours, "custom": theirs})
    assert "times" not in first
    assert other["times"] == {"median": pytest.approx(15), "low": pytest.approx(10), "high": pytest.approx(20)}
    assert other["times_cpu"] == {"median": pytest.approx(25), "low": pytest.approx(20), "high": pytest.approx(30)}
    assert first["serving_cpu_ms"]["median"] == pytest.approx(15)
    assert other["cpu_ms"] == {"kube-apiserver": pytest.approx(350), "etcd": pytest.approx(50)}
    assert (first["n"], first["turns"], first["kib"]) == (4, 2, 2.0)


def test_a_remote_server_has_times_but_no_processor_time() -> None:
    ours = [turn(0.1, serving=0.02, cpu={"serve": 0.02})]
    elsewhere = [turn(0.2)]
    _, other = compare("GET", {"direct": ours, "against": elsewhere})
    assert other["cpu_ms"] == {}
    assert other["serving_cpu_ms"]["median"] == 0
    assert format_row(other).rstrip().endswith("-")


def test_processor_time_is_divided_by_the_explicit_call_count() -> None:
    measured = Measurement(seconds=[0.1] * 100, wall=1.0, serving=0.5, cpu={}, client=0.0, calls=10)
    (row,) = compare("WATCH", {"direct": [measured]})
    assert row["serving_cpu_ms"]["median"] == pytest.approx(50)


def test_cells_are_aligned_with_the_heading() -> None:
    line = format_row(compare("GET", {"direct": [turn(0.1, serving=0.02, cpu={"serve": 0.02})]})[0])
    assert line.index("100 (100-100)") + len("100 (100-100)") == HEAD.index("(turns)") + len("(turns)")
