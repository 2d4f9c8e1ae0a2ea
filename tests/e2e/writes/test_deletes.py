"""Responses to DELETE of one object and of a collection (WIRE-D22, WIRE-D79, WIRE-D87 to WIRE-D97)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.e2e.support.clusters.cluster import ROOT, E2eCluster, tenants_path
from tests.e2e.support.http.https_client import Response
from tests.e2e.support.tenants import Object, Tenants

KEEP = "example.org/keep"


def delete(cluster: E2eCluster, name: str = "", body: Object | None = None, **query: Any) -> Response:
    return cluster.client().request("DELETE", tenants_path(ROOT, name), body, query=query or None)


def options(**fields: Any) -> Object:
    return {"kind": "DeleteOptions", "apiVersion": "v1", **fields}


def remove_finalizers(tenants: Tenants, name: str) -> Object:
    return tenants.patch(name, {"metadata": {"finalizers": None}})


def test_deleting_a_configmap_is_answered_with_a_status(cluster: E2eCluster, unique: str) -> None:
    """A ConfigMap is deleted immediately; a Tenant is deleted only after everything that belongs to it."""
    client, path = cluster.client(), f"/api/v1/namespaces/{ROOT}/configmaps"
    uid = client.request("POST", path, {"metadata": {"name": unique}}).expect(201)["metadata"]["uid"]
    assert client.request("DELETE", f"{path}/{unique}").expect(200) == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "details": {"name": unique, "kind": "configmaps", "uid": uid},
    }
    assert client.get(f"{path}/{unique}").status == 404


def test_deleting_a_tenant_is_answered_with_the_terminating_tenant(cluster: E2eCluster, tenants: Tenants) -> None:
    """Our own finalizer is not shown; the conditions say what it waits for."""
    metadata = tenants.create()["metadata"]
    terminating = delete(cluster, metadata["name"]).expect(200)
    assert (terminating["kind"], terminating["metadata"]["uid"]) == ("Tenant", metadata["uid"])
    assert terminating["metadata"]["deletionTimestamp"]
    assert "finalizers" not in terminating["metadata"]
    tenants.wait_until_gone(tenants_path(ROOT, metadata["name"]))


def test_deleting_an_object_with_finalizers_is_answered_with_the_object(cluster: E2eCluster, tenants: Tenants) -> None:
    created = tenants.create(finalizers=[KEEP])
    name = created["metadata"]["name"]
    terminating = delete(cluster, name).expect(200)
    assert terminating["kind"] == "Tenant"
    assert terminating["metadata"]["deletionTimestamp"]
    assert terminating["metadata"]["deletionGracePeriodSeconds"] == 0
    assert terminating["metadata"]["generation"] == created["metadata"]["generation"] + 1
    again = delete(cluster, name).expect(200)["metadata"]
    for field in ("deletionTimestamp", "generation", "finalizers"):
        assert again[field] == terminating["metadata"][field]
    released = remove_finalizers(tenants, name)
    assert (released["kind"], released["metadata"]["uid"]) == ("Tenant", created["metadata"]["uid"])
    tenants.wait_until_gone(tenants_path(ROOT, name))


@pytest.mark.parametrize("method", ["PUT", "PATCH"])
def test_removing_the_last_finalizer_deletes_the_object(cluster: E2eCluster, tenants: Tenants, method: str) -> None:
    name = tenants.create(finalizers=[KEEP])["metadata"]["name"]
    terminating = delete(cluster, name).expect(200)
    body: Object = {"metadata": {"finalizers": None}}
    if method == "PUT":
        metadata = {key: terminating["metadata"][key] for key in ("name", "uid")}
        body = {**terminating, "metadata": metadata}
    kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
    answer = cluster.client().request(method, tenants_path(ROOT, name), body, content_type=kind).expect(200)
    assert (answer["kind"], answer["metadata"]["uid"]) == ("Tenant", terminating["metadata"]["uid"])
    tenants.wait_until_gone(tenants_path(ROOT, name))


@pytest.mark.parametrize(
    ("requested", "finalizers"),
    [
        pytest.param({"propagationPolicy": "Foreground"}, [KEEP, "foregroundDeletion"], id="Foreground"),
        pytest.param({"propagationPolicy": "Orphan"}, [KEEP, "orphan"], id="Orphan"),
        pytest.param({"propagationPolicy": "Background"}, [KEEP], id="Background"),
        pytest.param({"orphanDependents": True}, [KEEP, "orphan"], id="orphanDependents"),
        pytest.param({}, [KEEP], id="no policy"),
    ],
)
def test_a_propagation_policy_adds_its_finalizer(
    cluster: E2eCluster, tenants: Tenants, requested: Object, finalizers: list[str]
) -> None:
    name = tenants.create(finalizers=[KEEP])["metadata"]["name"]
    terminating = delete(cluster, name, options(**requested)).expect(200)
    remove_finalizers(tenants, name)
    assert terminating["metadata"]["finalizers"] == finalizers


def test_a_missing_object_is_not_found(cluster: E2eCluster, unique: str) -> None:
    status = delete(cluster, unique).expect(404)
    assert status["message"] == f'tenants.apps.cozystack.io "{unique}" not found'


def test_a_dry_run_is_answered_like_the_deletion_and_changes_nothing(cluster: E2eCluster, tenants: Tenants) -> None:
    plain, finalized = tenants.create()["metadata"], tenants.create(finalizers=[KEEP])["metadata"]
    for each, dry in ((plain["name"], {"dryRun": "All"}), (finalized["name"], {"body": options(dryRun=["All"])})):
        terminating = delete(cluster, each, **dry).expect(200)
        assert (terminating["kind"], bool(terminating["metadata"]["deletionTimestamp"])) == ("Tenant", True)
    for name in (plain["name"], finalized["name"]):
        assert "deletionTimestamp" not in tenants.get(name)["metadata"]
    remove_finalizers(tenants, finalized["name"])


@pytest.mark.parametrize("api_version", ["v1", "meta.k8s.io/v1", "apps.cozystack.io/v1alpha1"])
def test_delete_options_are_accepted_in_each_of_their_versions(
    cluster: E2eCluster, tenants: Tenants, api_version: str
) -> None:
    name = tenants.create()["metadata"]["name"]
    body = {"kind": "DeleteOptions", "apiVersion": api_version, "preconditions": {"uid": "another"}}
    delete(cluster, name, body).expect(409)
    delete(cluster, name, {**body, "preconditions": None}).expect(200)


def test_delete_options_of_another_kind_are_rejected(cluster: E2eCluster, tenants: Tenants) -> None:
    name = tenants.create()["metadata"]["name"]
    status = delete(cluster, name, {"kind": "Pod", "apiVersion": "v1"}).expect(400)
    assert status["message"] == "decoded object cannot be converted to DeleteOptions"
    assert tenants.exists(name)


def test_deleting_a_collection_is_answered_with_the_deleted_objects(
    cluster: E2eCluster, tenants: Tenants, unique: str
) -> None:
    chosen = sorted(tenants.create(labels={"e2e": unique})["metadata"]["name"] for _ in range(3))
    other = tenants.create(labels={"e2e": f"{unique}x"})["metadata"]["name"]
    query: dict[str, Any] = {"labelSelector": f"e2e={unique}", "fieldSelector": f"metadata.name!={chosen[0]}"}
    deleted = delete(cluster, **query).expect(200)
    assert (deleted["kind"], deleted["apiVersion"]) == ("TenantList", "apps.cozystack.io/v1alpha1")
    assert [item["metadata"]["name"] for item in deleted["items"]] == chosen[1:]
    for name in chosen[1:]:
        tenants.wait_until_gone(tenants_path(ROOT, name))
    assert [tenants.exists(name) for name in (chosen[0], other)] == [True, True]


def test_deleting_an_empty_collection_is_answered_with_an_empty_list(cluster: E2eCluster, unique: str) -> None:
    deleted = delete(cluster, labelSelector=f"e2e={unique}").expect(200)
    assert (deleted["kind"], deleted["items"]) == ("TenantList", [])


def test_a_dry_run_of_a_collection_deletes_nothing(cluster: E2eCluster, tenants: Tenants, unique: str) -> None:
    name = tenants.create(labels={"e2e": unique})["metadata"]["name"]
    query: dict[str, Any] = {"labelSelector": f"e2e={unique}", "dryRun": "All"}
    deleted = delete(cluster, **query).expect(200)
    assert [item["metadata"]["name"] for item in deleted["items"]] == [name]
    assert "deletionTimestamp" not in tenants.get(name)["metadata"]


def test_the_finalizers_of_a_tenant_are_those_of_its_helmrelease(cluster: E2eCluster, tenants: Tenants) -> None:
    """Otherwise the garbage collector could not finish a deletion that it began (WIRE-D93)."""
    name = tenants.create(finalizers=[KEEP])["metadata"]["name"]
    terminating = delete(cluster, name).expect(200)["metadata"]
    path = f"/apis/helm.toolkit.fluxcd.io/v2/namespaces/{ROOT}/helmreleases/tenant-{name}"
    stored = cluster.client().get(path).expect(200)["metadata"]
    remove_finalizers(tenants, name)
    assert KEEP in stored["finalizers"]
    assert stored["deletionTimestamp"] == terminating["deletionTimestamp"]
    assert stored["uid"] == terminating["uid"]
