"""Users share what a process has a limited amount of."""

from __future__ import annotations

import pytest

from apiserver.request.fair_shares import FairShares


@pytest.mark.parametrize("greedy", [1, 2, 4, 8, 16])
def test_whoever_takes_less_finds_some_left_however_many_take_all_they_can(greedy: int) -> None:
    shares = FairShares(total=5000, per_user=1500)
    for number in range(greedy):
        while shares.allows(f"greedy-{number}", 1):
            shares.add(f"greedy-{number}", 1)
    # a third of what is left, of which each has left two thirds
    assert shares.allows("alice", int(5000 * (2 / 3) ** greedy / 3))


def test_a_share_that_is_given_back_can_be_taken_by_others() -> None:
    shares = FairShares(total=90, per_user=90)
    shares.add("eve", 30)
    assert shares.of("eve") == 30
    assert [shares.allows("alice", count) for count in (20, 21)] == [True, False]
    shares.add("eve", -30)
    assert [shares.allows("alice", count) for count in (30, 31)] == [True, False]


def test_a_user_has_no_more_than_the_limit_of_one_user() -> None:
    shares = FairShares(total=900, per_user=40, always=50)
    shares.add("eve", 40)
    assert not shares.allows("eve", 1)


def test_a_few_are_never_refused() -> None:
    shares = FairShares(total=20, per_user=20, always=4)
    for user in ("eve", "mallory", "trudy", "alice"):
        for _ in range(4):
            assert shares.allows(user, 1)
            shares.add(user, 1)
    assert not shares.allows("alice", 1)
