from __future__ import annotations

import pytest

from apiserver.meta.resource import Object
from registry.quantity import LARGEST
from registry.quota_names import LARGEST_WHOLE
from registry.tenant.pool_quotas import POOL_NAME, PoolQuotas, Shares, shares_of
from registry.tenant.quota_keys import NANO, QuotaLimit
from registry.tenant.quota_pools import Pool, Share, shared_limit, strict_targets
from tests.tenant_objects import tenant_summary


def pool_quota(fields: Object, namespace: str = "tenant-a", name: str = POOL_NAME) -> Object:
    return {"metadata": {"name": name, "namespace": namespace}, **fields}


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        pytest.param({}, {}, id="nothing"),
        pytest.param({"spec": {"hard": {"pods": "3"}}}, {"pods": Share(0, 3 * NANO, None)}, id="not counted yet"),
        pytest.param(
            {"spec": {"hard": {"pods": "3"}}, "status": {"hard": {"pods": "5"}, "used": {"pods": "4"}}},
            {"pods": Share(4 * NANO, 3 * NANO, 5 * NANO)},
            id="a lower limit that has not been seen yet",
        ),
        pytest.param({"status": {"used": {"cpu": "100m"}}}, {"requests.cpu": Share(10**8)}, id="another name"),
        pytest.param({"spec": {"hard": []}, "status": {"used": []}}, {}, id="no amounts"),
    ],
)
def test_the_shares_of_a_namespace(fields: Object, expected: Shares) -> None:
    assert shares_of(pool_quota(fields)) == expected


@pytest.mark.parametrize(
    "used",
    [
        pytest.param("18000000000000000064", id="the sum of two Pods of 9E and one of 64"),
        pytest.param("18E", id="a suffix"),
        pytest.param("27e18", id="an exponent"),
        pytest.param("100e198", id="a large exponent"),
        pytest.param("9" * 200, id="many digits"),
        pytest.param("many", id="malformed"),
        pytest.param(None, id="nothing that is a quantity"),
    ],
)
@pytest.mark.parametrize(
    ("key", "most"),
    [
        pytest.param("limits.cpu", LARGEST, id="an amount"),
        pytest.param("gold.storageclass.storage.k8s.io/requests.storage", LARGEST_WHOLE, id="a count"),
    ],
)
def test_an_amount_that_no_tenant_can_declare_counts_as_the_most_that_one_can(key: str, most: int, used: str) -> None:
    """Nothing of a pool is free then, however large it is, and a ResourceQuota can have the amount."""
    amounts = {key: used}

    found = shares_of(pool_quota({"spec": {"hard": amounts}, "status": {"hard": amounts, "used": amounts}}))

    assert found == {key: Share(most * NANO, most * NANO, most * NANO)}


def test_amounts_are_whole_thousandths_as_kubernetes_stores_them() -> None:
    found = shares_of(pool_quota({"spec": {"hard": {"limits.cpu": "1500u"}}, "status": {"used": {"limits.cpu": "1n"}}}))

    assert found == {"limits.cpu": Share(NANO // 1000, 2 * NANO // 1000)}


async def test_a_use_beyond_64_bits_leaves_nothing_of_a_pool() -> None:
    quotas = PoolQuotas()
    members = ("tenant-a", "tenant-b")
    pool = Pool(tenant_summary("a"), "limits.cpu", QuotaLimit(64 * NANO, "cpu", "64"), 64 * NANO, members)
    used = {"status": {"used": {"limits.cpu": "18000000000000000064"}}}
    await quotas.replace([pool_quota(used), pool_quota({}, "tenant-b")], 1)

    assert shared_limit(pool.capacity, 0, quotas.used_by_all(pool)) == 0
    assert sum(strict_targets(pool.key, pool.capacity, quotas.shares(pool)).values()) <= pool.capacity


async def test_the_use_of_a_pool_is_the_sum_of_its_members() -> None:
    quotas, seen = PoolQuotas(), list[str]()
    quotas.subscribe(lambda namespace, before, after: seen.append(namespace))
    pool = Pool(tenant_summary("a"), "pods", QuotaLimit(10 * NANO, "pods", "10"), 10 * NANO, ("tenant-a", "tenant-b"))
    used = [{"status": {"used": {"pods": str(number)}}} for number in (2, 3, 5)]
    await quotas.replace([pool_quota(used[0]), pool_quota(used[1], "tenant-b")], 1)
    assert quotas.used_by_all(pool) == 5 * NANO
    quotas.apply("MODIFIED", pool_quota(used[2]), 2)
    quotas.apply("MODIFIED", pool_quota(used[2], name="another"), 3)
    assert quotas.used_by_all(pool) == 8 * NANO
    quotas.apply("DELETED", pool_quota({}), 4)
    assert (quotas.used_by_all(pool), quotas.used("tenant-a")) == (3 * NANO, {})
    assert seen == ["tenant-a", "tenant-b", "tenant-a", "tenant-a"]
