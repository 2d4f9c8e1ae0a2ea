"""The contents of Tenants' Namespaces: they converge to what the Tenants declare, and drift is reverted."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from apiserver.meta import errors
from apiserver.meta.resource import GroupResource, Key, Object
from controller.platform.chart_values import cluster_values
from controller.tenant.rbac_step import ROLES
from controller.tenant.reconciler import rejection_message
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
from tests.fake_cluster import FakeCluster
from tests.virtual_time import virtual

CERTIFICATES = "count/certificates.cert-manager.io"
NOT_ENFORCED = ("False", "NotEnforced")


@virtual
async def test_the_tenants_of_seed_001_use_their_own_services_and_those_of_their_parents() -> None:
    """R-063, R-064, R-065, R-067, R-075: foo has etcd and monitoring, bar in foo has etcd."""
    world = World()
    async with world.running():
        await world.create("foo", etcd=True, monitoring=True)
        await world.create("bar", "tenant-foo", etcd=True)
    expected = {
        "etcd": "tenant-foo-bar",
        "monitoring": "tenant-foo",
        "ingress": "tenant-root",
        "seaweedfs": "tenant-root",
    }
    assert world.services("tenant-foo-bar") == expected
    values = world.values("tenant-foo-bar")
    assert values["_namespace"] == {
        **expected,
        "gateway": "",
        "host": "bar.foo.example.org",
    }
    assert values["_cluster"] == cluster_values(world.settings.current, "example.org")
    assert world.services("tenant-root") == dict.fromkeys(expected, "tenant-root")


@virtual
async def test_all_contents_of_a_new_tenants_namespace_are_created_with_one_write_per_object() -> None:
    world = World()
    async with world.running():
        world.cluster.clear_writes()
        await world.create("alpha", gateway=True, resourceQuotas={CERTIFICATES: "10"})
    assert world.count_writes() == {
        ("create", "helmreleases"): 1,
        ("create", "namespaces"): 1,
        ("create", "ciliumnetworkpolicies"): 4,
        ("create", "secrets"): 1,
        ("create", "serviceaccounts"): 1,
        ("create", "rolebindings"): 6,
        ("create", "roles"): 1,
        ("create", "tenantgateways"): 1,
        ("create", "resourcequotas"): 2,
        ("create", "limitranges"): 1,
        ("patch", "helmreleases"): 1,
    }
    bindings = [world.content(ROLEBINDINGS, "tenant-alpha", role)["roleRef"]["name"] for role in ROLES]
    assert bindings == list(ROLES)
    assert world.content(SERVICEACCOUNTS, "tenant-alpha", "tenant-alpha")
    assert world.content(LIMITRANGES, "tenant-alpha", "tenant-range-limits")
    assert world.conditions("alpha") == {
        "AccessReady": ("True", "Reconciled"),
        "GatewayReady": ("Unknown", "Pending"),
        "IsolationReady": ("True", "CiliumPolicies"),
        "NamespaceReady": ("True", "Reconciled"),
        "QuotaReady": NOT_ENFORCED,
        "Ready": ("Unknown", "Pending"),
    }


@virtual
async def test_a_second_pass_writes_nothing_and_reads_nothing() -> None:
    world = World()
    async with world.running():
        await world.create("alpha", gateway=True, resourceQuotas={"cpu": "1000m"})
        await world.create("beta", "tenant-alpha", schedulingClass="gold")
        await world.settle()
        world.cluster.clear_writes()
        calls = _record_calls(world.cluster)
        await world.reconcile_all()
        assert calls == []
    assert world.writes() == []

    successor = World(world.cluster)
    async with successor.running():
        pass
    assert successor.writes() == []
    assert [call for call in calls if call[0] not in ("list", "watch")] == []


def _record_calls(cluster: FakeCluster) -> list[tuple[str, str]]:
    calls: list[tuple[str, str]] = []

    async def count(verb: str, res: ClusterResource, key: Key) -> None:
        calls.append((verb, res.plural))

    cluster.before = count
    return calls


_OURS: list[Any] = [
    pytest.param(SECRETS, "cozystack-values", {"data": {"values.yaml": "eA=="}}, id="Secret"),
    pytest.param(
        SECRETS, "cozystack-values", {"metadata": {"labels": {"reconcile.fluxcd.io/watch": None}}}, id="label"
    ),
    pytest.param(ROLEBINDINGS, "cozy:tenant:admin", {"subjects": []}, id="RoleBinding"),
    pytest.param(RESOURCEQUOTAS, "tenant-quota", {"spec": {"hard": {"pods": "1"}}}, id="ResourceQuota"),
    pytest.param(LIMITRANGES, "tenant-range-limits", {"spec": {"limits": [{"type": "Pod"}]}}, id="LimitRange"),
    pytest.param(TENANTGATEWAYS, "cozystack", {"spec": {"apex": "victim.example"}}, id="TenantGateway"),
]


@pytest.mark.parametrize(("res", "name", "edit"), _OURS)
@virtual
async def test_an_edit_of_somebody_else_is_reverted_with_one_write(
    res: ClusterResource, name: str, edit: Object
) -> None:
    world = World()
    async with world.running():
        await world.create("alpha", gateway=True, resourceQuotas={"cpu": "1"})
        await world.settle()
        before = _content(world, res, name)
        writes = world.writer.writes
        await world.edit(res, "tenant-alpha", name, edit)
        await world.settle()
        assert world.writer.writes == writes + 1
    assert _content(world, res, name) == before


@pytest.mark.parametrize(
    ("res", "name"),
    [
        *(pytest.param(*each.values[:2], id=f"{each.id}") for each in _OURS if each.id != "label"),
        pytest.param(SERVICEACCOUNTS, "tenant-alpha", id="ServiceAccount"),
    ],
)
@virtual
async def test_a_deleted_object_is_created_again(res: ClusterResource, name: str) -> None:
    world = World()
    async with world.running():
        await world.create("alpha", gateway=True, resourceQuotas={"cpu": "1"})
        await world.settle()
        before = _content(world, res, name)
        await world.cluster.delete(res, "tenant-alpha", name)
    assert _content(world, res, name) == before


def _content(world: World, res: ClusterResource, name: str) -> Object:
    found = world.content(res, "tenant-alpha", name)
    fields = {"name", "namespace", "labels", "annotations"}
    return {**found, "metadata": {key: value for key, value in found["metadata"].items() if key in fields}}


@virtual
async def test_a_binding_to_another_role_is_replaced() -> None:
    """A roleRef is immutable."""
    world = World()
    async with world.running():
        await world.create("alpha")
        await world.settle()
        await world.cluster.delete(ROLEBINDINGS, "tenant-alpha", "cozy:tenant:view")
        stolen = {"metadata": {"name": "cozy:tenant:view", "namespace": "tenant-alpha"}, "subjects": []}
        stolen["roleRef"] = {"kind": "ClusterRole", "name": "cluster-admin"}
        world.cluster.add(ROLEBINDINGS, stolen)
        await world.settle()
    assert world.content(ROLEBINDINGS, "tenant-alpha", "cozy:tenant:view")["roleRef"]["name"] == "cozy:tenant:view"


@virtual
async def test_a_quota_has_exactly_the_declared_keys_and_is_deleted_when_none_is_declared() -> None:
    """R-313, PEER-13: a limit on the number of Certificates, under the key that counts them."""
    world = World()
    async with world.running():
        await world.create("alpha", resourceQuotas={CERTIFICATES: "10", "cpu": 2})
        await world.settle()
        hard = world.content(RESOURCEQUOTAS, "tenant-alpha", "tenant-quota")["spec"]["hard"]
        assert hard == {CERTIFICATES: "10", "limits.cpu": "2", "requests.cpu": "200m"}
        await world.change("alpha", resourceQuotas={"cpu": None})
        await world.settle()
        hard = world.content(RESOURCEQUOTAS, "tenant-alpha", "tenant-quota")["spec"]["hard"]
        assert hard == {CERTIFICATES: "10"}
        await world.change("alpha", resourceQuotas={CERTIFICATES: None})
    assert world.cluster.peek(RESOURCEQUOTAS, "tenant-alpha", "tenant-quota") is None
    assert world.cluster.peek(RESOURCEQUOTAS, "tenant-alpha", "tenant-pool") is None
    assert world.cluster.peek(LIMITRANGES, "tenant-alpha", "tenant-range-limits") is None


@virtual
async def test_a_quota_that_somebody_else_created_is_not_deleted() -> None:
    world = World()
    async with world.running():
        await world.create("alpha")
        await world.settle()
        world.cluster.add(RESOURCEQUOTAS, {"metadata": {"name": "tenant-quota", "namespace": "tenant-alpha"}})
    assert world.content(RESOURCEQUOTAS, "tenant-alpha", "tenant-quota")


@pytest.mark.parametrize(
    ("reason", "remedy"),
    [
        ("exceeded quota: tenant-quota, requested: resourcequotas=1", "raise that quota: it also counts what the "),
        ("a policy of the cluster", "apply the manifests again, or change the policy"),
    ],
)
def test_the_remedy_for_a_rejected_write_fits_its_cause(reason: str, remedy: str) -> None:
    error = errors.Forbidden(GroupResource("", "resourcequotas"), "tenant-pool", reason)
    said = rejection_message("quota", error)
    assert said.startswith("the cluster rejected the quota: ")
    assert f"; {remedy}" in said


def test_a_tenant_that_is_too_large_is_to_be_made_smaller() -> None:
    said = rejection_message("quota", errors.RequestEntityTooLarge("limit is 3145728"))
    assert said.endswith("limit is 3145728; remove annotations, labels or values of the tenant")


@virtual
async def test_a_rejected_write_does_not_stop_the_other_steps() -> None:
    world = World()

    async def reject(verb: str, res: ClusterResource, key: Key) -> None:
        if verb == "create" and res == RESOURCEQUOTAS:
            raise errors.Forbidden(GroupResource("", "resourcequotas"), key.name, "a policy of the cluster")

    world.cluster.before = reject
    async with world.running():
        await world.create("alpha", gateway=True, resourceQuotas={"cpu": "1"})
    assert world.conditions("alpha")["QuotaReady"] == ("False", "Refused")
    assert world.content(TENANTGATEWAYS, "tenant-alpha", "cozystack")


@virtual
async def test_an_invalid_key_or_quantity_is_skipped_and_a_condition_says_so() -> None:
    """ATTACK-16: it may have been written to the HelmRelease directly, or stored by an earlier version."""
    world = World()
    async with world.running():
        await world.create("alpha", resourceQuotas={"cpu": "1e999999999", "memry": "1Gi", "pods": "007"})
        await world.settle()
        assert world.content(RESOURCEQUOTAS, "tenant-alpha", "tenant-quota")["spec"]["hard"] == {"pods": "7"}
        assert world.conditions("alpha")["QuotaReady"] == ("False", "InvalidQuantity")
        assert world.conditions("alpha")["Ready"] == ("False", "InvalidQuantity")
        world.cluster.clear_writes()
        await world.reconcile_all()
        assert world.writes() == []
        await world.change("alpha", resourceQuotas={"cpu": "-1", "memry": None, "pods": None})
        await world.settle()
        assert ("delete", "resourcequotas", "tenant-quota") in world.writes()
        await world.change("alpha", resourceQuotas={"cpu": "1"})
    assert world.conditions("alpha")["QuotaReady"] == NOT_ENFORCED


@pytest.mark.parametrize(
    ("quotas", "field"),
    [
        pytest.param({"cpu": {}}, "spec.resourceQuotas[cpu]: must be a quantity, and not an object", id="an object"),
        pytest.param({"cpu": [1]}, "spec.resourceQuotas[cpu]: must be a quantity, and not a list", id="a list"),
        pytest.param({"cpu": True}, "spec.resourceQuotas[cpu]: must be a quantity, and not a boolean", id="a boolean"),
        pytest.param(["cpu"], "spec.resourceQuotas: must be an object, and not a list", id="no mapping"),
        pytest.param("cpu=1", "spec.resourceQuotas: must be an object, and not a string", id="a text"),
    ],
)
@virtual
async def test_values_of_a_helmrelease_that_are_no_quotas_do_not_vanish(quotas: Any, field: str) -> None:
    """The API server rejects them: somebody wrote to the HelmRelease."""
    world = World()
    async with world.running():
        await world.create("alpha")
        await world.change("alpha", resourceQuotas=quotas)
    found = {each["type"]: each for each in world.tenant("alpha")["status"]["conditions"]}
    assert world.conditions("alpha")["QuotaReady"] == ("False", "InvalidQuantity")
    assert world.conditions("alpha")["Ready"] == ("False", "InvalidQuantity")
    assert field in found["QuotaReady"]["message"]


@virtual
async def test_nothing_is_written_into_a_namespace_of_somebody_else() -> None:
    """ATTACK-07."""
    world = World()
    world.cluster.add(NAMESPACES, {"metadata": {"name": "tenant-alpha"}})
    async with world.running():
        world.cluster.clear_writes()
        await world.create("alpha", gateway=True, resourceQuotas={"cpu": "1"})
    assert world.count_writes() == {("create", "helmreleases"): 1, ("patch", "helmreleases"): 1}


@virtual
async def test_nothing_is_written_into_a_namespace_that_somebody_else_creates_at_the_same_moment() -> None:
    world = World()

    async def take(verb: str, res: ClusterResource, key: Key) -> None:
        if (verb, res, key.name) == ("create", NAMESPACES, "tenant-alpha"):
            world.cluster.before = None
            world.cluster.add(NAMESPACES, {"metadata": {"name": "tenant-alpha"}})

    async with world.running():
        world.cluster.before = take
        world.cluster.clear_writes()
        await world.create("alpha")
    assert world.count_writes() == {("create", "helmreleases"): 1, ("patch", "helmreleases"): 1}
    assert world.conditions("alpha")["NamespaceReady"] == ("False", "NamespaceConflict")


@virtual
async def test_an_object_that_the_cache_has_not_seen_is_compared_and_not_written() -> None:
    world = World()
    async with world.running():
        await world.create("alpha", gateway=True)
        await world.settle()
        writes = world.writer.writes
        await world.forget_contents()
        await world.reconcile_all()
        # the creation of each was attempted, and failed with AlreadyExists
        assert world.writer.writes > writes
        world.cluster.clear_writes()
        await world.reconcile_all()
    assert world.writes() == []


@virtual
async def test_a_change_of_a_host_reaches_a_wide_and_deep_tree_with_one_write_per_object() -> None:
    """R-062: no object is written twice, and no tenant outside the subtree is written to."""
    world = World()
    async with world.running():
        await world.create("alpha")
        await world.create("aside")
        await world.settle()
        for branch in range(8):
            await world.create(f"b{branch}", "tenant-alpha")
        await world.settle()
        for branch in range(8):
            for leaf in range(8):
                await world.create(f"l{leaf}", f"tenant-alpha-b{branch}")
        await world.settle()
        await world.change("alpha", host="new.example")
        world.cluster.clear_writes()
        await world.settle()
    assert world.count_writes() == {
        ("patch", "namespaces"): 73,
        ("patch", "secrets"): 73,
        ("patch", "helmreleases"): 73,
    }
    assert world.values("tenant-alpha-b7-l7")["_namespace"]["host"] == "l7.b7.new.example"


@virtual
async def test_an_event_of_one_tenant_costs_no_reads_of_others() -> None:
    world = World()
    async with world.running():
        for number in range(20):
            await world.create(f"n{number}")
        await world.settle()
        calls = _record_calls(world.cluster)
        await world.change("n7", host="new.example")
        await world.settle()
    # two patches of the HelmRelease: the change itself, and the status
    assert Counter(calls) == {
        ("patch", "helmreleases"): 2,
        ("patch", "namespaces"): 1,
        ("get", "secrets"): 1,
        ("patch", "secrets"): 1,
    }
