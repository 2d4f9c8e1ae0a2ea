"""Contents of a Tenant's Namespace that Cozystack's chart creates as well: we do not fight Helm over its objects, and
hand ours over to it."""

from __future__ import annotations

from typing import Any

import pytest

from apiserver.meta.resource import Object
from controller.platform.chart_values import tenantgateway_spec
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
from tests.controller.tenant.tenant_world import World
from tests.virtual_time import virtual

LABEL = "namespace.cozystack.io/"
CERTIFICATES = "count/certificates.cert-manager.io"
HELM = {
    "labels": {"app.kubernetes.io/managed-by": "Helm"},
    "annotations": {"meta.helm.sh/release-name": "tenant-alpha", "meta.helm.sh/release-namespace": "tenant-root"},
}


def _chart_objects(world: World) -> dict[tuple[ClusterResource, str], Object]:
    """The objects of the tenant's chart: the same as ours, with a few other values."""
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
        (TENANTGATEWAYS, "cozystack"): {"spec": tenantgateway_spec(world.settings.current, "chart.example")},
    }


async def _apply_chart(world: World) -> None:
    """Apply the objects of the chart as Helm does."""
    for (res, name), obj in _chart_objects(world).items():
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
async def test_objects_of_the_tenants_chart_are_not_fought_over(chart: Any) -> None:
    """Helm applies the chart's version of every object 20 times, and we write nothing in between."""
    world = World(settings={"tenants": {"chart": chart}})
    async with world.running():
        await _apply_chart(world)
        await world.create("alpha", gateway=True, resourceQuotas={"cpu": "1", CERTIFICATES: "10"})
        await world.settle()
        conditions = world.conditions("alpha")
        assert conditions["ChartConflict"] == ("True", "ObjectsDiffer")
        assert conditions["NamespaceReady"] == ("True", "Reconciled")
        for (res, name), obj in _chart_objects(world).items():
            _assert_kept(world.content(res, "tenant-alpha" if res.namespaced else "", name), obj)
        # fields that the chart does not set are ours to set
        quota = world.content(RESOURCEQUOTAS, "tenant-alpha", "tenant-quota")
        assert quota["spec"]["hard"] == {"cpu": "9", CERTIFICATES: "10"}
        assert world.services("tenant-alpha")["gateway"] == "tenant-alpha"
        writes = world.writer.writes
        for _ in range(20):
            await _apply_chart(world)
            await world.reconcile_all()
        assert world.writer.writes == writes


def _assert_kept(found: Any, chart: Any) -> None:
    if isinstance(chart, dict):
        for key, value in chart.items():
            _assert_kept(found[key], value)
    else:
        assert found == chart


@virtual
async def test_if_flux_installs_charts_our_objects_are_labelled_for_helm_to_take_over() -> None:
    world = World(settings={"tenants": {"chart": "flux"}})
    async with world.running():
        await world.create("alpha", gateway=True, resourceQuotas={"cpu": "1"})
        await world.settle()
        writes = world.writer.writes
        await world.reconcile_all()
        assert world.writer.writes == writes
    for res, name in _chart_objects(world):
        metadata = world.content(res, "tenant-alpha" if res.namespaced else "", name)["metadata"]
        assert metadata["labels"]["app.kubernetes.io/managed-by"] == "Helm"
        # the TenantGateway belongs to a chart of its own, in the tenant's namespace
        release = ("tenant-alpha", "gateway") if res == TENANTGATEWAYS else ("tenant-root", "tenant-alpha")
        annotations = metadata["annotations"]
        assert annotations["meta.helm.sh/release-namespace"] == release[0]
        assert annotations["meta.helm.sh/release-name"] == release[1]
    assert "ChartConflict" not in world.conditions("alpha")
    root = world.namespace("tenant-root")["metadata"]
    assert "app.kubernetes.io/managed-by" not in root["labels"]
    # no chart creates the Secret of the root
    values = world.content(SECRETS, "tenant-root", "cozystack-values")["metadata"]
    assert values["labels"]["app.kubernetes.io/managed-by"] == "tenant-controller"


@virtual
async def test_our_objects_are_handed_over_when_flux_starts_to_install_charts() -> None:
    world = World()
    async with world.running():
        await world.create("alpha", resourceQuotas={"cpu": "1"})
        await world.settle()
        secret = world.content(SECRETS, "tenant-alpha", "cozystack-values")
        assert secret["metadata"]["labels"]["app.kubernetes.io/managed-by"] == "tenant-controller"
        world.configure(tenants={"chart": "flux"})
        await world.settle()
        writes = world.writer.writes
        await world.reconcile_all()
        assert world.writer.writes == writes
    for res, name in ((NAMESPACES, "tenant-alpha"), (SECRETS, "cozystack-values")):
        metadata = world.content(res, "tenant-alpha" if res.namespaced else "", name)["metadata"]
        assert metadata["labels"]["app.kubernetes.io/managed-by"] == "Helm"
        assert metadata["annotations"]["meta.helm.sh/release-name"] == "tenant-alpha"
