"""The times of changes that four informers learn, not in step with one another."""

from __future__ import annotations

import random

from registry.rbac import role_index as rbac
from registry.rbac.role_index import RbacBinding, make_subject
from registry.visibility.rbac_history import RbacHistory
from tenant_apiserver.proxy.merged.change_times import ChangeTimes
from tests.fake_clock import FakeClock


class _Changes:
    def __init__(self, max_changes: int = 100) -> None:
        self.clock = FakeClock()
        self._history = RbacHistory()
        self._history.start_recording(1)
        self.times = ChangeTimes(self._history, clock=self.clock, max_changes=max_changes)
        self.learned: list[tuple[int, float]] = []

    def learn(self, rv: int) -> None:
        subjects = (make_subject("User", f"u{len(self.learned)}"),)
        key = rbac.make_binding_key("a", "b")
        self._history.put_binding(RbacBinding(key, rbac.make_role_key("a", "r"), subjects), rv)
        self.learned.append((rv, self.clock.now))
        self.clock.advance(20)


def test_a_change_that_is_learned_late_hides_no_earlier_one() -> None:
    """The informer of roles has been cut off: its change of version 90 arrives after that of a binding, of 100. A
    client of version 95 does not have the latter."""
    changes = _Changes()
    changes.learn(100)
    changes.learn(90)
    assert changes.times.time_after(95) == changes.learned[0][1]
    assert changes.times.time_after(100) == changes.clock.now


def test_the_first_of_the_changes_after_a_version_is_found_in_any_order() -> None:
    rng = random.Random(19)
    for _ in range(50):
        changes = _Changes()
        for rv in rng.sample(range(1000), 30):
            changes.learn(rv)
        for version in range(0, 1000, 7):
            after = [at for rv, at in changes.learned if rv > version]
            assert changes.times.time_after(version) == min(after, default=changes.clock.now)


def test_what_is_forgotten_may_be_at_any_time() -> None:
    changes = _Changes(max_changes=3)
    for rv in (10, 20, 30, 40):
        changes.learn(rv)
    assert changes.times.time_after(5) == float("-inf")
    assert changes.times.time_after(20) == changes.learned[2][1]
