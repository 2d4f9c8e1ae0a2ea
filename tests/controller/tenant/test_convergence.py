"""Tenants and their Namespaces converge to the desired state, whatever happens meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from apiserver.meta.resource import Key
from registry.cluster.interface import HELMRELEASES, NAMESPACES, ClusterResource, WatchEvent
from tests.controller.tenant.tenant_world import World
from tests.fake_cluster import FakeCluster
from tests.tenant_objects import release
from tests.virtual_time import virtual

ROOT_SERVICES = [f"namespace.cozystack.io/{service}" for service in ("etcd", "ingress", "monitoring", "seaweedfs")]
HELM = {
    "labels": {"app.kubernetes.io/managed-by": "Helm"},
    "annotations": {"meta.helm.sh/release-name": "tenant-alpha", "meta.helm.sh/release-namespace": "tenant-root"},
}


@virtual
async def test_nested_tenants_get_namespaces_with_the_labels_of_all_ancestors() -> None:
    """R-054, R-055, R-056."""
    world = World()
    async with world.running():
        await world.create("alpha", host="a.example", gateway=True)
        await world.settle()
        await world.create("beta", "tenant-alpha")
    assert world.labels("tenant-alpha-beta") == {
        **dict.fromkeys(ROOT_SERVICES, "tenant-root"),
        "namespace.cozystack.io/gateway": "tenant-alpha",
        "namespace.cozystack.io/host": "beta.a.example",
        "tenant.cozystack.io/tenant-root": "",
        "tenant.cozystack.io/tenant-alpha": "",
        "tenant.cozystack.io/tenant-alpha-beta": "",
    }
    references = world.namespace("tenant-alpha-beta")["metadata"]["ownerReferences"]
    parent = world.namespace("tenant-alpha")["metadata"]["uid"]
    owner = {"apiVersion": "v1", "kind": "Namespace", "name": "tenant-alpha", "uid": parent}
    assert references == [{**owner, "controller": True, "blockOwnerDeletion": True}]
    status = world.tenant("beta", "tenant-alpha")["status"]
    assert status["host"] == {"value": "beta.a.example", "namespace": "tenant-alpha"}
    assert status["gateway"] == {"value": True, "namespace": "tenant-alpha"}


@virtual
async def test_a_second_pass_writes_nothing() -> None:
    world = World()
    async with world.running():
        await world.create("alpha", gateway=True)
        await world.create("beta", "tenant-alpha")
        await world.settle()
        world.cluster.clear_writes()
        await world.reconcile_all()
    assert world.writes() == []

    successor = World(world.cluster)
    async with successor.running():
        pass
    assert successor.writes() == []


@virtual
async def test_a_new_tenant_costs_one_write_of_its_namespace_and_one_of_its_status() -> None:
    world = World()
    async with world.running():
        world.cluster.clear_writes()
        await world.create("alpha")
    assert world.writes(HELMRELEASES, NAMESPACES) == [
        ("create", "helmreleases", "tenant-alpha"),
        ("create", "namespaces", "tenant-alpha"),
        ("patch", "helmreleases", "tenant-alpha"),
    ]


_WRITES_OF_A_TENANT = [
    ("create", "namespaces", "tenant-alpha"),
    ("create", "ciliumnetworkpolicies", "tenant-isolation"),
    ("create", "ciliumnetworkpolicies", "tenant-ingress"),
    ("create", "ciliumnetworkpolicies", "tenant-apiserver"),
    ("create", "ciliumnetworkpolicies", "tenant-to-etcd"),
    ("create", "secrets", "cozystack-values"),
    ("create", "serviceaccounts", "tenant-alpha"),
    ("create", "rolebindings", "cozy:tenant"),
    ("create", "rolebindings", "cozy:tenant:view"),
    ("create", "rolebindings", "cozy:tenant:use"),
    ("create", "rolebindings", "cozy:tenant:admin"),
    ("create", "rolebindings", "cozy:tenant:super-admin"),
    ("create", "roles", "cozy:tenant-self:alpha"),
    ("create", "rolebindings", "cozy:tenant-self:alpha"),
    ("create", "limitranges", "tenant-range-limits"),
    ("create", "resourcequotas", "tenant-quota"),
    ("create", "resourcequotas", "tenant-pool"),
    ("patch", "helmreleases", "tenant-alpha"),
]
"""Its Namespace, each object that it needs, and its status."""


@pytest.mark.parametrize(
    ("has_finalizer", "more"),
    [
        pytest.param(True, [], id="through our API, which sets the finalizer"),
        pytest.param(False, [("patch", "helmreleases", "tenant-alpha")], id="a HelmRelease without the finalizer"),
    ],
)
@virtual
async def test_a_new_tenant_costs_one_write_for_each_object_that_it_needs(
    has_finalizer: bool, more: list[tuple[str, str, str]]
) -> None:
    """An hour later no more have been made."""
    spec = {"host": "alpha.example.org", "resourceQuotas": {"cpu": "2"}}
    world = World()
    async with world.running():
        world.cluster.clear_writes()
        await world.cluster.create(HELMRELEASES, release("alpha", "tenant-root", spec=spec, finalizer=has_finalizer))
        await world.settle(3600)
    assert sorted(world.writes()[1:]) == sorted(_WRITES_OF_A_TENANT + more)


@virtual
async def test_a_change_of_a_host_reaches_every_descendant_with_one_write_per_object() -> None:
    """R-062."""
    world = World()
    async with world.running():
        await world.create("alpha")
        await world.create("beta", "tenant-alpha")
        await world.create("c", "tenant-alpha-beta")
        await world.create("own", "tenant-alpha", host="own.example")
        await world.create("aside")
        await world.settle()
        await world.change("alpha", host="new.example")
        world.cluster.clear_writes()
    hosts = {name: world.labels(name)["namespace.cozystack.io/host"] for name in _NAMESPACES}
    assert hosts == {
        "tenant-alpha": "new.example",
        "tenant-alpha-beta": "beta.new.example",
        "tenant-alpha-beta-c": "c.beta.new.example",
        "tenant-alpha-own": "own.example",
        "tenant-aside": "aside.example.org",
    }
    assert sorted(world.writes()) == sorted(
        ("patch", kind, name)
        for kind, names in (
            ("namespaces", ["tenant-alpha", "tenant-alpha-beta", "tenant-alpha-beta-c"]),
            ("helmreleases", ["tenant-alpha", "tenant-beta", "tenant-c"]),
            ("secrets", ["cozystack-values"] * 3),
        )
        for name in names
    )


_NAMESPACES = ("tenant-alpha", "tenant-alpha-beta", "tenant-alpha-beta-c", "tenant-alpha-own", "tenant-aside")


@virtual
async def test_our_fields_of_a_namespace_are_restored_and_those_of_others_stay() -> None:
    world = World()
    async with world.running():
        await world.create("alpha")
        await world.settle()
        before = world.namespace("tenant-alpha")["metadata"]
        edited: dict[str, Any] = {
            "labels": {
                "namespace.cozystack.io/host": "victim.example",
                "tenant.cozystack.io/tenant-root": None,
                "tenant.cozystack.io/tenant-evil": "",
                "theirs": "x",
            },
            "annotations": {"note": "theirs"},
            "ownerReferences": [],
        }
        await world.edit_namespace("tenant-alpha", edited)
    after = world.namespace("tenant-alpha")["metadata"]
    assert after["labels"] == {**before["labels"], "theirs": "x"}
    assert after["annotations"] == {**before["annotations"], "note": "theirs"}
    assert after["ownerReferences"] == before["ownerReferences"]


@virtual
async def test_a_foreign_namespace_is_never_written_until_the_tenant_may_adopt_it() -> None:
    """ATTACK-07."""
    world = World()
    world.cluster.add(NAMESPACES, {"metadata": {"name": "tenant-alpha", "labels": {"theirs": "x"}}})
    foreign = world.namespace("tenant-alpha")
    async with world.running():
        await world.create("alpha")
        await world.settle()
        assert world.namespace("tenant-alpha") == foreign
        found = world.conditions("alpha")
        assert found["NamespaceReady"] == found["Ready"] == ("False", "NamespaceConflict")
        assert found["NamespaceConflict"] == ("True", "NotOwned")
        adoption = {"apps.cozystack.io/adopt": "tenant-root/alpha"}
        await world.edit_namespace("tenant-alpha", {"annotations": adoption})
        await world.settle()
        assert world.labels("tenant-alpha")["namespace.cozystack.io/host"] == "alpha.example.org"
        assert world.conditions("alpha") == {
            "AccessReady": ("True", "Reconciled"),
            "IsolationReady": ("True", "CiliumPolicies"),
            "NamespaceReady": ("True", "Reconciled"),
            "Ready": ("True", "Reconciled"),
        }
        await world.delete("alpha")
    assert world.labels("tenant-alpha")["theirs"] == "x"


@virtual
async def test_labels_of_the_charts_namespace_are_not_fought_over() -> None:
    world = World()
    chart = {"labels": {**HELM["labels"], "namespace.cozystack.io/host": "chart.example"}}
    world.cluster.add(NAMESPACES, {"metadata": {"name": "tenant-alpha", **HELM, **chart}})
    async with world.running():
        await world.create("alpha")
        ready = {"type": "Ready", "status": "True", "reason": "InstallSucceeded", "observedGeneration": 1}
        await world.edit(HELMRELEASES, "tenant-root", "tenant-alpha", {"status": {"conditions": [ready]}})
        await world.settle()
        labels = world.labels("tenant-alpha")
        assert labels["namespace.cozystack.io/host"] == "chart.example"
        assert labels["tenant.cozystack.io/tenant-root"] == ""
        assert world.conditions("alpha")["ChartConflict"] == ("True", "LabelsDiffer")
        assert world.conditions("alpha")["NamespaceReady"] == ("True", "Reconciled")
        writes = world.writer.writes
        for _ in range(20):
            await world.edit_namespace("tenant-alpha", chart)
            await world.reconcile_all()
        assert world.writer.writes == writes
        await world.delete("alpha")
    assert world.labels("tenant-alpha") == labels


@virtual
async def test_a_namespace_that_we_created_is_deleted_with_its_tenant() -> None:
    world = World()
    async with world.running():
        await world.create("alpha")
        await world.settle()
        await world.delete("alpha")
    assert world.cluster.peek(NAMESPACES, "", "tenant-alpha") is None
    assert world.cluster.peek(NAMESPACES, "", "tenant-root") is not None


@virtual
async def test_a_tenant_that_is_created_again_gets_a_new_namespace() -> None:
    world = World()
    async with world.running():
        await world.create("alpha")
        await world.settle()
        old = world.namespace("tenant-alpha")["metadata"]
        await world.delete("alpha")
        await world.settle()
        await world.create("alpha")
    new = world.namespace("tenant-alpha")["metadata"]
    assert new["uid"] != old["uid"]
    assert new["annotations"]["apps.cozystack.io/tenant-uid"] == world.tenant("alpha")["metadata"]["uid"]
    assert world.conditions("alpha")["Ready"] == ("True", "Reconciled")


@virtual
async def test_a_namespace_restored_from_a_backup_is_not_deleted() -> None:
    """Its record names a Tenant that no longer exists, and is older than the Namespace."""
    world = World()
    async with world.running():
        await world.create("alpha")
    copied = world.namespace("tenant-alpha")["metadata"]
    cluster = FakeCluster()
    cluster.add(
        NAMESPACES,
        {
            "metadata": {
                "name": "tenant-alpha",
                "labels": copied["labels"],
                "annotations": copied["annotations"],
                "creationTimestamp": "2026-03-01T00:00:00Z",
            }
        },
    )
    restored = World(cluster)
    async with restored.running():
        assert cluster.peek(NAMESPACES, "", "tenant-alpha") is not None
        await restored.create("alpha")
    assert restored.conditions("alpha")["Ready"] == ("False", "NamespaceConflict")


@virtual
async def test_a_namespace_stays_if_its_tenant_only_lost_its_labels() -> None:
    """The HelmRelease still exists: it is just no longer shown as a Tenant."""
    world = World()
    async with world.running():
        await world.create("alpha")
    unlabelled = {"metadata": {"labels": {"apps.cozystack.io/application.kind": None}}}
    await world.cluster.patch(
        HELMRELEASES, "tenant-root", "tenant-alpha", unlabelled, content_type="application/merge-patch+json"
    )
    successor = World(world.cluster)
    async with successor.running():
        assert [tenant.key.name for tenant in successor.tree] == ["root"]
    assert world.cluster.peek(NAMESPACES, "", "tenant-alpha") is not None


@virtual
async def test_nothing_is_written_for_a_tenant_that_is_being_deleted() -> None:
    world = World()
    async with world.running():
        await world.create("alpha")
        await world.settle()
        finalizer = {"metadata": {"finalizers": ["finalizers.fluxcd.io"]}}
        await world.cluster.patch(
            HELMRELEASES, "tenant-root", "tenant-alpha", finalizer, content_type="application/merge-patch+json"
        )
        await world.delete("alpha")
        await world.settle()
        writes = world.writer.writes
        await world.edit_namespace("tenant-alpha", {"labels": {"namespace.cozystack.io/host": None}})
        await world.reconcile_all()
    assert world.writer.writes == writes
    assert world.cluster.peek(NAMESPACES, "", "tenant-alpha") is not None


@virtual
async def test_a_host_that_an_ancestor_makes_too_long_has_no_label_and_a_condition() -> None:
    """FACT-6."""
    world = World()
    async with world.running():
        await world.create("alpha")
        await world.create("b" * 30, "tenant-alpha")
        await world.settle()
        await world.change("alpha", host=f"{'a' * 40}.example")
    namespace = f"tenant-alpha-{'b' * 30}"
    assert "namespace.cozystack.io/host" not in world.labels(namespace)
    assert world.conditions("b" * 30, "tenant-alpha")["HostTooLongForLabel"] == ("True", "TooLong")


@virtual
async def test_both_tenants_with_one_host_have_a_condition_until_one_changes_or_is_deleted() -> None:
    world = World()
    async with world.running():
        await world.create("alpha", host="x.example")
        await world.create("bob", host="x.example")
        await world.settle()
        assert [world.conditions(name)["HostConflict"] for name in ("alpha", "bob")] == [("True", "Duplicate")] * 2
        await world.change("bob", host="y.example")
        await world.settle()
        assert "HostConflict" not in world.conditions("alpha")
        await world.change("bob", host="x.example")
        await world.settle()
        assert "HostConflict" in world.conditions("alpha")
        await world.delete("bob")
    assert "HostConflict" not in world.conditions("alpha")


@virtual
async def test_a_tenant_outside_the_tree_gets_no_namespace() -> None:
    world = World()
    world.cluster.add(NAMESPACES, {"metadata": {"name": "default"}})
    async with world.running():
        await world.create("alpha", "default")
    assert world.cluster.peek(NAMESPACES, "", "default-alpha") is None
    assert world.conditions("alpha", "default")["NamespaceReady"] == ("False", "ParentNotFound")


@virtual
async def test_a_child_that_exists_before_its_parent_becomes_ready_with_it() -> None:
    world = World()
    async with world.running():
        await world.create("beta", "tenant-alpha")
        await world.settle()
        await world.create("alpha")
    assert world.labels("tenant-alpha-beta")["namespace.cozystack.io/host"] == "beta.alpha.example.org"
    assert world.conditions("beta", "tenant-alpha")["Ready"] == ("True", "Reconciled")


@virtual
async def test_the_readiness_of_a_chart_is_not_overwritten() -> None:
    world = World(settings={"tenants": {"chart": "flux"}})
    async with world.running():
        await world.create("alpha")
        await world.settle()
        assert world.conditions("alpha")["Ready"] == ("Unknown", "Pending")
        found = world.cluster.peek(HELMRELEASES, "tenant-root", "tenant-alpha")
        assert found is not None
        found["status"] = {"conditions": [{"type": "Ready", "status": "False", "reason": "InstallFailed"}]}
        await world.cluster.update(HELMRELEASES, found, subresource="status")
    assert world.conditions("alpha")["Ready"] == ("False", "InstallFailed")


class _LateReleases(FakeCluster):
    """Watch events of HelmReleases arrive a second after the write, those of other kinds immediately."""

    async def watch(self, res: ClusterResource, *args: Any, **kwargs: Any) -> AsyncIterator[WatchEvent]:
        async for event in super().watch(res, *args, **kwargs):
            if res == HELMRELEASES:
                await asyncio.sleep(1)
            yield event


@virtual
async def test_no_write_is_sent_that_our_own_last_write_has_made_a_conflict() -> None:
    """Others' events, here changed settings, start reconciles before the event of the tenant's own last write."""
    cluster = _LateReleases()
    sent: list[Key] = []

    async def record(verb: str, res: ClusterResource, key: Key) -> None:
        if (verb, res) == ("patch", HELMRELEASES):
            sent.append(key)

    world = World(cluster)
    async with world.running():
        sent.clear()
        cluster.before = record
        await cluster.create(HELMRELEASES, release("alpha"))
        for _ in range(100):
            await asyncio.sleep(0.1)
            world.settings.notify()
    # the finalizer and the status
    assert sent == [Key("tenant-root", "tenant-alpha")] * 2
    assert world.conditions("alpha")["NamespaceReady"] == ("True", "Reconciled")
