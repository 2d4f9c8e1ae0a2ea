"""Fixtures of the visibility tests: a clock and an RbacHistory."""

from __future__ import annotations

import pytest

from registry.rbac import role_index as rbac
from registry.visibility.rbac_history import RbacHistory
from tests.registry.visibility.rbac_states import GET, Clock


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def history(clock: Clock) -> RbacHistory:
    history = RbacHistory(clock=clock, max_changes=4)
    history.put_role(rbac.make_role_key("", "view"), (GET,), 5)
    history.start_recording(10)
    return history
