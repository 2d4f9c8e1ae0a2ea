"""The garbage collector on stored objects."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from apiserver.meta.resource import GroupKind, Key, Object
from apiserver.request.options import DeleteOptions
from registry.embedded.controllers.garbage_collector import GarbageCollector
from registry.embedded.controllers.ownership_graph import OwnerKind
from tests.registry.embedded.embedded_storages import Kinds

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
async def collector(kinds: Kinds) -> AsyncIterator[GarbageCollector]:
    collector = GarbageCollector(database=kinds.database, backends=kinds.backends, kinds=KINDS)
    collector.load()
    task = asyncio.create_task(collector.run())
    yield collector
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def reference(owner: Object, kind: str = "ConfigMap", *, api_version: str = "v1", **more: Any) -> Object:
    metadata = owner["metadata"]
    return {"apiVersion": api_version, "kind": kind, "name": metadata["name"], "uid": metadata["uid"], **more}


async def configmap(kinds: Kinds, name: str, *owners: Object, **metadata: Any) -> Object:
    meta = {"name": name, "namespace": "ns", **metadata}
    if owners:
        meta["ownerReferences"] = list(owners)
    return await kinds.create(CONFIGMAPS, {"metadata": meta})


def names(kinds: Kinds) -> list[str]:
    return [key.name for key in kinds.stored(CONFIGMAPS)]


def metadata(kinds: Kinds, name: str) -> Object:
    cached = kinds.backends[CONFIGMAPS].cache.peek(Key("ns", name))
    assert cached is not None
    found: Object = cached.object()["metadata"]
    return found


async def test_what_is_owned_goes_with_its_owner(kinds: Kinds, collector: GarbageCollector) -> None:
    owner = await configmap(kinds, "owner")
    child = await configmap(kinds, "child", reference(owner))
    await configmap(kinds, "grandchild", reference(child))
    await configmap(kinds, "other")
    await kinds.delete(CONFIGMAPS, Key("ns", "owner"))
    await kinds.until(lambda: names(kinds) == ["other"])


async def test_what_has_another_owner_stays_without_the_lost_one(kinds: Kinds, collector: GarbageCollector) -> None:
    first, second = await configmap(kinds, "first"), await configmap(kinds, "second")
    await configmap(kinds, "child", reference(first), reference(second))
    await kinds.delete(CONFIGMAPS, Key("ns", "first"))
    await kinds.until(lambda: len(metadata(kinds, "child")["ownerReferences"]) == 1)
    assert metadata(kinds, "child")["ownerReferences"] == [reference(second)]


async def test_an_owner_that_never_was_is_no_owner(kinds: Kinds, collector: GarbageCollector) -> None:
    await configmap(kinds, "child", {"apiVersion": "v1", "kind": "ConfigMap", "name": "nobody", "uid": "nope"})
    await kinds.until(lambda: names(kinds) == [])


async def test_an_owner_made_anew_under_the_same_name_is_another(kinds: Kinds) -> None:
    old = await configmap(kinds, "owner")
    await configmap(kinds, "child", reference(old))
    await kinds.delete(CONFIGMAPS, Key("ns", "owner"))
    await configmap(kinds, "owner")
    collector = GarbageCollector(database=kinds.database, backends=kinds.backends, kinds=KINDS)
    collector.load()
    task = asyncio.create_task(collector.run())
    await kinds.until(lambda: names(kinds) == ["owner"])
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_what_an_unknown_kind_owns_is_left_alone(kinds: Kinds, collector: GarbageCollector) -> None:
    await configmap(kinds, "child", {"apiVersion": "apps/v1", "kind": "Deployment", "name": "x", "uid": "nope"})
    await configmap(kinds, "marker", {"apiVersion": "v1", "kind": "ConfigMap", "name": "nobody", "uid": "nope"})
    await kinds.until(lambda: names(kinds) == ["child"])


async def test_an_owner_in_another_namespace_is_no_owner(kinds: Kinds, collector: GarbageCollector) -> None:
    await kinds.create("namespaces", {"metadata": {"name": "elsewhere"}})
    owner = await kinds.create(CONFIGMAPS, {"metadata": {"name": "owner", "namespace": "elsewhere"}})
    await configmap(kinds, "child", reference(owner))
    await kinds.until(lambda: names(kinds) == ["owner"])


async def test_a_cluster_wide_owner_owns_in_every_namespace(kinds: Kinds, collector: GarbageCollector) -> None:
    rbac = "rbac.authorization.k8s.io"
    owner = await kinds.create("clusterroles", {"metadata": {"name": "r"}}, group=rbac)
    await configmap(kinds, "child", reference(owner, "ClusterRole", api_version=f"{rbac}/v1"))
    await collector.join()
    assert names(kinds) == ["child"]
    await kinds.delete("clusterroles", Key("", "r"), group=rbac)
    await kinds.until(lambda: names(kinds) == [])


async def test_nothing_cluster_wide_goes_with_something_in_a_namespace(
    kinds: Kinds, collector: GarbageCollector
) -> None:
    owner = await configmap(kinds, "owner")
    rbac = "rbac.authorization.k8s.io"
    await kinds.create("clusterroles", {"metadata": {"name": "r", "ownerReferences": [reference(owner)]}}, group=rbac)
    await kinds.delete(CONFIGMAPS, Key("ns", "owner"))
    await collector.join()
    assert kinds.stored(f"clusterroles.{rbac}") == [Key("", "r")]


async def test_a_tenant_owns_by_the_uid_of_its_helmrelease(kinds: Kinds, collector: GarbageCollector) -> None:
    where: dict[str, Any] = {"group": "helm.toolkit.fluxcd.io", "version": "v2"}
    release = await kinds.create("helmreleases", {"metadata": {"name": "tenant-foo", "namespace": "ns"}}, **where)
    tenant = {
        "apiVersion": "apps.cozystack.io/v1alpha1",
        "kind": "Tenant",
        "name": "foo",
        "uid": release["metadata"]["uid"],
    }
    await configmap(kinds, "child", tenant)
    await collector.join()
    assert names(kinds) == ["child"]
    backend = kinds.backends["helmreleases.helm.toolkit.fluxcd.io"]
    await backend.delete(Key("ns", "tenant-foo"), release, DeleteOptions())
    await kinds.until(lambda: names(kinds) == [])


async def test_in_the_foreground_the_owner_goes_last(kinds: Kinds, collector: GarbageCollector) -> None:
    order: list[str] = []
    kinds.database.subscribe(lambda change: order.append(change.place.key.name) if change.type == "DELETED" else None)
    owner = await configmap(kinds, "owner")
    child = await configmap(kinds, "child", reference(owner, blockOwnerDeletion=True))
    await configmap(kinds, "grandchild", reference(child, blockOwnerDeletion=True))
    deleted = await kinds.delete(CONFIGMAPS, Key("ns", "owner"), policy="Foreground")
    assert not deleted.gone
    assert deleted.object["metadata"]["finalizers"] == ["foregroundDeletion"]
    await kinds.until(lambda: names(kinds) == [])
    assert order == ["grandchild", "child", "owner"]


async def test_in_the_foreground_only_those_that_block_are_waited_for(
    kinds: Kinds, collector: GarbageCollector
) -> None:
    owner = await configmap(kinds, "owner")
    await configmap(kinds, "held", reference(owner), finalizers=["example.org/wait"])
    await kinds.delete(CONFIGMAPS, Key("ns", "owner"), policy="Foreground")
    await kinds.until(lambda: names(kinds) == ["held"])
    await kinds.until(lambda: "deletionTimestamp" in metadata(kinds, "held"))


async def test_in_the_foreground_one_that_blocks_and_is_held_holds_the_owner(
    kinds: Kinds, collector: GarbageCollector
) -> None:
    owner = await configmap(kinds, "owner")
    await configmap(kinds, "held", reference(owner, blockOwnerDeletion=True), finalizers=["example.org/wait"])
    await kinds.delete(CONFIGMAPS, Key("ns", "owner"), policy="Foreground")
    await kinds.until(lambda: "deletionTimestamp" in metadata(kinds, "held"))
    await collector.join()
    assert names(kinds) == ["held", "owner"]
    await kinds.update(CONFIGMAPS, Key("ns", "held"), lambda obj: obj["metadata"].pop("finalizers"))
    await kinds.until(lambda: names(kinds) == [])


async def test_a_circle_of_owners_goes_as_a_whole(kinds: Kinds, collector: GarbageCollector) -> None:
    first = await configmap(kinds, "first", finalizers=["example.org/hold"])
    second = await configmap(kinds, "second", reference(first, blockOwnerDeletion=True))
    owners = [reference(second, blockOwnerDeletion=True)]
    await kinds.update(
        CONFIGMAPS, Key("ns", "first"), lambda obj: obj["metadata"].update(ownerReferences=owners, finalizers=[])
    )
    await kinds.delete(CONFIGMAPS, Key("ns", "first"), policy="Foreground")
    await kinds.until(lambda: names(kinds) == [])


async def test_orphans_stay_and_forget_their_owner(kinds: Kinds, collector: GarbageCollector) -> None:
    owner = await configmap(kinds, "owner")
    await configmap(kinds, "child", reference(owner))
    await kinds.delete(CONFIGMAPS, Key("ns", "owner"), policy="Orphan")
    await kinds.until(lambda: names(kinds) == ["child"])
    assert "ownerReferences" not in metadata(kinds, "child")


async def test_dependents_of_what_is_merely_held_are_kept(kinds: Kinds, collector: GarbageCollector) -> None:
    owner = await configmap(kinds, "owner", finalizers=["example.org/wait"])
    await configmap(kinds, "child", reference(owner))
    await kinds.delete(CONFIGMAPS, Key("ns", "owner"))
    await collector.join()
    assert names(kinds) == ["child", "owner"]
    assert "deletionTimestamp" not in metadata(kinds, "child")
