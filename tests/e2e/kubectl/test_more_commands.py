"""Commands of kubectl beyond those of test_verbs.py, for the rest of WIRE-J59."""

from __future__ import annotations

import json

import yaml

from tests.e2e.support.clusters.cluster import KUBECTL_PATIENCE, ROOT, E2eCluster, tenants_path
from tests.e2e.support.tenants import Object, Tenants, manifest

IN_ROOT = f"--namespace={ROOT}"


def yaml_documents(*objects: Object) -> str:
    return yaml.safe_dump_all(objects)


def test_explain_shows_every_field(cluster: E2eCluster) -> None:
    shown = cluster.kubectl("explain", "tenant.spec", "--recursive").stdout
    fields = {line.split()[0] for line in shown.splitlines() if "\t<" in line}
    assert fields >= {
        "host",
        "etcd",
        "monitoring",
        "ingress",
        "seaweedfs",
        "computeplane",
        "gateway",
        "schedulingClass",
        "resourceQuotas",
    }


def test_api_resources_lists_tenants(cluster: E2eCluster) -> None:
    shown = cluster.kubectl("api-resources", "--api-group=apps.cozystack.io", "--no-headers", "-o", "wide").stdout
    # other tests define applications
    [(_, version, namespaced, kind, verbs, *_)] = [
        row for row in map(str.split, shown.splitlines()) if row[0] == "tenants"
    ]
    assert (version, namespaced, kind) == ("apps.cozystack.io/v1alpha1", "true", "Tenant")
    assert set(verbs.split(",")) == {"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"}


def test_prune_deletes_objects_that_left_the_files(cluster: E2eCluster, tenants: Tenants, unique: str) -> None:
    first, second = (manifest(tenants.new_name(), labels={"e2e": unique}) for _ in range(2))
    flags = [
        "--prune",
        "-l",
        f"e2e={unique}",
        IN_ROOT,
        "--prune-allowlist=apps.cozystack.io/v1alpha1/Tenant",
    ]
    cluster.kubectl("apply", "-f", "-", input=yaml_documents(first, second))
    pruned = cluster.kubectl("apply", *flags, "-f", "-", input=yaml_documents(first)).stdout
    assert f"tenant.apps.cozystack.io/{second['metadata']['name']} pruned" in pruned
    tenants.wait_until_gone(tenants_path(ROOT, second["metadata"]["name"]))
    assert tenants.exists(first["metadata"]["name"])


def test_wait_for_a_condition(cluster: E2eCluster, tenants: Tenants) -> None:
    name = tenants.create()["metadata"]["name"]
    condition = {"type": "WorkloadsReady", "status": "True", "reason": "Done", "message": ""}
    condition["lastTransitionTime"] = "2026-01-01T00:00:00Z"
    path = f"/apis/helm.toolkit.fluxcd.io/v2/namespaces/{ROOT}/helmreleases/tenant-{name}/status"
    cluster.client().request(
        "PATCH", path, {"status": {"conditions": [condition]}}, content_type="application/merge-patch+json"
    ).expect(200)
    cluster.kubectl("wait", f"tenant/{name}", IN_ROOT, "--for=condition=WorkloadsReady", KUBECTL_PATIENCE)


def test_the_garbage_collector_finishes_an_orphan_deletion(cluster: E2eCluster, tenants: Tenants) -> None:
    name = tenants.create(finalizers=["example.org/keep"])["metadata"]["name"]
    cluster.kubectl("delete", "tenant", name, IN_ROOT, "--cascade=orphan", "--wait=false")
    tenants.wait(
        "the garbage collector has removed its finalizer", lambda: finalizers(tenants, name) == ["example.org/keep"]
    )
    assert "deletionTimestamp" in tenants.get(name)["metadata"]
    tenants.patch(name, {"metadata": {"finalizers": None}})
    tenants.wait_until_gone(tenants_path(ROOT, name))


def finalizers(tenants: Tenants, name: str) -> list[str]:
    found: list[str] = tenants.get(name)["metadata"]["finalizers"]
    return found


def test_replace_force_recreates_the_object(cluster: E2eCluster, tenants: Tenants) -> None:
    created = tenants.create()["metadata"]
    text = yaml.safe_dump(manifest(created["name"], spec={"monitoring": True}))
    cluster.kubectl("replace", "--force", KUBECTL_PATIENCE, "-f", "-", input=text)
    replaced = tenants.get(created["name"])
    assert replaced["metadata"]["uid"] != created["uid"]
    assert replaced["spec"]["monitoring"] is True


def test_delete_all_of_a_namespace(cluster: E2eCluster, tenants: Tenants) -> None:
    workload = tenants.create_with_namespace()
    made = [tenants.create(workload)["metadata"]["name"] for _ in range(3)]
    output = cluster.kubectl("delete", "tenants", "--all", "-n", workload, KUBECTL_PATIENCE).stdout
    assert sorted(line.split('"')[1] for line in output.splitlines()) == sorted(made)
    assert tenants.client.get(tenants_path(workload)).expect(200)["items"] == []


def test_events_shows_the_events_of_a_tenant(cluster: E2eCluster, tenants: Tenants) -> None:
    name = tenants.create()["metadata"]["name"]
    tenant = {"apiVersion": "apps.cozystack.io/v1alpha1", "kind": "Tenant", "name": name, "namespace": ROOT}
    event = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{name}.1", "namespace": ROOT},
        "involvedObject": tenant,
        "type": "Normal",
        "reason": "Tried",
        "message": f"{name} was tried",
        "lastTimestamp": "2026-01-01T00:00:00Z",
    }
    cluster.client().request("POST", f"/api/v1/namespaces/{ROOT}/events", event).expect(201)
    assert f"{name} was tried" in cluster.kubectl("events", IN_ROOT).stdout


def test_describe_shows_the_tenant(cluster: E2eCluster, tenants: Tenants) -> None:
    name = tenants.create(labels={"team": "blue"})["metadata"]["name"]
    shown = cluster.kubectl("describe", "tenant", name, IN_ROOT).stdout
    assert f"Name:         {name}" in shown
    assert "team=blue" in shown


def test_get_selects_by_name_and_sorts_its_output(cluster: E2eCluster, tenants: Tenants, unique: str) -> None:
    made = [tenants.create(labels={"e2e": unique})["metadata"]["name"] for _ in range(2)]
    chosen = cluster.kubectl(
        "get", "tenants", IN_ROOT, f"--field-selector=metadata.name={made[0]}", "-o", "name"
    ).stdout
    assert chosen == f"tenant.apps.cozystack.io/{made[0]}\n"
    rows = cluster.kubectl(
        "get", "tenants", IN_ROOT, "-l", f"e2e={unique}", "--sort-by=.metadata.name", "--no-headers", "--show-labels"
    ).stdout.splitlines()
    assert [row.split()[0] for row in rows] == sorted(made)
    assert all(row.endswith(f"e2e={unique}") for row in rows)


def test_create_save_config_stores_the_annotation_that_apply_needs(cluster: E2eCluster, tenants: Tenants) -> None:
    name = tenants.new_name()
    cluster.kubectl("create", "--save-config", "-f", "-", input=yaml_documents(manifest(name, spec={"etcd": True})))
    cluster.kubectl("apply", "-f", "-", input=yaml_documents(manifest(name)))
    shown = json.loads(cluster.kubectl("get", "tenant", name, IN_ROOT, "-o", "json").stdout)
    assert shown["spec"]["etcd"] is False
