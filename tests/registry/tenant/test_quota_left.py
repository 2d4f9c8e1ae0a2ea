"""The rest of each declared key, beside the amounts that admission grants."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from admission.tenant.quota import validate_quota_change
from admission.tenant.quota_ledger import Ledger
from registry.tenant.quota_keys import EQUAL, NANO, AllocationRatios, amount_text, comparable_limits
from registry.tenant.quota_left import quota_left, resources_of
from registry.tenant.tree import TenantTree
from tests.tenant_objects import tenant_summary

_TENFOLD = AllocationRatios(cpu=Fraction(10), ephemeral_storage=Fraction(40))
_THIRD = AllocationRatios(cpu=Fraction(3), memory=Fraction(3, 2))


def _texts(
    quotas: Mapping[str, str | int],
    ratios: AllocationRatios = _TENFOLD,
    *,
    child: Mapping[str, str | int] | None = None,
    used: Mapping[str, int] | None = None,
) -> dict[str, tuple[str, ...]]:
    """ALLOCATED, USED and LEFT by key, with one child."""
    allocated = {key: limit.amount for key, limit in comparable_limits(child or {}, ratios).items()}
    rows = quota_left(
        quotas, ratios, allocated=allocated, used={key: NANO * amount for key, amount in (used or {}).items()}
    )
    return {
        each.key: tuple(
            amount_text(amount, each.text) if amount is not None else "-"
            for amount in (each.allocated, each.used, each.left)
        )
        for each in rows
    }


@pytest.mark.parametrize(
    ("quotas", "child", "expected"),
    [
        pytest.param(
            {"requests.cpu": "4"}, {"cpu": "16"}, {"requests.cpu": ("1600m", "-", "2400m")}, id="a child's cpu"
        ),
        pytest.param(
            {"cpu": "4", "requests.cpu": "4"},
            {},
            {"cpu": ("0", "-", "4"), "requests.cpu": ("0", "-", "400m")},
            id="the smaller of two keys binds",
        ),
        pytest.param(
            {"cpu": "100", "requests.cpu": 1}, {}, {"cpu": ("0", "-", "10"), "requests.cpu": ("0", "-", "1")}, id="both"
        ),
        pytest.param({"cpu": "4"}, {"requests.cpu": "200m"}, {"cpu": ("2", "-", "2")}, id="in the unit of cpu"),
        pytest.param({"cpu": "4"}, {"limits.cpu": "1"}, {"cpu": ("1", "-", "3")}, id="limits.cpu"),
        pytest.param({"count/secrets": "5"}, {"secrets": 2}, {"count/secrets": ("2", "-", "3")}, id="secrets"),
        pytest.param({"secrets": "5"}, {"count/secrets": 2}, {"secrets": ("2", "-", "3")}, id="count/secrets"),
        pytest.param({"pods": "5"}, {"count/pods": 2}, {"pods": ("0", "-", "5")}, id="count/pods is another"),
        pytest.param({"storage": "5Gi"}, {"requests.storage": "1Gi"}, {"storage": ("1Gi", "-", "4Gi")}, id="storage"),
        pytest.param(
            {"nvidia.com/gpu": 4}, {"requests.nvidia.com/gpu": 1}, {"nvidia.com/gpu": ("1", "-", "3")}, id="extended"
        ),
        pytest.param({"memory": "4Gi"}, {"memory": "8Gi"}, {"memory": ("8Gi", "-", "0")}, id="more than there is"),
        pytest.param({"memry": "4Gi"}, {}, {}, id="an invalid key limits nothing"),
    ],
)
def test_spellings_of_one_resource_are_compared_as_admission_does(
    quotas: Mapping[str, str | int], child: Mapping[str, str | int], expected: dict[str, tuple[str, ...]]
) -> None:
    assert _texts(quotas, child=child) == expected


@pytest.mark.parametrize(
    ("quotas", "child", "left"),
    [({"cpu": "16"}, {"cpu": "4"}, "12"), ({"memory": "32Gi"}, {"memory": "4Gi"}, "28Gi"), ({"memory": 10}, {}, "10")],
)
def test_a_rounded_division_does_not_show(
    quotas: Mapping[str, str | int], child: Mapping[str, str | int], left: str
) -> None:
    [(_, _, found)] = _texts(quotas, _THIRD, child=child).values()
    assert found == left


def test_use_is_not_left() -> None:
    assert _texts({"cpu": "4"}, used={"limits.cpu": 1}) == {"cpu": ("0", "1", "3")}
    assert _texts({"cpu": "40"}, used={"limits.cpu": 1, "requests.cpu": 1}) == {"cpu": ("0", "10", "30")}
    assert _texts({"cpu": "4"}, EQUAL, used={"pods": 1}) == {"cpu": ("0", "-", "4")}


def test_the_limit_that_another_key_sets_is_named() -> None:
    cpu, requests = quota_left({"cpu": "4", "requests.cpu": "4"}, _TENFOLD, allocated={}, used={})
    assert (cpu.limit, cpu.bound_by) == (4 * NANO, None)
    assert (requests.limit, requests.bound_by and requests.bound_by.key) == (4 * NANO // 10, "cpu")


def test_a_key_stands_for_the_resources_that_it_limits() -> None:
    assert resources_of("cpu", "4", EQUAL) == {"limits.cpu", "requests.cpu"}
    assert resources_of("count/secrets", "4", EQUAL) == {"secrets"}
    assert resources_of("cpu", "many", EQUAL) == set()


_KEYS = ("cpu", "requests.cpu", "limits.cpu", "memory", "requests.memory")
_AMOUNTS = {"cpu": ("1", "1500m", "7", "16", "1m", "0"), "memory": ("1Gi", "3", "1000", "1500M", "0", "10")}


def _declared() -> st.SearchStrategy[dict[str, str | int]]:
    amounts = {each: st.sampled_from(_AMOUNTS[each.rpartition(".")[2]]) for each in _KEYS}
    return st.fixed_dictionaries({}, optional=amounts)


@given(
    parent=_declared(),
    child=_declared(),
    ratios=st.builds(
        AllocationRatios,
        cpu=st.sampled_from([Fraction(1), Fraction(3), Fraction(10), Fraction(5, 2)]),
        memory=st.sampled_from([Fraction(1), Fraction(3, 2), Fraction(40)]),
    ),
)
def test_admission_grants_what_is_left_and_little_more(
    parent: dict[str, str | int], child: dict[str, str | int], ratios: AllocationRatios
) -> None:
    """More by what the division loses: less than the ratio, in thousandths of a core or in bytes."""
    owner = tenant_summary("alpha", spec={"resourceQuotas": parent})
    tree = TenantTree([owner, tenant_summary("one", "tenant-alpha", spec={"resourceQuotas": child})], ratios=ratios)

    def is_granted(key: str, amount: int) -> bool:
        text = f"{amount // 10**6}m"
        new = tenant_summary("two", "tenant-alpha", spec={"resourceQuotas": {key: text}})
        return not validate_quota_change(tree, new, None)

    ledger = Ledger(tree)
    claimed = ledger.claimed_below(owner, ledger.least(owner).keys())
    for each in quota_left(parent, ratios, allocated=claimed, used={}):
        grain = NANO if each.key.endswith("memory") else NANO // 1000
        assert each.left == 0 or is_granted(each.key, each.left)
        assert not is_granted(each.key, each.left + int(41 * grain))
