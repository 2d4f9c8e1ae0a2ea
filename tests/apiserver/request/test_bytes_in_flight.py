"""The memory of requests is limited as a whole and for each user."""

from __future__ import annotations

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
    in_flight = BytesInFlight(total=200, per_user=100, always=10)
    for user in ("alice", "bob"):
        in_flight.reserve(user, 100)
    with pytest.raises(TooManyRequests):
        in_flight.reserve("carol", 11)
    for user in ("carol", "dave"):
        in_flight.reserve(user, 10)
    with pytest.raises(TooManyRequests):
        in_flight.reserve("carol", 1)


def test_a_reservation_returns_what_it_holds() -> None:
    in_flight = BytesInFlight(total=100, per_user=100)
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


def test_without_a_limit_nothing_is_rejected() -> None:
    UNLIMITED.check(10**12)
    UNLIMITED.add(10**12)
    UNLIMITED.resize(0)
