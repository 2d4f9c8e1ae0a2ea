"""What a Tenant's Namespace holds where Cozystack's chart makes the same: no war of writes, and what is handed over."""

from __future__ import annotations

from typing import Any

import pytest

from apiserver.meta.resource import Object
from controller.tenant.rbac_step import ROLES
from registry.cluster.interface import (
    LIMITRANGES,
    NAMESPACES,
    RESOURCEQUOTAS,
    ROLEBINDINGS,
    SECRETS,
    SERVICEACCOUNTS,
    ClusterResource,
)
from registry.tenantgateway.types import TENANTGATEWAYS
from tests.controller.tenant.tenant_world import PlatformOfTests, World
from tests.virtual_time import virtual

LABEL = "namespace.cozystack.io/"
CERTIFICATES = "count/certificates.cert-manager.io"
HELM = {
    "labels": {"app.kubernetes.io/managed-by": "Helm"},
    "annotations": {"meta.helm.sh/release-name": "tenant-alpha", "meta.helm.sh/release-namespace": "tenant-root"},
}


def _chart(world: World) -> dict[tuple[ClusterResource, str], Object]:
    """What the tenant's chart makes: the same objects, with a few other values, and Helm's marks."""
    return {
        (NAMESPACES, "tenant-alpha"): {"metadata": {"labels": {f"{LABEL}host": "chart.example", f"{LABEL}etcd": ""}}},
        (SECRETS, "cozystack-values"): {"type": "Opaque", "data": {"values.yaml": "X2NsdXN0ZXI6IHt9Cg=="}},
        (SERVICEACCOUNTS, "tenant-alpha"): {},
        **{
            (ROLEBINDINGS, role): {
                "roleRef": {"kind": "ClusterRole", "name": role},
                "subjects": [{"kind": "Group", "name": "x"}],
            }
            for role in ROLES
        },
        (RESOURCEQUOTAS, "tenant-quota"): {"spec": {"hard": {"cpu": "9"}}},
        (LIMITRANGES, "tenant-range-limits"): {"spec": {"limits": [{"type": "Container", "default": {"cpu": "9"}}]}},
        (TENANTGATEWAYS, "cozystack"): {"spec": {**world.platform.tenantgateway("chart.example")}},
    }


async def _helm(world: World) -> None:
    """Helm re-applies its version of everything."""
    for (res, name), obj in _chart(world).items():
        metadata = {**obj.get("metadata", {}), "name": name, "annotations": HELM["annotations"]}
        metadata["labels"] = {**metadata.get("labels", {}), **HELM["labels"]}
        namespace = "tenant-alpha" if res.namespaced else ""
        if namespace:
            metadata["namespace"] = namespace
        body = {**obj, "metadata": metadata}
        if world.cluster.peek(res, namespace, name) is None:
            world.cluster.add(res, body)
        else:
            await world.edit(res, namespace, name, body)


@pytest.mark.parametrize("chart", ["none", "flux"])
@virtual
async def test_with_the_tenants_chart_there_is_no_war_of_writes(chart: Any) -> None:
    """20 alternations of our reconcile with a writer that re-applies the chart's version of every object."""
    world = World(inside=True, platform=PlatformOfTests(chart=chart))
    async with world.running():
        await _helm(world)
        await world.create("alpha", gateway=True, resourceQuotas={"cpu": "1", CERTIFICATES: "10"})
        await world.settle()
        conditions = world.conditions("alpha")
        assert conditions["ChartConflict"] == ("True", "ObjectsDiffer")
        assert conditions["NamespaceReady"] == ("True", "Reconciled")
        for (res, name), obj in _chart(world).items():
            _assert_kept(world.content(res, "tenant-alpha" if res.namespaced else "", name), obj)
        # what the chart does not say is ours to say
        quota = world.content(RESOURCEQUOTAS, "tenant-alpha", "tenant-quota")
        assert quota["spec"]["hard"] == {"cpu": "9", CERTIFICATES: "10"}
        assert world.services("tenant-alpha")["gateway"] == "tenant-alpha"
        ours = world.writer.writes
        for _ in range(20):
            await _helm(world)
            await world.again()
        assert world.writer.writes == ours


def _assert_kept(found: Any, chart: Any) -> None:
    if isinstance(chart, dict):
        for key, value in chart.items():
            _assert_kept(found[key], value)
    else:
        assert found == chart


@virtual
async def test_where_flux_installs_charts_what_we_make_is_for_helm_to_take_over() -> None:
    world = World(inside=True, platform=PlatformOfTests(chart="flux"))
    async with world.running():
        await world.create("alpha", gateway=True, resourceQuotas={"cpu": "1"})
        await world.settle()
        ours = world.writer.writes
        await world.again()
        assert world.writer.writes == ours
    for res, name in _chart(world):
        metadata = world.content(res, "tenant-alpha" if res.namespaced else "", name)["metadata"]
        assert metadata["labels"]["app.kubernetes.io/managed-by"] == "Helm"
        # the TenantGateway is of a chart of its own, in the tenant's namespace
        release = ("tenant-alpha", "gateway") if res == TENANTGATEWAYS else ("tenant-root", "tenant-alpha")
        annotations = metadata["annotations"]
        assert annotations["meta.helm.sh/release-namespace"] == release[0]
        assert annotations["meta.helm.sh/release-name"] == release[1]
    assert "ChartConflict" not in world.conditions("alpha")
    root = world.namespace("tenant-root")["metadata"]
    assert "app.kubernetes.io/managed-by" not in root["labels"]
    # no chart makes the root's
    values = world.content(SECRETS, "tenant-root", "cozystack-values")["metadata"]
    assert values["labels"]["app.kubernetes.io/managed-by"] == "tenant-controller"


@virtual
async def test_what_we_made_is_handed_over_when_the_chart_comes() -> None:
    world = World(inside=True)
    async with world.running():
        await world.create("alpha", resourceQuotas={"cpu": "1"})
        await world.settle()
        secret = world.content(SECRETS, "tenant-alpha", "cozystack-values")
        assert secret["metadata"]["labels"]["app.kubernetes.io/managed-by"] == "tenant-controller"
        world.platform.chart = "flux"
        await world.again()
        ours = world.writer.writes
        await world.again()
        assert world.writer.writes == ours
    for res, name in ((NAMESPACES, "tenant-alpha"), (SECRETS, "cozystack-values")):
        metadata = world.content(res, "tenant-alpha" if res.namespaced else "", name)["metadata"]
        assert metadata["labels"]["app.kubernetes.io/managed-by"] == "Helm"
        assert metadata["annotations"]["meta.helm.sh/release-name"] == "tenant-alpha"
