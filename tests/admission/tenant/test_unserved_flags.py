"""A service that nobody on the cluster can install is admitted with a Warning."""

from __future__ import annotations

from typing import Any

import pytest

from admission.tenant.unserved_flags import UnservedFlags
from apiserver.meta.resource import Object
from tests.tenant_objects import attributes, tenant


async def warnings_of(new: Object, old: Object | None, *, has_charts: bool = False) -> list[str]:
    plugin = UnservedFlags(has_charts=lambda: has_charts)
    request = attributes("CREATE" if old is None else "UPDATE", new, old)
    if plugin.handles(request):
        await plugin.validate(request)
    return request.context.warnings


@pytest.mark.parametrize(
    ("spec", "old", "flags"),
    [
        pytest.param({}, None, "", id="nothing is asked for"),
        pytest.param({"gateway": True}, None, "", id="a Gateway needs no chart"),
        pytest.param(
            {"monitoring": True, "etcd": True, "ingress": False}, None, "spec.etcd, spec.monitoring", id="new"
        ),
        pytest.param({"etcd": True, "ingress": True}, {"etcd": True}, "spec.ingress", id="only what changes"),
        pytest.param({"etcd": True}, {"etcd": True}, "", id="unchanged"),
        pytest.param({"etcd": False}, {"etcd": True}, "", id="set to false"),
    ],
)
async def test_only_flags_that_a_write_sets_are_warned_of(
    spec: dict[str, Any], old: dict[str, Any] | None, flags: str
) -> None:
    found = await warnings_of(tenant("alpha", spec=spec), None if old is None else tenant("alpha", spec=old))
    assert [each.partition(":")[0] for each in found] == ([flags] if flags else [])


async def test_with_charts_nothing_is_warned_of() -> None:
    assert await warnings_of(tenant("alpha", spec={"etcd": True}), None, has_charts=True) == []


async def test_the_warning_says_what_follows() -> None:
    [found] = await warnings_of(tenant("alpha", spec={"monitoring": True}), None)
    assert found == (
        "spec.monitoring: no controller on this cluster is known to install this (tenants.chart: none); until one "
        "does, the tenant is not ready"
    )
