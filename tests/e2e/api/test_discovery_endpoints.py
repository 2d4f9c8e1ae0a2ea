"""Discovery and OpenAPI as clients see them, through the aggregator if there is one."""

from __future__ import annotations

import pytest

from tests.e2e.support.clusters.cluster import AGGREGATED_DISCOVERY, GROUP_VERSION, PATIENCE, E2eCluster
from tests.e2e.support.clusters.kube import KubeCluster
from tests.e2e.support.http.https_client import Response
from tests.e2e.support.tenants import Tenants


def test_kubectl_lists_the_resource(cluster: E2eCluster) -> None:
    listed = cluster.kubectl("api-resources", "--api-group=apps.cozystack.io", "--no-headers").stdout
    # other tests define applications
    [row] = [line.split() for line in listed.splitlines() if line.startswith("tenants ")]
    assert row[-3:] == ["apps.cozystack.io/v1alpha1", "true", "Tenant"]


def test_kubectl_lists_the_version(cluster: E2eCluster) -> None:
    assert "apps.cozystack.io/v1alpha1" in cluster.kubectl("api-versions").stdout.splitlines()


def test_legacy_discovery_names_the_verbs(cluster: E2eCluster) -> None:
    document = cluster.client().get(GROUP_VERSION).expect(200)
    assert (document["kind"], document["groupVersion"]) == ("APIResourceList", "apps.cozystack.io/v1alpha1")
    resources = {each["name"]: each for each in document["resources"]}
    expected = {"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"}
    assert set(resources["tenants"]["verbs"]) == expected
    assert set(resources["tenants/status"]["verbs"]) == {"get"}
    assert resources["tenants"]["namespaced"] is True


def test_aggregated_discovery_has_the_resource(cluster: E2eCluster) -> None:
    answer = cluster.client().get("/apis", headers={"Accept": AGGREGATED_DISCOVERY})
    document = answer.expect(200)
    assert document["kind"] == "APIGroupDiscoveryList"
    groups = {group["metadata"]["name"]: group for group in document["items"]}
    versions = {each["version"]: each for each in groups["apps.cozystack.io"]["versions"]}
    # other tests define applications, which a kube-apiserver shows for up to a minute after their deletion
    assert "tenants" in {each["resource"] for each in versions["v1alpha1"]["resources"]}


def test_discovery_is_revalidated_by_etag(cluster: E2eCluster) -> None:
    client = cluster.client()

    def revalidated() -> Response | None:
        first = client.get("/apis", headers={"Accept": AGGREGATED_DISCOVERY})
        first.expect(200)
        again = client.get("/apis", headers={"Accept": AGGREGATED_DISCOVERY, "If-None-Match": first.headers["ETag"]})
        return again if again.status != 200 or again.headers["ETag"] == first.headers["ETag"] else None

    # discovery may change between the requests, while kinds of another test come or go
    again = cluster.wait_until("two requests find the same discovery", revalidated)
    assert (again.status, again.body) == (304, b"")


def test_the_group_names_its_preferred_version(cluster: E2eCluster) -> None:
    group = cluster.client().get("/apis/apps.cozystack.io").expect(200)
    assert group["kind"] == "APIGroup"
    assert group["preferredVersion"]["groupVersion"] == "apps.cozystack.io/v1alpha1"


def test_the_group_is_served_with_a_trailing_slash(kube: KubeCluster) -> None:
    assert kube.direct_client().get("/apis/apps.cozystack.io/").expect(200)["kind"] == "APIGroup"


def test_the_version_is_numeric(cluster: E2eCluster) -> None:
    version = cluster.client().get("/version").expect(200)
    assert version["major"].isdigit()
    assert version["minor"].isdigit()


def test_explain_shows_the_fields_of_the_spec(cluster: E2eCluster) -> None:
    text = cluster.kubectl("explain", "tenant.spec").stdout
    for field in ("host", "etcd", "gateway", "ingress", "monitoring", "resourceQuotas", "schedulingClass"):
        assert f"  {field}\t" in text


def test_explain_recursive_shows_the_whole_tree(cluster: E2eCluster) -> None:
    text = cluster.kubectl("explain", "tenant", "--recursive").stdout
    assert "GROUP:      apps.cozystack.io" in text
    for field in ("ownerReferences", "resourceQuotas", "conditions", "lastTransitionTime"):
        assert f"{field}\t" in text


def test_openapi_v3_is_served_for_the_group_version(cluster: E2eCluster) -> None:
    index = cluster.client().get("/openapi/v3").expect(200)
    url = index["paths"]["apis/apps.cozystack.io/v1alpha1"]["serverRelativeURL"]
    document = cluster.client().get(url).expect(200)
    assert document["openapi"].startswith("3.0")
    assert f"{GROUP_VERSION}/namespaces/{{namespace}}/tenants" in document["paths"]


def test_the_aggregator_merges_openapi_v2(kube: KubeCluster) -> None:
    def is_merged() -> bool:
        document = kube.client().get("/openapi/v2").expect(200)
        return any(path.startswith(GROUP_VERSION) for path in document["paths"])

    kube.wait_until("our paths are in the aggregator's /openapi/v2", is_merged, seconds=2 * PATIENCE)


def test_our_own_openapi_v2_is_swagger(kube: KubeCluster) -> None:
    document = kube.direct_client().get("/openapi/v2").expect(200)
    assert document["swagger"] == "2.0"
    assert f"{GROUP_VERSION}/namespaces/{{namespace}}/tenants/{{name}}" in document["paths"]


@pytest.mark.parametrize(
    "form", ["tenants", "tenant", "tenants.apps.cozystack.io", "tenants.v1alpha1.apps.cozystack.io"]
)
def test_kubectl_finds_the_resource_by_every_name(cluster: E2eCluster, tenants: Tenants, form: str) -> None:
    name = tenants.create()["metadata"]["name"]
    shown = cluster.kubectl("get", form, name, "-n", "tenant-root", "-o", "name").stdout
    assert shown == f"tenant.apps.cozystack.io/{name}\n"
