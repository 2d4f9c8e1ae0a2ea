"""Content negotiation: headers and bytes of responses (WIRE-E7, WIRE-E9, WIRE-E16 to WIRE-E19, WIRE-E22, WIRE-J16)."""

from __future__ import annotations

import json

import pytest

from tests.e2e.support.clusters.cluster import ROOT, E2eCluster, tenants_path
from tests.e2e.support.tenants import Tenants, manifest

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
PARTIAL = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
PARTIAL_LIST = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
REVIEW = {
    "apiVersion": "authorization.k8s.io/v1",
    "kind": "SelfSubjectAccessReview",
    "spec": {"nonResourceAttributes": {"path": "/healthz", "verb": "get"}},
}
REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"


@pytest.mark.parametrize(
    ("accept", "path"),
    [
        pytest.param("application/json", tenants_path(ROOT), id="a list"),
        pytest.param(TABLE, tenants_path(ROOT), id="a table"),
        pytest.param(f"{TABLE};pretty=1", tenants_path(ROOT, "root"), id="a pretty-printed table"),
        pytest.param(PARTIAL_LIST, tenants_path(ROOT), id="a list of metadata"),
        pytest.param(PARTIAL, tenants_path(ROOT, "root"), id="the metadata of one object"),
        pytest.param("text/html", tenants_path(ROOT), id="an error"),
        pytest.param(TABLE, f"{tenants_path(ROOT)}?watch=true&timeoutSeconds=1", id="a watch of tables"),
    ],
)
def test_a_content_type_has_no_parameters(cluster: E2eCluster, accept: str, path: str) -> None:
    assert cluster.client().get(path, headers={"Accept": accept}).headers["Content-Type"] == "application/json"


@pytest.mark.parametrize(
    ("accept", "path", "message"),
    [
        pytest.param(
            PARTIAL,
            tenants_path(ROOT),
            "you requested PartialObjectMetadata, but the requested object is a list (TenantList)",
            id="a list as an object",
        ),
        pytest.param(
            PARTIAL_LIST,
            tenants_path(ROOT, "root"),
            "you requested PartialObjectMetadataList, but the requested object is not a list (Tenant)",
            id="an object as a list",
        ),
    ],
)
def test_partial_metadata_of_the_wrong_shape_is_not_acceptable(
    cluster: E2eCluster, accept: str, path: str, message: str
) -> None:
    status = cluster.client().get(path, headers={"Accept": accept}).expect(406)
    assert (status["reason"], status["message"]) == ("NotAcceptable", message)


def test_a_review_cannot_be_returned_as_a_table(cluster: E2eCluster) -> None:
    client = cluster.client()
    client.request("POST", REVIEWS, REVIEW).expect(201)
    status = client.request("POST", REVIEWS, REVIEW, headers={"Accept": TABLE}).expect(406)
    assert (status["kind"], status["reason"]) == ("Status", "NotAcceptable")
    assert status["message"].startswith(
        "only the following media types are accepted: application/json, application/yaml"
    )
    choice = {"Accept": f"{TABLE},application/json"}
    assert client.request("POST", REVIEWS, REVIEW, headers=choice).expect(201)["status"]["allowed"] is True


@pytest.mark.parametrize("content_type", ["application/vnd.kubernetes.protobuf", "application/cbor"])
@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE"])
def test_a_binary_body_is_unsupported(cluster: E2eCluster, tenants: Tenants, method: str, content_type: str) -> None:
    name = tenants.create()["metadata"]["name"]
    path = tenants_path(ROOT) if method == "POST" else tenants_path(ROOT, name)
    status = cluster.client().request(method, path, b"k8s\x00\x0a\x00", content_type=content_type).expect(415)
    assert status["reason"] == "UnsupportedMediaType"
    assert "accepted media types include: application/json, application/yaml" in status["message"]
    assert tenants.exists(name)


def test_json_is_utf_8_and_integers_stay_integers(cluster: E2eCluster, tenants: Tenants) -> None:
    note = 'Grüße, <b>"Straße"</b> & 東京 \U0001f600 \t'
    created = tenants.create(annotations={"note": note}, spec={"resourceQuotas": {"pods": 1000000}})
    raw = cluster.client().get(tenants_path(ROOT, created["metadata"]["name"])).content
    assert "東京 \U0001f600" in raw.decode()
    assert json.loads(raw)["metadata"]["annotations"]["note"] == note
    assert b'"pods":1000000' in raw


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_a_number_that_json_cannot_express_is_rejected(cluster: E2eCluster, tenants: Tenants, number: str) -> None:
    body = json.dumps(manifest(tenants.new_name(), spec={"resourceQuotas": {"pods": "@"}})).replace('"@"', number)
    assert cluster.client().request("POST", tenants_path(ROOT), body).expect(400)["reason"] == "BadRequest"


def test_a_write_can_be_answered_with_a_table_or_metadata(cluster: E2eCluster, tenants: Tenants) -> None:
    for accept, kind in ((TABLE, "Table"), (PARTIAL, "PartialObjectMetadata")):
        answer = cluster.client().request(
            "POST", tenants_path(ROOT), manifest(tenants.new_name()), headers={"Accept": accept}
        )
        assert answer.expect(201)["kind"] == kind
