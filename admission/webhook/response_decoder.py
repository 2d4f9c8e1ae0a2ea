"""Decodes a webhook's response and checks its types; errors carry the messages of Go's decoder (WIRE-H44). Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from admission.webhook.errors import CallFailed

_GROUP = "admission.k8s.io"
_VERSIONS = (f"{_GROUP}/v1", f"{_GROUP}/v1beta1")
_TYPE_META = 'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'
_SCHEME = "pkg/util/webhook/client.go:71"
_FIRST = "couldn't get version/kind; json parse error: "


@dataclass(frozen=True, slots=True)
class _Scalar:
    go: str
    python: type = str


@dataclass(frozen=True, slots=True)
class _List:
    item: _Scalar | _Struct

    @property
    def go(self) -> str:
        return f"[]{self.item.go}"


@dataclass(frozen=True, slots=True)
class _Map:
    item: _Scalar

    @property
    def go(self) -> str:
        return f"map[string]{self.item.go}"


@dataclass(frozen=True, slots=True)
class _Struct:
    go: str
    fields: Mapping[str, _Shape]

    @property
    def name(self) -> str:
        return self.go.rpartition(".")[2]


_Shape = _Scalar | _List | _Map | _Struct

_STRING, _INT32 = _Scalar("string"), _Scalar("int32", int)
_CAUSE = _Struct("v1.StatusCause", {"reason": _Scalar("v1.CauseType"), "message": _STRING, "field": _STRING})
_DETAILS = _Struct(
    "v1.StatusDetails",
    {
        **dict.fromkeys(("name", "group", "kind"), _STRING),
        "uid": _Scalar("types.UID"),
        "causes": _List(_CAUSE),
        "retryAfterSeconds": _INT32,
    },
)
_STATUS = _Struct(
    "v1.Status",
    {
        "metadata": _Struct(
            "v1.ListMeta",
            {
                **dict.fromkeys(("selfLink", "resourceVersion", "continue"), _STRING),
                "remainingItemCount": _Scalar("int64", int),
            },
        ),
        "status": _STRING,
        "message": _STRING,
        "reason": _Scalar("v1.StatusReason"),
        "details": _DETAILS,
        "code": _INT32,
    },
)


def _review(version: str) -> _Struct:
    response: dict[str, _Shape] = {
        "uid": _Scalar("types.UID"),
        "allowed": _Scalar("bool", bool),
        "status": _STATUS,
        "patch": _Scalar("[]uint8"),
        "patchType": _Scalar(f"{version}.PatchType"),
        "auditAnnotations": _Map(_STRING),
        "warnings": _List(_STRING),
    }
    return _Struct(f"{version}.AdmissionReview", {"response": _Struct(f"{version}.AdmissionResponse", response)})


def decode_review(body: bytes, version: str) -> Mapping[str, Any]:
    """Decodes an AdmissionReview; kind and apiVersion stay as received, unknown fields and nulls are dropped. Raises
    CallFailed."""
    document = _parsed(body)
    types = {name: document.get(name) or "" for name in ("apiVersion", "kind")}
    for name, value in types.items():
        if not isinstance(value, str):
            raise _failed(f"{_FIRST}json: cannot unmarshal {_kind(value)} into Go struct field .{name} of type string")
    api_version, kind = types["apiVersion"], types["kind"]
    expected = f"{_GROUP}/{version}"
    if (api_version or expected, kind or "AdmissionReview") != (expected, "AdmissionReview"):
        raise _failed(_other_kind(api_version or expected, kind or "AdmissionReview", version))
    return {**types, **_struct(document, _review(version), "")}


def _parsed(body: bytes) -> Mapping[str, Any]:
    if not body.lstrip().startswith(b"{"):
        raise _failed(f"{_FIRST}json: cannot unmarshal {_kind(_scalar(body))} into Go value of type {_TYPE_META}")
    try:
        document: Mapping[str, Any] = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        end = error.pos >= len(body.decode(errors="replace").rstrip())
        raise _failed(f"{_FIRST}{'unexpected end of JSON input' if end else error.msg}") from error
    return document


def _scalar(body: bytes) -> Any:
    """A body that is not an object, as Kubernetes' YAML decoder reads it: anything but JSON is a string."""
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        return ""


def _other_kind(api_version: str, kind: str, version: str) -> str:
    kinds = {
        ("v1", "Status"): "v1.Status",
        **{(each, "AdmissionReview"): each.rpartition("/")[2] for each in _VERSIONS},
    }
    found = kinds.get((api_version, kind))
    if found is None:
        return f'no kind "{kind}" is registered for version "{api_version}" in scheme "{_SCHEME}"'
    found = found if "." in found else f"{found}.AdmissionReview"
    return f"converting ({found}) to ({version}.AdmissionReview): unknown conversion"


def _struct(value: Mapping[str, Any], shape: _Struct, path: str) -> dict[str, Any]:
    found = {}
    for name, field in shape.fields.items():
        if (item := value.get(name)) is not None:
            inside = f"{path}.{name}" if path else name
            found[name] = _value(item, field, shape.name, inside)
    return found


def _value(value: Any, shape: _Shape, owner: str, path: str) -> Any:
    if isinstance(shape, _Struct) and isinstance(value, dict):
        return _struct(value, shape, path)
    if isinstance(shape, _List) and isinstance(value, list):
        return [_value(each, shape.item, owner, path) for each in value if each is not None]
    if isinstance(shape, _Map) and isinstance(value, dict):
        return {name: _value(each, shape.item, owner, path) for name, each in value.items() if each is not None}
    if isinstance(shape, _Scalar) and type(value) is shape.python:
        return value
    raise _failed(f"json: cannot unmarshal {_kind(value)} into Go struct field {owner}.{path} of type {shape.go}")


def _kind(value: Any) -> str:
    match value:
        case bool():
            return "bool"
        case float():
            return f"number {value}"
        case int():
            return "number"
        case str():
            return "string"
        case list():
            return "array"
    return "object"


def _failed(why: str) -> CallFailed:
    return CallFailed(f"failed to call webhook: {why}")
