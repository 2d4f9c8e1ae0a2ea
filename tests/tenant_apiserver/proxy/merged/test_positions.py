"""The memory of what clients have."""

from __future__ import annotations

import tracemalloc

from tenant_apiserver.proxy.merged.positions import Position, Positions
from tenant_apiserver.proxy.merged.told_objects import ToldObjects


def _told(**parts: dict[str, str]) -> ToldObjects:
    return ToldObjects.of(parts)


def _many(count: int) -> ToldObjects:
    return _told(a={f"a/{number}": f"uid-{number}" for number in range(count)})


def test_a_position_is_found_by_its_client_and_version_only() -> None:
    positions = Positions()
    positions.remember("alice", "7", Position(1.0, 6))
    assert positions.find("alice", "7") == Position(1.0, 6)
    assert positions.find("alice", "8") is None
    assert positions.find("bob", "7") is None


def test_the_earlier_of_two_positions_at_one_version_holds() -> None:
    """Two streams of a user are not in step: neither may lose an event."""
    positions = Positions()
    positions.remember("alice", "7", Position(5.0, 6, _told(a={"a/x": "1"})))
    positions.remember("alice", "7", Position(4.0, 7, _told(b={"b/y": "2"})))
    assert positions.find("alice", "7") == Position(4.0, 6, _told(a={"a/x": "1"}, b={"b/y": "2"}))
    positions.remember("alice", "7", Position(6.0, 7, None))
    assert positions.find("alice", "7") == Position(4.0, 6, None)


def test_the_earlier_of_two_positions_of_one_watch_holds() -> None:
    positions, told = Positions(), _told(a={"a/x": "1"})
    positions.remember("alice", "7", Position(5.0, 6, told))
    positions.remember("alice", "7", Position(6.0, 7, told))
    assert positions.find("alice", "7") == Position(5.0, 6, told)
    assert positions.weight == 2


def test_the_oldest_positions_are_forgotten_beyond_the_weight() -> None:
    positions = Positions(max_weight=10)
    positions.remember("alice", "1", Position(1.0, 1, _many(5)))
    positions.remember("alice", "2", Position(1.0, 2, _many(3)))
    assert positions.find("alice", "1") is not None
    positions.remember("alice", "3", Position(1.0, 3))
    assert positions.find("alice", "1") is None
    assert positions.find("alice", "3") is not None
    assert positions.weight == 5


def test_objects_count_once_as_long_as_any_position_has_them() -> None:
    """The oldest positions of a watch may be forgotten before its latest one: that has all objects."""
    positions, told = Positions(max_weight=8), ToldObjects()
    for number in range(1, 5):
        told.add("a", f"a/{number}", "uid")
        positions.remember("alice", str(number), Position(1.0, number, told))
    assert positions.weight == 4 + 4
    positions.remember("alice", "5", Position(1.0, 5, told))
    assert positions.find("alice", "1") is None
    assert positions.weight == 4 + 4
    told.add("a", "a/6", "uid")
    positions.remember("alice", "6", Position(1.0, 6, told))
    assert positions.weight == 5 + 3


def test_a_watch_that_has_told_of_more_than_the_weight_is_not_remembered() -> None:
    positions = Positions(max_weight=10)
    positions.remember("alice", "1", Position(1.0, 1, _many(10)))
    assert positions.find("alice", "1") is None
    assert positions.weight == 0


def test_two_watches_of_one_client_take_twice_the_memory_of_one() -> None:
    """Each event of the second one is at a version that the first one has told, too."""

    def memory(watches: int) -> int:
        tracemalloc.start()
        positions = Positions()
        for _ in range(watches):
            told = ToldObjects()
            for number in range(1000):
                told.add("a", f"a/{number}", "uid")
                positions.remember("alice", str(number), Position(1.0, number, told))
        used, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return used

    assert memory(2) < 3 * memory(1)
    assert memory(4) < 6 * memory(1)
