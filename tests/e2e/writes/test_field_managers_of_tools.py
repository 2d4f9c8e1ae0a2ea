"""Field ownership as kubectl, Flux and controller-runtime use it (WIRE-G29, WIRE-G30, WIRE-G33)."""

from __future__ import annotations

import json

import yaml

from tests.e2e.support.applying import MERGE, apply, configuration, managed_fields
from tests.e2e.support.clusters.cluster import ROOT, E2eCluster, tenants_path
from tests.e2e.support.http.https_client import Response
from tests.e2e.support.tenants import Object, Tenants, manifest

JSON_PATCH = "application/json-patch+json"
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def test_kubectl_migrates_from_client_side_to_server_side_apply(cluster: E2eCluster, tenants: Tenants) -> None:
    """kubectl moves the ownership with a JSON patch of managedFields, so nothing conflicts (WIRE-G29)."""
    name = tenants.new_name()
    text = yaml.safe_dump(manifest(name, spec={"etcd": True, "monitoring": True}))
    cluster.kubectl("apply", "-f", "-", input=text)
    changed = yaml.safe_dump(manifest(name, spec={"etcd": False}))

    def migrate() -> Object | None:
        cluster.kubectl("apply", "--server-side", "-f", "-", input=changed)
        tenant = tenants.get(name)
        return tenant if ("kubectl-client-side-apply", "Update") not in managed_fields(tenant) else None

    # the JSON patch names the version that was applied: if a status is written in between, the next apply repeats it
    tenant = tenants.wait("kubectl has moved the ownership", migrate)
    assert tenant["spec"]["etcd"] is False
    # a field that client-side apply had set and the new configuration omits is removed with its owner
    assert tenant["spec"]["monitoring"] is False
    assert ("kubectl", "Apply") in managed_fields(tenant)
    again = json.loads(tenant["metadata"]["annotations"][LAST_APPLIED])
    assert again["spec"] == {"etcd": False}
    assert "serverside-applied" in cluster.kubectl("apply", "--server-side", "-f", "-", input=changed).stdout


def test_a_json_patch_moves_ownership_if_the_resource_version_matches(cluster: E2eCluster, tenants: Tenants) -> None:
    """csaupgrade of client-go and Flux send such patches (WIRE-G29, WIRE-G30)."""
    created = tenants.create(spec={"etcd": True})
    name, metadata = created["metadata"]["name"], created["metadata"]
    moved = [{**metadata["managedFields"][0], "manager": "kustomize-controller", "operation": "Apply"}]

    def move(version: str) -> Response:
        operations = [
            {"op": "replace", "path": "/metadata/managedFields", "value": moved},
            {"op": "replace", "path": "/metadata/resourceVersion", "value": version},
        ]
        path = tenants_path(ROOT, name)
        return cluster.client().request("PATCH", path, operations, content_type=JSON_PATCH)

    assert move("1").expect(409)["reason"] == "Conflict"
    tenants.wait("the patch is accepted", lambda: move(version_of(tenants, name)).status == 200)
    assert set(managed_fields(tenants.get(name))) == {("kustomize-controller", "Apply")}


def version_of(tenants: Tenants, name: str) -> str:
    version: str = tenants.get(name)["metadata"]["resourceVersion"]
    return version


def comparable(tenant: Object) -> Object:
    """The Tenant without its status and resourceVersion, both of which change when the reconciler writes."""
    metadata = {key: value for key, value in tenant["metadata"].items() if key != "resourceVersion"}
    return {**tenant, "metadata": metadata, "status": None}


def test_a_dry_run_apply_shows_flux_the_drift(cluster: E2eCluster, tenants: Tenants) -> None:
    """Flux sends a dry run, compares the result, and applies only if there is drift (WIRE-G30)."""
    name, flux = tenants.new_name(), {"force": "true"}
    config = configuration(name, metadata={"labels": {"a": "b"}}, spec={"etcd": True, "resourceQuotas": {"cpu": "1"}})
    apply(cluster, name, "kustomize-controller", config, **flux).expect(201)
    live = tenants.wait_until_settled(name)
    assert comparable(
        apply(cluster, name, "kustomize-controller", config, dryRun="All", **flux).expect(200)
    ) == comparable(live)
    tenants.patch(name, {"spec": {"etcd": False}, "metadata": {"labels": {"other": "label"}}})
    drifted = tenants.get(name)
    dry = apply(cluster, name, "kustomize-controller", config, dryRun="All", **flux).expect(200)
    assert comparable(tenants.get(name)) == comparable(drifted)
    assert dry["spec"] == live["spec"]
    assert dry["metadata"]["labels"] == {"a": "b", "other": "label"}
    applied = apply(cluster, name, "kustomize-controller", config, **flux).expect(200)
    assert applied["spec"] == dry["spec"]
    assert applied["metadata"]["labels"] == dry["metadata"]["labels"]


def test_patches_of_controller_runtime(cluster: E2eCluster, tenants: Tenants) -> None:
    """Apply with a field owner, MergeFrom with an optimistic lock, and NotFound detected by its reason (WIRE-G33)."""
    name = tenants.new_name()
    missing = cluster.client().request(
        "PATCH", tenants_path(ROOT, name), {"spec": {}}, query={"fieldManager": "manager"}, content_type=MERGE
    )
    assert missing.expect(404)["reason"] == "NotFound"
    created = apply(cluster, name, "manager", configuration(name, spec={"etcd": True}), force="true").expect(201)
    assert created["kind"] == "Tenant"

    def patch_version(version: str) -> Response:
        body = {"metadata": {"resourceVersion": version, "labels": {"a": version}}}
        path, query = tenants_path(ROOT, name), {"fieldManager": "manager"}
        return cluster.client().request("PATCH", path, body, query=query, content_type=MERGE)

    tenants.wait(
        "the patch with the current version is accepted", lambda: patch_version(version_of(tenants, name)).status == 200
    )
    before = version_of(tenants, name)
    tenants.patch(name, {"spec": {"monitoring": True}})
    assert patch_version(before).expect(409)["reason"] == "Conflict"
