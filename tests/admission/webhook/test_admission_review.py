from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest

from admission.matching.match_rules import single_version, target_of
from admission.webhook.admission_review import Verdict, denial, review_of, verdict_of, version_of
from admission.webhook.errors import CallFailed
from apiserver.admission import Attributes
from apiserver.request.context import User
from tests.tenant_objects import attributes, tenant

_V1 = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}


def _answer(response: Any, **review: Any) -> bytes:
    return json.dumps({**_V1, "response": response, **review}).encode()


def _verdict(body: bytes, *, version: str = "v1", mutating: bool = False) -> Verdict:
    return verdict_of(body, uid="u", version=version, mutating=mutating)


def _asked(request: Attributes) -> dict[str, Any]:
    own = target_of(request.resource)
    found: dict[str, Any] = review_of(request, own, own, uid="u", version="v1")
    return found


def test_a_request_is_told_whole() -> None:
    user = User(name="bob", uid="7", groups=("a", "b"), extra={"scopes": ("x",)})
    old, new = tenant("a", spec={"host": "x"}), tenant("a", spec={"host": "y"})
    options = {"kind": "UpdateOptions", "apiVersion": "meta.k8s.io/v1"}
    kind = {"group": "apps.cozystack.io", "version": "v1alpha1", "kind": "Tenant"}
    resource = {"group": "apps.cozystack.io", "version": "v1alpha1", "resource": "tenants"}
    assert _asked(attributes("UPDATE", new, old, user=user, options=options)) == {
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


def test_what_there_is_not_is_null() -> None:
    assert _asked(attributes("CREATE", tenant("a")))["request"]["oldObject"] is None
    assert _asked(attributes("DELETE", old=tenant("a")))["request"]["object"] is None


def test_whoever_deletes_a_collection_names_nothing() -> None:
    request = attributes("DELETE", old=tenant("a"))
    request.context.info = dataclasses.replace(request.context.info, verb="deletecollection")
    assert "name" not in _asked(request)["request"]


def test_the_object_comes_in_the_version_that_matched() -> None:
    request = attributes("CREATE", tenant("a"))
    [own] = single_version(request.resource)
    other = dataclasses.replace(own, version="v2")
    asked = review_of(request, own, other, uid="u", version="v1")["request"]
    assert asked["object"]["apiVersion"] == "apps.cozystack.io/v2"
    assert (asked["kind"]["version"], asked["requestKind"]["version"]) == ("v2", "v1alpha1")


@pytest.mark.parametrize(("versions", "expected"), [(["v1"], "v1"), (["v9", "v1beta1", "v1"], "v1beta1")])
def test_the_first_known_version_is_spoken(versions: list[str], expected: str) -> None:
    assert version_of(versions) == expected


def test_who_speaks_none_cannot_be_asked() -> None:
    with pytest.raises(CallFailed, match="does not accept known AdmissionReview versions"):
        version_of(["v2"])


def test_an_answer_is_taken_as_it_is() -> None:
    found = _verdict(
        _answer(
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
    assert found == Verdict(True, patch=b"[]", patch_type="JSONPatch", warnings=("w",), annotations={"a": "b"})


def test_nothing_of_older_reviews_is_verified() -> None:
    old = {"apiVersion": "admission.k8s.io/v1beta1"}
    body = _answer({"uid": "other", "allowed": True, "patch": "W10="}, **old)
    assert _verdict(body, version="v1beta1", mutating=True).patch_type == "JSONPatch"
    assert _verdict(body, version="v1beta1").patch == b""


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"{", id="half"),
        pytest.param(b"\xff{}", id="no text"),
        pytest.param(b"[" * 5000, id="very deep"),
        pytest.param(b'{"a":' * 5000, id="very deep objects"),
        pytest.param(b'{"response": {"uid": "\\ud800"}}', id="half a character"),
        pytest.param(_answer([]), id="a list"),
        pytest.param(_answer({"uid": ["u"]}), id="a list of uids"),
        pytest.param(_answer({"uid": "u", "allowed": 1}), id="one is not true"),
        pytest.param(_answer({"uid": "u", "patch": "a"}), id="no base64"),
        pytest.param(_answer({"uid": "u", "patch": "\u00e9"}), id="no ASCII"),
        pytest.param(_answer({"uid": "u", "status": {"details": {"causes": [5]}}}), id="a cause that is none"),
        pytest.param(_answer({"uid": "u", "status": {"code": True}}), id="true is no code"),
    ],
)
def test_whatever_comes_is_an_answer_or_a_failure(body: bytes) -> None:
    with pytest.raises(CallFailed):
        _verdict(body, mutating=True)


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
def test_a_refusal_is_the_webhook_s_own(status: dict[str, Any] | None, code: int, message: str) -> None:
    refused = denial("x", status)
    assert (refused.code, refused.message) == (code, f'admission webhook "x" denied the request{message}')
    assert refused.reason == (status or {}).get("reason", "")
    assert refused.status()["metadata"] == {}


def test_details_and_metadata_are_passed_on() -> None:
    refused = denial("x", {"details": {"retryAfterSeconds": 5}, "metadata": {"continue": "c"}})
    assert refused.retry_after == 5
    assert refused.status()["metadata"] == {"continue": "c"}
