"""Error responses: code, reason, message and details of the Status."""

from __future__ import annotations

import ssl

import pytest

from tests.e2e.support.clusters.cluster import GROUP_VERSION, ROOT, E2eCluster, tenants_path
from tests.e2e.support.http.https_client import Client, Response
from tests.e2e.support.tenants import Tenants, manifest


def assert_error(answer: Response, code: int, reason: str, message: str | None = None) -> dict[str, object]:
    """Asserts that the response is this error and returns its Status."""
    status: dict[str, object] = answer.expect(code)
    assert (status["kind"], status["apiVersion"], status["status"]) == ("Status", "v1", "Failure")
    assert (status["code"], status.get("reason")) == (code, reason)
    if message is not None:
        assert status["message"] == message
    return status


def test_not_found_names_the_missing_tenant(cluster: E2eCluster, unique: str) -> None:
    answer = cluster.client().get(tenants_path(ROOT, unique))
    status = assert_error(answer, 404, "NotFound", f'tenants.apps.cozystack.io "{unique}" not found')
    assert status["details"] == {"name": unique, "group": "apps.cozystack.io", "kind": "tenants"}


def test_creating_twice_is_already_exists(cluster: E2eCluster, tenants: Tenants) -> None:
    name = tenants.create()["metadata"]["name"]
    again = cluster.client().request("POST", tenants_path(ROOT), manifest(name))
    assert_error(again, 409, "AlreadyExists", f'tenants.apps.cozystack.io "{name}" already exists')


def test_a_stale_update_is_a_conflict(cluster: E2eCluster, tenants: Tenants) -> None:
    stale = tenants.create()
    name = stale["metadata"]["name"]
    tenants.patch(name, {"spec": {"etcd": True}})
    answer = cluster.client().request("PUT", tenants_path(ROOT, name), stale)
    status = assert_error(answer, 409, "Conflict")
    assert str(status["message"]).startswith(f'Operation cannot be fulfilled on tenants.apps.cozystack.io "{name}": ')
    assert tenants.get(name)["spec"]["etcd"] is True


def test_putting_a_missing_tenant_is_not_found(cluster: E2eCluster, unique: str) -> None:
    assert_error(cluster.client().request("PUT", tenants_path(ROOT, unique), manifest(unique)), 404, "NotFound")


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("Upper", id="upper case"),
        pytest.param("1st", id="digit first"),
        pytest.param("two-words", id="dash"),
        pytest.param("a" * 47, id="47 characters"),
        pytest.param("super", id="reserved"),
    ],
)
def test_a_bad_name_is_invalid(cluster: E2eCluster, name: str) -> None:
    status = assert_error(cluster.client().request("POST", tenants_path(ROOT), manifest(name)), 422, "Invalid")
    details = status["details"]
    assert isinstance(details, dict)
    assert {cause["field"] for cause in details["causes"]} == {"metadata.name"}


def test_the_longest_name_is_accepted(cluster: E2eCluster) -> None:
    body = manifest("a" * 46)
    created = cluster.client().request("POST", tenants_path(ROOT), body, query={"dryRun": "All"}).expect(201)
    assert created["status"]["namespace"] == f"tenant-{'a' * 46}"


def test_all_type_errors_are_reported_together(cluster: E2eCluster, tenants: Tenants) -> None:
    body = manifest(tenants.new_name(), spec={"etcd": "yes", "host": 7, "resourceQuotas": []})
    status = assert_error(cluster.client().request("POST", tenants_path(ROOT), body), 422, "Invalid")
    details = status["details"]
    assert isinstance(details, dict)
    assert {cause["field"] for cause in details["causes"]} == {"spec.etcd", "spec.host", "spec.resourceQuotas"}


def test_a_bad_quantity_is_invalid(cluster: E2eCluster, tenants: Tenants) -> None:
    body = manifest(tenants.new_name(), spec={"resourceQuotas": {"cpu": "many"}})
    assert "resourceQuotas" in str(
        assert_error(cluster.client().request("POST", tenants_path(ROOT), body), 422, "Invalid")
    )


def test_a_key_with_an_underscore_is_a_bad_request(cluster: E2eCluster, tenants: Tenants) -> None:
    body = manifest(tenants.new_name(), spec={"_cluster": {}})
    assert_error(cluster.client().request("POST", tenants_path(ROOT), body), 400, "BadRequest")


def test_the_namespace_of_the_body_must_match_the_url(cluster: E2eCluster, tenants: Tenants) -> None:
    body = manifest(tenants.new_name(), "default")
    status = assert_error(cluster.client().request("POST", tenants_path(ROOT), body), 400, "BadRequest")
    assert "namespace" in str(status["message"])


def test_forbidden_names_the_missing_permission(cluster: E2eCluster, unique: str) -> None:
    answer = cluster.client(unique).get(tenants_path(ROOT, "root"))
    status = assert_error(answer, 403, "Forbidden")
    expected = f'tenants.apps.cozystack.io "root" is forbidden: User "{unique}" cannot get resource "tenants"'
    assert str(status["message"]).startswith(expected)


def test_an_anonymous_user_is_forbidden(cluster: E2eCluster) -> None:
    anonymous = Client(cluster.url, ssl._create_unverified_context(), {})
    # a request without credentials is made by system:anonymous, which has no permission (WIRE-A2)
    assert_error(anonymous.get(tenants_path(ROOT)), 403, "Forbidden")


def test_the_status_subresource_is_read_only(cluster: E2eCluster, tenants: Tenants) -> None:
    tenant = tenants.create()
    path = tenants_path(ROOT, tenant["metadata"]["name"], "status")
    assert cluster.client().get(path).expect(200)["kind"] == "Tenant"
    assert_error(cluster.client().request("PUT", path, tenant), 405, "MethodNotAllowed")


def test_status_in_a_body_is_ignored(cluster: E2eCluster, tenants: Tenants) -> None:
    name = tenants.new_name()
    body = {**manifest(name), "status": {"namespace": "kube-system", "version": "9"}}
    created = cluster.client().request("POST", tenants_path(ROOT), body).expect(201)
    assert created["status"]["namespace"] == f"tenant-{name}"
    assert created["status"].get("version") != "9"


@pytest.mark.parametrize(
    ("method", "path", "code", "reason"),
    [
        pytest.param("GET", f"{GROUP_VERSION}/gadgets", 404, "NotFound", id="unknown resource"),
        pytest.param("GET", f"{tenants_path(ROOT, 'root')}/scale", 404, "NotFound", id="unknown subresource"),
        pytest.param("POST", tenants_path(ROOT, "root"), 405, "MethodNotAllowed", id="POST to an object"),
        pytest.param("PUT", tenants_path(ROOT), 405, "MethodNotAllowed", id="PUT to a collection"),
    ],
)
def test_a_wrong_path_or_method_is_answered_with_a_status(
    cluster: E2eCluster, method: str, path: str, code: int, reason: str
) -> None:
    body = manifest("root") if method in ("POST", "PUT") else None
    assert_error(cluster.client().request(method, path, body), code, reason)


def test_an_unsupported_accept_header_is_not_acceptable(cluster: E2eCluster) -> None:
    answer = cluster.client().get(tenants_path(ROOT), headers={"Accept": "application/vnd.kubernetes.protobuf"})
    assert answer.status == 406


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH"])
def test_an_unknown_content_type_is_unsupported(cluster: E2eCluster, tenants: Tenants, method: str) -> None:
    name = tenants.create()["metadata"]["name"]
    path = tenants_path(ROOT) if method == "POST" else tenants_path(ROOT, name)
    answer = cluster.client().request(method, path, "<tenant/>", content_type="application/xml")
    assert_error(answer, 415, "UnsupportedMediaType")


def test_a_delete_with_a_wrong_uid_precondition_is_a_conflict(cluster: E2eCluster, tenants: Tenants) -> None:
    tenant = tenants.create()
    path = tenants_path(ROOT, tenant["metadata"]["name"])
    wrong = {"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": {"uid": "somebody-else"}}
    assert_error(cluster.client().request("DELETE", path, wrong), 409, "Conflict")
    right = {**wrong, "preconditions": {"uid": tenant["metadata"]["uid"]}}
    assert cluster.client().request("DELETE", path, right).status == 200
