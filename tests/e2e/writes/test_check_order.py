"""The order of checks, which decides on the reported error, and the size limit of bodies (WIRE-D16, WIRE-D25 to
WIRE-D28, WIRE-D66)."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import pytest

from tests.e2e.support.clusters.cluster import ROOT, E2eCluster, tenants_path
from tests.e2e.support.http.https_client import Client
from tests.e2e.support.tenants import Tenants, manifest

LIMIT = 3 * 1024 * 1024
XML = "application/xml"
UNACCEPTABLE = {"Accept": "text/html"}
BAD_OPTION = {"fieldValidation": "Sometimes"}


@dataclass(frozen=True)
class BrokenRequest:
    """A request in which these parts are invalid and all others valid."""

    accept: bool = False
    option: bool = False
    content_type: bool = False
    body: bool = False
    kind: bool = False
    name: bool = False

    def send(self, client: Client, method: str, path: str, name: str, *, valid_type: str) -> int:
        body: Any = manifest("" if self.name else name)
        if self.kind:
            body["kind"] = "Pod"
        answer = client.request(
            method,
            path,
            b"{" if self.body else json.dumps(body),
            query=BAD_OPTION if self.option else None,
            headers=UNACCEPTABLE if self.accept else None,
            content_type=XML if self.content_type else valid_type,
        )
        assert answer.json()["kind"] == "Status"
        return answer.status


ALL_BROKEN = BrokenRequest(accept=True, option=True, content_type=True, body=True)


@pytest.mark.parametrize(
    ("broken", "code"),
    [
        pytest.param(ALL_BROKEN, 406, id="first the Accept header"),
        pytest.param(BrokenRequest(option=True, content_type=True, body=True), 422, id="then the options"),
        pytest.param(BrokenRequest(content_type=True, body=True), 415, id="then the content type"),
        pytest.param(BrokenRequest(body=True, name=True), 400, id="then the body"),
        pytest.param(BrokenRequest(kind=True, name=True), 400, id="then its kind"),
        pytest.param(BrokenRequest(name=True), 422, id="finally its content"),
    ],
)
def test_errors_of_a_create_are_reported_in_order(
    cluster: E2eCluster, unique: str, broken: BrokenRequest, code: int
) -> None:
    path = tenants_path(ROOT)
    assert broken.send(cluster.client(), "POST", path, unique, valid_type="application/json") == code


@pytest.mark.parametrize(
    ("broken", "code"),
    [
        pytest.param(ALL_BROKEN, 406, id="first the Accept header"),
        pytest.param(BrokenRequest(option=True, content_type=True, body=True), 422, id="then the options"),
        pytest.param(BrokenRequest(content_type=True, body=True), 415, id="then the content type"),
        pytest.param(BrokenRequest(kind=True, name=True), 400, id="then the kind"),
        pytest.param(BrokenRequest(name=True), 400, id="then the name"),
        pytest.param(BrokenRequest(), 404, id="finally the existence of the object"),
    ],
)
def test_errors_of_an_update_are_reported_in_order(
    cluster: E2eCluster, unique: str, broken: BrokenRequest, code: int
) -> None:
    path = tenants_path(ROOT, unique)
    assert broken.send(cluster.client(), "PUT", path, unique, valid_type="application/json") == code


@pytest.mark.parametrize(
    ("broken", "code"),
    [
        pytest.param(ALL_BROKEN, 415, id="first the content type"),
        pytest.param(BrokenRequest(option=True, body=True), 422, id="then the options"),
        pytest.param(BrokenRequest(body=True), 400, id="then the patch"),
        pytest.param(BrokenRequest(), 404, id="finally the existence of the object"),
    ],
)
def test_errors_of_a_patch_are_reported_in_order(
    cluster: E2eCluster, unique: str, broken: BrokenRequest, code: int
) -> None:
    path = tenants_path(ROOT, unique)
    assert broken.send(cluster.client(), "PATCH", path, unique, valid_type="application/merge-patch+json") == code


def test_delete_options_are_checked_before_the_object(cluster: E2eCluster, unique: str) -> None:
    path = tenants_path(ROOT, unique)
    client = cluster.client()
    client.request("DELETE", path, query={"propagationPolicy": "Sometimes"}).expect(422)
    client.request("DELETE", path).expect(404)


@pytest.mark.parametrize(
    ("method", "path", "code"),
    [
        pytest.param("POST", f"{tenants_path(ROOT)}x", 404, id="an unknown resource"),
        pytest.param("PUT", tenants_path(ROOT), 405, id="an unsupported method of a path"),
        pytest.param("PUT", tenants_path(ROOT, "root", "status"), 405, id="an unsupported verb of a subresource"),
    ],
)
def test_routing_is_checked_before_anything_in_the_request(
    cluster: E2eCluster, method: str, path: str, code: int
) -> None:
    assert ALL_BROKEN.send(cluster.client(), method, path, "root", valid_type=XML) == code


def test_authorization_is_checked_before_routing(cluster: E2eCluster, unique: str) -> None:
    for path in (f"{tenants_path(ROOT)}x", tenants_path(ROOT, "root", "scale")):
        assert ALL_BROKEN.send(cluster.client(unique), "PUT", path, "root", valid_type=XML) == 403


def padded(body: dict[str, Any], size: int) -> bytes:
    return json.dumps(body).encode().ljust(size)


def test_a_body_of_three_mebibytes_is_accepted(cluster: E2eCluster, tenants: Tenants) -> None:
    client, name = cluster.direct_client(), tenants.new_name()
    client.request("POST", tenants_path(ROOT), padded(manifest(name), LIMIT)).expect(201)
    path = tenants_path(ROOT, name)
    wanted = padded(manifest(name, spec={"etcd": True}), LIMIT)
    assert client.request("PUT", path, wanted).expect(200)["spec"]["etcd"] is True
    patch = padded({"spec": {"etcd": False}}, LIMIT)
    client.request("PATCH", path, patch, content_type="application/merge-patch+json").expect(200)
    client.request("DELETE", path, padded({"kind": "DeleteOptions", "apiVersion": "v1"}, LIMIT)).expect(200)


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_a_body_one_byte_over_the_limit_is_rejected(cluster: E2eCluster, tenants: Tenants, method: str) -> None:
    name = tenants.create()["metadata"]["name"]
    path = tenants_path(ROOT) if method == "POST" else tenants_path(ROOT, name)
    kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
    # the aggregator would close the connection while the rejected body is being sent
    status = (
        cluster.direct_client().request(method, path, padded(manifest(name), LIMIT + 1), content_type=kind).expect(413)
    )
    assert status["message"] == "Request entity too large: limit is 3145728"
    assert tenants.exists(name)


def test_a_body_of_an_unknown_content_type_is_not_read(cluster: E2eCluster) -> None:
    cluster.direct_client().request("POST", tenants_path(ROOT), b"x" * (LIMIT + 1), content_type=XML).expect(415)


def test_a_chunked_body_is_limited_too(cluster: E2eCluster) -> None:
    head = {"Transfer-Encoding": "chunked", "Content-Type": "application/json"}
    chunk = b"x" * 0x10000
    chunks = b"".join([b"10000\r\n" + chunk + b"\r\n"] * 49) + b"0\r\n\r\n"
    answer = cluster.direct_client().request("POST", tenants_path(ROOT), chunks, headers=head, content_type="")
    assert answer.expect(413)["reason"] == "RequestEntityTooLarge"


def test_an_unsupported_verb_is_not_allowed(cluster: E2eCluster, tenants: Tenants) -> None:
    path = tenants_path(ROOT, tenants.create()["metadata"]["name"], "status")
    for method in ("PUT", "PATCH", "DELETE", "POST"):
        status = cluster.client().request(method, path, {}, content_type="application/merge-patch+json").expect(405)
        assert (status["reason"], status["status"]) == ("MethodNotAllowed", "Failure")
