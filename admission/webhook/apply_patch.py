"""Applies a webhook's JSON patch, then prunes and defaults the object again (WIRE-H44, WIRE-H52). Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from admission.matching.match_rules import Target
from admission.matching.request_variables import object_as
from admission.webhook.admission_review import AdmissionResponse
from admission.webhook.errors import CallFailed
from apiserver.meta.errors import BadRequest, InternalError, RequestEntityTooLarge
from apiserver.meta.resource import Object, Resource
from apiserver.patch.json_and_merge import PatchFailed, json_patch
from apiserver.schema.pruning_and_defaulting import apply_defaults, metadata_type_error, object_schema, prune
from apiserver.serializer.decoder import decode

_UNDECODABLE = "received undecodable patch in webhook response: "
_TOKEN = re.compile(r"~[01]")


def parse_patch_operations(response: AdmissionResponse) -> Sequence[Any]:
    """The operations of a response's patch; empty without a patch. Raises CallFailed."""
    if not response.patch:
        return ()
    try:
        found = decode(response.patch, "application/json").value
    except BadRequest as error:
        raise CallFailed(_UNDECODABLE + error.message) from error
    if found is None:
        return ()
    if not isinstance(found, list):
        raise CallFailed(f"{_UNDECODABLE}json: cannot unmarshal {_kind(found)} into Go value of type jsonpatch.Patch")
    for each in found:
        if not isinstance(each, dict):
            why = f"json: cannot unmarshal {_kind(each)} into Go value of type jsonpatch.Operation"
            raise CallFailed(_UNDECODABLE + why)
    if found and response.patch_type != "JSONPatch":
        raise CallFailed(f'unsupported patch type "{response.patch_type}"')
    return found


def apply_patch(obj: Object, operations: Sequence[Any], target: Target, resource: Resource) -> Object:
    """Applies the operations to `obj` in the version of `target`; the result is in the version of `resource`. Raises
    InternalError with the messages of evanphx/json-patch, which Kubernetes uses."""
    try:
        changed = json_patch(object_as(obj, target) or {}, list(operations), replace_adds=True)
    except PatchFailed as error:
        raise InternalError(_patch_error_message(error.operation, error.document)) from error
    except (BadRequest, RequestEntityTooLarge) as error:
        raise InternalError(error.message) from error
    return _prune_and_default(changed, target, resource)


def _prune_and_default(changed: Object, target: Target, resource: Resource) -> Object:
    api_version, kind = changed.get("apiVersion") or target.api_version, changed.get("kind") or target.kind
    if (api_version, kind) != (target.api_version, target.kind):
        raise InternalError(f'no kind "{kind}" is registered for version "{api_version}"')
    if not isinstance(changed.get("metadata", {}), dict):
        raise InternalError(f"json: cannot unmarshal {_kind(changed['metadata'])} into Go struct field .metadata")
    if problem := metadata_type_error(resource, changed):
        raise InternalError(problem)
    schema = object_schema(resource)
    defaulted: Object = prune(schema, {**changed, "apiVersion": resource.api_version, "kind": resource.kind})
    defaulted.setdefault("metadata", {})
    apply_defaults(schema, defaulted)
    resource.default(defaulted)
    return defaulted


def _patch_error_message(operation: Mapping[str, Any] | None, document: Any) -> str:
    """The message for an operation that cannot be applied."""
    if operation is None:
        return "the patch makes no object"
    op = operation.get("op", "unknown")
    if op not in ("add", "remove", "replace", "move", "copy", "test"):
        return f"Unexpected kind: {op}"
    if "path" not in operation:
        return f"{op} operation failed to decode path: missing value"
    path = operation.get("from", "") if op in ("move", "copy") else operation["path"]
    *parents, key = [_TOKEN.sub(_unescaped, each) for each in path.split("/")[1:]] or [""]
    container = _container(document, parents)
    if container is None:
        return _missing_path_message(op, path)
    if op == "test":
        return f"testing value {path} failed: test failed"
    shown_path = path if op != "move" else key
    if isinstance(container, dict):
        verb = "move" if op == "move" else "remove"
        return f"error in {verb} for path: '{shown_path}': Unable to remove nonexistent key: {key}: missing value"
    return _list_error_message(op, path, shown_path, key)


def _list_error_message(op: str, path: str, shown_path: str, key: str) -> str:
    if op == "replace":
        return f"replace operation does not apply: doc is missing key: {path}: missing value"
    if re.fullmatch(r"-?[0-9]+", key):
        why = f"Unable to access invalid index: {int(key)}: invalid index referenced"
    else:
        why = f"value was not a proper array index: '{key}': strconv.Atoi: parsing \"{key}\": invalid syntax"
    return f"error in {op} for path: '{shown_path}': {why}"


def _missing_path_message(op: str, path: str) -> str:
    if op == "test":
        return f"test operation does not apply: is missing path: {path}: missing value"
    if op in ("move", "copy"):
        return f"{op} operation does not apply: doc is missing from path: {path}: missing value"
    quoted = f'"{path}"' if op in ("add", "remove") else path
    return f"{op} operation does not apply: doc is missing path: {quoted}: missing value"


def _container(document: Any, path: Sequence[str]) -> Any:
    """The object or list at `path`; None if there is neither."""
    for each in path:
        if isinstance(document, dict):
            document = document.get(each)
        elif isinstance(document, list) and each.isdigit() and int(each) < len(document):
            document = document[int(each)]
        else:
            return None
    return document if isinstance(document, dict | list) else None


def _unescaped(token: re.Match[str]) -> str:
    return "~" if token[0] == "~0" else "/"


def _kind(value: Any) -> str:
    names = {bool: "bool", int: "number", float: "number", str: "string", list: "array", dict: "object"}
    return names.get(type(value), "null")
