from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest

from admission.matching.match_rules import single_version, target_of
from admission.webhook.admission_review import (
    AdmissionResponse,
    denial_status,
    first_supported_version,
    make_admission_review,
    parse_admission_response,
)
from admission.webhook.errors import CallFailed
from apiserver.admission import Attributes
from apiserver.request.context import User
from tests.tenant_objects import attributes, tenant

_V1 = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}


def _response_body(response: Any, **review: Any) -> bytes:
    return json.dumps({**_V1, "response": response, **review}).encode()


def _parse(body: bytes, *, version: str = "v1", mutating: bool = False) -> AdmissionResponse:
    return parse_admission_response(body, uid="u", version=version, mutating=mutating)


def _review(request: Attributes) -> dict[str, Any]:
    own = target_of(request.resource)
    found: dict[str, Any] = make_admission_review(request, own, own, uid="u", version="v1")
    return found


def test_a_review_contains_the_whole_request() -> None:
    user = User(name="bob", uid="7", groups=("a", "b"), extra={"scopes": ("x",)})
    old, new = tenant("a", spec={"host": "x"}), tenant("a", spec={"host": "y"})
    options = {"kind": "UpdateOptions", "apiVersion": "meta.k8s.io/v1"}
    kind = {"group": "apps.cozystack.io", "version": "v1alpha1", "kind": "Tenant"}
    resource = {"group": "apps.cozystack.io", "version": "v1alpha1", "resource": "tenants"}
    assert _review(attributes("UPDATE", new, old, user=user, options=options)) == {
        **_V1,
        "request": {
            "uid": "u",
            "kind": kind,
            "resource": resource,
            "requestKind": kind,
            "requestResource": resource,
            "name": "a",
            "namespace": "tenant-root",
            "operation": "UPDATE",
            "userInfo": {"username": "bob", "uid": "7", "groups": ["a", "b"], "extra": {"scopes": ["x"]}},
            "object": new,
            "oldObject": old,
            "dryRun": False,
            "options": options,
        },
    }


def test_an_absent_object_is_null_in_the_review() -> None:
    assert _review(attributes("CREATE", tenant("a")))["request"]["oldObject"] is None
    assert _review(attributes("DELETE", old=tenant("a")))["request"]["object"] is None


def test_the_review_of_a_delete_collection_has_no_name() -> None:
    request = attributes("DELETE", old=tenant("a"))
    request.context.info = dataclasses.replace(request.context.info, verb="deletecollection")
    assert "name" not in _review(request)["request"]


def test_the_review_has_the_object_in_the_version_that_matched() -> None:
    request = attributes("CREATE", tenant("a"))
    [own] = single_version(request.resource)
    other = dataclasses.replace(own, version="v2")
    review_request = make_admission_review(request, own, other, uid="u", version="v1")["request"]
    assert review_request["object"]["apiVersion"] == "apps.cozystack.io/v2"
    assert (review_request["kind"]["version"], review_request["requestKind"]["version"]) == ("v2", "v1alpha1")


@pytest.mark.parametrize(("versions", "expected"), [(["v1"], "v1"), (["v9", "v1beta1", "v1"], "v1beta1")])
def test_the_first_supported_review_version_is_used(versions: list[str], expected: str) -> None:
    assert first_supported_version(versions) == expected


def test_a_webhook_without_a_supported_review_version_fails() -> None:
    with pytest.raises(CallFailed, match="does not accept known AdmissionReview versions"):
        first_supported_version(["v2"])


def test_a_response_is_parsed() -> None:
    found = _parse(
        _response_body(
            {
                "uid": "u",
                "allowed": True,
                "patchType": "JSONPatch",
                "patch": "W10=",
                "warnings": ["w", None],
                "auditAnnotations": {"a": "b"},
                "unknown": 1,
            }
        ),
        mutating=True,
    )
    assert found == AdmissionResponse(
        True, patch=b"[]", patch_type="JSONPatch", warnings=("w",), annotations={"a": "b"}
    )


def test_a_v1beta1_response_is_not_verified() -> None:
    old = {"apiVersion": "admission.k8s.io/v1beta1"}
    body = _response_body({"uid": "other", "allowed": True, "patch": "W10="}, **old)
    assert _parse(body, version="v1beta1", mutating=True).patch_type == "JSONPatch"
    assert _parse(body, version="v1beta1").patch == b""


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"{", id="truncated"),
        pytest.param(b"\xff{}", id="not UTF-8"),
        pytest.param(b"[" * 5000, id="very deep"),
        pytest.param(b'{"a":' * 5000, id="very deep objects"),
        pytest.param(b'{"response": {"uid": "\\ud800"}}', id="a lone surrogate"),
        pytest.param(_response_body([]), id="a list"),
        pytest.param(_response_body({"uid": ["u"]}), id="a list of uids"),
        pytest.param(_response_body({"uid": "u", "allowed": 1}), id="a number for a bool"),
        pytest.param(_response_body({"uid": "u", "patch": "a"}), id="invalid base64"),
        pytest.param(_response_body({"uid": "u", "patch": "\u00e9"}), id="base64 outside ASCII"),
        pytest.param(
            _response_body({"uid": "u", "status": {"details": {"causes": [5]}}}), id="a cause that is a number"
        ),
        pytest.param(_response_body({"uid": "u", "status": {"code": True}}), id="a bool for a number"),
    ],
)
def test_a_malformed_response_is_a_failed_call(body: bytes) -> None:
    with pytest.raises(CallFailed):
        _parse(body, mutating=True)


@pytest.mark.parametrize(
    ("status", "code", "message"),
    [
        (None, 400, ' without explanation'),
        ({}, 400, " without explanation"),
        ({"message": "m", "reason": "r"}, 400, ": m"),
        ({"reason": "r"}, 400, ": r"),
        ({"code": 399}, 400, " without explanation"),
        ({"code": 404}, 404, " without explanation"),
        ({"code": 1000}, 400, " without explanation"),
    ],
)  # fmt: skip
def test_a_denial_has_the_status_of_the_webhook(status: dict[str, Any] | None, code: int, message: str) -> None:
    error = denial_status("x", status)
    assert (error.code, error.message) == (code, f'admission webhook "x" denied the request{message}')
    assert error.reason == (status or {}).get("reason", "")
    assert error.status()["metadata"] == {}


def test_details_and_metadata_of_a_denial_are_passed_on() -> None:
    error = denial_status("x", {"details": {"retryAfterSeconds": 5}, "metadata": {"continue": "c"}})
    assert error.retry_after == 5
    assert error.status()["metadata"] == {"continue": "c"}
