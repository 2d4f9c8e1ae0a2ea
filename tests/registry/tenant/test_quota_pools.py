"""Pools of quota: who shares what, and how it is divided."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from registry.tenant.quota_keys import NANO
from registry.tenant.quota_pools import (
    Share,
    TenantPools,
    pools_of,
    shared_limit,
    strict_limit,
    strict_targets,
)
from registry.tenant.summary import TenantSummary
from registry.tenant.tree import TenantTree
from tests.tenant_objects import root_summary, tenant_summary, tree_of


def quotas(name: str, namespace: str = "tenant-root", **amounts: str | int) -> TenantSummary:
    return tenant_summary(name, namespace, spec={"resourceQuotas": amounts})


ALPHA = quotas("alpha", pods=10, secrets=5)
TREE = tree_of(
    ALPHA,
    tenant_summary("plain", "tenant-alpha"),
    quotas("some", "tenant-alpha", pods=4),
    tenant_summary("below", "tenant-alpha-some"),
    quotas("deep", "tenant-alpha-plain", pods=3),
    tenant_summary("aside"),
)


def test_a_pool_has_the_descendants_that_do_not_declare_the_key() -> None:
    pools = pools_of(TREE, ALPHA)

    assert (pools["pods"].capacity, pools["pods"].members) == (3 * NANO, ("tenant-alpha", "tenant-alpha-plain"))
    assert pools["secrets"].capacity == 5 * NANO
    assert set(pools["secrets"].members) == {
        "tenant-alpha",
        "tenant-alpha-plain",
        "tenant-alpha-plain-deep",
        "tenant-alpha-some",
        "tenant-alpha-some-below",
    }


def test_descendants_that_declare_too_much_leave_nothing() -> None:
    assert pools_of(tree_of(ALPHA, quotas("b", "tenant-alpha", pods=99)), ALPHA)["pods"].capacity == 0


def test_the_nearest_tenant_that_declares_a_key_governs_it() -> None:
    pools = TenantPools(TREE)
    below = TREE.by_namespace("tenant-alpha-some-below")
    assert below is not None

    governing = {key: pool.owner.namespace for key, pool in pools.governing(below).items()}

    assert governing == {"pods": "tenant-alpha-some", "secrets": "tenant-alpha"}
    aside = TREE.by_namespace("tenant-aside")
    assert aside is not None
    assert (pools.governing(aside), pools.neighbours(aside)) == ({}, ())


def test_what_limits_a_namespace_is_declared_by_all_tenants_above_it() -> None:
    below = TREE.by_namespace("tenant-alpha-some-below")
    assert below is not None

    limits = [(amount, set(members)) for amount, members in TenantPools(TREE).limiting(below, "pods")]

    some = {"tenant-alpha-some", "tenant-alpha-some-below"}
    assert limits == [
        (4 * NANO, some),
        (10 * NANO, {"tenant-alpha", "tenant-alpha-plain", "tenant-alpha-plain-deep", *some}),
    ]


def test_a_new_tenant_without_quotas_joins_the_known_pools() -> None:
    """Ten thousand new tenants below one pool do not cause ten thousand computations of it."""
    tree = TenantTree([root_summary(resourceQuotas={"secrets": 9}), ALPHA])
    pools = TenantPools(tree)
    pools.governing(ALPHA)
    new = tenant_summary("new", "tenant-alpha")
    tree.put(new)

    pools.add_member(new)

    joined = {key: (pool.owner.namespace, pool.members) for key, pool in pools.governing(new).items()}
    pools.forget()
    assert joined == {key: (pool.owner.namespace, pool.members) for key, pool in pools.governing(new).items()}
    assert pools.governing(root_summary(resourceQuotas={"secrets": 9}))["secrets"].members == ("tenant-root",)


def share(used: int = 0, hard: int | None = None, admitted: int | None = None) -> Share:
    """A share in whole objects. Without `admitted`, the quota controller has seen `hard`."""
    amounts = (used, hard, hard if admitted is None else admitted)
    return Share(*(None if each is None else each * NANO for each in amounts))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("capacity", "used", "used_by_all", "expected"),
    [
        pytest.param(10, 0, 0, 10, id="nothing is used"),
        pytest.param(10, 3, 7, 6, id="what it uses and what is left"),
        pytest.param(10, 3, 10, 3, id="nothing is left"),
        pytest.param(10, 7, 12, 7, id="more is used than there is"),
        pytest.param(0, 0, 0, 0, id="no capacity"),
    ],
)
def test_a_namespace_of_a_shared_pool_may_use_what_is_left(
    capacity: int, used: int, used_by_all: int, expected: int
) -> None:
    assert shared_limit(capacity, used, used_by_all) == expected


@pytest.mark.parametrize(
    ("capacity", "shares", "expected"),
    [
        pytest.param(10, [share(), share()], [5, 5], id="equal parts"),
        pytest.param(3, [share(), share()], [2, 1], id="whole objects"),
        pytest.param(0, [share(), share()], [0, 0], id="nothing"),
        pytest.param(10, [share(4), share()], [7, 3], id="equal parts of what is left"),
        pytest.param(10, [share(2, 5), share(0, 5)], [5, 5], id="enough for each"),
        pytest.param(10, [share(5, 5), share(0, 5)], [8, 2], id="more for one that has nothing left"),
        pytest.param(10, [share(5, 5), share(5, 5)], [5, 5], id="all is used"),
        pytest.param(8, [share(5, 5), share(5, 5)], [4, 4], id="more is used than there is"),
        pytest.param(10, [share(0, 2), share(0, 2)], [5, 5], id="a larger capacity"),
        pytest.param(4, [share(0, 5), share(0, 5)], [2, 2], id="a smaller capacity"),
        pytest.param(10, [share(0, 5), share(0, 5), share()], [4, 3, 3], id="a new namespace"),
    ],
)
def test_a_strict_pool_is_divided_into_equal_parts_of_what_is_left(
    capacity: int, shares: Sequence[Share], expected: Sequence[int]
) -> None:
    named = {f"n{index}": each for index, each in enumerate(shares)}

    targets = strict_targets("pods", capacity * NANO, named)

    assert [targets[name] / NANO for name in named] == list(expected)


def test_cores_are_divided_into_thousandths_and_the_rest_is_not_lost() -> None:
    targets = strict_targets("requests.cpu", 1 * NANO, {"a": share(), "b": share(), "c": share()})

    assert [targets[name] for name in "abc"] == [334 * 10**6, 333 * 10**6, 333 * 10**6]


@given(
    st.sampled_from(["limits.cpu", "requests.memory", "requests.nvidia.com/gpu", "pods"]),
    st.integers(0, 10**5),
    st.lists(st.tuples(st.integers(0, 10**5), st.integers(0, 10**5)), min_size=1, max_size=5),
)
def test_a_division_is_of_thousandths_as_kubernetes_stores_them(
    key: str, capacity: int, amounts: Sequence[tuple[int, int]]
) -> None:
    milli = NANO // 1000
    shares = {f"n{index}": Share(used * milli, hard * milli) for index, (used, hard) in enumerate(amounts)}

    targets = strict_targets(key, capacity * milli, shares)

    assert not [each for each in targets.values() if each % milli]
    assert sum(targets.values()) <= capacity * milli


@pytest.mark.parametrize(
    ("target", "others", "expected"),
    [
        pytest.param(5, [share(0, 5)], 5, id="others have given"),
        pytest.param(8, [share(0, 2, admitted=5)], 5, id="the quota controller has not seen yet that another gives"),
        pytest.param(8, [share(4, 2)], 6, id="another has used it before it gave"),
        pytest.param(5, [share(0, 12)], 0, id="others have too much"),
        pytest.param(5, [share(0, 3), share(0, 3)], 4, id="two others"),
    ],
)
def test_a_namespace_gets_only_what_others_have_given(target: int, others: Sequence[Share], expected: int) -> None:
    shares = {f"other{index}": each for index, each in enumerate(others)}
    limits = [(10 * NANO, ("own", *shares))]

    assert strict_limit(target * NANO, "own", shares, limits) == expected * NANO


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        pytest.param(3, 3, id="it is to give"),
        pytest.param(6, 4, id="it is to receive what others have not given"),
    ],
)
def test_a_namespace_does_not_lose_what_it_has_because_others_have_too_much(target: int, expected: int) -> None:
    shares = {"own": share(0, 4), "other": share(0, 12)}

    assert strict_limit(target * NANO, "own", shares, [(10 * NANO, tuple(shares))]) == expected * NANO


def test_what_an_ancestor_declares_limits_as_well() -> None:
    shares = {"aside": share(0, 7)}

    assert strict_limit(9 * NANO, "own", shares, [(20 * NANO, ("own",)), (10 * NANO, ("own", "aside"))]) == 3 * NANO


# Random trees: names are the positions of parents, 0 is the root.

PARENTS = st.lists(st.integers(0, 7), min_size=1, max_size=8)
AMOUNTS = st.lists(st.one_of(st.none(), st.integers(0, 20)), min_size=9, max_size=9)
USES = st.lists(st.integers(0, 12), min_size=9, max_size=9)


def random_tree(parents: Sequence[int], amounts: Sequence[int | None]) -> TenantTree:
    tree = TenantTree([_tenant("root", "tenant-root", amounts[0])])
    namespaces = ["tenant-root"]
    for index, parent in enumerate(parents, start=1):
        tenant = _tenant(f"t{index}", namespaces[parent % len(namespaces)], amounts[index])
        tree.put(tenant)
        namespaces.append(tenant.namespace)
    return tree


def _tenant(name: str, namespace: str, amount: int | None) -> TenantSummary:
    return tenant_summary(name, namespace, spec={"resourceQuotas": {} if amount is None else {"pods": amount}})


@given(PARENTS, AMOUNTS)
def test_each_namespace_below_a_declared_amount_is_in_one_pool(
    parents: Sequence[int], amounts: Sequence[int | None]
) -> None:
    tree = random_tree(parents, amounts)
    members = [namespace for tenant in tree for pool in pools_of(tree, tenant).values() for namespace in pool.members]
    limited = [each.namespace for each in tree if any(above.quotas for above in (each, *tree.ancestors(each)))]
    assert sorted(members) == sorted(limited)
    pools = TenantPools(tree)
    assert all(each.namespace in pools.neighbours(each) for each in tree if each.namespace in limited)


@given(PARENTS, AMOUNTS, USES)
def test_the_limits_of_a_pool_allow_no_more_than_the_mode_says(
    parents: Sequence[int], amounts: Sequence[int | None], uses: Sequence[int]
) -> None:
    """Strict: the sum of the limits is never more than the capacity. Shared: each may use all that is left."""
    tree = random_tree(parents, amounts)
    used = {each.namespace: uses[index] * NANO for index, each in enumerate(tree)}
    for tenant in tree:
        for pool in pools_of(tree, tenant).values():
            shares = {each: Share(used[each], None, None) for each in pool.members}
            assert sum(strict_targets(pool.key, pool.capacity, shares).values()) <= pool.capacity
            total = sum(used[each] for each in pool.members)
            limits = {each: shared_limit(pool.capacity, used[each], total) for each in pool.members}
            left = max(0, pool.capacity - total)
            assert sum(limits.values()) - max(pool.capacity, total) == (len(limits) - 1) * left
            assert all(limit >= used[each] for each, limit in limits.items())


class DividedPool:
    """Namespaces of a strict pool: what was written, and what kube-apiserver admits by, which follows later."""

    def __init__(self, capacity: int, size: int) -> None:
        self.capacity = capacity * NANO
        self.shares: dict[str, Share] = {f"n{index}": Share() for index in range(size)}

    def act(self, kind: str, index: int, amount: int) -> None:
        name = f"n{index % len(self.shares)}"
        share = self.shares[name]
        match kind:
            case "use" if share.used + amount * NANO <= (share.admitted or 0):
                self.shares[name] = share._replace(used=share.used + amount * NANO)
            case "free":
                self.shares[name] = share._replace(used=max(0, share.used - amount * NANO))
            case "sync":
                self.shares[name] = share._replace(admitted=share.hard)
            case "divide":
                self._divide(name, self.shares)

    def settle(self) -> None:
        for _ in range(2 * len(self.shares) + 2):
            for name in self.shares:
                self._divide(name, self.shares)
                self.act("sync", int(name[1:]), 0)

    def _divide(self, name: str, known: Mapping[str, Share]) -> None:
        target = strict_targets("pods", self.capacity, known)[name]
        limit = strict_limit(target, name, self.shares, [(self.capacity, tuple(self.shares))])
        self.shares[name] = self.shares[name]._replace(hard=limit)

    @property
    def may_be_used(self) -> int:
        return sum(each.ceiling for each in self.shares.values())


ACTIONS = st.tuples(st.sampled_from(["use", "free", "sync", "divide"]), st.integers(0, 3), st.integers(1, 6))


@given(st.integers(0, 20), st.integers(1, 4), st.lists(ACTIONS, max_size=40))
def test_a_strict_pool_never_allows_more_than_its_capacity_and_gives_all_of_it_in_the_end(
    capacity: int, size: int, actions: Sequence[tuple[str, int, int]]
) -> None:
    pool = DividedPool(capacity, size)
    for action in actions:
        pool.act(*action)
        assert pool.may_be_used <= pool.capacity
    pool.settle()
    assert pool.may_be_used == pool.capacity
    assert sum(each.hard or 0 for each in pool.shares.values()) == pool.capacity
