"""The contents of Tenants' Namespaces: they converge to what the Tenants declare, and drift is reverted."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from apiserver.meta import errors
from apiserver.meta.resource import GroupResource, Key, Object
from controller.platform.chart_values import cluster_values
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
from tests.fakes import FakeCluster
from tests.virtual_time import virtual

CERTIFICATES = "count/certificates.cert-manager.io"


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
        ("create", "secrets"): 1,
        ("create", "serviceaccounts"): 1,
        ("create", "rolebindings"): 6,
        ("create", "roles"): 1,
        ("create", "tenantgateways"): 1,
        ("create", "resourcequotas"): 1,
        ("create", "limitranges"): 1,
        ("patch", "helmreleases"): 1,
    }
    bindings = [world.content(ROLEBINDINGS, "tenant-alpha", role)["roleRef"]["name"] for role in ROLES]
    assert bindings == list(ROLES)
    assert world.content(SERVICEACCOUNTS, "tenant-alpha", "tenant-alpha")
    assert world.content(LIMITRANGES, "tenant-alpha", "tenant-range-limits")
    assert world.conditions("alpha") == {
        "GatewayReady": ("Unknown", "Pending"),
        "NamespaceReady": ("True", "Reconciled"),
        "Ready": ("True", "Reconciled"),
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
        assert hard == {CERTIFICATES: "10", "cpu": "2"}
        await world.change("alpha", resourceQuotas={"cpu": None})
        await world.settle()
        hard = world.content(RESOURCEQUOTAS, "tenant-alpha", "tenant-quota")["spec"]["hard"]
        assert hard == {CERTIFICATES: "10"}
        await world.change("alpha", resourceQuotas={CERTIFICATES: None})
    assert world.cluster.peek(RESOURCEQUOTAS, "tenant-alpha", "tenant-quota") is None
    assert world.cluster.peek(LIMITRANGES, "tenant-alpha", "tenant-range-limits") is None


@virtual
async def test_a_quota_that_somebody_else_created_is_not_deleted() -> None:
    world = World()
    async with world.running():
        await world.create("alpha")
        await world.settle()
        world.cluster.add(RESOURCEQUOTAS, {"metadata": {"name": "tenant-quota", "namespace": "tenant-alpha"}})
    assert world.content(RESOURCEQUOTAS, "tenant-alpha", "tenant-quota")


@virtual
async def test_a_parents_scheduling_class_wins() -> None:
    world = World()
    async with world.running():
        await world.create("alpha")
        await world.create("beta", "tenant-alpha", schedulingClass="mine")
        await world.settle()
        label = "scheduler.cozystack.io/scheduling-class"
        assert world.labels("tenant-alpha-beta")[label] == "mine"
        await world.change("alpha", schedulingClass="theirs")
        await world.settle()
        assert world.labels("tenant-alpha-beta")[label] == "theirs"
        assert world.values("tenant-alpha-beta")["_namespace"]["schedulingClass"] == "theirs"
        await world.change("alpha", schedulingClass="not a label")
    assert label not in world.labels("tenant-alpha-beta")
    assert world.conditions("beta", "tenant-alpha")["SchedulingClassInvalid"] == ("True", "NotALabel")


@virtual
async def test_unknown_keys_of_the_roots_secret_reach_every_descendant_with_one_write_each() -> None:
    world = World()
    async with world.running():
        await world.create("alpha")
        await world.create("beta", "tenant-alpha")
        await world.create("aside")
        await world.settle()
        world.cluster.clear_writes()
        text = "X2NsdXN0ZXI6IHtidW5kbGU6IGlzcC1mdWxsfQo="  # _cluster: {bundle: isp-full}
        await world.edit(SECRETS, "tenant-root", "cozystack-values", {"data": {"values.yaml": text}})
        await world.settle()
        for namespace in ("tenant-root", "tenant-alpha", "tenant-alpha-beta", "tenant-aside"):
            assert world.values(namespace)["_cluster"]["bundle"] == "isp-full"
            assert world.values(namespace)["_cluster"]["solver"] == "http01"
        # the edit itself, the root's own values, and the three descendants
        assert world.count_writes() == {("patch", "secrets"): 5}
        world.cluster.clear_writes()
        world.configure(publishing={"certificates": {"solver": "dns01"}})
        await world.settle()
    assert world.values("tenant-alpha-beta")["_cluster"] == {
        "bundle": "isp-full",
        **cluster_values(world.settings.current, "example.org"),
    }
    assert world.values("tenant-alpha-beta")["_cluster"]["solver"] == "dns01"
    assert world.count_writes() == {("patch", "secrets"): 4}


@virtual
async def test_a_malformed_secret_of_the_root_is_not_overwritten_and_a_condition_says_so() -> None:
    world = World()
    async with world.running():
        await world.create("alpha")
        await world.settle()
        good = world.values("tenant-alpha")
        await world.edit(SECRETS, "tenant-root", "cozystack-values", {"data": {"values.yaml": "Ww=="}})
        await world.settle()
        assert world.conditions("root")["ValuesReady"] == ("False", "Malformed")
        assert world.conditions("alpha")["ValuesReady"] == ("False", "Malformed")
        assert world.values("tenant-alpha") == good
        await world.edit(SECRETS, "tenant-root", "cozystack-values", {"data": {"values.yaml": None}})
    assert "ValuesReady" not in world.conditions("root")
    assert "ValuesReady" not in world.conditions("alpha")


@virtual
async def test_an_immutable_secret_is_replaced() -> None:
    world = World()
    async with world.running():
        await world.create("alpha")
        await world.settle()
        await world.edit(SECRETS, "tenant-alpha", "cozystack-values", {"immutable": True, "data": {"values.yaml": ""}})
    assert world.values("tenant-alpha")["_namespace"]["host"] == "alpha.example.org"
    assert "immutable" not in world.content(SECRETS, "tenant-alpha", "cozystack-values")


@virtual
async def test_a_rejected_write_does_not_stop_the_other_steps() -> None:
    world = World()

    async def reject(verb: str, res: ClusterResource, key: Key) -> None:
        if verb == "create" and res == RESOURCEQUOTAS:
            raise errors.Forbidden(GroupResource("", "resourcequotas"), key.name, "must be a standard resource")

    world.cluster.before = reject
    async with world.running():
        await world.create("alpha", gateway=True, resourceQuotas={"nonsense": "1"})
    assert world.conditions("alpha")["QuotaReady"] == ("False", "Refused")
    assert world.content(TENANTGATEWAYS, "tenant-alpha", "cozystack")


@virtual
async def test_an_invalid_quantity_is_skipped_and_a_condition_says_so() -> None:
    """ATTACK-16: it may have been written to the HelmRelease directly."""
    world = World()
    async with world.running():
        await world.create("alpha", resourceQuotas={"cpu": "1e999999999", "pods": "007"})
        await world.settle()
        assert world.content(RESOURCEQUOTAS, "tenant-alpha", "tenant-quota")["spec"]["hard"] == {"pods": "7"}
        assert world.conditions("alpha")["QuotaReady"] == ("False", "InvalidQuantity")
        assert world.conditions("alpha")["Ready"] == ("True", "Reconciled")
        world.cluster.clear_writes()
        await world.reconcile_all()
        assert world.writes() == []
        await world.change("alpha", resourceQuotas={"cpu": "-1", "pods": None})
        await world.settle()
        assert ("delete", "resourcequotas", "tenant-quota") in world.writes()
        await world.change("alpha", resourceQuotas={"cpu": "1"})
    assert "QuotaReady" not in world.conditions("alpha")


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
        await world.change("n7", etcd=True)
        await world.settle()
    # two patches of the HelmRelease: the change itself, and the status
    assert Counter(calls) == {
        ("patch", "helmreleases"): 2,
        ("patch", "namespaces"): 1,
        ("get", "secrets"): 1,
        ("patch", "secrets"): 1,
    }
