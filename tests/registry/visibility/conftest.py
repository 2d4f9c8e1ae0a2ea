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
    made = RbacHistory(clock=clock, max_changes=4)
    made.put_role(rbac.make_role_key("", "view"), (GET,), 5)
    made.begin(10)
    return made
