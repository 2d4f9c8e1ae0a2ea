"""Namespaces: what they are made with, and how they go."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from apiserver import rest
from apiserver.meta import errors
from apiserver.meta.resource import Key
from registry.embedded.controllers.namespace_lifecycle import NamespaceLifecycle
from tests.registry.embedded.embedded_storages import Kinds

NS = Key("", "ns")


@pytest.fixture
async def lifecycle(kinds: Kinds) -> AsyncIterator[NamespaceLifecycle]:
    lifecycle = NamespaceLifecycle(database=kinds.database, backends=kinds.backends)
    lifecycle.load()
    task = asyncio.create_task(lifecycle.run())
    yield lifecycle
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def gone(kinds: Kinds) -> bool:
    return NS not in kinds.stored("namespaces")


async def test_a_namespace_is_made_active_and_held_by_its_content(kinds: Kinds) -> None:
    namespace = await kinds.create("namespaces", {"metadata": {"name": "b"}, "status": {"phase": "Terminating"}})
    assert namespace["status"] == {"phase": "Active"}
    assert namespace["spec"] == {"finalizers": ["kubernetes"]}
    assert namespace["metadata"]["labels"] == {"kubernetes.io/metadata.name": "b"}


async def test_finalizers_of_the_spec_change_through_finalize_alone(kinds: Kinds) -> None:
    def drop(obj: dict[str, Any]) -> None:
        obj["spec"] = {"finalizers": []}

    assert (await kinds.update("namespaces", NS, drop))["spec"] == {"finalizers": ["kubernetes"]}
    assert (await kinds.update("namespaces/status", NS, drop))["spec"] == {"finalizers": ["kubernetes"]}
    assert (await kinds.update("namespaces/finalize", NS, drop))["spec"] == {"finalizers": []}


async def test_deleting_marks_the_namespace_first(kinds: Kinds) -> None:
    deleted = await kinds.delete("namespaces", NS)
    assert not deleted.gone
    assert deleted.object["status"]["phase"] == "Terminating"
    assert deleted.object["metadata"]["deletionTimestamp"]


async def test_nothing_new_is_made_in_a_namespace_on_its_way_out(kinds: Kinds) -> None:
    await kinds.delete("namespaces", NS)
    with pytest.raises(errors.Forbidden) as refused:
        await kinds.create("configmaps", {"metadata": {"name": "a", "namespace": "ns"}})
    assert refused.value.message == (
        'configmaps "a" is forbidden: unable to create new content in namespace ns because it is being terminated'
    )
    assert refused.value.causes == [
        {
            "reason": "NamespaceTerminating",
            "message": "namespace ns is being terminated",
            "field": "metadata.namespace",
        }
    ]


async def test_contents_go_first_then_the_namespace(kinds: Kinds, lifecycle: NamespaceLifecycle) -> None:
    order: list[str] = []
    kinds.database.subscribe(lambda change: order.append(change.place.resource) if change.type == "DELETED" else None)
    for name in ("a", "b"):
        await kinds.create("configmaps", {"metadata": {"name": name, "namespace": "ns"}})
    await kinds.create("secrets", {"metadata": {"name": "a", "namespace": "ns"}})
    await kinds.delete("namespaces", NS)
    await kinds.until(lambda: gone(kinds))
    assert sorted(order[:-1]) == ["configmaps", "configmaps", "secrets"]
    assert order[-1] == "namespaces"


async def test_what_is_held_holds_the_namespace_and_is_told(kinds: Kinds, lifecycle: NamespaceLifecycle) -> None:
    metadata = {"name": "held", "namespace": "ns", "finalizers": ["example.org/wait"]}
    await kinds.create("configmaps", {"metadata": metadata})
    await kinds.delete("namespaces", NS)

    def conditions() -> dict[str, str]:
        cached = kinds.backends["namespaces"].cache.peek(NS)
        status = cached.object()["status"] if cached is not None else {}
        return {each["type"]: each["message"] for each in status.get("conditions", ())}

    await kinds.until(conditions)
    assert conditions() == {
        "NamespaceContentRemaining": "Some resources are remaining: configmaps. has 1 resource instances",
        "NamespaceFinalizersRemaining": (
            "Some content in the namespace has finalizers remaining: example.org/wait in 1 resource instances"
        ),
    }
    await kinds.update("configmaps", Key("ns", "held"), lambda obj: obj["metadata"].pop("finalizers"))
    await kinds.until(lambda: gone(kinds))
    assert kinds.stored("configmaps") == []


async def test_a_finalizer_of_the_namespace_itself_holds_it(kinds: Kinds, lifecycle: NamespaceLifecycle) -> None:
    await kinds.update("namespaces", NS, lambda obj: obj["metadata"].update(finalizers=["example.org/wait"]))
    await kinds.delete("namespaces", NS)

    def emptied() -> bool:
        cached = kinds.backends["namespaces"].cache.peek(NS)
        return cached is not None and cached.object()["spec"]["finalizers"] == []

    await kinds.until(emptied)
    await kinds.update("namespaces", NS, lambda obj: obj["metadata"].pop("finalizers"))
    assert gone(kinds)


async def test_a_deletion_that_was_going_on_is_taken_up_again(kinds: Kinds) -> None:
    await kinds.create("configmaps", {"metadata": {"name": "a", "namespace": "ns"}})
    await kinds.delete("namespaces", NS)
    lifecycle = NamespaceLifecycle(database=kinds.database, backends=kinds.backends)
    lifecycle.load()
    task = asyncio.create_task(lifecycle.run())
    await kinds.until(lambda: gone(kinds))
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert kinds.stored("configmaps") == []


@pytest.mark.parametrize("name", ["default", "kube-system", "kube-public"])
async def test_namespaces_that_everything_relies_on_stay(kinds: Kinds, name: str) -> None:
    await kinds.create("namespaces", {"metadata": {"name": name}})
    with pytest.raises(errors.Forbidden, match="this namespace may not be deleted"):
        await kinds.delete("namespaces", Key("", name))


async def test_namespaces_are_not_deleted_all_at_once(kinds: Kinds) -> None:
    assert not isinstance(kinds.storage("namespaces"), rest.CollectionDeleter)
    assert isinstance(kinds.storage("configmaps"), rest.CollectionDeleter)
