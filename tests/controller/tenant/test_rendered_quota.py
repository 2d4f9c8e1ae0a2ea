"""The ResourceQuota and the LimitRange of a Tenant: how they are rendered, and which ones are equivalent."""

from __future__ import annotations

import pytest

from apiserver.meta.resource import Object
from controller.platform.settings import PlatformSettings
from controller.tenant import quota_step as quota
from tests.controller.golden_files import assert_golden
from tests.tenant_objects import tenant_summary

LIMIT_RANGE = PlatformSettings().tenants.limit_range
LIMITS = {"default": LIMIT_RANGE.default, "defaultRequest": LIMIT_RANGE.default_request}
QUOTAS: dict[str, str | int] = {"cpu": 4, "count/certificates.cert-manager.io": "10", "requests.storage": "1Ti"}
LIMITED = tenant_summary("bar", "tenant-foo", spec={"resourceQuotas": QUOTAS})


def test_the_rendered_quota() -> None:
    """R-313, PEER-13: the key is exactly the declared one."""
    rendered = quota.render_quota(LIMITED.namespace, quota.declared_limits(QUOTAS).valid)

    assert_golden("tenant-quota", rendered)
    assert set(rendered["spec"]["hard"]) == set(QUOTAS)


def test_the_rendered_limits() -> None:
    assert_golden("tenant-range-limits", quota.render_limit_range(LIMITED, LIMITS))


@pytest.mark.parametrize(
    ("declared", "valid", "problems"),
    [
        pytest.param({}, {}, 0, id="none"),
        pytest.param(
            {"cpu": "1000m", "memory": "1024Mi", "pods": 3},
            {"cpu": "1", "memory": "1Gi", "pods": "3"},
            0,
            id="canonical forms",
        ),
        pytest.param({"cpu": "1e999999999", "pods": "3"}, {"pods": "3"}, 1, id="an exponent"),
        pytest.param({"cpu": "-1", "pods": "many"}, {}, 2, id="no valid one"),
        pytest.param({"a b": "1", "x" * 1000: "1", "cpu": "1"}, {"cpu": "1"}, 2, id="keys"),
    ],
)
def test_only_valid_limits_are_written(declared: dict[str, str | int], valid: dict[str, str], problems: int) -> None:
    """ATTACK-16."""
    found = quota.declared_limits(declared)

    assert found.valid == valid
    assert len(found.problems) == problems
    assert all(len(each) < 512 for each in found.problems)


def hard(**quantities: str) -> Object:
    return {"metadata": {}, "spec": {"hard": quantities}}


@pytest.mark.parametrize(
    ("declared", "current", "rendered"),
    [
        pytest.param({"cpu": "1000m"}, {"cpu": "1"}, {"cpu": "1"}, id="the stored spelling stays"),
        pytest.param({"cpu": 1}, {"cpu": "1"}, {"cpu": "1"}, id="a number"),
        pytest.param({"cpu": "2"}, {"cpu": "1"}, {"cpu": "2"}, id="another quantity"),
        pytest.param(
            {"cpu": "1"}, {"cpu": "1", "pods": "3"}, {"cpu": "1", "pods": None}, id="exactly the declared keys"
        ),
        pytest.param({"cpu": "1"}, {"cpu": "malformed"}, {"cpu": "1"}, id="a malformed quantity is overwritten"),
    ],
)
def test_the_patch_of_an_existing_quota(
    declared: dict[str, str | int], current: dict[str, str], rendered: dict[str, str | None]
) -> None:
    limits = quota.declared_limits(declared).valid

    assert quota.render_quota("tenant-bar", limits, hard(**current))["spec"]["hard"] == rendered


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        pytest.param(hard(cpu="1"), hard(cpu="1000m"), True, id="spelling"),
        pytest.param(hard(cpu="1"), hard(cpu="2"), False, id="quantity"),
        pytest.param(hard(cpu="1"), hard(cpu="1", pods="1"), False, id="keys"),
    ],
)
def test_equivalent_quotas_have_the_same_digest(one: Object, other: Object, same: bool) -> None:
    assert (quota.MANAGED_QUOTA.digest(one) == quota.MANAGED_QUOTA.digest(other)) is same


def test_limits_are_replaced_as_a_whole_or_left() -> None:
    desired = quota.render_limit_range(LIMITED, LIMITS)
    respelled = {
        "metadata": {},
        "spec": {"limits": [{**desired["spec"]["limits"][0], "default": {**LIMITS["default"]}}]},
    }
    respelled["spec"]["limits"][0]["default"]["cpu"] = "0.25"
    with_more: Object = {"metadata": {}, "spec": {"limits": [{**desired["spec"]["limits"][0], "max": {"cpu": "1"}}]}}

    assert quota.render_limit_range(LIMITED, LIMITS, respelled)["spec"] == {}
    assert quota.render_limit_range(LIMITED, LIMITS, with_more)["spec"] == {
        "limits": [{**desired["spec"]["limits"][0], "max": None}]
    }
