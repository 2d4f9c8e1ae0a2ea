"""Writes of this process that its cache has not observed: which reads wait for them, and for how long."""

from __future__ import annotations

import pytest

from apiserver.meta.resource import Key
from apiserver.storage.pending_writes import PendingWrites

X, Y = Key("a", "x"), Key("a", "y")


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.mark.parametrize(
    ("writes", "rv", "observed"),
    [
        pytest.param([(X, 5)], 4, False, id="an older cache"),
        pytest.param([(X, 5)], 5, True, id="a cache of that version"),
        pytest.param([(Y, 5)], 4, True, id="a write to another object"),
        pytest.param([(X, 5), (X, 7)], 6, False, id="the later of two writes"),
        pytest.param([(X, 7), (X, 5)], 6, False, id="the answer to the earlier write comes last"),
    ],
)
def test_a_write_is_observed(writes: list[tuple[Key, int]], rv: int, observed: bool) -> None:
    pending = PendingWrites(Clock())
    for key, version in writes:
        pending.expect_version(key, version)
    pending.version_observed(rv)
    assert pending.observed(X, rv, {}) is observed


def test_a_write_is_waited_for_half_a_minute_after_the_last_one_to_its_object() -> None:
    clock = Clock()
    pending = PendingWrites(clock)
    pending.expect_version(X, 5)
    clock.now = 20.0
    pending.expect_version(X, 6)
    clock.now = 49.0
    assert not pending.observed(X, 4, {})
    clock.now = 50.0
    assert pending.observed(X, 4, {})


def test_observed_and_expired_writes_occupy_no_memory() -> None:
    clock = Clock()
    pending = PendingWrites(clock)
    for rv in range(1, 1001):
        pending.expect_version(Key("a", str(rv)), rv)
        pending.version_observed(rv - 1)
        assert len(pending._versions) == 1
    for number in range(1000):
        pending.expect_deletion(Key("a", str(number)), "uid")
    clock.now = 30.0
    pending.version_observed(0)
    assert not pending._versions
    assert not pending._deletions
