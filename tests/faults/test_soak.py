"""The soak in short, and what it calls flat."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.process_usage import Vitals
from tests.faults.sizes import new_seed, size
from tests.faults.soak import Limits, Soak, Soaked, judge

# of six short rounds, the warm-up is not over for the allocator
SHORT = Limits(memory=32.0)


@pytest.fixture
def soaked(tmp_path: Path) -> Iterator[Soaked]:
    running = Soaked(tmp_path)
    yield running
    assert running.stop() == 0, running.server.tail()


def test_mixed_load_leaves_nothing_behind(soaked: Soaked) -> None:
    soak = Soak(soaked, new_seed(), size(short=1.0, full=20.0))
    rounds = soak.run(size(short=1.0, full=120.0), print)
    assert judge(rounds, SHORT) == []
    assert [name for name in soak.codes if name.rpartition(" ")[2].startswith("5")] == []
    assert "Traceback" not in soaked.server.log(), soaked.server.tail()


def used(**more: int) -> Vitals:
    plain = {"rss": 100, "peak": 100, "descriptors": 30, "tasks": 40, **more}
    return Vitals(**plain)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["rss", "descriptors", "tasks"])
def test_what_grows_is_not_flat(name: str) -> None:
    growing = [used(**{name: 100 + 20 * number}) for number in range(12)]
    assert len(judge(growing, Limits())) == 1
    assert judge([*growing[:4], *[growing[4]] * 8], Limits()) == []
