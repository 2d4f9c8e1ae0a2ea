"""POST processes bodies like a kube-apiserver.

WIRE-D24, WIRE-D30 to WIRE-D34, WIRE-D36 to WIRE-D39, WIRE-D42, WIRE-D72.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.e2e.support.clusters.cluster import ROOT, E2eCluster, tenants_path
from tests.e2e.support.http.https_client import Response
from tests.e2e.support.tenants import Tenants, manifest

SECONDS = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"
UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"
ALPHABET = "bcdfghjklmnpqrstvwxz2456789"


def post(cluster: E2eCluster, body: Any, *, content_type: str = "application/json", **query: str) -> Response:
    return cluster.client().request("POST", tenants_path(ROOT), body, query=query or None, content_type=content_type)


def test_the_server_sets_identity_time_and_generation(cluster: E2eCluster, tenants: Tenants) -> None:
    metadata = tenants.create()["metadata"]
    assert re.fullmatch(UUID, metadata["uid"])
    assert re.fullmatch(SECONDS, metadata["creationTimestamp"])
    age = datetime.now(UTC) - datetime.fromisoformat(metadata["creationTimestamp"])
    assert timedelta(seconds=-2) < age < timedelta(minutes=1)
    assert metadata["generation"] == 1
    assert re.fullmatch(r"[1-9]\d*", metadata["resourceVersion"])
    assert "selfLink" not in metadata


def test_system_fields_in_a_body_are_ignored(cluster: E2eCluster, tenants: Tenants) -> None:
    past = "2001-01-01T00:00:00Z"
    claimed: dict[str, Any] = {
        "uid": "00000000-0000-4000-8000-000000000000",
        "creationTimestamp": past,
        "deletionTimestamp": past,
        "deletionGracePeriodSeconds": 5,
        "generation": 7,
        "selfLink": "/somewhere",
    }
    metadata = tenants.create(**claimed)["metadata"]
    assert metadata["uid"] != claimed["uid"]
    assert metadata["creationTimestamp"] != past
    assert metadata["generation"] == 1
    assert {"deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"}.isdisjoint(metadata)


def test_a_resource_version_in_a_new_object_is_a_bad_request(cluster: E2eCluster, tenants: Tenants) -> None:
    status = post(cluster, manifest(tenants.new_name(), resourceVersion="5")).expect(400)
    assert status["message"] == "resourceVersion should not be set on objects to be created"


def test_finalizers_and_owners_of_a_new_object_are_stored(cluster: E2eCluster, tenants: Tenants) -> None:
    root = tenants.get("root")
    owner = {"apiVersion": root["apiVersion"], "kind": "Tenant", "name": "root", "uid": root["metadata"]["uid"]}
    created = tenants.create(finalizers=["example.org/keep"], ownerReferences=[owner])
    assert created["metadata"]["finalizers"] == ["example.org/keep"]
    assert created["metadata"]["ownerReferences"] == [owner]
    tenants.patch(created["metadata"]["name"], {"metadata": {"finalizers": None}})


def test_a_body_may_omit_its_kind_and_version(cluster: E2eCluster, tenants: Tenants) -> None:
    created = post(cluster, {"metadata": {"name": tenants.new_name()}}).expect(201)
    assert (created["apiVersion"], created["kind"]) == ("apps.cozystack.io/v1alpha1", "Tenant")
    assert created["metadata"]["namespace"] == ROOT


@pytest.mark.parametrize(
    ("claimed", "message"),
    [
        pytest.param(
            {"apiVersion": "apps.cozystack.io/v1alpha1", "kind": "Pod"},
            'Pod in version "v1alpha1" cannot be handled as a Tenant: no kind "Pod" is registered for version '
            '"apps.cozystack.io/v1alpha1"',
            id="another kind",
        ),
        pytest.param(
            {"apiVersion": "apps.cozystack.io/v1", "kind": "Tenant"},
            "the API version in the data (apps.cozystack.io/v1) does not match the expected API version "
            "(apps.cozystack.io/v1alpha1)",
            id="another version",
        ),
        pytest.param(
            {"apiVersion": 1, "kind": "Tenant"},
            "the object provided is unrecognized (must be of type Tenant)",
            id="a version that is not a string",
        ),
    ],
)
def test_a_body_of_another_kind_is_rejected(
    cluster: E2eCluster, tenants: Tenants, claimed: dict[str, Any], message: str
) -> None:
    status = post(cluster, {**manifest(tenants.new_name()), **claimed}).expect(400)
    assert status["message"].startswith(message)


@pytest.mark.parametrize(
    "wrong",
    [
        pytest.param({"metadata": {"name": 5}}, id="the name"),
        pytest.param({"metadata": {"name": "x", "labels": {"a": 1}}}, id="a label"),
        pytest.param({"metadata": {"name": "x", "finalizers": "a"}}, id="finalizers"),
        pytest.param({"metadata": {"name": "x", "ownerReferences": [5]}}, id="an owner"),
        pytest.param({"metadata": []}, id="the metadata"),
    ],
)
def test_a_wrong_type_in_metadata_is_a_bad_request(cluster: E2eCluster, wrong: dict[str, Any]) -> None:
    message = post(cluster, wrong).expect(400)["message"]
    assert message.startswith('Tenant in version "v1alpha1" cannot be handled as a Tenant: ')


@pytest.mark.parametrize(
    "content_type",
    [
        pytest.param("", id="none"),
        pytest.param("application/json; charset=utf-8", id="with a parameter"),
        pytest.param("Application/JSON", id="in upper case"),
    ],
)
def test_a_body_is_json_by_default(cluster: E2eCluster, tenants: Tenants, content_type: str) -> None:
    post(cluster, manifest(tenants.new_name()), content_type=content_type).expect(201)


@pytest.mark.parametrize("content_type", ["text/yaml", "application/cbor", "text/plain", "nonsense"])
def test_an_unknown_content_type_is_unsupported(cluster: E2eCluster, tenants: Tenants, content_type: str) -> None:
    status = post(cluster, manifest(tenants.new_name()), content_type=content_type).expect(415)
    assert status["reason"] == "UnsupportedMediaType"
    assert status["message"].startswith(
        "the body of the request was in an unknown format - accepted media types include: "
        "application/json, application/yaml"
    )


def test_the_last_duplicate_key_wins_and_keys_are_case_sensitive(cluster: E2eCluster, tenants: Tenants) -> None:
    name = tenants.new_name()
    body = f"""{{"metadata": {{"name": "{name}"}},
      "spec": {{"etcd": true, "monitoring": true, "etcd": false, "Monitoring": false, "colour": "red"}}}}"""
    answer = post(cluster, body)
    spec = answer.expect(201)["spec"]
    assert (spec["etcd"], spec["monitoring"]) == (False, True)
    assert (spec["Monitoring"], spec["colour"]) == (False, "red")
    warnings = " ".join(answer.warnings)
    assert all(f'\\"spec.{field}' in warnings for field in ("etcd", "Monitoring", "colour"))


def test_integers_stay_integers(cluster: E2eCluster, tenants: Tenants) -> None:
    largest = 2**63 - 1
    quotas = {"memory": largest, "cpu": "4", "pods": 8}
    created = tenants.create(spec={"resourceQuotas": quotas})
    assert created["spec"]["resourceQuotas"] == quotas
    raw = cluster.client().get(tenants_path(ROOT, created["metadata"]["name"])).content
    assert b'"memory":9223372036854775807' in raw


def test_the_namespace_of_the_body_must_match_the_url(cluster: E2eCluster, tenants: Tenants) -> None:
    status = post(cluster, manifest(tenants.new_name(), "default")).expect(400)
    assert status["message"] == (
        "the namespace of the provided object does not match the namespace sent on the request"
    )


def test_a_create_without_a_namespace_is_not_allowed(cluster: E2eCluster, unique: str) -> None:
    status = cluster.client().request("POST", tenants_path(), manifest(unique)).expect(405)
    assert status["reason"] == "MethodNotAllowed"


def test_a_name_is_required(cluster: E2eCluster) -> None:
    status = post(cluster, {"metadata": {}}).expect(422)
    why = "Required value: name or generateName is required"
    assert f'Tenant.apps.cozystack.io "" is invalid: metadata.name: {why}' in status["message"]
    assert status["details"]["group"] == "apps.cozystack.io"
    assert "name" not in status["details"]
    assert status["details"]["causes"] == [{"reason": "FieldValueRequired", "message": why, "field": "metadata.name"}]


def test_a_generated_name_is_the_prefix_and_five_characters(cluster: E2eCluster, tenants: Tenants, unique: str) -> None:
    made = [post(cluster, {"metadata": {"generateName": unique}}).expect(201)["metadata"] for _ in range(2)]
    try:
        for metadata in made:
            assert re.fullmatch(f"{unique}[{ALPHABET}]{{5}}", metadata["name"])
            assert metadata["generateName"] == unique
        assert made[0]["name"] != made[1]["name"]
    finally:
        for metadata in made:
            cluster.client().request("DELETE", tenants_path(ROOT, metadata["name"]))


def test_a_name_takes_precedence_over_a_generated_one(cluster: E2eCluster, tenants: Tenants) -> None:
    name = tenants.new_name()
    assert post(cluster, manifest(name, generateName="other")).expect(201)["metadata"]["name"] == name


def test_a_dry_run_generates_a_name_too(cluster: E2eCluster, unique: str) -> None:
    created = post(cluster, {"metadata": {"generateName": unique}}, dryRun="All").expect(201)["metadata"]
    assert re.fullmatch(f"{unique}[{ALPHABET}]{{5}}", created["name"])
    assert created["uid"]


def test_a_generated_name_must_be_valid_for_a_tenant(cluster: E2eCluster) -> None:
    status = post(cluster, {"metadata": {"generateName": "with-dash-"}}).expect(422)
    assert {cause["field"] for cause in status["details"]["causes"]} == {"metadata.name"}
