"""The ResourceQuota and the LimitRange of a Tenant: how they are rendered, and which ones are equivalent."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from apiserver.meta.resource import Object
from controller.platform.settings import PlatformSettings
from controller.tenant.quota import rendering as quota
from registry.tenant.quota_keys import EQUAL, rendered_limits
from tests.controller.golden_files import assert_golden
from tests.tenant_objects import tenant_summary

LIMIT_RANGE = PlatformSettings().tenants.limit_range
LIMITS = {"default": LIMIT_RANGE.default, "defaultRequest": LIMIT_RANGE.default_request}
CERTIFICATES = "count/certificates.cert-manager.io"
QUOTAS: dict[str, str | int] = {"cpu": 4, CERTIFICATES: "10", "requests.storage": "1Ti"}
LIMITED = tenant_summary("bar", "tenant-foo", spec={"resourceQuotas": QUOTAS})


def hard_of(quotas: dict[str, str | int]) -> Mapping[str, str]:
    return quota.hard_limits(rendered_limits(quotas, EQUAL).valid)


def test_the_rendered_quota() -> None:
    """R-313, PEER-13: the key is exactly the declared one."""
    rendered = quota.render_quota(LIMITED.namespace, quota.QUOTA_NAME, hard_of(QUOTAS))

    assert_golden("tenant-quota", rendered)
    assert CERTIFICATES in rendered["spec"]["hard"]


def test_the_rendered_limits() -> None:
    assert_golden("tenant-range-limits", quota.render_limit_range(LIMITED, LIMITS))


def test_the_limits_of_containers_are_rounded_up_as_kubernetes_stores_them() -> None:
    limits = {"default": {"cpu": "1500u", "memory": "128Mi"}}
    default = {"cpu": "2m", "memory": "128Mi"}
    stored: Object = {"metadata": {}, "spec": {"limits": [{"type": "Container", "default": default}]}}

    assert quota.render_limit_range(LIMITED, limits)["spec"] == stored["spec"]
    assert quota.render_limit_range(LIMITED, limits, stored)["spec"] == {}


def hard(**quantities: str) -> Object:
    return {"metadata": {}, "spec": {"hard": quantities}}


@pytest.mark.parametrize(
    ("declared", "current", "rendered"),
    [
        pytest.param({"pods": "1e0"}, {"pods": "1"}, {"pods": "1"}, id="the stored spelling stays"),
        pytest.param({"pods": 1}, {"pods": "1"}, {"pods": "1"}, id="a number"),
        pytest.param(
            {"limits.cpu": "500u"}, {"limits.cpu": "1m"}, {"limits.cpu": "1m"}, id="rounded up as Kubernetes does"
        ),
        pytest.param({"pods": "2"}, {"pods": "1"}, {"pods": "2"}, id="another quantity"),
        pytest.param(
            {"pods": "1"}, {"pods": "1", "cpu": "3"}, {"pods": "1", "cpu": None}, id="exactly the declared keys"
        ),
        pytest.param({"pods": "1"}, {"pods": "malformed"}, {"pods": "1"}, id="a malformed quantity is overwritten"),
    ],
)
def test_the_patch_of_an_existing_quota(
    declared: dict[str, str | int], current: dict[str, str], rendered: dict[str, str | None]
) -> None:
    found = quota.render_quota("tenant-bar", quota.QUOTA_NAME, hard_of(declared), hard(**current))

    assert found["spec"]["hard"] == rendered


@pytest.mark.parametrize(
    ("chart", "accepted"),
    [
        pytest.param({"limits.cpu": "4", "requests.cpu": "0.4"}, True, id="what the tenant declares"),
        pytest.param({"limits.cpu": "4", "requests.cpu": "0.40000000000000002"}, True, id="floating-point numbers"),
        pytest.param({"limits.cpu": "4", f"limits.{CERTIFICATES}": "10"}, True, id="with keys that limit nothing"),
        pytest.param({"limits.cpu": "5", "requests.cpu": "0.5"}, False, id="another amount"),
        pytest.param({"cpu": "4"}, False, id="another amount under the alias"),
        pytest.param({"pods": "4"}, False, id="nothing of what the tenant declares"),
        pytest.param({}, False, id="nothing"),
    ],
)
def test_the_quota_of_the_chart_is_accepted_if_it_limits_what_the_tenant_declares(
    chart: dict[str, str], accepted: bool
) -> None:
    desired = hard(**{"limits.cpu": "4", "requests.cpu": "400m", CERTIFICATES: "10"})

    assert quota.is_charts_quota(hard(**chart), desired) is accepted


@pytest.mark.parametrize(
    ("limit", "accepted"),
    [
        pytest.param({"type": "Container", "default": {"cpu": "500m", "memory": "512Mi"}}, True, id="of the chart"),
        pytest.param({"type": "Container", "default": {"cpu": "500m"}}, False, id="without memory"),
        pytest.param({"type": "Pod", "default": {"cpu": "500m", "memory": "512Mi"}}, False, id="of Pods"),
        pytest.param({"type": "Container", "max": {"cpu": "1"}}, False, id="without defaults"),
    ],
)
def test_the_limits_of_the_chart_are_accepted_if_containers_can_start(limit: Object, accepted: bool) -> None:
    current = {"metadata": {}, "spec": {"limits": [limit]}}

    assert quota.is_charts_limit_range(current, quota.render_limit_range(LIMITED, LIMITS)) is accepted


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
