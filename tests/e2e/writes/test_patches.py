"""JSON and merge patches: accepted forms, effects and errors (WIRE-D68, WIRE-D80 to WIRE-D86)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.e2e.support.clusters.cluster import ROOT, E2eCluster, tenants_path
from tests.e2e.support.http.https_client import Response
from tests.e2e.support.tenants import Object, Tenants

MERGE, JSON_PATCH, STRATEGIC, APPLY = (
    "application/merge-patch+json",
    "application/json-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
)
REJECTED = "the server rejected our request due to an error in our request"


def patch(cluster: E2eCluster, name: str, body: Any, content_type: str = MERGE, **query: str) -> Response:
    path = tenants_path(ROOT, name)
    return cluster.client().request("PATCH", path, body, query=query or None, content_type=content_type)


@pytest.mark.parametrize(
    ("content_type", "body"),
    [
        pytest.param(MERGE, {"spec": {"etcd": True}}, id="merge patch"),
        pytest.param(f"{MERGE}; charset=utf-8", {"spec": {"etcd": True}}, id="with a parameter"),
        pytest.param(JSON_PATCH, [{"op": "add", "path": "/spec/etcd", "value": True}], id="JSON patch"),
        pytest.param(
            APPLY, {"apiVersion": "apps.cozystack.io/v1alpha1", "kind": "Tenant", "spec": {"etcd": True}}, id="apply"
        ),
    ],
)
def test_a_patch_changes_the_object(cluster: E2eCluster, tenants: Tenants, content_type: str, body: Any) -> None:
    name = tenants.create()["metadata"]["name"]
    query = {"fieldManager": "e2e", "force": "true"} if content_type == APPLY else {}
    assert patch(cluster, name, body, content_type, **query).expect(200)["spec"]["etcd"] is True


@pytest.mark.parametrize("content_type", ["", "application/json", "text/plain", STRATEGIC])
def test_an_unknown_patch_type_is_unsupported(cluster: E2eCluster, tenants: Tenants, content_type: str) -> None:
    tenant = tenants.create()
    status = patch(cluster, tenant["metadata"]["name"], {"spec": {"etcd": True}}, content_type).expect(415)
    assert status["reason"] == "UnsupportedMediaType"
    assert status["message"] == (
        "the body of the request was in an unknown format - accepted media types include: "
        "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml"
    )
    assert tenants.get(tenant["metadata"]["name"])["spec"] == tenant["spec"]


@pytest.mark.parametrize(
    "operation",
    [
        pytest.param({"op": "test", "path": "/spec/etcd", "value": True}, id="a failing test"),
        pytest.param({"op": "replace", "path": "/spec/none/such", "value": 1}, id="a missing path"),
        pytest.param({"op": "dance", "path": "/spec"}, id="an unknown operation"),
    ],
)
def test_a_json_patch_that_cannot_be_applied_is_unprocessable(
    cluster: E2eCluster, tenants: Tenants, operation: Object
) -> None:
    name = tenants.create()["metadata"]["name"]
    status = patch(cluster, name, [operation], JSON_PATCH).expect(422)
    assert (status["reason"], status["message"], status["details"]) == ("Invalid", REJECTED, {})


def test_a_json_patch_has_at_most_ten_thousand_operations(cluster: E2eCluster, tenants: Tenants) -> None:
    name = tenants.create()["metadata"]["name"]
    test = {"op": "test", "path": "/spec/etcd", "value": False}
    assert patch(cluster, name, [test] * 10_000, JSON_PATCH).status == 200
    status = patch(cluster, name, [test] * 10_001, JSON_PATCH).expect(413)
    assert status["message"] == (
        "Request entity too large: The allowed maximum operations in a JSON patch is 10000, got 10001"
    )


@pytest.mark.parametrize(
    ("content_type", "body"),
    [
        pytest.param(JSON_PATCH, b"{", id="a truncated JSON patch"),
        pytest.param(JSON_PATCH, b"{}", id="a JSON patch that is not a list"),
        pytest.param(MERGE, b"[", id="a truncated merge patch"),
        pytest.param(MERGE, b"[]", id="a merge patch that is not an object"),
        pytest.param(MERGE, b"5", id="a merge patch that is a number"),
    ],
)
def test_a_malformed_patch_cannot_be_decoded(
    cluster: E2eCluster, tenants: Tenants, content_type: str, body: bytes
) -> None:
    name = tenants.create()["metadata"]["name"]
    status = patch(cluster, name, body, content_type).expect(400)
    assert status["message"].startswith("error decoding patch: ")


def test_a_null_in_a_merge_patch_removes_the_field(cluster: E2eCluster, tenants: Tenants) -> None:
    tenant = tenants.create(labels={"a": "1", "b": "2"}, spec={"gateway": True, "host": ""})
    body = {"metadata": {"labels": {"a": None}}, "spec": {"gateway": None, "etcd": None}}
    patched = patch(cluster, tenant["metadata"]["name"], body).expect(200)
    assert patched["metadata"]["labels"] == {"b": "2"}
    assert "gateway" not in patched["spec"]
    assert patched["spec"]["etcd"] is False


def invalid_patch(status: Object) -> tuple[Object, str]:
    """The patched object and the error in the Status of a rejected patch."""
    assert status["reason"] == "Invalid"
    head, _, text = status["message"].partition('patch: Invalid value: "')
    assert head == ' "" is invalid: '
    decoder = json.JSONDecoder()
    patched, end = decoder.raw_decode('"' + text)
    assert {cause["field"] for cause in status["details"]["causes"]} == {"patch"}
    found: Object = json.loads(patched)
    return found, ('"' + text)[end:].removeprefix(": ")


def test_a_patch_that_results_in_an_invalid_object_is_rejected_with_the_result(
    cluster: E2eCluster, tenants: Tenants
) -> None:
    name = tenants.create()["metadata"]["name"]
    patched, problem = invalid_patch(patch(cluster, name, {"metadata": {"labels": {"a": 1}}}).expect(422))
    assert patched["metadata"]["labels"] == {"a": 1}
    assert "labels" in problem


@pytest.mark.parametrize(
    ("content_type", "body", "problem"),
    [
        pytest.param(
            MERGE,
            '{"colour": "red", "spec": {"undocumented": 1}}',
            'strict decoding error: unknown field "colour"',
            id="an unknown field in a merge patch",
        ),
        pytest.param(
            MERGE,
            '{"spec": {"etcd": true, "etcd": false}}',
            'strict decoding error: duplicate field "spec.etcd"',
            id="a duplicate field in a merge patch",
        ),
        pytest.param(
            JSON_PATCH,
            '[{"op": "add", "path": "/colour", "value": 1}, {"op": "add", "path": "/spec/undocumented", "value": 1}]',
            'strict decoding error: unknown field "colour"',
            id="an unknown field in a JSON patch",
        ),
        pytest.param(
            JSON_PATCH,
            '[{"op": "add", "path": "/spec/etcd", "value": true, "value": false}]',
            'strict decoding error: json patch duplicate field "[0].value"',
            id="a duplicate field in a JSON patch",
        ),
    ],
)
def test_a_strict_patch_is_rejected_with_the_result(
    cluster: E2eCluster, tenants: Tenants, content_type: str, body: str, problem: str
) -> None:
    name = tenants.create()["metadata"]["name"]
    patched, error = invalid_patch(patch(cluster, name, body, content_type, fieldValidation="Strict").expect(422))
    assert error == problem
    assert patched["metadata"]["name"] == name
    assert patch(cluster, name, body, content_type).warnings


def test_a_strict_apply_rejects_duplicate_yaml_keys(cluster: E2eCluster, tenants: Tenants) -> None:
    name = tenants.new_name()
    body = f"apiVersion: apps.cozystack.io/v1alpha1\nkind: Tenant\nmetadata:\n  name: {name}\nkind: Tenant\n"
    query = {"fieldManager": "e2e", "fieldValidation": "Strict"}
    status = patch(cluster, name, body, APPLY, **query).expect(400)
    assert status["message"].startswith("error strict decoding patch: ")
    assert 'line 5: key "kind" already set in map' in status["message"]


@pytest.mark.parametrize(
    ("content_type", "body"),
    [
        pytest.param(MERGE, {"spec": {"etcd": True}}, id="merge patch"),
        pytest.param(JSON_PATCH, [{"op": "add", "path": "/spec/etcd", "value": True}], id="JSON patch"),
    ],
)
def test_a_patch_of_a_missing_object_is_not_found(
    cluster: E2eCluster, unique: str, content_type: str, body: Any
) -> None:
    status = patch(cluster, unique, body, content_type).expect(404)
    assert status["details"] == {"name": unique, "group": "apps.cozystack.io", "kind": "tenants"}


@pytest.mark.parametrize("content_type", [MERGE, JSON_PATCH, APPLY])
def test_a_patch_of_an_old_version_is_a_conflict(cluster: E2eCluster, tenants: Tenants, content_type: str) -> None:
    tenant = tenants.create()
    name, version = tenant["metadata"]["name"], tenant["metadata"]["resourceVersion"]
    tenants.patch(name, {"spec": {"etcd": True}})
    metadata = {"name": name, "resourceVersion": version}
    body: Any = {"metadata": metadata}
    if content_type == JSON_PATCH:
        body = [{"op": "replace", "path": "/metadata/resourceVersion", "value": version}]
    if content_type == APPLY:
        body = {"apiVersion": tenant["apiVersion"], "kind": "Tenant", "metadata": metadata}
    query = {"fieldManager": "e2e"} if content_type == APPLY else {}
    status = patch(cluster, name, body, content_type, **query).expect(409)
    assert status["message"] == (
        f'Operation cannot be fulfilled on tenants.apps.cozystack.io "{name}": the object has been modified; '
        "please apply your changes to the latest version and try again"
    )


def test_a_json_patch_can_test_the_resource_version(cluster: E2eCluster, tenants: Tenants) -> None:
    name = tenants.create()["metadata"]["name"]
    test = {"op": "test", "path": "/metadata/resourceVersion", "value": "1"}
    patch(cluster, name, [test, {"op": "add", "path": "/spec/etcd", "value": True}], JSON_PATCH).expect(422)
    assert tenants.get(name)["spec"]["etcd"] is False


def test_an_apply_with_the_uid_of_a_missing_object_is_a_conflict(cluster: E2eCluster, tenants: Tenants) -> None:
    name, uid = tenants.new_name(), "00000000-0000-4000-8000-000000000000"
    body = {"apiVersion": "apps.cozystack.io/v1alpha1", "kind": "Tenant", "metadata": {"name": name, "uid": uid}}
    status = patch(cluster, name, body, APPLY, fieldManager="e2e").expect(409)
    assert status["message"].endswith(
        f"uid mismatch: the provided object specified uid {uid}, and no existing object was found"
    )
    assert not tenants.exists(name)
