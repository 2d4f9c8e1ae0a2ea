"""The order in which the processes of pytest-xdist get the groups of tests."""

from __future__ import annotations

import pytest

from tests.group_scheduling import next_group, position

GROUPS = ["e2e/api/test_b.py", "attacks/test_a.py/kube", "e2e/api/test_a.py/embedded", "test_c.py", "docs/test_d.py"]


def test_tests_that_change_every_tenant_are_the_first_on_a_kube_apiserver() -> None:
    """On a cluster with the Tenants of all other tests, they would take many times the processor time."""
    of_kube = [position(suite, "kube", every_tenant=every) for suite in ("e2e", "attacks") for every in (True, False)]
    assert of_kube[0] == of_kube[2] < of_kube[1] == of_kube[3]
    others = [position("faults", "kube"), position("faults", "embedded"), *of_kube, position("e2e", "embedded")]
    assert position("e2e", "") < min(others)
    assert max(others) < position("registry", "")
    assert max(others[:2]) < min(of_kube) <= max(of_kube) < others[-1]


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
