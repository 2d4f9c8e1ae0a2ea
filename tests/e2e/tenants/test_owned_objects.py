"""Garbage collection by ownerReference, with Tenants as owners and as dependents (WIRE-J44 to WIRE-J47)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.e2e.support.clusters.cluster import ROOT, E2eCluster, tenants_path
from tests.e2e.support.tenants import Object, Tenants

pytestmark = pytest.mark.controller_manager


def reference(owner: Object, **more: Any) -> Object:
    metadata = owner["metadata"]
    identity = {"apiVersion": owner["apiVersion"], "kind": owner["kind"]}
    return {**identity, "name": metadata["name"], "uid": metadata["uid"], **more}


def delete(cluster: E2eCluster, name: str, policy: str) -> None:
    answer = cluster.client().request("DELETE", tenants_path(ROOT, name), query={"propagationPolicy": policy})
    assert answer.status in (200, 202), answer.content


def test_a_configmap_is_deleted_with_the_tenant_that_owns_it(cluster: E2eCluster, tenants: Tenants) -> None:
    owner = tenants.create()
    name = owner["metadata"]["name"]
    owned = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "ownerReferences": [reference(owner)]}}
    collection = f"/api/v1/namespaces/{ROOT}/configmaps"
    cluster.client().request("POST", collection, owned).expect(201)
    delete(cluster, name, "Background")
    tenants.wait_until_gone(f"{collection}/{name}")


def test_a_tenant_is_deleted_with_the_configmap_that_owns_it(cluster: E2eCluster, tenants: Tenants) -> None:
    client, collection = cluster.client(), f"/api/v1/namespaces/{ROOT}/configmaps"
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": tenants.new_name()}}
    owner = client.request("POST", collection, body).expect(201)
    dependent = tenants.create(ownerReferences=[reference(owner)])["metadata"]
    assert dependent["ownerReferences"][0]["uid"] == owner["metadata"]["uid"]
    assert client.request("DELETE", f"{collection}/{owner['metadata']['name']}").status == 200
    tenants.wait_until_gone(tenants_path(ROOT, dependent["name"]))


def test_a_tenant_is_deleted_with_the_tenant_that_owns_it(cluster: E2eCluster, tenants: Tenants) -> None:
    owner = tenants.create()
    dependent = tenants.create(ownerReferences=[reference(owner)])["metadata"]["name"]
    delete(cluster, owner["metadata"]["name"], "Background")
    tenants.wait_until_gone(tenants_path(ROOT, dependent))


def test_foreground_deletes_the_dependent_first(cluster: E2eCluster, tenants: Tenants) -> None:
    owner = tenants.create()
    name = owner["metadata"]["name"]
    dependent = tenants.create(
        ownerReferences=[reference(owner, blockOwnerDeletion=True)], finalizers=["example.org/keep"]
    )["metadata"]["name"]
    delete(cluster, name, "Foreground")
    tenants.wait("the dependent is terminating", lambda: "deletionTimestamp" in tenants.get(dependent)["metadata"])
    assert tenants.exists(name)
    tenants.patch(dependent, {"metadata": {"finalizers": None}})
    tenants.wait_until_gone(tenants_path(ROOT, name))
    assert not tenants.exists(dependent)


def test_orphan_deletion_removes_the_owner_from_the_dependent(cluster: E2eCluster, tenants: Tenants) -> None:
    owner = tenants.create()
    dependent = tenants.create(ownerReferences=[reference(owner)])["metadata"]["name"]
    delete(cluster, owner["metadata"]["name"], "Orphan")
    tenants.wait_until_gone(tenants_path(ROOT, owner["metadata"]["name"]))
    assert "ownerReferences" not in tenants.get(dependent)["metadata"]


def test_a_tenant_with_a_nonexistent_owner_is_deleted(cluster: E2eCluster, tenants: Tenants) -> None:
    ghost = {"apiVersion": "v1", "kind": "ConfigMap", "name": "ghost", "uid": "11111111-2222-4333-8444-555555555555"}
    dependent = tenants.create(ownerReferences=[ghost])["metadata"]["name"]
    tenants.wait_until_gone(tenants_path(ROOT, dependent))
