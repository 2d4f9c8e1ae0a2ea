"""Responses of webhooks, and the Status that kube-apiserver 1.36 returns to its caller for each."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.e2e.support.admission.webhook_server import AdmissionResponse, RawReply, Responder
from tests.e2e.support.admission.webhooks import Kind, json_patch_response


@dataclass(frozen=True, kw_only=True)
class WebhookCase:
    """`status` is returned to the caller, without kind and apiVersion.

    In it {hook} stands for the name of the webhook and UID for the uid of the request.
    """

    id: str
    kind: Kind = "Validating"
    answer: AdmissionResponse | RawReply | Responder
    status: Mapping[str, Any]
    hook: Mapping[str, Any] = field(default_factory=dict)


def _denied(message: str, *, code: int = 400, **more: Any) -> dict[str, Any]:
    text = f'admission webhook "{{hook}}" denied the request{message}'
    return {"metadata": {}, "status": "Failure", "message": text, **more, "code": code}


def _internal(message: str) -> dict[str, Any]:
    return {
        "metadata": {},
        "status": "Failure",
        "message": f"Internal error occurred: {message}",
        "reason": "InternalError",
        "details": {"causes": [{"message": message}]},
        "code": 500,
    }


def _failed_call(why: str) -> dict[str, Any]:
    return _internal(f'failed calling webhook "{{hook}}": {why}')


def _failed_to_call(why: str) -> dict[str, Any]:
    return _failed_call(f"failed to call webhook: {why}")


def _invalid_response(why: str) -> dict[str, Any]:
    return _failed_call(f"received invalid webhook response: {why}")


def _not_an_object(kind: str) -> str:
    return f"{_FIRST}json: cannot unmarshal {kind} into Go value of type {_TYPE_META}"


def _json(value: Any, status: int = 200) -> RawReply:
    return RawReply(json.dumps(value).encode(), status)


def _review(response: Any, **more: Any) -> RawReply:
    return _json({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response, **more})


def _text(status: int, text: str = "some text") -> RawReply:
    return RawReply(text.encode(), status, {"Content-Type": "text/plain"})


def _base64(content: bytes) -> str:
    return base64.b64encode(content).decode()


_TYPE_META = 'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'
_SCHEME = "pkg/util/webhook/client.go:71"
_FIRST = "couldn't get version/kind; json parse error: "
_GO_FIELD = "json: cannot unmarshal {} into Go struct field {} of type {}"
_WHOLE_STATUS = {
    "metadata": {"resourceVersion": "5"},
    "message": "no way",
    "reason": "Teapot",
    "details": {
        "name": "n",
        "group": "g",
        "kind": "k",
        "uid": "u",
        "causes": [{"reason": "r", "message": "m", "field": "f"}],
        "retryAfterSeconds": 7,
    },
    "code": 418,
}

DENIALS = (
    WebhookCase(
        id="a whole Status",
        answer={"allowed": False, "status": _WHOLE_STATUS},
        status={
            **_WHOLE_STATUS,
            "status": "Failure",
            "message": 'admission webhook "{hook}" denied the request: no way',
        },
    ),
    WebhookCase(
        id="a reason",
        answer={"allowed": False, "status": {"reason": "Because"}},
        status=_denied(": Because", reason="Because"),
    ),
    WebhookCase(id="without explanation", answer={"allowed": False}, status=_denied(" without explanation")),
    WebhookCase(id="allowed is null", answer={"allowed": None}, status=_denied(" without explanation")),
    WebhookCase(
        id="a success code",
        answer={"allowed": False, "status": {"code": 200, "status": "Success", "message": "x"}},
        status=_denied(": x"),
    ),
    WebhookCase(
        id="an invalid code",
        answer={"allowed": False, "status": {"code": 999, "message": "x"}},
        status=_denied(": x", code=999),
    ),
    WebhookCase(
        id="by a mutating webhook",
        kind="Mutating",
        answer={"allowed": False, "status": {"message": "no", "code": 403, "reason": "Forbidden"}},
        status=_denied(": no", code=403, reason="Forbidden"),
    ),
)

ANSWERS = (
    WebhookCase(
        id="another uid",
        answer={"uid": "other", "allowed": True},
        status=_invalid_response('expected response.uid="UID", got "other"'),
    ),
    WebhookCase(
        id="without kind and version",
        answer=lambda request: _json({"response": {"uid": request["uid"], "allowed": True}}),
        status=_invalid_response(
            "expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got /, Kind=",
        ),
    ),
    WebhookCase(
        id="another version",
        answer=lambda request: _review({"uid": request["uid"]}, apiVersion="admission.k8s.io/v1beta1"),
        status=_failed_to_call("converting (v1beta1.AdmissionReview) to (v1.AdmissionReview): unknown conversion"),
    ),
    WebhookCase(
        id="another kind",
        answer=_json({"apiVersion": "a.b/v1", "kind": "Pod"}),
        status=_failed_to_call(f'no kind "Pod" is registered for version "a.b/v1" in scheme "{_SCHEME}"'),
    ),
    WebhookCase(
        id="a Status",
        answer=_json({"apiVersion": "v1", "kind": "Status", "status": "Failure", "message": "hm"}),
        status=_failed_to_call("converting (v1.Status) to (v1.AdmissionReview): unknown conversion"),
    ),
    WebhookCase(id="no response", answer=_review(None), status=_invalid_response("webhook response was absent")),
    WebhookCase(
        id="allowed is a string",
        answer={"allowed": "yes"},
        status=_failed_to_call(_GO_FIELD.format("string", "AdmissionResponse.response.allowed", "bool")),
    ),
    WebhookCase(
        id="the message is a number",
        answer={"allowed": False, "status": {"message": 5}},
        status=_failed_to_call(_GO_FIELD.format("number", "Status.response.status.message", "string")),
    ),
    WebhookCase(
        id="the code is a fraction",
        answer={"allowed": False, "status": {"code": 5.5}},
        status=_failed_to_call(_GO_FIELD.format("number 5.5", "Status.response.status.code", "int32")),
    ),
    WebhookCase(
        id="the status is a string",
        answer={"allowed": False, "status": "no"},
        status=_failed_to_call(_GO_FIELD.format("string", "AdmissionResponse.response.status", "v1.Status")),
    ),
    WebhookCase(
        id="warnings are a string",
        answer={"allowed": True, "warnings": "x"},
        status=_failed_to_call(_GO_FIELD.format("string", "AdmissionResponse.response.warnings", "[]string")),
    ),
    WebhookCase(
        id="an annotation is a number",
        answer={"allowed": True, "auditAnnotations": {"a": 1}},
        status=_failed_to_call(_GO_FIELD.format("number", "AdmissionResponse.response.auditAnnotations", "string")),
    ),
    WebhookCase(
        id="the response is a string",
        answer=_review("x"),
        status=_failed_to_call(_GO_FIELD.format("string", "AdmissionReview.response", "v1.AdmissionResponse")),
    ),
    WebhookCase(
        id="an empty body",
        answer=RawReply(),
        status=_failed_to_call("0-length response with status code: 200 and content type: application/json"),
    ),
    WebhookCase(id="a string", answer=RawReply(b"hello"), status=_failed_to_call(_not_an_object("string"))),
    WebhookCase(id="a list", answer=RawReply(b"[]"), status=_failed_to_call(_not_an_object("array"))),
    WebhookCase(id="a number", answer=RawReply(b"5"), status=_failed_to_call(_not_an_object("number"))),
    WebhookCase(
        id="truncated JSON",
        answer=RawReply(b'{"kind":'),
        status=_failed_to_call(f"{_FIRST}unexpected end of JSON input"),
    ),
    WebhookCase(
        id="a patch of a validating webhook",
        answer=json_patch_response(),
        status=_invalid_response("validating webhook may not return response.patch"),
    ),
    WebhookCase(
        id="a patchType of a validating webhook",
        answer={"allowed": True, "patchType": "JSONPatch"},
        status=_invalid_response("validating webhook may not return response.patchType"),
    ),
    WebhookCase(
        id="a patch without its type",
        kind="Mutating",
        answer={"allowed": True, "patch": _base64(b"[]")},
        status=_invalid_response("webhook returned response.patch but not response.patchType"),
    ),
    WebhookCase(
        id="a patchType without a patch",
        kind="Mutating",
        answer={"allowed": True, "patchType": "JSONPatch"},
        status=_invalid_response("webhook returned response.patchType but not response.patch"),
    ),
    WebhookCase(
        id="an empty patchType",
        kind="Mutating",
        answer={**json_patch_response(), "patchType": ""},
        status=_invalid_response('webhook returned invalid response.patchType of ""'),
    ),
    WebhookCase(
        id="another patchType",
        kind="Mutating",
        answer={**json_patch_response({"op": "add", "path": "/x", "value": 1}), "patchType": "Merge"},
        status=_failed_call('unsupported patch type "Merge"'),
    ),
    WebhookCase(
        id="a patch that is not a list",
        kind="Mutating",
        answer={**json_patch_response(), "patch": _base64(b"{}")},
        status=_failed_call(
            "received undecodable patch in webhook response: "
            "json: cannot unmarshal object into Go value of type jsonpatch.Patch"
        ),
    ),
    WebhookCase(
        id="an operation that is not an object",
        kind="Mutating",
        answer={**json_patch_response(), "patch": _base64(b'["a"]')},
        status=_failed_call(
            "received undecodable patch in webhook response: "
            "json: cannot unmarshal string into Go value of type jsonpatch.Operation"
        ),
    ),
)

_CODES = {
    400: "the server rejected our request for an unknown reason",
    401: "the server has asked for the client to provide credentials",
    403: "some text",
    404: "the server could not find the requested resource",
    405: "the server does not allow this method on the requested resource",
    406: "some text",
    409: "the server reported a conflict",
    415: "some text",
    418: "the server responded with the status code 418 but did not return more information",
    422: "the server rejected our request due to an error in our request",
    429: "the server has received too many requests and has asked us to try again later",
    500: 'an error on the server ("some text") has prevented the request from succeeding',
    503: "the server is currently unable to handle the request",
    504: "the server was unable to return a response in the time allotted, but may still be processing the request",
}

CODES = (
    *(
        WebhookCase(id=f"code {code}", answer=_text(code), status=_failed_to_call(text))
        for code, text in _CODES.items()
    ),
    WebhookCase(
        id="code 500 without text",
        answer=RawReply(b'{"a": 1}', 500),
        status=_failed_to_call('an error on the server ("unknown") has prevented the request from succeeding'),
    ),
    WebhookCase(
        id="code 500 with several lines",
        answer=_text(500, 'a\n"b"'),
        status=_failed_to_call('an error on the server ("a\\n\\"b\\"") has prevented the request from succeeding'),
    ),
    WebhookCase(
        id="code 500 with a Status",
        answer=_json({"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "from it"}, 500),
        status=_failed_to_call("from it"),
    ),
)


def _patched(id: str, operation: Mapping[str, Any], why: str) -> WebhookCase:
    return WebhookCase(id=id, kind="Mutating", answer=json_patch_response(operation), status=_internal(why))


PATCHES = (
    _patched(
        "add below a missing path",
        {"op": "add", "path": "/x/y", "value": 1},
        'add operation does not apply: doc is missing path: "/x/y": missing value',
    ),
    _patched(
        "remove a missing key",
        {"op": "remove", "path": "/nope"},
        "error in remove for path: '/nope': Unable to remove nonexistent key: nope: missing value",
    ),
    _patched(
        "remove below a missing path",
        {"op": "remove", "path": "/nope/x"},
        'remove operation does not apply: doc is missing path: "/nope/x": missing value',
    ),
    _patched(
        "replace below a missing path",
        {"op": "replace", "path": "/nope/x", "value": 1},
        "replace operation does not apply: doc is missing path: /nope/x: missing value",
    ),
    _patched(
        "a failing test",
        {"op": "test", "path": "/metadata/name", "value": "c"},
        "testing value /metadata/name failed: test failed",
    ),
    _patched(
        "a test of a missing key",
        {"op": "test", "path": "/nope", "value": "c"},
        "testing value /nope failed: test failed",
    ),
    _patched(
        "a test below a missing path",
        {"op": "test", "path": "/x/q", "value": "c"},
        "test operation does not apply: is missing path: /x/q: missing value",
    ),
    _patched(
        "move a missing key",
        {"op": "move", "from": "/nope", "path": "/y"},
        "error in move for path: 'nope': Unable to remove nonexistent key: nope: missing value",
    ),
    _patched("an unknown operation", {"op": "frob", "path": "/y"}, "Unexpected kind: frob"),
    _patched(
        "an operation without a path", {"op": "add", "value": 1}, "add operation failed to decode path: missing value"
    ),
    WebhookCase(
        id="another namespace",
        kind="Mutating",
        answer=json_patch_response({"op": "replace", "path": "/metadata/namespace", "value": "kube-system"}),
        status={
            "metadata": {},
            "status": "Failure",
            "message": "the namespace of the provided object does not match the namespace sent on the request",
            "reason": "BadRequest",
            "code": 400,
        },
    ),
)

CASES = (*DENIALS, *ANSWERS, *CODES, *PATCHES)
