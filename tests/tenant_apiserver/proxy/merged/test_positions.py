"""The memory of what clients have."""

from __future__ import annotations

import sys
import tracemalloc
from types import FrameType

from tenant_apiserver.proxy.merged.positions import Client, Position, Positions, client_of
from tenant_apiserver.proxy.merged.sent_objects import SentObjects

ALICE, BOB = client_of("alice", "pods"), client_of("bob", "pods")


def _sent_objects(**parts: dict[str, str]) -> SentObjects:
    return SentObjects.of(parts)


def _many(count: int) -> SentObjects:
    return _sent_objects(a={f"a/{number}": f"uid-{number}" for number in range(count)})


def test_a_position_is_found_by_its_client_and_version_only() -> None:
    positions = Positions()
    positions.remember(ALICE, "7", Position(1.0, 6))
    assert positions.find(ALICE, "7") == Position(1.0, 6)
    assert positions.find(ALICE, "8") is None
    assert positions.find(BOB, "7") is None


def test_the_earlier_of_two_positions_at_one_version_holds() -> None:
    """Two streams of a user are not in step: neither may lose an event."""
    positions = Positions()
    positions.remember(ALICE, "7", Position(5.0, 6, _sent_objects(a={"a/x": "1"})))
    positions.remember(ALICE, "7", Position(4.0, 7, _sent_objects(b={"b/y": "2"})))
    assert positions.find(ALICE, "7") == Position(4.0, 6, _sent_objects(a={"a/x": "1"}, b={"b/y": "2"}))
    positions.remember(ALICE, "7", Position(6.0, 7, None))
    assert positions.find(ALICE, "7") == Position(4.0, 6, None)


def test_the_earlier_of_two_positions_of_one_watch_holds() -> None:
    positions, sent_objects = Positions(), _sent_objects(a={"a/x": "1"})
    positions.remember(ALICE, "7", Position(5.0, 6, sent_objects))
    positions.remember(ALICE, "7", Position(6.0, 7, sent_objects))
    assert positions.find(ALICE, "7") == Position(5.0, 6, sent_objects)
    assert positions.weight == 2


def test_the_oldest_positions_are_forgotten_beyond_the_weight() -> None:
    positions = Positions(max_weight=10)
    positions.remember(ALICE, "1", Position(1.0, 1, _many(5)))
    positions.remember(ALICE, "2", Position(1.0, 2, _many(3)))
    assert positions.find(ALICE, "1") is not None
    positions.remember(ALICE, "3", Position(1.0, 3))
    assert positions.find(ALICE, "1") is None
    assert positions.find(ALICE, "3") is not None
    assert positions.weight == 5


def test_objects_count_once_as_long_as_any_position_has_them() -> None:
    """The oldest positions of a watch may be forgotten before its latest one: that has all objects."""
    positions, sent_objects = Positions(max_weight=8), SentObjects()
    for number in range(1, 5):
        sent_objects.add("a", f"a/{number}", "uid")
        positions.remember(ALICE, str(number), Position(1.0, number, sent_objects))
    assert positions.weight == 4 + 4
    positions.remember(ALICE, "5", Position(1.0, 5, sent_objects))
    assert positions.find(ALICE, "1") is None
    assert positions.weight == 4 + 4
    sent_objects.add("a", "a/6", "uid")
    positions.remember(ALICE, "6", Position(1.0, 6, sent_objects))
    assert positions.weight == 5 + 3


def test_a_watch_that_has_sent_more_than_the_weight_is_not_remembered() -> None:
    positions = Positions(max_weight=10)
    positions.remember(ALICE, "1", Position(1.0, 1, _many(10)))
    assert positions.find(ALICE, "1") is None
    assert positions.weight == 0


def test_two_watches_of_one_client_take_twice_the_memory_of_one() -> None:
    """Each event of the second one is at a version that the first one has sent, too."""

    def memory(watches: int) -> int:
        tracemalloc.start()
        positions = Positions()
        for _ in range(watches):
            sent_objects = SentObjects()
            for number in range(1000):
                sent_objects.add("a", f"a/{number}", "uid")
                positions.remember(ALICE, str(number), Position(1.0, number, sent_objects))
        used, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return used

    assert memory(2) < 3 * memory(1)
    assert memory(4) < 6 * memory(1)


def test_a_user_has_a_share_whose_own_oldest_positions_are_forgotten() -> None:
    positions = Positions(max_weight=100, max_share=10)
    positions.remember(BOB, "1", Position(1.0, 1, _many(8)))
    for number in range(50):
        positions.remember(client_of("alice", str(number)), "1", Position(1.0, 1, _many(1)))
    assert positions.find(BOB, "1") is not None
    found = [positions.find(client_of("alice", str(number)), "1") is not None for number in range(50)]
    assert found == [False] * 45 + [True] * 5
    assert positions.weight == 9 + 10


def test_service_accounts_of_a_tenant_have_one_share() -> None:
    """A tenant can make any number of them, which would make the proxy forget what other clients have."""
    positions = Positions(max_weight=100, max_share=10)
    positions.remember(BOB, "1", Position(1.0, 1, _many(8)))
    accounts = [client_of(f"system:serviceaccount:tenant-eve:{number}", "pods") for number in range(50)]
    for account in accounts:
        positions.remember(account, "1", Position(1.0, 1, _many(1)))
    assert positions.find(BOB, "1") is not None
    assert positions.find(accounts[-1], "1") is not None
    assert positions.find(accounts[0], "1") is None


def test_the_share_of_a_user_is_free_again_after_others_have_pushed_it_out() -> None:
    positions = Positions(max_weight=10, max_share=6)
    for _ in range(3):
        for user in ("alice", "bob", "carol"):
            positions.remember(client_of(user), "1", Position(1.0, 1, _many(5)))
            assert positions.find(client_of(user), "1") is not None
    assert positions.weight == 6


def test_a_client_is_of_a_fixed_size() -> None:
    """Selectors may have 32 KiB each."""

    def size(client: Client) -> int:
        return sum(map(len, client))

    long = client_of("eve", ("x" * 32_000, "y" * 32_000))
    assert size(long) == size(client_of("eve", ("", ""))) == 32
    assert long != client_of("eve", ("x" * 32_000, "y" * 32_001))
    assert client_of("eve", ("a", "b")) != client_of("eve", ("a, b",))
    assert client_of("\udcff") != client_of("\udcfe")


def test_parts_without_objects_take_no_memory() -> None:
    """A list of 500 namespaces in which a selector matches nothing weighs 1."""
    sent_objects = SentObjects.of({"a": {}, "b": {"b/x": "1"}})
    assert sent_objects.parts == {"b": {"b/x": "1"}}
    sent_objects.discard("b", "b/x")
    # one removal is remembered
    assert (sent_objects.parts, sent_objects.size) == ({}, 1)


def test_many_lists_of_one_version_are_found_as_fast_as_one() -> None:
    """A user can list a quiet collection any number of times: a watch that goes on would look through 20,000 positions
    for 15 ms, in which nobody else is answered."""
    positions = Positions()
    for number in range(10_000):
        sent_objects = _sent_objects(a={f"a/{number % 100}": "uid"}, b={"b/x": "uid"})
        positions.remember(ALICE, "7", Position(10_000.0 - number, 7, sent_objects))
        assert positions.weight <= 64 * 3 + 101
    found = positions.find(ALICE, "7")
    assert found == Position(1.0, 7, _sent_objects(a={f"a/{number}": "uid" for number in range(100)}, b={"b/x": "uid"}))
    steps = 0

    def count(frame: FrameType, event: str, argument: object) -> None:
        nonlocal steps
        steps += 1

    sys.setprofile(count)
    try:
        positions.find(ALICE, "7")
    finally:
        sys.setprofile(None)
    assert steps < 1000


def test_joined_positions_are_forgotten_as_others() -> None:
    positions = Positions(max_weight=300)
    for number in range(100):
        positions.remember(ALICE, "7", Position(1.0, 7, _sent_objects(a={f"a/{number}": "uid"})))
    positions.remember(ALICE, "7", Position(1.0, 7, None))
    assert positions.find(ALICE, "7") == Position(1.0, 7, None)
    positions.remember(BOB, "1", Position(1.0, 1, _many(299)))
    assert positions.find(ALICE, "7") is None
    assert positions.weight == 300
