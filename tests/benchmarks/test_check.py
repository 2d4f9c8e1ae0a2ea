"""`make bench-check` fails for a count above its bound, and for one that has none."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import orjson
import pytest

from benchmarks.check import BOUNDS, judge
from benchmarks.counted_writes import writes_each

_PAGE = Path(__file__).parents[2] / "docs" / "performance.md"
_ROW = re.compile(r"^(?P<name>\S.*?) {2,}(?P<count>[\d.]+)  at most (?P<bound>[\d.]+)$", re.MULTILINE)
_ROOM = 1.04


def test_counts_up_to_their_bounds_pass() -> None:
    assert judge({"calls: GET": 10, "create: POST secrets": 1}, {"calls: GET": 10, "create: POST secrets": 1}) == []


def test_a_count_above_its_bound_is_named() -> None:
    assert judge({"calls: GET": 10.5}, {"calls: GET": 10}) == ["calls: GET: 10.5, at most 10 are allowed"]


def test_a_write_that_nobody_expects_is_named() -> None:
    assert judge({"create: POST leases": 1}, {"calls: GET": 10}) == ["create: POST leases: 1, at most 0 are allowed"]


def test_a_write_for_four_of_ten_creates_is_named() -> None:
    before = {"POST secrets": 60.0, "PATCH secrets": 3.0}
    found = writes_each("create", before, {"POST secrets": 100.0, "PATCH secrets": 19.0}, 40)
    assert found == {"create: PATCH secrets": 0.4, "create: POST secrets": 1}
    assert judge(found, _bounds()) == ["create: PATCH secrets: 0.4, at most 0 are allowed"]


def test_one_more_write_of_an_expected_kind_in_40_creates_is_named() -> None:
    found = writes_each("create", {}, {"POST roles": 41.0, "LIST roles": 7.0, "GET roles": 7.0}, 40)
    assert judge(found, _bounds()) == ["create: POST roles: 1.025, at most 1 are allowed"]


def test_one_more_write_for_each_create_is_above_the_bounds() -> None:
    bounds = _bounds()
    writes = {name: bound + 1 for name, bound in bounds.items() if name.startswith("create: ")}
    assert len(judge(writes, bounds)) == len(writes)


def test_the_page_has_every_bound() -> None:
    assert {name: bound for name, (_, bound) in _measured().items()} == _bounds()


@pytest.mark.parametrize("name", ["calls: ", "bytes ", "objects "])
def test_what_is_5_percent_dearer_than_measured_is_above_its_bound(name: str) -> None:
    found = {each: figures for each, figures in _measured().items() if each.startswith(name)}
    assert found
    for each, (count, bound) in found.items():
        assert count <= bound <= count * _ROOM, each


def test_all_other_bounds_are_what_was_measured() -> None:
    others = {
        name: each for name, each in _measured().items() if not name.startswith(("calls: ", "bytes ", "objects "))
    }
    assert others
    for name, (count, bound) in others.items():
        assert count == bound, name


def test_garbage_and_untracked_tuples_do_not_count_even_if_they_were_frozen_before() -> None:
    program = """
import gc
from benchmarks.counted_server import tracked
gc.disable()
kept = tracked()
cycles = [[] for _ in range(5000)]
for each in cycles:
    each.append(each)
del cycles, each
numbers = [(number, str(number)) for number in range(5000)]
gc.freeze()
print(tracked() - kept)
"""
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert abs(int(found.stdout)) < 50


def _bounds() -> dict[str, float]:
    found: dict[str, float] = orjson.loads(BOUNDS.read_bytes())
    return found


def _measured() -> dict[str, tuple[float, float]]:
    """The counts and bounds that docs/performance.md shows."""
    _, _, shown = _PAGE.read_text().partition("$ make bench-check\n")
    rows = _ROW.finditer(shown.partition("```")[0])
    return {row["name"]: (float(row["count"]), float(row["bound"])) for row in rows}
