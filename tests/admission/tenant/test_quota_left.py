"""The rest of a quota: after requests are divided by the platform's ratios, and without the amount in use."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

import pytest

from admission.tenant.quota import validate_quota_change
from admission.tenant.quota_ledger import NamespaceUsage
from registry.tenant.pool_quotas import POOL_NAME, PoolQuotas
from registry.tenant.quota_keys import NANO, AllocationRatios
from registry.tenant.summary import TenantSummary
from registry.tenant.tree import TenantTree
from tests.tenant_objects import tenant_summary, tree_of


def quotas(
    name: str, namespace: str = "tenant-root", others: Mapping[str, str | int] | None = None, **amounts: str | int
) -> TenantSummary:
    """`others` are amounts of keys that are no names in Python."""
    return tenant_summary(name, namespace, spec={"resourceQuotas": {**amounts, **(others or {})}})


def problems(tree: TenantTree, new: TenantSummary) -> list[str]:
    return [str(each) for each in validate_quota_change(tree, new, None)]


def ratio_tree(*tenants: TenantSummary) -> TenantTree:
    return TenantTree(tenants, ratios=AllocationRatios(cpu=Fraction(10), ephemeral_storage=Fraction(40)))


def test_requests_are_compared_with_what_is_left_of_the_divided_amount() -> None:
    tree = ratio_tree(quotas("alpha", cpu=10))
    assert problems(tree, quotas("beta", "tenant-alpha", {"requests.cpu": 1}, cpu=10)) == []
    [problem] = problems(tree, quotas("beta", "tenant-alpha", {"requests.cpu": 2}))
    why = (
        "2 is more than the 1 that are left of the parent's 1 of requests.cpu (10 of cpu divided by the allocation "
        "ratio 10)"
    )
    assert problem == f"spec.resourceQuotas[requests.cpu]: Forbidden: {why}"


def test_an_amount_of_the_user_may_exceed_the_quota_only_after_it_is_divided() -> None:
    tree = ratio_tree(quotas("alpha", others={"requests.cpu": 4}))
    [problem] = problems(tree, quotas("beta", "tenant-alpha", cpu=50))
    divided = "5 of requests.cpu (50 of cpu divided by the allocation ratio 10)"
    why = f"{divided} is more than the 4 that are left of the parent's 4 of requests.cpu"
    assert problem == f"spec.resourceQuotas[cpu]: Forbidden: {why}"


def test_a_ratio_may_be_a_fraction() -> None:
    tree = TenantTree(
        [quotas("alpha", others={"requests.memory": "1Gi"})], ratios=AllocationRatios(memory=Fraction(5, 2))
    )
    [problem] = problems(tree, quotas("beta", "tenant-alpha", memory="5Gi"))
    assert "2Gi of requests.memory (5Gi of memory divided by the allocation ratio 2.5) is more than the 1Gi" in problem


@pytest.mark.parametrize(
    ("claim", "used", "expected"),
    [
        pytest.param(10, {"tenant-alpha": 8}, ["10 is more than the 2 that are left of the parent's 10"], id="parent"),
        pytest.param(2, {"tenant-alpha": 8}, [], id="what is left"),
        pytest.param(
            3,
            {"tenant-alpha": 4, "tenant-alpha-shares": 4},
            ["3 is more than the 2 that are left of the parent's 10"],
            id="a child without a quota of its own",
        ),
        pytest.param(10, {"tenant-alpha-beta": 8}, [], id="the tenant itself"),
        pytest.param(5, {"tenant-alpha-declares": 5, "tenant-root": 100}, [], id="tenants with quotas of their own"),
    ],
)
def test_what_is_used_already_is_not_left_for_a_child(claim: int, used: Mapping[str, int], expected: list[str]) -> None:
    tree = tree_of(
        quotas("alpha", cpu=10),
        tenant_summary("shares", "tenant-alpha"),
        quotas("declares", "tenant-alpha", cpu=5 if claim == 5 else 0),
        tenant_summary("beta", "tenant-alpha"),
    )

    def usage(namespace: str) -> Mapping[str, int]:
        return {"limits.cpu": used.get(namespace, 0) * NANO}

    new, old = quotas("beta", "tenant-alpha", cpu=claim), tenant_summary("beta", "tenant-alpha")
    found = [str(each) for each in validate_quota_change(tree, new, old, usage)]
    assert found == [f"spec.resourceQuotas[cpu]: Forbidden: {why}" for why in expected]


async def test_a_use_beyond_64_bits_leaves_nothing_for_a_child() -> None:
    in_use = PoolQuotas()
    status = {"used": {"limits.cpu": "18000000000000000064"}}
    metadata = {"name": POOL_NAME, "namespace": "tenant-alpha-shares"}
    await in_use.replace([{"metadata": metadata, "status": status}], 1)
    tree = tree_of(quotas("alpha", cpu=64), tenant_summary("shares", "tenant-alpha"))

    found = validate_quota_change(tree, quotas("beta", "tenant-alpha", cpu=64), None, in_use.used)

    assert ["64 is more than the 0 that are left of the parent's 64" in str(each) for each in found] == [True]


BIG = quotas("alpha", pods=16)
USED = "tenant-alpha-beta"


def usage_of(**used: int) -> NamespaceUsage:
    """Pods by the last part of the namespace."""

    def usage(namespace: str) -> Mapping[str, int]:
        return {"pods": used.get(namespace.rpartition("-")[2], 0) * NANO}

    return usage


@pytest.mark.parametrize(
    ("others", "used", "left"),
    [
        pytest.param([quotas("beta", "tenant-alpha", pods=0)], {"beta": 16}, 0, id="lowered below its use"),
        pytest.param([quotas("beta", "tenant-alpha", pods=9)], {"beta": 3}, 7, id="uses less than it declares"),
        pytest.param([quotas("beta", "tenant-alpha", pods=0)], {}, 16, id="the use is not known"),
        pytest.param([tenant_summary("beta", "tenant-alpha")], {"beta": 16}, 0, id="declares no quota any more"),
        pytest.param(
            [tenant_summary("beta", "tenant-alpha", spec={"resourceQuotas": {"pods": 0}}, terminating=True)],
            {"beta": 10},
            6,
            id="is being deleted",
        ),
        pytest.param(
            [quotas("beta", "tenant-alpha", pods=2), tenant_summary("shares", USED)],
            {"beta": 1, "shares": 11},
            4,
            id="its child without quotas uses more",
        ),
        pytest.param(
            [quotas("beta", "tenant-alpha", pods=10), quotas("declares", USED, pods=4)],
            {"beta": 8},
            4,
            id="what its child declares can still be used",
        ),
        pytest.param(
            [quotas("beta", "tenant-alpha", pods=4), quotas("declares", USED, pods=1)],
            {"declares": 9},
            7,
            id="its child uses more than it declares",
        ),
        pytest.param(
            [quotas("beta", "tenant-alpha", pods=12), quotas("declares", USED, pods=1)],
            {"declares": 9},
            4,
            id="its child uses more, but it declares enough",
        ),
        pytest.param(
            [tenant_summary("beta", "tenant-alpha"), quotas("declares", USED, pods=1)],
            {"beta": 2, "declares": 9},
            5,
            id="below a tenant that declares none",
        ),
    ],
)
def test_a_quota_that_is_lowered_below_its_use_frees_nothing(
    others: list[TenantSummary], used: Mapping[str, int], left: int
) -> None:
    tree = tree_of(BIG, *others, tenant_summary("gamma", "tenant-alpha"))
    old = tenant_summary("gamma", "tenant-alpha")

    def found(pods: int) -> list[str]:
        new = quotas("gamma", "tenant-alpha", pods=pods)
        return [str(each) for each in validate_quota_change(tree, new, old, usage_of(**used))]

    why = f"{left + 1} is more than the {left} that are left of the parent's 16"
    assert found(left + 1) == [f"spec.resourceQuotas[pods]: Forbidden: {why}"]
    assert left == 0 or found(left) == []


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        pytest.param(0, 12, [], id="what others leave"),
        pytest.param(0, 13, ["13 is more than the 12 that are left of the parent's 16"], id="more than others leave"),
        pytest.param(16, 0, [], id="lowered below its use"),
        pytest.param(16, None, [], id="no quota any more"),
        pytest.param(None, 8, [], id="less than what it uses already"),
    ],
)
def test_what_a_tenant_uses_itself_does_not_keep_it_from_declaring_what_others_leave(
    before: int | None, after: int | None, expected: list[str]
) -> None:
    """Even if its parent's amount is exceeded already. More would stay declared when its use has fallen."""
    old, new = (
        tenant_summary("beta", "tenant-alpha", spec={"resourceQuotas": {} if each is None else {"pods": each}})
        for each in (before, after)
    )
    tree = tree_of(BIG, old, quotas("gamma", "tenant-alpha", pods=4))
    exceeded = usage_of(beta=14)

    found = [str(each) for each in validate_quota_change(tree, new, old, exceeded)]

    assert found == [f"spec.resourceQuotas[pods]: Forbidden: {why}" for why in expected]


@pytest.mark.parametrize(
    ("before", "after", "refused"),
    [
        pytest.param({"pods": 5}, {"pods": 4}, True, id="lowered"),
        pytest.param({"pods": 5}, {}, True, id="removed"),
        pytest.param({"cpu": 5}, {"cpu": 5, "limits.cpu": 4}, True, id="lowered by another key"),
        pytest.param({"pods": 5}, {"pods": 6}, False, id="raised"),
        pytest.param({"pods": 5}, {"pods": 5, "secrets": 1}, False, id="another key"),
    ],
)
def test_the_quota_of_a_tenant_that_is_being_deleted_can_only_grow(
    before: Mapping[str, int], after: Mapping[str, int], refused: bool
) -> None:
    old, new = (
        tenant_summary("beta", "tenant-alpha", spec={"resourceQuotas": each}, terminating=True)
        for each in (before, after)
    )

    found = [str(each) for each in validate_quota_change(tree_of(old), new, old)]

    why = "cannot be lowered or removed while the tenant is being deleted"
    assert bool(found) is refused
    assert all(each.endswith(f": Forbidden: {why}") for each in found)
