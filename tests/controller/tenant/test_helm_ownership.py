"""Contents of a Tenant's Namespace that Cozystack's chart creates as well: we do not fight Helm over its objects, and
hand ours over to it."""

from __future__ import annotations

from typing import Any

import pytest

from apiserver.meta.resource import Object
from controller.platform.chart_values import tenantgateway_spec
from controller.tenant.rbac_step import ROLES
from registry.cluster.interface import (
    HELMRELEASES,
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
        (RESOURCEQUOTAS, "tenant-quota"): {"spec": {"hard": {"limits.cpu": "9"}}},
        (LIMITRANGES, "tenant-range-limits"): {"spec": {"limits": [{"type": "Container", "default": {"cpu": "9"}}]}},
        (TENANTGATEWAYS, "cozystack"): {"spec": tenantgateway_spec(world.settings.current, "chart.example")},
    }


async def _report_of_flux(world: World) -> None:
    """Flux has looked at the HelmRelease, and goes on to install the chart."""
    ready = {"type": "Ready", "status": "True", "reason": "InstallSucceeded", "observedGeneration": 1}
    await world.edit(HELMRELEASES, "tenant-root", "tenant-alpha", {"status": {"conditions": [ready]}})


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
        await world.create("alpha", gateway=True, resourceQuotas={"cpu": "1", CERTIFICATES: "10"})
        await _report_of_flux(world)
        await _apply_chart(world)
        await world.settle()
        conditions = world.conditions("alpha")
        assert conditions["ChartConflict"] == ("True", "ObjectsDiffer")
        assert conditions["NamespaceReady"] == ("True", "Reconciled")
        for (res, name), obj in _chart_objects(world).items():
            _assert_kept(world.content(res, "tenant-alpha" if res.namespaced else "", name), obj)
        # the chart's quota and limits are left alone as a whole; what they lack is limited beside them
        quota = world.content(RESOURCEQUOTAS, "tenant-alpha", "tenant-quota")
        assert quota["spec"]["hard"] == {"limits.cpu": "9"}
        pool = world.content(RESOURCEQUOTAS, "tenant-alpha", "tenant-pool")["spec"]["hard"]
        assert pool == {"limits.cpu": "1", "requests.cpu": "100m", CERTIFICATES: "10"}
        # fields that the chart does not set are ours to set
        assert world.services("tenant-alpha")["gateway"] == "tenant-alpha"
        # after a minute without Flux, the statuses say so
        await world.settle(100)
        writes = world.writer.writes
        for _ in range(20):
            await _apply_chart(world)
            await world.reconcile_all()
        assert world.writer.writes == writes


@virtual
async def test_the_charts_quota_and_limits_are_no_conflict_if_they_are_those_of_the_tenant() -> None:
    """Cozystack's chart renders its own defaults of containers, and keys under which Kubernetes counts nothing."""
    world = World(settings={"tenants": {"chart": "flux"}})
    hard = {"limits.cpu": "1", "requests.cpu": "0.1", f"limits.{CERTIFICATES}": "10", f"requests.{CERTIFICATES}": "10"}
    default = {"cpu": "500m", "memory": "512Mi"}
    async with world.running():
        for res, name, spec in (
            (RESOURCEQUOTAS, "tenant-quota", {"hard": hard}),
            (LIMITRANGES, "tenant-range-limits", {"limits": [{"type": "Container", "default": default}]}),
        ):
            world.cluster.add(res, {"metadata": {"name": name, "namespace": "tenant-alpha", **HELM}, "spec": spec})
        await world.create("alpha", resourceQuotas={"cpu": "1", CERTIFICATES: "10"})
        # after a minute without Flux, the statuses say so
        await world.settle(100)
        assert "ChartConflict" not in world.conditions("alpha")
        writes = world.writer.writes
        await world.reconcile_all()
        assert world.writer.writes == writes
    assert world.content(RESOURCEQUOTAS, "tenant-alpha", "tenant-quota")["spec"]["hard"] == hard
    assert world.content(RESOURCEQUOTAS, "tenant-alpha", "tenant-pool")["spec"]["hard"][CERTIFICATES] == "10"


@virtual
async def test_objects_of_a_child_without_quotas_are_ours_until_it_declares_some() -> None:
    """Helm takes over only what has its marks, and the chart has no limits for a tenant without quotas."""
    world = World(settings={"tenants": {"chart": "flux"}})

    def manager(name: str) -> str:
        found = world.content(LIMITRANGES, "tenant-alpha-beta", name)["metadata"]["labels"]
        return str(found["app.kubernetes.io/managed-by"])

    async with world.running():
        await world.create("alpha", resourceQuotas={"cpu": "2"})
        await world.create("beta", "tenant-alpha")
        await world.settle()
        assert manager("tenant-range-limits") == "tenant-controller"
        await world.change("beta", "tenant-alpha", resourceQuotas={"cpu": "1"})
    assert manager("tenant-range-limits") == "Helm"


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
        # after a minute without Flux, the statuses say so
        await world.settle(100)
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
        # after a minute without Flux, the statuses say so
        await world.settle(100)
        writes = world.writer.writes
        await world.reconcile_all()
        assert world.writer.writes == writes
    for res, name in ((NAMESPACES, "tenant-alpha"), (SECRETS, "cozystack-values")):
        metadata = world.content(res, "tenant-alpha" if res.namespaced else "", name)["metadata"]
        assert metadata["labels"]["app.kubernetes.io/managed-by"] == "Helm"
        assert metadata["annotations"]["meta.helm.sh/release-name"] == "tenant-alpha"


def _marks(world: World, res: ClusterResource, name: str) -> tuple[str, str]:
    """The manager in the label, and the release in the annotations; empty without one."""
    metadata = world.content(res, "tenant-alpha" if res.namespaced else "", name)["metadata"]
    annotations = metadata.get("annotations") or {}
    found = annotations.get("meta.helm.sh/release-namespace"), annotations.get("meta.helm.sh/release-name")
    return metadata["labels"].get("app.kubernetes.io/managed-by", ""), "/".join(each for each in found if each)


def _messages(world: World, type_: str) -> list[str]:
    return [each["message"] for each in world.tenant("alpha")["status"]["conditions"] if each["type"] == type_]


@virtual
async def test_objects_with_helms_marks_are_ours_again_when_nobody_installs_the_chart_any_more() -> None:
    """Everything that the Tenant declares afterwards takes effect."""
    world = World(settings={"tenants": {"chart": "flux"}})
    async with world.running():
        await world.create("alpha", gateway=True, resourceQuotas={"cpu": "1"})
        await world.settle()
        await _apply_chart(world)
        world.configure(tenants={"chart": "none"})
        await world.change("alpha", host="new.example", resourceQuotas={"cpu": "7"})
        await world.settle()
        hard = world.content(RESOURCEQUOTAS, "tenant-alpha", "tenant-quota")["spec"]["hard"]
        assert hard == {"limits.cpu": "7", "requests.cpu": "700m"}
        [limit] = world.content(LIMITRANGES, "tenant-alpha", "tenant-range-limits")["spec"]["limits"]
        assert limit["default"]["cpu"] == "250m"
        assert len(world.content(ROLEBINDINGS, "tenant-alpha", ROLES[0])["subjects"]) > 1
        assert world.values("tenant-alpha")["_namespace"]["host"] == "new.example"
        assert world.labels("tenant-alpha")[f"{LABEL}host"] == "new.example"
        assert world.content(TENANTGATEWAYS, "tenant-alpha", "cozystack")["spec"]["apex"] == "new.example"
        for res, name in _chart_objects(world):
            ours = "" if res == NAMESPACES else "tenant-controller"
            if res != SERVICEACCOUNTS:  # nothing of it differs
                assert _marks(world, res, name) == (ours, ""), (res.kind, name)
        assert "ChartConflict" not in world.conditions("alpha")
        writes = world.writer.writes
        await world.reconcile_all()
        assert world.writer.writes == writes
        await world.change("alpha", gateway=False, resourceQuotas={"cpu": None})
        await world.settle()
        assert world.cluster.peek(RESOURCEQUOTAS, "tenant-alpha", "tenant-quota") is None
        await world.delete("alpha")
    assert world.cluster.peek(NAMESPACES, "", "tenant-alpha") is None


@virtual
async def test_objects_of_a_chart_that_flux_installs_are_taken_over_once_it_is_suspended() -> None:
    world = World()
    async with world.running():
        await world.create("alpha", resourceQuotas={"cpu": "10"})
        await _report_of_flux(world)
        await _apply_chart(world)
        await world.settle()
        remedy = "Flux still installs HelmRelease tenant-root/tenant-alpha: suspend it, and its objects are taken over"
        assert all(remedy in each for each in _messages(world, "ChartConflict"))
        assert world.conditions("alpha")["QuotaReady"] == ("False", "ChartConflict")
        less = "tenant-quota of the tenant's chart has less than what is declared: limits.cpu 9 of 10"
        assert less in _messages(world, "QuotaReady")[0]
        assert world.conditions("alpha")["Ready"] == ("False", "ChartConflict")
        await world.edit(HELMRELEASES, "tenant-root", "tenant-alpha", {"spec": {"suspend": True}})
    hard = world.content(RESOURCEQUOTAS, "tenant-alpha", "tenant-quota")["spec"]["hard"]
    assert hard == {"limits.cpu": "10", "requests.cpu": "1"}
    assert "ChartConflict" not in world.conditions("alpha")
    assert world.conditions("alpha")["Ready"] == ("True", "Reconciled")


@pytest.mark.parametrize(
    ("release", "remedy"),
    [
        pytest.param(
            {"meta.helm.sh/release-name": "other", "meta.helm.sh/release-namespace": "tenant-root"},
            "it is part of another Helm release, tenant-root/other: delete it there",
            id="another release",
        ),
        pytest.param({}, "it has the label of Helm and names no release: remove the label", id="no release"),
    ],
)
@virtual
async def test_objects_of_other_releases_are_never_taken_over(release: dict[str, str], remedy: str) -> None:
    world = World()
    async with world.running():
        await world.create("alpha")
        await world.settle()
        role = ROLES[0]
        marks = {"labels": HELM["labels"], "annotations": release}
        await world.edit(ROLEBINDINGS, "tenant-alpha", role, {"metadata": marks, "subjects": []})
        quota = {
            "metadata": {"name": "tenant-quota", "namespace": "tenant-alpha", **marks},
            "spec": {"hard": {"pods": "1"}},
        }
        world.cluster.add(RESOURCEQUOTAS, quota)
        await world.settle()
        assert remedy in _messages(world, "ChartConflict")[0]
        await world.change("alpha", resourceQuotas={"pods": "2"})
    assert world.content(RESOURCEQUOTAS, "tenant-alpha", "tenant-quota")["spec"]["hard"] == {"pods": "1"}
    assert _marks(world, ROLEBINDINGS, role)[0] == "Helm"
