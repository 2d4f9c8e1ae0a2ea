"""`make bench-check` fails for a count above its bound, and for one that has none."""

from __future__ import annotations

import orjson

from benchmarks.check import BOUNDS, judge


def test_counts_up_to_their_bounds_pass() -> None:
    assert judge({"calls: GET": 10, "create: POST secrets": 1}, {"calls: GET": 10, "create: POST secrets": 1}) == []


def test_a_count_above_its_bound_is_named() -> None:
    assert judge({"calls: GET": 10.5}, {"calls: GET": 10}) == ["calls: GET: 10.5, at most 10 are allowed"]


def test_a_write_that_nobody_expects_is_named() -> None:
    assert judge({"create: POST leases": 1}, {"calls: GET": 10}) == ["create: POST leases: 1, at most 0 are allowed"]


def test_one_more_write_for_each_create_is_above_the_bounds() -> None:
    bounds = orjson.loads(BOUNDS.read_bytes())
    writes = {name: bound + 1 for name, bound in bounds.items() if name.startswith("create: ")}
    assert len(judge(writes, bounds)) == len(writes)
