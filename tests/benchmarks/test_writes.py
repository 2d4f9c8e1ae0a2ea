"""The writes of a comparison: each number of writers creates objects of its own."""

from __future__ import annotations

from benchmarks.versus import parse, workloads_of
from benchmarks.writes import Writes


def test_no_number_of_writers_creates_the_objects_of_another_one() -> None:
    arguments = parse(["--writers", "1,8,16", "--turns", "3"])
    found = [each for each in workloads_of("write", arguments, 20) if isinstance(each, Writes)]
    numbers = [each.first + turn * each.times + number for each in found for turn in range(3) for number in range(20)]
    assert len(found) == 3
    assert numbers == list(range(3 * 3 * 20))
