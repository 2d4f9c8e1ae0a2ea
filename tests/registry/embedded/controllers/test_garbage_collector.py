"""The garbage collector over stored objects."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from apiserver.meta.resource import GroupKind, Key, Object
from apiserver.request.options import DeleteOptions
from registry.embedded.controllers.garbage_collector import GarbageCollector
from registry.embedded.controllers.ownership_graph import OwnerKind, ServedOwnerKinds
from tests.registry.embedded.embedded_storages import EmbeddedApi

CONFIGMAPS, SECRETS = "configmaps", "secrets"
KINDS = {
    GroupKind("", "ConfigMap"): OwnerKind("configmaps", True),
    GroupKind("", "Secret"): OwnerKind("secrets", True),
    GroupKind("", "Namespace"): OwnerKind("namespaces", False),
    GroupKind("rbac.authorization.k8s.io", "ClusterRole"): OwnerKind("clusterroles.rbac.authorization.k8s.io", False),
    GroupKind("apps.cozystack.io", "Tenant"): OwnerKind(
        "helmreleases.helm.toolkit.fluxcd.io", True, lambda name: f"tenant-{name}"
    ),
}


@pytest.fixture
async def collector(api: EmbeddedApi) -> AsyncIterator[GarbageCollector]:
    collector = GarbageCollector(database=api.database, backends=api.backends, kinds=KINDS)
    collector.load()
    task = asyncio.create_task(collector.run())
    yield collector
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def reference(owner: Object, kind: str = "ConfigMap", *, api_version: str = "v1", **more: Any) -> Object:
    metadata = owner["metadata"]
    return {"apiVersion": api_version, "kind": kind, "name": metadata["name"], "uid": metadata["uid"], **more}


async def configmap(api: EmbeddedApi, name: str, *owners: Object, **metadata: Any) -> Object:
    meta = {"name": name, "namespace": "ns", **metadata}
    if owners:
        meta["ownerReferences"] = list(owners)
    return await api.create(CONFIGMAPS, {"metadata": meta})


def names(api: EmbeddedApi) -> list[str]:
    return [key.name for key in api.stored(CONFIGMAPS)]


def metadata(api: EmbeddedApi, name: str) -> Object:
    cached = api.backends[CONFIGMAPS].cache.peek(Key("ns", name))
    assert cached is not None
    found: Object = cached.object()["metadata"]
    return found


async def test_dependents_are_deleted_with_their_owner(api: EmbeddedApi, collector: GarbageCollector) -> None:
    owner = await configmap(api, "owner")
    child = await configmap(api, "child", reference(owner))
    await configmap(api, "grandchild", reference(child))
    await configmap(api, "other")
    await api.delete(CONFIGMAPS, Key("ns", "owner"))
    await api.until(lambda: names(api) == ["other"])


async def test_a_dependent_with_another_owner_loses_only_the_dangling_reference(
    api: EmbeddedApi, collector: GarbageCollector
) -> None:
    first, second = await configmap(api, "first"), await configmap(api, "second")
    await configmap(api, "child", reference(first), reference(second))
    await api.delete(CONFIGMAPS, Key("ns", "first"))
    await api.until(lambda: len(metadata(api, "child")["ownerReferences"]) == 1)
    assert metadata(api, "child")["ownerReferences"] == [reference(second)]


async def test_an_object_whose_owner_never_existed_is_deleted(api: EmbeddedApi, collector: GarbageCollector) -> None:
    await configmap(api, "child", {"apiVersion": "v1", "kind": "ConfigMap", "name": "nobody", "uid": "nope"})
    await api.until(lambda: names(api) == [])


async def test_a_recreated_owner_does_not_keep_old_dependents(api: EmbeddedApi) -> None:
    old = await configmap(api, "owner")
    await configmap(api, "child", reference(old))
    await api.delete(CONFIGMAPS, Key("ns", "owner"))
    await configmap(api, "owner")
    collector = GarbageCollector(database=api.database, backends=api.backends, kinds=KINDS)
    collector.load()
    task = asyncio.create_task(collector.run())
    await api.until(lambda: names(api) == ["owner"])
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_objects_owned_by_an_unknown_kind_are_kept(api: EmbeddedApi, collector: GarbageCollector) -> None:
    await configmap(api, "child", {"apiVersion": "apps/v1", "kind": "Deployment", "name": "x", "uid": "nope"})
    await configmap(api, "marker", {"apiVersion": "v1", "kind": "ConfigMap", "name": "nobody", "uid": "nope"})
    await api.until(lambda: names(api) == ["child"])


def test_a_kind_of_a_definition_and_of_helmreleases_counts_as_unknown_until_one_of_them_is_gone() -> None:
    box, crate = GroupKind("apps.example.com", "Box"), GroupKind("apps.example.com", "Crate")
    stored = {box: OwnerKind("boxes.apps.example.com", True)}
    kinds = ServedOwnerKinds(stored)
    kinds.released = {each: OwnerKind("releases", True) for each in (box, crate)}
    assert (kinds.get(box), kinds[crate].storage, set(kinds), len(kinds)) == (None, "releases", {crate}, 1)
    kinds.released = {}
    assert kinds[box] == stored[box]


async def test_an_object_whose_owner_is_in_another_namespace_is_deleted(
    api: EmbeddedApi, collector: GarbageCollector
) -> None:
    await api.create("namespaces", {"metadata": {"name": "elsewhere"}})
    owner = await api.create(CONFIGMAPS, {"metadata": {"name": "owner", "namespace": "elsewhere"}})
    await configmap(api, "child", reference(owner))
    await api.until(lambda: names(api) == ["owner"])


async def test_a_cluster_scoped_owner_can_own_namespaced_objects(api: EmbeddedApi, collector: GarbageCollector) -> None:
    rbac = "rbac.authorization.k8s.io"
    owner = await api.create("clusterroles", {"metadata": {"name": "r"}}, group=rbac)
    await configmap(api, "child", reference(owner, "ClusterRole", api_version=f"{rbac}/v1"))
    await collector.join()
    assert names(api) == ["child"]
    await api.delete("clusterroles", Key("", "r"), group=rbac)
    await api.until(lambda: names(api) == [])


async def test_a_cluster_scoped_object_is_not_deleted_with_a_namespaced_owner(
    api: EmbeddedApi, collector: GarbageCollector
) -> None:
    owner = await configmap(api, "owner")
    rbac = "rbac.authorization.k8s.io"
    await api.create("clusterroles", {"metadata": {"name": "r", "ownerReferences": [reference(owner)]}}, group=rbac)
    await api.delete(CONFIGMAPS, Key("ns", "owner"))
    await collector.join()
    assert api.stored(f"clusterroles.{rbac}") == [Key("", "r")]


async def test_a_tenant_owns_objects_by_the_uid_of_its_helmrelease(
    api: EmbeddedApi, collector: GarbageCollector
) -> None:
    where: dict[str, Any] = {"group": "helm.toolkit.fluxcd.io", "version": "v2"}
    release = await api.create("helmreleases", {"metadata": {"name": "tenant-foo", "namespace": "ns"}}, **where)
    tenant = {
        "apiVersion": "apps.cozystack.io/v1alpha1",
        "kind": "Tenant",
        "name": "foo",
        "uid": release["metadata"]["uid"],
    }
    await configmap(api, "child", tenant)
    await collector.join()
    assert names(api) == ["child"]
    backend = api.backends["helmreleases.helm.toolkit.fluxcd.io"]
    await backend.delete(Key("ns", "tenant-foo"), release, DeleteOptions())
    await api.until(lambda: names(api) == [])


async def test_foreground_deletion_removes_the_owner_last(api: EmbeddedApi, collector: GarbageCollector) -> None:
    order: list[str] = []
    api.database.subscribe(lambda change: order.append(change.target.key.name) if change.type == "DELETED" else None)
    owner = await configmap(api, "owner")
    child = await configmap(api, "child", reference(owner, blockOwnerDeletion=True))
    await configmap(api, "grandchild", reference(child, blockOwnerDeletion=True))
    deleted = await api.delete(CONFIGMAPS, Key("ns", "owner"), policy="Foreground")
    assert not deleted.removed
    assert deleted.object["metadata"]["finalizers"] == ["foregroundDeletion"]
    await api.until(lambda: names(api) == [])
    assert order == ["grandchild", "child", "owner"]


async def test_foreground_deletion_waits_only_for_blocking_dependents(
    api: EmbeddedApi, collector: GarbageCollector
) -> None:
    owner = await configmap(api, "owner")
    await configmap(api, "blocked", reference(owner), finalizers=["example.org/wait"])
    await api.delete(CONFIGMAPS, Key("ns", "owner"), policy="Foreground")
    await api.until(lambda: names(api) == ["blocked"])
    await api.until(lambda: "deletionTimestamp" in metadata(api, "blocked"))


async def test_foreground_deletion_waits_for_a_blocking_dependent_with_a_finalizer(
    api: EmbeddedApi, collector: GarbageCollector
) -> None:
    owner = await configmap(api, "owner")
    await configmap(api, "blocked", reference(owner, blockOwnerDeletion=True), finalizers=["example.org/wait"])
    await api.delete(CONFIGMAPS, Key("ns", "owner"), policy="Foreground")
    await api.until(lambda: "deletionTimestamp" in metadata(api, "blocked"))
    await collector.join()
    assert names(api) == ["blocked", "owner"]
    await api.update(CONFIGMAPS, Key("ns", "blocked"), lambda obj: obj["metadata"].pop("finalizers"))
    await api.until(lambda: names(api) == [])


async def test_an_ownership_cycle_is_deleted_as_a_whole(api: EmbeddedApi, collector: GarbageCollector) -> None:
    first = await configmap(api, "first", finalizers=["example.org/hold"])
    second = await configmap(api, "second", reference(first, blockOwnerDeletion=True))
    owners = [reference(second, blockOwnerDeletion=True)]
    await api.update(
        CONFIGMAPS, Key("ns", "first"), lambda obj: obj["metadata"].update(ownerReferences=owners, finalizers=[])
    )
    await api.delete(CONFIGMAPS, Key("ns", "first"), policy="Foreground")
    await api.until(lambda: names(api) == [])


async def test_orphaned_dependents_stay_without_owner_references(api: EmbeddedApi, collector: GarbageCollector) -> None:
    owner = await configmap(api, "owner")
    await configmap(api, "child", reference(owner))
    await api.delete(CONFIGMAPS, Key("ns", "owner"), policy="Orphan")
    await api.until(lambda: names(api) == ["child"])
    assert "ownerReferences" not in metadata(api, "child")


async def test_dependents_are_kept_while_a_finalizer_keeps_the_owner(
    api: EmbeddedApi, collector: GarbageCollector
) -> None:
    owner = await configmap(api, "owner", finalizers=["example.org/wait"])
    await configmap(api, "child", reference(owner))
    await api.delete(CONFIGMAPS, Key("ns", "owner"))
    await collector.join()
    assert names(api) == ["child", "owner"]
    assert "deletionTimestamp" not in metadata(api, "child")
