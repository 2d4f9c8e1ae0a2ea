"""The balances of quota pools while descendants use more than they declare."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from apiserver.meta.resource import Object
from registry.tenant.pool_balances import PoolBalances
from registry.tenant.pool_quotas import POOL_NAME, KeptUntilGone, PoolQuotas, Shares
from registry.tenant.quota_keys import NANO
from registry.tenant.quota_pools import NOTHING, TenantPools
from registry.tenant.summary import TenantSummary
from registry.tenant.tree import TenantTree
from tests.tenant_objects import tenant_summary, tree_of

ALPHA, BETA, DEEP = "tenant-alpha", "tenant-alpha-beta", "tenant-alpha-beta-deep"


def declaring(name: str, namespace: str, pods: int | None) -> TenantSummary:
    return tenant_summary(name, namespace, spec={"resourceQuotas": {} if pods is None else {"pods": pods}})


def pool_quota(namespace: str, *, used: int = 0, hard: int | None = None) -> Object:
    return {
        "metadata": {"name": POOL_NAME, "namespace": namespace},
        "spec": {"hard": {} if hard is None else {"pods": str(hard)}},
        "status": {"used": {"pods": str(used)}},
    }


def follow(tree: TenantTree, pools: TenantPools, quotas: PoolQuotas, balances: PoolBalances) -> None:
    def on_change(namespace: str, before: Shares, after: Shares) -> None:
        tenant = tree.by_namespace(namespace)
        assert tenant is not None
        for key, pool in pools.governing(tenant).items():
            balances.change(pool, before.get(key, NOTHING), after.get(key, NOTHING))

    quotas.subscribe(on_change)


@pytest.mark.parametrize(
    ("beta", "deep", "used", "written", "expected"),
    [
        pytest.param(4, None, {}, {}, 12, id="nothing is used"),
        pytest.param(4, None, {BETA: 4}, {}, 12, id="as much as is declared"),
        pytest.param(4, None, {BETA: 6}, {}, 10, id="more than is declared"),
        pytest.param(4, None, {BETA: 3, DEEP: 4}, {}, 9, id="more together with one that declares none"),
        pytest.param(4, 3, {BETA: 1, DEEP: 3}, {}, 12, id="both as much as they declare"),
        pytest.param(4, 3, {BETA: 3}, {}, 10, id="what the other declares can still be used"),
        pytest.param(4, 1, {DEEP: 3}, {}, 12, id="more than it declares, but not more than its parent"),
        pytest.param(4, 1, {DEEP: 9}, {}, 7, id="more than its parent declares"),
        pytest.param(1, 9, {}, {}, 15, id="more is declared than by the parent, and not used"),
        pytest.param(None, 1, {BETA: 2, DEEP: 5}, {}, 11, id="below one that declares none"),
        pytest.param(4, None, {BETA: 40}, {}, 0, id="more than there is"),
        pytest.param(4, None, {}, {BETA: 9}, 7, id="a limit that could not be lowered"),
        pytest.param(4, 1, {}, {DEEP: 9}, 7, id="a limit below that could not be lowered"),
        pytest.param(4, None, {BETA: 2}, {BETA: 4, ALPHA: 12}, 12, id="limits as they are declared"),
    ],
)
async def test_the_capacity_of_a_pool_is_what_descendants_neither_declare_nor_use(
    beta: int | None, deep: int | None, used: Mapping[str, int], written: Mapping[str, int], expected: int
) -> None:
    alpha = declaring("alpha", "tenant-root", 16)
    tree = tree_of(alpha, declaring("beta", ALPHA, beta), declaring("deep", BETA, deep))
    quotas = PoolQuotas()
    pools = TenantPools(tree)
    pool, balances = pools.governing(alpha)["pods"], PoolBalances(pools=pools, quotas=quotas)
    assert balances.capacity(pool) == pool.capacity
    follow(tree, pools, quotas, balances)
    await quotas.replace([pool_quota(each, used=used.get(each, 0), hard=written.get(each)) for each in (BETA, DEEP)], 1)
    assert balances.capacity(pool) == expected * NANO
    await quotas.replace([pool_quota(each) for each in (BETA, DEEP)], 2)
    assert balances.capacity(pool) == pool.capacity


async def test_what_was_in_use_in_a_namespace_that_is_being_deleted_stays_until_it_is_gone() -> None:
    deleted = set[str]()
    quotas = PoolQuotas(keeps=deleted.__contains__)
    namespaces = KeptUntilGone(quotas)
    for namespace in (ALPHA, BETA, DEEP):
        quotas.apply("ADDED", pool_quota(namespace, used=5, hard=9), 1)
    deleted |= {BETA, DEEP}
    for namespace in (ALPHA, BETA, DEEP):
        quotas.apply("DELETED", pool_quota(namespace), 2)

    assert quotas.used(ALPHA) == {}
    assert quotas.used(BETA) == {"pods": 5 * NANO}
    assert quotas.of(BETA)["pods"].hard is None
    assert set(quotas.kept()) == {BETA, DEEP}
    # a list without these ResourceQuotas, after a gap in the watch
    await quotas.replace([], 3)
    assert quotas.used(BETA) == {"pods": 5 * NANO}

    namespaces.apply("MODIFIED", {"metadata": {"name": BETA}}, 4)
    assert quotas.used(BETA) == {"pods": 5 * NANO}
    namespaces.apply("DELETED", {"metadata": {"name": BETA}}, 5)
    assert quotas.used(BETA) == {}
    await namespaces.replace([{"metadata": {"name": ALPHA}}], 6)
    assert quotas.kept() == {}


async def test_a_new_resourcequota_replaces_what_was_kept() -> None:
    quotas = PoolQuotas(keeps=lambda namespace: True)
    quotas.apply("ADDED", pool_quota(BETA, used=5), 1)
    quotas.apply("DELETED", pool_quota(BETA), 2)
    quotas.apply("ADDED", pool_quota(BETA, used=1), 3)
    assert quotas.used(BETA) == {"pods": NANO}
    assert quotas.kept() == {}
