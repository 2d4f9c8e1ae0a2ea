"""The memory of requests is limited as a whole and for each user."""

from __future__ import annotations

import asyncio

import pytest

from apiserver.meta.errors import TooManyRequests
from apiserver.request.bytes_in_flight import UNLIMITED, BytesInFlight, Reservation


def test_a_user_has_a_share() -> None:
    in_flight = BytesInFlight(total=1000, per_user=100, always=10)
    in_flight.reserve("alice", 60)
    with pytest.raises(TooManyRequests) as raised:
        in_flight.reserve("alice", 41)
    assert raised.value.retry_after == 1
    in_flight.reserve("bob", 100)
    in_flight.release("alice", 60)
    in_flight.reserve("alice", 100)


def test_when_all_bytes_are_in_use_small_requests_are_still_served() -> None:
    in_flight = BytesInFlight(total=300, per_user=100, always=10)
    for user, left in {"alice": 100, "bob": 66, "eve": 44, "frank": 30, "grace": 20, "heidi": 13}.items():
        in_flight.reserve(user, left)
    with pytest.raises(TooManyRequests):
        in_flight.reserve("carol", 11)
    for user in ("carol", "dave"):
        in_flight.reserve(user, 10)
    with pytest.raises(TooManyRequests):
        in_flight.reserve("carol", 1)


def test_a_reservation_returns_what_it_holds() -> None:
    in_flight = BytesInFlight(total=300, per_user=100)
    reservation = Reservation(in_flight, "alice")
    reservation.add(40)
    reservation.add(20)
    with pytest.raises(TooManyRequests):
        reservation.check(41)
    with pytest.raises(TooManyRequests):
        reservation.resize(101)
    reservation.check(40)
    reservation.resize(10)
    in_flight.reserve("alice", 90)
    reservation.resize(0)
    in_flight.reserve("alice", 10)


def test_a_part_of_a_reservation_can_be_released() -> None:
    in_flight = BytesInFlight(total=180, per_user=60, always=10)
    reservation = Reservation(in_flight, "alice")
    reservation.add(60)
    reservation.subtract(20)
    reservation.add(20)
    with pytest.raises(TooManyRequests):
        reservation.add(1)
    reservation.resize(0)
    in_flight.reserve("alice", 60)
    unlimited = Reservation()
    unlimited.add(60)
    unlimited.subtract(60)


def test_users_of_one_flow_have_one_share_together() -> None:
    in_flight = BytesInFlight(total=900, per_user=100, flow_of=lambda user: user.partition(":")[0])
    Reservation(in_flight, "eve:1").add(60)
    other = Reservation(in_flight, "eve:2")
    other.check(40)
    with pytest.raises(TooManyRequests):
        other.check(41)
    Reservation(in_flight, "alice:1").add(100)


def test_without_a_limit_nothing_is_rejected() -> None:
    UNLIMITED.check(10**12)
    UNLIMITED.add(10**12)
    UNLIMITED.resize(0)


async def test_bytes_can_be_waited_for_in_turn() -> None:
    in_flight, order = BytesInFlight(total=400, per_user=100), list[str]()
    in_flight.reserve("alice", 80)

    async def hold(name: str, user: str, count: int) -> None:
        async with Reservation(in_flight, user).held(count):
            order.append(name)

    tasks = [asyncio.create_task(hold(name, "alice", 60)) for name in ("first", "cancelled", "third")]
    tasks.append(asyncio.create_task(hold("of bob", "bob", 100)))
    await asyncio.sleep(0)
    tasks[1].cancel()
    await asyncio.gather(tasks[1], tasks[3], return_exceptions=True)
    assert order == ["of bob"]
    in_flight.release("alice", 80)
    await asyncio.gather(tasks[0], tasks[2])
    assert order == ["of bob", "first", "third"]
    in_flight.reserve("alice", 100)


async def test_users_of_one_flow_have_their_turns_together() -> None:
    """ServiceAccounts of a tenant would otherwise all begin in one iteration of the event loop."""
    in_flight, begun = BytesInFlight(flow_of=lambda user: user.partition(":")[0]), list[str]()

    async def begin(user: str) -> None:
        await Reservation(in_flight, user).turn()
        begun.append(user)

    users = [*(f"eve:{number}" for number in range(50)), "alice"]
    await asyncio.gather(*map(begin, users))
    assert begun.index("alice") <= 2
    assert sorted(begun) == sorted(users)


async def test_one_that_is_cancelled_when_its_turn_comes_wakes_the_next() -> None:
    in_flight = BytesInFlight(total=300, per_user=100)
    in_flight.reserve("alice", 100)
    tasks = [asyncio.create_task(in_flight.reserve_in_turn("alice", 100)) for _ in range(2)]
    await asyncio.sleep(0)
    in_flight.release("alice", 100)
    tasks[0].cancel()
    await asyncio.wait_for(tasks[1], timeout=30)
    assert tasks[0].cancelled()


async def test_bytes_that_all_users_have_are_waited_for_by_each() -> None:
    in_flight = BytesInFlight(total=200, per_user=100, always=0)
    in_flight.reserve("alice", 66)
    tasks = [asyncio.create_task(in_flight.reserve_in_turn(user, 50)) for user in ("bob", "carol")]
    await asyncio.sleep(0)
    in_flight.release("alice", 66)
    await asyncio.wait_for(asyncio.gather(*tasks), timeout=30)


async def test_without_a_limit_nothing_waits() -> None:
    async with UNLIMITED.held(10**12):
        pass
