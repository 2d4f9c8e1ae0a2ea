"""The memory of what clients have."""

from __future__ import annotations

from tenant_apiserver.proxy.merged.positions import Position, Positions


def test_a_position_is_found_by_its_client_and_version_only() -> None:
    positions = Positions()
    positions.remember("alice", "7", Position(1.0, 6))
    assert positions.find("alice", "7") == Position(1.0, 6)
    assert positions.find("alice", "8") is None
    assert positions.find("bob", "7") is None


def test_the_earlier_of_two_positions_at_one_version_holds() -> None:
    """Two streams of a user are not in step: neither may lose an event."""
    positions = Positions()
    positions.remember("alice", "7", Position(5.0, 6, {"a": {"a/x": "1"}}))
    positions.remember("alice", "7", Position(4.0, 7, {"b": {"b/y": "2"}}))
    assert positions.find("alice", "7") == Position(4.0, 6, {"a": {"a/x": "1"}, "b": {"b/y": "2"}})
    positions.remember("alice", "7", Position(6.0, 7, None))
    assert positions.find("alice", "7") == Position(4.0, 6, None)


def test_the_oldest_positions_are_forgotten_beyond_the_weight() -> None:
    positions = Positions(max_weight=10)
    positions.remember("alice", "1", Position(1.0, 1), weight=6)
    positions.remember("alice", "2", Position(1.0, 2), weight=4)
    assert positions.find("alice", "1") is not None
    positions.remember("alice", "3", Position(1.0, 3))
    assert positions.find("alice", "1") is None
    assert positions.find("alice", "3") is not None
