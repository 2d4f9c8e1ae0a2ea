"""A Tenant goes in order, leaves nothing behind, and says what it waits for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from apiserver.meta import errors
from apiserver.meta.resource import GroupResource, Key, Object
from controller.tenant.finalizer import NamespaceDisposition, namespace_disposition
from controller.tenant.namespace_ownership import record_annotations
from registry.cluster.interface import HELMRELEASES, NAMESPACES, ROLEBINDINGS, SECRETS, SERVICEACCOUNTS, ClusterResource
from registry.cluster.object_store import ObjectStore
from registry.names import FLUX_FINALIZER, TENANT_FINALIZER
from registry.tenantgateway.types import TENANTGATEWAYS
from tests.controller.tenant.tenant_world import NOW, World
from tests.fakes import FakeCluster
from tests.tenant_objects import release, tenant_summary
from tests.virtual_time import virtual


def waits(world: World, name: str, namespace: str = "tenant-root") -> tuple[str, str]:
    """Reason and message of what the deletion waits for."""
    [found] = [each for each in world.tenant(name, namespace)["status"]["conditions"] if each["type"] == "Terminating"]
    assert found["status"] == "True"
    assert world.conditions(name, namespace)["Ready"] == ("False", "Terminating")
    return found["reason"], found["message"]


async def finalizers(world: World, name: str, wanted: Sequence[str], namespace: str = "tenant-root") -> None:
    body = {"metadata": {"finalizers": list(wanted) or None}}
    await world.edit(HELMRELEASES, namespace, f"tenant-{name}", body)


@virtual
async def test_a_tenant_that_was_made_without_the_finalizer_gets_it_before_its_namespace() -> None:
    world = World()
    async with world.running():
        world.cluster.clear_writes()
        await world.cluster.create(HELMRELEASES, release("alpha"))
    found = world.cluster.peek(HELMRELEASES, "tenant-root", "tenant-alpha")
    assert found is not None
    assert found["metadata"]["finalizers"] == [TENANT_FINALIZER]
    assert world.writes() == [
        ("create", "helmreleases", "tenant-alpha"),
        ("patch", "helmreleases", "tenant-alpha"),
        ("create", "namespaces", "tenant-alpha"),
        ("patch", "helmreleases", "tenant-alpha"),
    ]
    root = world.cluster.peek(HELMRELEASES, "tenant-root", "tenant-root")
    assert root is not None
    assert "finalizers" not in root["metadata"]


@virtual
async def test_children_go_first_then_the_namespace_and_last_the_tenant() -> None:
    world = World()
    async with world.running():
        await world.create("alpha")
        await world.create("beta", "tenant-alpha")
        await world.create("c", "tenant-alpha-beta")
        await world.settle()
        world.cluster.clear_writes()
        await world.delete("alpha")
    ended = [(write.resource.kind, write.key.name) for write in world.cluster.writes if write.verb == "delete"]
    assert ended == [
        ("HelmRelease", "tenant-alpha"),
        ("HelmRelease", "tenant-beta"),
        ("HelmRelease", "tenant-c"),
        ("Namespace", "tenant-alpha-beta-c"),
        ("Namespace", "tenant-alpha-beta"),
        ("Namespace", "tenant-alpha"),
    ]
    left = [facts.key.name for facts in world.tree]
    assert left == ["root"]


@virtual
async def test_what_blocks_is_named_and_nothing_goes_before_its_turn() -> None:
    world = World()
    async with world.running():
        await world.create("alpha", gateway=True)
        await world.create("beta", "tenant-alpha")
        await world.settle()
        await finalizers(world, "beta", [TENANT_FINALIZER, "example.org/theirs"], "tenant-alpha")
        await finalizers(world, "alpha", [TENANT_FINALIZER, FLUX_FINALIZER])
        await world.delete("alpha")
        await world.settle()
        assert waits(world, "alpha") == ("ChildTenantsRemain", "waiting for the deletion of the child tenants beta")
        assert world.cluster.peek(NAMESPACES, "", "tenant-alpha-beta") is None
        await finalizers(world, "beta", [], "tenant-alpha")
        await world.settle()
        reason, message = waits(world, "alpha")
        assert reason == "FluxUninstalls"
        assert "finalizers.fluxcd.io is on HelmRelease tenant-root/tenant-alpha" in message
        assert "deletionTimestamp" not in world.content(TENANTGATEWAYS, "tenant-alpha", "cozystack")["metadata"]
        await world.edit_namespace("tenant-alpha", {"finalizers": ["example.org/theirs"]})
        await finalizers(world, "alpha", [TENANT_FINALIZER])
        await world.settle()
        reason, message = waits(world, "alpha")
        assert reason == "TenantGatewayRemains"
        assert "foregroundDeletion" in message
        assert "deletionTimestamp" not in world.namespace("tenant-alpha")["metadata"]
        await world.edit(TENANTGATEWAYS, "tenant-alpha", "cozystack", {"metadata": {"finalizers": None}})
        await world.settle()
        assert waits(world, "alpha") == ("NamespaceRemains", 'namespace "tenant-alpha" is being deleted')
        await world.edit_namespace("tenant-alpha", {"finalizers": None})
    assert world.cluster.peek(HELMRELEASES, "tenant-root", "tenant-alpha") is None
    assert world.cluster.peek(NAMESPACES, "", "tenant-alpha") is None
    reasons = [reason for _, reason in world.events.of("alpha")]
    expected = ["ChildTenantsRemain", "FluxUninstalls", "TenantGatewayRemains", "NamespaceRemains"]
    assert reasons[-4:] == expected


@virtual
async def test_what_the_host_says_of_a_namespace_and_of_an_uninstall_is_passed_on() -> None:
    world = World()
    async with world.running():
        await world.create("alpha")
        await world.settle()
        await finalizers(world, "alpha", [TENANT_FINALIZER, FLUX_FINALIZER])
        found = world.cluster.peek(HELMRELEASES, "tenant-root", "tenant-alpha")
        assert found is not None
        said = {"type": "Ready", "status": "False", "reason": "UninstallFailed", "message": "hook failed"}
        await world.cluster.update(HELMRELEASES, {**found, "status": {"conditions": [said]}}, subresource="status")
        await world.delete("alpha")
        await world.settle()
        assert waits(world, "alpha")[1].endswith("; Flux reports: hook failed")
        await world.edit_namespace("tenant-alpha", {"finalizers": ["x/y"]})
        await finalizers(world, "alpha", [TENANT_FINALIZER])
        await world.settle()
        told = {"type": "NamespaceFinalizersRemaining", "status": "True", "message": "x/z in 1 resource instances"}
        namespace = world.namespace("tenant-alpha")
        await world.cluster.update(NAMESPACES, {**namespace, "status": {"conditions": [told]}}, subresource="status")
        await world.settle()
        assert waits(world, "alpha")[1].endswith("; x/z in 1 resource instances")
        await world.edit_namespace("tenant-alpha", {"finalizers": None})
    assert world.cluster.peek(HELMRELEASES, "tenant-root", "tenant-alpha") is None


@virtual
async def test_a_refusal_of_the_host_is_told_and_does_not_keep_the_others() -> None:
    cluster = FakeCluster()
    refused = {"tenant-beta", "tenant-bob"}

    async def before(verb: str, res: ClusterResource, key: Key) -> None:
        if verb == "delete" and key.name in refused:
            raise errors.Forbidden(GroupResource(res.group, res.plural), key.name, "not for you")

    world = World(cluster)
    async with world.running():
        await world.create("alpha")
        await world.create("bob")
        for child in ("beta", "gamma"):
            await world.create(child, "tenant-alpha")
        await world.settle()
        await world.delete("alpha")
        await world.delete("bob")
        cluster.before = before
        await world.settle()
        reason, message = waits(world, "alpha")
        assert reason == "ChildTenantsRemain"
        assert "not for you" in message
        assert waits(world, "bob")[0] == "Refused"
        assert cluster.peek(HELMRELEASES, "tenant-alpha", "tenant-gamma") is None
        refused.clear()
        await world.settle(3000)
    assert [facts.key.name for facts in world.tree] == ["root"]


@virtual
async def test_a_child_that_changes_while_it_is_to_go_is_tried_again_and_told_as_no_refusal() -> None:
    cluster = FakeCluster()
    busy = {"tenant-beta"}

    async def before(verb: str, res: ClusterResource, key: Key) -> None:
        if verb == "delete" and key.name in busy:
            raise errors.Conflict(GroupResource(res.group, res.plural), key.name, "the object has been modified")

    world = World(cluster)
    async with world.running():
        await world.create("alpha")
        await world.create("beta", "tenant-alpha")
        await world.settle()
        await world.delete("alpha")
        cluster.before = before
        await world.settle()
        assert waits(world, "alpha") == ("ChildTenantsRemain", "waiting for the deletion of the child tenants beta")
        busy.clear()
        await world.settle(3000)
    assert [facts.key.name for facts in world.tree] == ["root"]


@virtual
async def test_children_that_are_on_their_way_are_not_read_again_with_each_that_goes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world, children = World(), [f"c{number}" for number in range(20)]
    read: list[str] = []
    get = ObjectStore.get

    def counting(store: ObjectStore, key: Key) -> Object | None:
        read.append(key.name)
        return get(store, key)

    async with world.running():
        await world.create("alpha")
        for child in children:
            await world.create(child, "tenant-alpha")
        await world.settle()
        for child in children:
            await finalizers(world, child, [TENANT_FINALIZER, "example.org/held"], "tenant-alpha")
        await world.delete("alpha")
        await world.settle()
        monkeypatch.setattr(ObjectStore, "get", counting)
        await finalizers(world, "c7", [], "tenant-alpha")
        await world.settle()
        assert waits(world, "alpha")[0] == "ChildTenantsRemain"
        # the parent was looked at
        assert "tenant-alpha" in read
        assert {f"tenant-{child}" for child in children} & set(read) <= {"tenant-c7"}


@virtual
async def test_a_protected_namespace_keeps_its_tenant_until_the_label_goes() -> None:
    world = World()
    async with world.running():
        await world.create("alpha")
        await world.settle()
        await world.edit_namespace("tenant-alpha", {"labels": {"platform.cozystack.io/no-delete": "true"}})
        await world.delete("alpha")
        await world.settle()
        assert waits(world, "alpha")[0] == "NamespaceProtected"
        await world.edit_namespace("tenant-alpha", {"labels": {"platform.cozystack.io/no-delete": None}})
    assert world.cluster.peek(NAMESPACES, "", "tenant-alpha") is None


@virtual
async def test_more_children_than_a_condition_names_cost_few_writes() -> None:
    world = World()
    async with world.running():
        await world.create("alpha")
        for number in range(40):
            await world.create(f"c{number}", "tenant-alpha")
        await world.settle()
        world.cluster.clear_writes()
        await world.delete("alpha")
    told = [write for write in world.cluster.writes if write.key == Key("tenant-root", "tenant-alpha")]
    assert len(told) <= 15
    assert [facts.key.name for facts in world.tree] == ["root"]


@virtual
async def test_a_tenant_that_goes_before_its_namespace_was_seen_leaves_none_behind() -> None:
    world = World()
    async with world.running():
        for number in range(20):
            await world.create(f"t{number}")
        for number in range(20):
            await world.delete(f"t{number}")
    left = [facts.key.name for facts in world.tree]
    assert left == ["root"]
    assert [each for each in range(20) if world.cluster.peek(NAMESPACES, "", f"tenant-t{each}")] == []


@virtual
async def test_a_deletion_that_was_begun_is_finished_by_a_successor() -> None:
    world = World()
    async with world.running():
        await world.create("alpha")
        await world.create("beta", "tenant-alpha")
    await world.delete("alpha")
    async with World(world.cluster).running():
        pass
    for name in ("tenant-alpha", "tenant-alpha-beta"):
        assert world.cluster.peek(NAMESPACES, "", name) is None
    assert world.cluster.peek(HELMRELEASES, "tenant-root", "tenant-alpha") is None


@virtual
async def test_the_namespace_of_an_older_tenant_stays_with_it() -> None:
    """Of two Tenants with one workload namespace, the younger one takes nothing along."""
    world = World()
    async with world.running():
        await world.create("a")
        await world.create("b", "tenant-a")
        await world.settle()
        # by hand, against the rule of names
        younger = release("a-b")
        younger["metadata"]["finalizers"] = [TENANT_FINALIZER]
        younger["metadata"]["creationTimestamp"] = "2027-01-01T00:00:00Z"
        world.cluster.add(HELMRELEASES, younger)
        await world.create("c", "tenant-a-b")
        await world.settle()
        await world.cluster.delete(HELMRELEASES, "tenant-root", "tenant-a-b")
    assert world.cluster.peek(HELMRELEASES, "tenant-root", "tenant-a-b") is None
    assert world.labels("tenant-a-b")["namespace.cozystack.io/host"] == "b.a.example.org"
    assert world.tenant("c", "tenant-a-b")["metadata"].get("deletionTimestamp") is None


@virtual
async def test_the_root_that_is_deleted_takes_nobody_along() -> None:
    world = World()
    async with world.running():
        await world.create("alpha")
        await finalizers(world, "root", [FLUX_FINALIZER])
        await world.delete("root")
        await world.settle()
        assert "deletionTimestamp" not in world.tenant("alpha")["metadata"]
        await finalizers(world, "root", [])
    assert world.conditions("alpha")["Ready"] == ("True", "Reconciled")
    assert "deletionTimestamp" not in world.tenant("root")["metadata"]


@virtual
async def test_a_namespace_that_was_given_to_the_tenant_stays_without_anything_of_ours() -> None:
    world = World()
    theirs: Object = {"labels": {"theirs": "x"}, "annotations": {"apps.cozystack.io/adopt": "tenant-root/alpha"}}
    world.cluster.add(NAMESPACES, {"metadata": {"name": "tenant-alpha", **theirs}})
    account = {"metadata": {"name": "theirs", "namespace": "tenant-alpha"}}
    world.cluster.add(SERVICEACCOUNTS, account)
    async with world.running():
        await world.create("alpha", gateway=True, schedulingClass="gold")
        await world.settle()
        assert world.content(ROLEBINDINGS, "tenant-alpha", "cozy:tenant:admin")
        await world.delete("alpha")
        await world.settle()
        await world.edit(TENANTGATEWAYS, "tenant-alpha", "cozystack", {"metadata": {"finalizers": None}})
    left = world.namespace("tenant-alpha")["metadata"]
    assert (left["labels"], left["annotations"]) == (theirs["labels"], theirs["annotations"])
    assert "ownerReferences" not in left
    for res in (ROLEBINDINGS, SECRETS, SERVICEACCOUNTS):
        found = (await world.cluster.list(res, "tenant-alpha"))["items"]
        assert [each["metadata"]["name"] for each in found] == (["theirs"] if res == SERVICEACCOUNTS else [])
    assert world.cluster.peek(HELMRELEASES, "tenant-root", "tenant-alpha") is None


ALPHA = tenant_summary("alpha", uid="uid")


def namespace(*, uid: str = "uid", made: bool = True, **metadata: Any) -> Object:
    annotations = record_annotations(tenant_summary("alpha", uid=uid), NOW) if made else {}
    return {
        "metadata": {
            "name": "tenant-alpha",
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": metadata.get("labels", {}),
            "annotations": {**annotations, **metadata.get("annotations", {})},
        }
    }


@pytest.mark.parametrize(
    ("held", "expected"),
    [
        pytest.param(namespace(), NamespaceDisposition.DELETED, id="made for this tenant"),
        pytest.param(
            namespace(labels={"app.kubernetes.io/managed-by": "Helm"}),
            NamespaceDisposition.DELETED,
            id="made by us for a chart",
        ),
        pytest.param(namespace(uid="other"), NamespaceDisposition.RETAINED, id="made for a former tenant"),
        pytest.param(namespace(made=False), NamespaceDisposition.RETAINED, id="made by somebody else"),
        pytest.param(
            namespace(annotations={"apps.cozystack.io/adopt": "tenant-root/alpha"}),
            NamespaceDisposition.RETAINED,
            id="adopted",
        ),
        pytest.param(
            namespace(annotations={"apps.cozystack.io/tenant-namespace-made": "2020-01-01T00:00:00Z"}),
            NamespaceDisposition.RETAINED,
            id="a copied record",
        ),
        pytest.param(
            namespace(labels={"platform.cozystack.io/no-delete": "true"}),
            NamespaceDisposition.PROTECTED,
            id="protected",
        ),
    ],
)
def test_what_becomes_of_a_namespace(held: Object, expected: NamespaceDisposition) -> None:
    assert namespace_disposition(held, ALPHA) is expected
