"""When the limits of a namespace may change: after both of its ResourceQuotas have counted what was admitted."""

from __future__ import annotations

import pytest

from controller.tenant.quota.recounts import PATIENCE_SECONDS, SECONDS_BETWEEN_LOOKS, Recounts, Verdict, nudged
from registry.tenant.pool_quotas import Shares
from registry.tenant.quota_keys import NANO
from registry.tenant.quota_pools import Share
from tests.fake_clock import FakeClock

ALPHA = "tenant-alpha"


def pods(used: int, hard: int) -> Shares:
    return {"pods": Share(used * NANO, hard * NANO, hard * NANO)}


class Looks:
    """Looks at a namespace as soon as it makes sense."""

    def __init__(self) -> None:
        self.clock = FakeClock(0.0)
        self._recounts = Recounts(self.clock)

    def look(self, first: Shares, witness: Shares) -> Verdict:
        self.clock.advance(self._recounts.seconds_to_next_look(ALPHA))
        return self._recounts.look(ALPHA, first, witness)


def test_two_equal_looks_are_enough() -> None:
    looks = Looks()
    assert looks.look(pods(3, 6), pods(3, 6)) == "wait"
    assert looks.look(pods(3, 6), pods(3, 6)) == "counted"
    assert looks.clock() == pytest.approx(SECONDS_BETWEEN_LOOKS, abs=0.01)


def test_looks_of_an_earlier_term_as_the_leader_do_not_count() -> None:
    looks = Looks()
    assert looks.look(pods(1, 4), pods(3, 6)) == "wait"
    looks.clock.advance(3600)
    assert looks.look(pods(1, 4), pods(3, 6)) == "wait"


def test_a_pod_that_only_the_witness_remembers_is_counted_again_before_the_witness_changes() -> None:
    looks = Looks()
    looks.look(pods(2, 4), pods(3, 6))
    assert looks.look(pods(2, 4), pods(3, 6)) == "recount first"
    # the limit is one more, and the count is right
    assert looks.look(pods(3, 5), pods(3, 6)) == "wait"
    assert looks.look(pods(3, 5), pods(3, 6)) == "counted"


def test_a_pod_that_the_witness_has_forgotten_is_counted_again_before_the_next_change() -> None:
    looks = Looks()
    looks.look(pods(3, 6), pods(2, 6))
    assert looks.look(pods(3, 6), pods(2, 6)) == "recount witness"


def test_a_forgotten_pod_is_not_hidden_by_one_that_the_witness_is_told_of_later() -> None:
    """At the first look, `tenant-pool` has forgotten one of three, and another one is counted there already."""
    looks = Looks()
    looks.look(pods(3, 6), pods(3, 9))
    assert looks.look(pods(3, 6), pods(4, 9)) == "recount first"


def test_pods_that_are_created_between_two_looks_are_waited_for() -> None:
    looks = Looks()
    looks.look(pods(3, 9), pods(3, 9))
    assert looks.look(pods(4, 9), pods(4, 9)) == "wait"
    assert looks.look(pods(4, 9), pods(4, 9)) == "counted"


def test_more_than_a_request_takes_is_not_waited() -> None:
    """The witness has counted a Pod whose name was taken; nothing is written again and again meanwhile."""
    looks, found = Looks(), list[Verdict]()
    while not found or found[-1] != "counted":
        found.append(looks.look(pods(3, 4), pods(4, 6)))
    assert looks.clock() == pytest.approx(PATIENCE_SECONDS, abs=1.0)
    assert 3 <= found.count("recount first") <= 7


@pytest.mark.parametrize(
    ("own", "other", "expected"),
    [
        pytest.param(4, 9, 5, id="to the other, which is greater"),
        pytest.param(5, 9, 4, id="and back, so that nothing is undone"),
        pytest.param(6, 4, 5, id="towards the other, which is less"),
        pytest.param(6, 6, 5, id="down"),
        pytest.param(0, 0, 1, id="up where nothing can be lowered"),
    ],
)
def test_a_nudge_is_the_least_change(own: int, other: int, expected: int) -> None:
    assert nudged(pods(0, own), pods(0, other)) == {"pods": expected * NANO}
