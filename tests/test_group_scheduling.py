"""The order in which the processes of pytest-xdist get the groups of tests."""

from __future__ import annotations

import pytest

from tests.group_scheduling import next_group

GROUPS = ["e2e/api/test_b.py", "attacks/test_a.py/kube", "e2e/api/test_a.py/embedded", "test_c.py", "docs/test_d.py"]


@pytest.mark.parametrize(
    ("computes", "order"),
    [
        pytest.param(False, GROUPS, id="a process that waits for servers takes them in their order"),
        pytest.param(True, [*GROUPS[3:], *reversed(GROUPS[:3])], id="a process that computes begins without servers"),
    ],
)
def test_groups_are_taken_in_this_order(computes: bool, order: list[str]) -> None:
    waiting, taken = list(GROUPS), list[str]()
    while waiting:
        taken.append(next_group(waiting, computes=computes))
        waiting.remove(taken[-1])
    assert taken == order
