"""Upstream's test of generated clients, step by step, with the generated Python client (WIRE-J58)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from kubernetes_asyncio import config, watch
from kubernetes_asyncio.client import ApiException, CustomObjectsApi

from tests.e2e.support.clusters.cluster import PATIENCE, ROOT, E2eCluster
from tests.e2e.support.tenants import manifest

_TENANTS = ("apps.cozystack.io", "v1alpha1", ROOT, "tenants")


async def _read_until(events: Any, types: Sequence[str]) -> list[dict[str, Any]]:
    """Returns the events up to the last of these types, which must occur in this order."""
    seen = []
    wanted = list(types)
    async for event in events:
        seen.append(event)
        if event["type"] == wanted[0]:
            wanted.pop(0)
        if not wanted:
            return seen
    raise AssertionError(f"the watch ended before {wanted}")


async def _run_steps(cluster: E2eCluster, label: str) -> None:
    clients = await config.new_client_from_config(config_file=str(cluster.admin.kubeconfig))
    async with clients as connection, asyncio.timeout(2 * PATIENCE):
        api = CustomObjectsApi(connection)
        selector = f"time={label}"
        before = await api.list_namespaced_custom_object(*_TENANTS, label_selector=selector)
        assert before["items"] == []
        assert before["kind"] == "TenantList"
        version = before["metadata"]["resourceVersion"]

        body = manifest("unused", labels={"time": label})
        del body["metadata"]["name"]
        body["metadata"]["generateName"] = "generated"
        created = await api.create_namespaced_custom_object(*_TENANTS, body, field_validation="Strict")
        name = created["metadata"]["name"]
        assert name.startswith("generated")
        assert len(name) == len("generated") + 5

        listed = await api.list_namespaced_custom_object(*_TENANTS, label_selector=selector)
        assert [item["metadata"]["uid"] for item in listed["items"]] == [created["metadata"]["uid"]]

        await api.delete_namespaced_custom_object(*_TENANTS, name, grace_period_seconds=30)
        async with watch.Watch() as watching:
            events = watching.stream(
                api.list_namespaced_custom_object,
                *_TENANTS,
                label_selector=selector,
                resource_version=version,
                timeout_seconds=int(PATIENCE),
            )
            seen = await _read_until(events, ("ADDED", "DELETED"))
        assert {event["object"]["metadata"]["uid"] for event in seen} == {created["metadata"]["uid"]}
        with pytest.raises(ApiException) as gone:
            await api.get_namespaced_custom_object(*_TENANTS, name)
        assert (gone.value.status, gone.value.reason) == (404, "Not Found")
        assert (await api.list_namespaced_custom_object(*_TENANTS, label_selector=selector))["items"] == []


def test_a_generated_client_creates_watches_lists_and_deletes(cluster: E2eCluster, unique: str) -> None:
    asyncio.run(_run_steps(cluster, unique))
