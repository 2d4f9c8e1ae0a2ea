"""Of an own write and what an informer has told, the newer one counts."""

from __future__ import annotations

import pytest

from controller.runtime.own_writes import OwnWrites
from tests.fake_clock import FakeClock


@pytest.mark.parametrize(
    ("observed", "after", "expected"),
    [
        pytest.param(9, 0.0, "written", id="observed before our write"),
        pytest.param(10, 0.0, None, id="our write itself"),
        pytest.param(11, 0.0, None, id="a later write of others, observed before the answer to ours"),
        pytest.param(9, 9.9, "written", id="within ten seconds"),
        pytest.param(9, 10.0, None, id="after ten seconds, when a restore of etcd may have set versions back"),
    ],
)
def test_a_write_counts_until_it_is_observed(observed: int, after: float, expected: str | None) -> None:
    clock = FakeClock()
    writes: OwnWrites[str, str] = OwnWrites(clock=clock)
    writes.record("a", 10, "written")
    clock.advance(after)
    assert writes.newer_than("a", observed) == expected
    assert writes.newer_than("b", observed) is None


def test_the_last_answer_counts_also_if_its_version_is_lower() -> None:
    writes: OwnWrites[str, str] = OwnWrites()
    writes.record("a", 1000, "before a restore of etcd")
    writes.record("a", 12, "after it")
    assert writes.newer_than("a", 11) == "after it"


def test_writes_are_forgotten_after_ten_seconds() -> None:
    clock = FakeClock()
    writes: OwnWrites[int, int] = OwnWrites(clock=clock)
    for number in range(100):
        writes.record(number, number, number)
        clock.advance(1)
    assert len(writes) == 10
