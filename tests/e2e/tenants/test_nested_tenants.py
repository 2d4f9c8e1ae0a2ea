"""Nested Tenants: their namespaces, inherited settings, permissions and stored form."""

from __future__ import annotations

from tests.e2e.support.clusters.cluster import ROOT, ROOT_HOST, E2eCluster, tenants_path
from tests.e2e.support.tenants import Tenants, manifest


def test_namespaces_are_named_after_the_path(cluster: E2eCluster, tenants: Tenants) -> None:
    first = tenants.create_with_namespace()
    second = tenants.create_with_namespace(first)
    third = tenants.create(second)
    assert second.startswith(f"{first}-")
    assert third["status"]["namespace"] == f"{second}-{third['metadata']['name']}"


def test_a_namespace_carries_the_labels_of_all_ancestors(cluster: E2eCluster, tenants: Tenants) -> None:
    first = tenants.create_with_namespace()
    second = tenants.create_with_namespace(first)
    labels = cluster.client().get(f"/api/v1/namespaces/{second}").expect(200)["metadata"]["labels"]
    ancestors = {key.removeprefix("tenant.cozystack.io/") for key in labels if key.startswith("tenant.cozystack.io/")}
    assert ancestors == {ROOT, first, second}


def test_a_namespace_is_owned_by_the_parents_namespace(cluster: E2eCluster, tenants: Tenants) -> None:
    client = cluster.client()
    first = tenants.create_with_namespace()
    second = tenants.create_with_namespace(first)
    parent = client.get(f"/api/v1/namespaces/{first}").expect(200)["metadata"]["uid"]
    [owner] = client.get(f"/api/v1/namespaces/{second}").expect(200)["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"], owner["uid"]) == ("Namespace", first, parent)


def test_an_empty_host_is_derived_from_the_parents_host(cluster: E2eCluster, tenants: Tenants) -> None:
    name = tenants.create()["metadata"]["name"]
    labels = tenants.wait_for_namespace(f"tenant-{name}")["metadata"]["labels"]
    assert labels["namespace.cozystack.io/host"] == f"{name}.{ROOT_HOST}"


def test_an_explicit_host_is_inherited_by_children(cluster: E2eCluster, tenants: Tenants) -> None:
    name = tenants.new_name()
    body = manifest(name, spec={"host": f"{name}.example.com"})
    cluster.client().request("POST", tenants_path(ROOT), body).expect(201)
    tenants.wait_for_namespace(f"tenant-{name}")
    child = tenants.create(f"tenant-{name}")
    labels = tenants.wait_for_namespace(child["status"]["namespace"])["metadata"]["labels"]
    assert labels["namespace.cozystack.io/host"] == f"{child['metadata']['name']}.{name}.example.com"


def test_a_tenant_cannot_be_created_outside_a_tenant_namespace(cluster: E2eCluster, unique: str) -> None:
    answer = cluster.client().request("POST", tenants_path("default"), manifest(unique, "default"))
    assert answer.status in (403, 422)
    assert "tenant" in answer.json()["message"]


def test_creating_a_tenant_in_a_missing_namespace_is_not_found(cluster: E2eCluster, unique: str) -> None:
    namespace = f"missing-{unique}"
    answer = cluster.client().request("POST", tenants_path(namespace), manifest(unique, namespace))
    assert answer.expect(404)["message"] == f'namespaces "{namespace}" not found'


def test_a_tenant_administrator_creates_child_tenants(cluster: E2eCluster, tenants: Tenants, unique: str) -> None:
    workload = tenants.create_with_namespace()
    cluster.grant(unique, "cozy:tenant:admin", workload)
    user = cluster.client(unique)
    user.request("POST", tenants_path(workload), manifest(tenants.new_name(workload), workload)).expect(201)
    user.request("POST", tenants_path(ROOT), manifest(unique)).expect(403)
    # the list of all namespaces shows only visible Tenants, once our server has seen the binding, too
    for path in (tenants_path(workload), tenants_path()):
        tenants.wait("one Tenant is listed", lambda path=path: len(user.get(path).expect(200)["items"]) == 1)


def test_a_viewer_cannot_create_tenants(cluster: E2eCluster, tenants: Tenants, unique: str) -> None:
    workload = tenants.create_with_namespace()
    cluster.grant(unique, "cozy:tenant:view", workload)
    user = cluster.client(unique)
    user.get(tenants_path(workload)).expect(200)
    user.request("POST", tenants_path(workload), manifest(unique, workload)).expect(403)


def test_a_tenant_is_stored_as_a_cozystack_helmrelease(cluster: E2eCluster, tenants: Tenants) -> None:
    tenant = tenants.create(labels={"team": "x"}, spec={"etcd": True})
    name = tenant["metadata"]["name"]
    path = f"/apis/helm.toolkit.fluxcd.io/v2/namespaces/{ROOT}/helmreleases/tenant-{name}"
    release = cluster.client().get(path).expect(200)
    assert release["metadata"]["uid"] == tenant["metadata"]["uid"]
    assert (
        release["metadata"]["labels"].items()
        >= {
            "apps.cozystack.io/application.kind": "Tenant",
            "apps.cozystack.io/application.group": "apps.cozystack.io",
            "apps.cozystack.io/application.name": name,
            "sharding.fluxcd.io/key": "tenants",
            "apps.cozystack.io-team": "x",
        }.items()
    )
    assert release["spec"]["values"]["etcd"] is True
    assert release["spec"]["chartRef"] == {
        "kind": "ExternalArtifact",
        "name": "cozystack-tenant-application-default-tenant",
        "namespace": "cozy-system",
    }


def test_foreign_fields_of_the_helmrelease_are_preserved(cluster: E2eCluster, tenants: Tenants) -> None:
    name = tenants.create()["metadata"]["name"]
    path = f"/apis/helm.toolkit.fluxcd.io/v2/namespaces/{ROOT}/helmreleases/tenant-{name}"
    foreign = {
        "metadata": {"labels": {"example.org/foreign": "kept"}, "annotations": {"example.org/note": "kept"}},
        "spec": {"suspend": True, "values": {"unknown": {"deep": 1}}},
    }
    kind = "application/merge-patch+json"
    cluster.client().request("PATCH", path, foreign, content_type=kind).expect(200)
    tenants.patch(name, {"spec": {"etcd": True}, "metadata": {"labels": {"mine": "1"}}})
    release = cluster.client().get(path).expect(200)
    assert release["metadata"]["labels"]["example.org/foreign"] == "kept"
    assert release["metadata"]["annotations"]["example.org/note"] == "kept"
    assert release["spec"]["suspend"] is True
    assert release["spec"]["values"]["unknown"] == {"deep": 1}
    assert release["spec"]["values"]["etcd"] is True
    shown = tenants.get(name)
    assert shown["spec"]["unknown"] == {"deep": 1}
    assert "example.org/foreign" not in shown["metadata"]["labels"]


def test_a_helmrelease_created_by_others_is_served_as_a_tenant(cluster: E2eCluster, tenants: Tenants) -> None:
    name = tenants.new_name()
    labels = {
        "apps.cozystack.io/application.kind": "Tenant",
        "apps.cozystack.io/application.group": "apps.cozystack.io",
        "apps.cozystack.io/application.name": name,
    }
    release = {
        "apiVersion": "helm.toolkit.fluxcd.io/v2",
        "kind": "HelmRelease",
        "metadata": {"name": f"tenant-{name}", "namespace": ROOT, "labels": labels},
        "spec": {
            "chartRef": {"kind": "ExternalArtifact", "name": "chart", "namespace": "cozy-system"},
            "interval": "5m",
            "values": {"ingress": True},
        },
    }
    path = f"/apis/helm.toolkit.fluxcd.io/v2/namespaces/{ROOT}/helmreleases"
    cluster.client().request("POST", path, release).expect(201)
    tenants.wait("the tenant is served", lambda: tenants.exists(name))
    assert tenants.get(name)["spec"]["ingress"] is True


def test_an_unset_a_false_and_a_true_gateway_are_distinguished(cluster: E2eCluster, tenants: Tenants) -> None:
    specs: list[dict[str, bool]] = [{}, {"gateway": False}, {"gateway": True}]
    shown = [tenants.get(tenants.create(spec=spec)["metadata"]["name"])["spec"] for spec in specs]
    assert ["gateway" in spec for spec in shown] == [False, True, True]
    assert [spec.get("gateway") for spec in shown[1:]] == [False, True]


def test_generate_name_produces_valid_names(cluster: E2eCluster, tenants: Tenants) -> None:
    body = manifest("", generateName="gen")
    del body["metadata"]["name"]
    created = cluster.client().request("POST", tenants_path(ROOT), body).expect(201)
    name = created["metadata"]["name"]
    assert name.startswith("gen")
    assert created["status"]["namespace"] == f"tenant-{name}"
    cluster.client().request("DELETE", tenants_path(ROOT, name))
