"""Requirements of the aggregator and its controllers, tested at our own port (WIRE-C1 to WIRE-C20, WIRE-C30 to
WIRE-C33, WIRE-B16, WIRE-I2, WIRE-J1 to WIRE-J9)."""

from __future__ import annotations

import pytest

from tests.e2e.support.clusters.cluster import GROUP_VERSION, ROOT, E2eCluster, tenants_path
from tests.e2e.support.clusters.kube import KubeCluster
from tests.e2e.support.tenants import Tenants, manifest

FALLBACK = {"X-Remote-User": "system:kube-aggregator"}
PROBE = {"X-Remote-User": "system:kube-aggregator", "X-Remote-Group": "system:masters"}


def test_the_aggregators_availability_probe_is_authorized_by_its_group(kube: KubeCluster) -> None:
    assert kube.front_proxy_client().get(GROUP_VERSION, headers=PROBE).status == 200


def test_the_aggregator_reads_discovery_without_groups(kube: KubeCluster) -> None:
    assert kube.front_proxy_client().get(GROUP_VERSION, headers=FALLBACK).status == 200


@pytest.mark.parametrize("path", ["/openapi/v2", "/openapi/v3"])
def test_the_aggregator_reads_openapi_without_groups(kube: KubeCluster, path: str) -> None:
    aggregator = kube.front_proxy_client()
    sent = {"X-Remote-User": "system:aggregator", "Accept": "application/json"}
    first = aggregator.get(path, headers=sent)
    assert first.expect(200)["paths"]
    again = aggregator.get(path, headers={**sent, "If-None-Match": first.headers["ETag"]})
    assert (again.status, again.body) == (304, b"")


def test_the_aggregator_gets_aggregated_discovery_in_the_version_it_prefers(kube: KubeCluster) -> None:
    accepted = [
        f"application/json;g=apidiscovery.k8s.io;v={each};as=APIGroupDiscoveryList" for each in ("v2", "v2beta1")
    ]
    answer = kube.front_proxy_client().get("/apis", headers={**PROBE, "Accept": ",".join(accepted)})
    assert answer.headers["Content-Type"] == accepted[0]
    groups = [group["metadata"]["name"] for group in answer.expect(200)["items"]]
    assert groups == ["apps.cozystack.io", "core.cozystack.io", "sdn.cozystack.io"]


def test_an_ordinary_user_reads_discovery_and_openapi(cluster: E2eCluster, unique: str) -> None:
    user = cluster.direct_client(unique)
    index = user.get("/openapi/v3").expect(200)["paths"]
    document = index["apis/apps.cozystack.io/v1alpha1"]["serverRelativeURL"]
    for path in ("/apis", "/apis/apps.cozystack.io", GROUP_VERSION, "/openapi/v2", document, "/version"):
        assert user.get(path).status == 200, path
    assert user.get(tenants_path(ROOT, "root")).status == 403


def test_forwarding_headers_of_the_aggregator_are_accepted(kube: KubeCluster) -> None:
    forwarded = {"X-Forwarded-For": "192.0.2.9", "X-Forwarded-Host": "api.example.org", "X-Forwarded-Uri": "/x"}
    answer = kube.front_proxy_client().get(tenants_path(ROOT), headers={**PROBE, **forwarded})
    assert answer.status == 200


def test_the_serving_certificate_names_the_service(kube: KubeCluster) -> None:
    service = kube.client().get("/apis/apiregistration.k8s.io/v1/apiservices/v1alpha1.apps.cozystack.io").expect(200)
    assert service["spec"]["caBundle"]
    assert not service["spec"].get("insecureSkipTLSVerify")
    conditions = {each["type"]: each for each in service["status"]["conditions"]}
    assert conditions["Available"]["message"] == "all checks passed"


@pytest.mark.parametrize(
    "path",
    [
        pytest.param("/apis/", id="group list with a trailing slash"),
        pytest.param("/apis/apps.cozystack.io/", id="group with a trailing slash"),
        pytest.param(f"{GROUP_VERSION}/", id="version with a trailing slash"),
        pytest.param("/openapi/v3/", id="OpenAPI with a trailing slash"),
        pytest.param("/openapi/v3/apis/apps.cozystack.io/v1alpha1?hash=OLD", id="outdated hash of an OpenAPI document"),
        pytest.param("//apis", id="two leading slashes"),
        pytest.param(f"{GROUP_VERSION}/namespaces/tenant-root/tenants/", id="collection with a trailing slash"),
    ],
)
def test_no_path_is_redirected(cluster: E2eCluster, path: str) -> None:
    answer = cluster.direct_client().get(path)
    assert not 300 <= answer.status < 400
    assert "Location" not in answer.headers


@pytest.mark.parametrize("resource", ["tenants", "tenants/status", "tenants/diff", "tenants/explain"])
def test_exactly_the_verbs_in_discovery_are_served(cluster: E2eCluster, resource: str) -> None:
    document = cluster.direct_client().get(GROUP_VERSION).expect(200)
    verbs = {each["name"]: set(each["verbs"]) for each in document["resources"]}
    assert verbs["tenants"] >= {"create", "delete", "deletecollection", "list", "watch"}
    assert verbs["tenants/status"] == {"get"}
    probes = {
        "get": ("GET", "/x"),
        "update": ("PUT", "/x"),
        "patch": ("PATCH", "/x"),
        "delete": ("DELETE", "/x"),
    }
    suffix = resource.removeprefix("tenants")
    for verb, (method, name) in probes.items():
        answer = cluster.direct_client().request(method, f"{tenants_path(ROOT)}{name}{suffix}", {})
        assert (answer.status == 405) is (verb not in verbs[resource]), (verb, answer.status)


def test_the_root_path_lists_all_paths(cluster: E2eCluster) -> None:
    paths = cluster.direct_client().get("/").expect(200)["paths"]
    assert paths == sorted(paths)
    assert {"/apis", GROUP_VERSION, "/healthz", "/metrics", "/openapi/v3", "/version"} <= set(paths)


@pytest.mark.parametrize("path", ["/nothing", "/apis/unknown.example.org", "/debug/pprof"])
def test_an_unknown_path_answers_404_with_all_paths(cluster: E2eCluster, path: str) -> None:
    answer = cluster.direct_client().get(path)
    assert "/apis" in answer.expect(404)["paths"]
    assert answer.headers["Content-Type"] == "application/json"


@pytest.mark.parametrize(
    "segment",
    [
        pytest.param("%ff", id="invalid UTF-8"),
        pytest.param("%", id="incomplete escape"),
        pytest.param("%zz", id="not hexadecimal"),
        pytest.param("%2e%2e", id="two dots"),
        pytest.param("a%2Fb", id="a slash"),
        pytest.param("%00", id="a null byte"),
    ],
)
@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
def test_malformed_escapes_in_a_path_are_a_client_error(cluster: E2eCluster, method: str, segment: str) -> None:
    answer = cluster.direct_client().request(method, f"{tenants_path(ROOT)}/{segment}", {})
    assert 400 <= answer.status < 500
    assert answer.json()["kind"] == "Status"


@pytest.mark.parametrize("method", ["HEAD", "OPTIONS", "TRACE"])
def test_other_methods_are_not_allowed(cluster: E2eCluster, method: str) -> None:
    answer = cluster.direct_client().request(method, tenants_path(ROOT))
    assert answer.status == 405
    if method != "HEAD":
        assert answer.json()["reason"] == "MethodNotAllowed"


def test_an_unauthorized_user_cannot_find_out_which_paths_exist(cluster: E2eCluster, unique: str) -> None:
    """All users may list every kind, and discovery names them."""
    user = cluster.client(unique)
    for method, path in (("GET", f"{GROUP_VERSION}/namespaces/{ROOT}/nothing/x"), ("PUT", tenants_path(ROOT))):
        assert user.request(method, path, {}).status == 403
        assert cluster.direct_client().request(method, path, {}).status in (404, 405)


def test_no_response_names_the_server_program(cluster: E2eCluster) -> None:
    answer = cluster.direct_client().get(GROUP_VERSION)
    assert "Server" not in answer.headers
    assert answer.headers["Date"]


def test_a_tenant_can_be_created_again_after_its_deletion(cluster: E2eCluster, tenants: Tenants) -> None:
    client, name = cluster.client(), tenants.new_name()
    created = client.request("POST", tenants_path(ROOT), manifest(name)).expect(201)
    assert (created["apiVersion"], created["kind"]) == ("apps.cozystack.io/v1alpha1", "Tenant")
    listed = client.get(tenants_path(ROOT)).expect(200)
    assert name in [each["metadata"]["name"] for each in listed["items"]]
    assert client.request("DELETE", tenants_path(ROOT, name)).status == 200
    tenants.wait_until_gone(tenants_path(ROOT, name))
    client.request("POST", tenants_path(ROOT), manifest(name)).expect(201)


def test_openapi_declares_no_selectable_fields(cluster: E2eCluster) -> None:
    document = cluster.direct_client().get("/openapi/v3/apis/apps.cozystack.io/v1alpha1")
    assert b"x-kubernetes-selectable-fields" not in document.content
    rejected = cluster.direct_client().get(tenants_path(ROOT), query={"fieldSelector": "spec.host=x"})
    assert "is not a known field selector" in rejected.expect(400)["message"]


def test_a_field_selector_without_a_field_is_the_clients_error(cluster: E2eCluster, unique: str) -> None:
    """The cluster finds a SubjectAccessReview with it invalid."""
    rejected = cluster.client(unique).get(tenants_path(ROOT), query={"fieldSelector": "=x"})
    assert rejected.expect(400)["message"].startswith('"" is not a known field selector')
