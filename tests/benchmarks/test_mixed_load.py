"""The counts of mixed load."""

from __future__ import annotations

from benchmarks.mixed_load import by_length


def test_stalls_are_counted_by_length_since_the_time_before() -> None:
    before = {0.025: 3.0, 0.05: 3.0, 0.1: 4.0, float("inf"): 4.0}
    after = {0.025: 5.0, 0.05: 6.0, 0.1: 7.0, float("inf"): 9.0}
    assert by_length(before, after) == {"10 to 25 ms:": 2.0, "25 to 50 ms:": 1.0, "100 to inf ms:": 2.0}


def test_without_stalls_there_are_no_lengths() -> None:
    assert by_length({0.025: 3.0}, {0.025: 3.0}) == {}
