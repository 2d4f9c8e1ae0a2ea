"""Namespaces: the fields of a new one, and the deletion of one with its contents."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from apiserver import rest
from apiserver.meta import errors
from apiserver.meta.resource import Key
from registry.embedded.controllers.namespace_lifecycle import NamespaceController
from tests.registry.embedded.embedded_storages import EmbeddedApi

NS = Key("", "ns")


@pytest.fixture
async def lifecycle(api: EmbeddedApi) -> AsyncIterator[NamespaceController]:
    lifecycle = NamespaceController(database=api.database, backends=api.backends)
    lifecycle.load()
    task = asyncio.create_task(lifecycle.run())
    yield lifecycle
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def is_deleted(api: EmbeddedApi) -> bool:
    return NS not in api.stored("namespaces")


async def test_a_new_namespace_is_active_and_has_the_kubernetes_finalizer(api: EmbeddedApi) -> None:
    namespace = await api.create("namespaces", {"metadata": {"name": "b"}, "status": {"phase": "Terminating"}})
    assert namespace["status"] == {"phase": "Active"}
    assert namespace["spec"] == {"finalizers": ["kubernetes"]}
    assert namespace["metadata"]["labels"] == {"kubernetes.io/metadata.name": "b"}


async def test_spec_finalizers_change_only_through_the_finalize_subresource(api: EmbeddedApi) -> None:
    def drop(obj: dict[str, Any]) -> None:
        obj["spec"] = {"finalizers": []}

    assert (await api.update("namespaces", NS, drop))["spec"] == {"finalizers": ["kubernetes"]}
    assert (await api.update("namespaces/status", NS, drop))["spec"] == {"finalizers": ["kubernetes"]}
    assert (await api.update("namespaces/finalize", NS, drop))["spec"] == {"finalizers": []}


async def test_deleting_a_namespace_first_marks_it_terminating(api: EmbeddedApi) -> None:
    deleted = await api.delete("namespaces", NS)
    assert not deleted.removed
    assert deleted.object["status"]["phase"] == "Terminating"
    assert deleted.object["metadata"]["deletionTimestamp"]


async def test_creating_an_object_in_a_terminating_namespace_is_forbidden(api: EmbeddedApi) -> None:
    await api.delete("namespaces", NS)
    with pytest.raises(errors.Forbidden) as raised:
        await api.create("configmaps", {"metadata": {"name": "a", "namespace": "ns"}})
    assert raised.value.message == (
        'configmaps "a" is forbidden: unable to create new content in namespace ns because it is being terminated'
    )
    assert raised.value.causes == [
        {
            "reason": "NamespaceTerminating",
            "message": "namespace ns is being terminated",
            "field": "metadata.namespace",
        }
    ]


async def test_namespace_contents_are_deleted_before_the_namespace(
    api: EmbeddedApi, lifecycle: NamespaceController
) -> None:
    order: list[str] = []
    api.database.subscribe(lambda change: order.append(change.target.resource) if change.type == "DELETED" else None)
    for name in ("a", "b"):
        await api.create("configmaps", {"metadata": {"name": name, "namespace": "ns"}})
    await api.create("secrets", {"metadata": {"name": "a", "namespace": "ns"}})
    await api.delete("namespaces", NS)
    await api.until(lambda: is_deleted(api))
    assert sorted(order[:-1]) == ["configmaps", "configmaps", "secrets"]
    assert order[-1] == "namespaces"


async def test_content_with_finalizers_is_reported_in_namespace_conditions(
    api: EmbeddedApi, lifecycle: NamespaceController
) -> None:
    metadata = {"name": "blocked", "namespace": "ns", "finalizers": ["example.org/wait"]}
    await api.create("configmaps", {"metadata": metadata})
    await api.delete("namespaces", NS)

    def conditions() -> dict[str, str]:
        cached = api.backends["namespaces"].cache.peek(NS)
        status = cached.object()["status"] if cached is not None else {}
        return {each["type"]: each["message"] for each in status.get("conditions", ())}

    await api.until(conditions)
    assert conditions() == {
        "NamespaceContentRemaining": "Some resources are remaining: configmaps. has 1 resource instances",
        "NamespaceFinalizersRemaining": (
            "Some content in the namespace has finalizers remaining: example.org/wait in 1 resource instances"
        ),
    }
    await api.update("configmaps", Key("ns", "blocked"), lambda obj: obj["metadata"].pop("finalizers"))
    await api.until(lambda: is_deleted(api))
    assert api.stored("configmaps") == []


async def test_a_metadata_finalizer_keeps_an_empty_namespace(api: EmbeddedApi, lifecycle: NamespaceController) -> None:
    await api.update("namespaces", NS, lambda obj: obj["metadata"].update(finalizers=["example.org/wait"]))
    await api.delete("namespaces", NS)

    def emptied() -> bool:
        cached = api.backends["namespaces"].cache.peek(NS)
        return cached is not None and cached.object()["spec"]["finalizers"] == []

    await api.until(emptied)
    await api.update("namespaces", NS, lambda obj: obj["metadata"].pop("finalizers"))
    assert is_deleted(api)


async def test_an_interrupted_namespace_deletion_is_resumed(api: EmbeddedApi) -> None:
    await api.create("configmaps", {"metadata": {"name": "a", "namespace": "ns"}})
    await api.delete("namespaces", NS)
    lifecycle = NamespaceController(database=api.database, backends=api.backends)
    lifecycle.load()
    task = asyncio.create_task(lifecycle.run())
    await api.until(lambda: is_deleted(api))
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert api.stored("configmaps") == []


@pytest.mark.parametrize("name", ["default", "kube-system", "kube-public"])
async def test_system_namespaces_cannot_be_deleted(api: EmbeddedApi, name: str) -> None:
    await api.create("namespaces", {"metadata": {"name": name}})
    with pytest.raises(errors.Forbidden, match="this namespace may not be deleted"):
        await api.delete("namespaces", Key("", name))


async def test_namespaces_do_not_support_deletecollection(api: EmbeddedApi) -> None:
    assert not isinstance(api.storage("namespaces"), rest.CollectionDeleter)
    assert isinstance(api.storage("configmaps"), rest.CollectionDeleter)
