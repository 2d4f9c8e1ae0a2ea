"""JSON patch (RFC 6902) and merge patch (RFC 7396). Neither modifies its arguments (WIRE-D82, WIRE-D83)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import jsonpatch
import jsonpointer

from apiserver.json.values import MAX_OBJECT_NESTING, deep_copy, equal, nests_deeper_than, own_text
from apiserver.meta.errors import BadRequest, RequestEntityTooLarge, StatusError
from apiserver.meta.resource import Object

_MAX_OPERATIONS = 10_000
# Limits of the values, and of their characters, that the copy operations of one patch create: a patch that copies its
# own copies doubles them each time, and long text is multiplied. An object cannot have more values.
_MAX_COPIED_VALUES = 20_000
_MAX_COPIED_TEXT = 3 * 1024 * 1024
_OPERANDS = {
    "add": ("value",),
    "remove": (),
    "replace": ("value",),
    "move": ("from",),
    "copy": ("from",),
    "test": ("value",),
}


class PatchFailed(StatusError):
    """An operation cannot be applied, or a test fails. `operation` is None if no single operation is the cause."""

    def __init__(self, operation: Mapping[str, Any] | None = None, document: Any = None) -> None:
        text = "the server rejected our request due to an error in our request"
        super().__init__(422, "Invalid", text, details={})
        self.operation = operation
        self.document = document
        """The document before the operation, None if unknown."""


def merge_patch(obj: Any, patch: Any) -> Any:
    """Merges `patch` into `obj`: null removes a field, any value but an object replaces. Shares unchanged parts with
    `obj`.

    Raises BadRequest for a patch that nests too deeply.
    """
    if nests_deeper_than(patch, MAX_OBJECT_NESTING):
        raise BadRequest(f"error decoding patch: nested too deeply: more than {MAX_OBJECT_NESTING} levels")
    return _merge(obj, patch)


def _merge(obj: Any, patch: Any) -> Any:
    if not isinstance(patch, dict):
        return deep_copy(patch)
    merged = dict(obj) if isinstance(obj, dict) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = _merge(merged.get(key), value)
    return merged


def json_patch(obj: Object, operations: Any, *, replace_adds: bool = False) -> Object:
    """Applies `operations` to a copy of `obj`. With `replace_adds`, a replace operation may add a missing member of an
    object, as in the library that Kubernetes uses.

    Raises BadRequest for an invalid patch, RequestEntityTooLarge for more than 10,000 operations, and PatchFailed.
    """
    document: Any = deep_copy(obj)
    copied = text = 0
    operation: dict[str, Any] | None = None
    try:
        for operation in _validated(operations):
            if operation["op"] == "test":
                if not equal(_resolve(document, operation["path"]), operation["value"]):
                    raise PatchFailed(operation, document)
                continue
            if operation["op"] == "copy":
                for value in _all_values(_resolve(document, operation["from"])):
                    copied += 1
                    text += own_text(value)
                if copied > _MAX_COPIED_VALUES or text > _MAX_COPIED_TEXT:
                    raise PatchFailed
            if operation["op"] == "replace" and replace_adds and _is_new_member(document, operation["path"]):
                operation = {**operation, "op": "add"}
            step: list[Any] = [deep_copy(operation)]
            document = jsonpatch.JsonPatch(step).apply(document, in_place=True)
    except (jsonpatch.JsonPatchException, jsonpointer.JsonPointerException, LookupError, TypeError) as error:
        raise PatchFailed(operation, document) from error
    except RecursionError as error:
        # several operations together can nest the document deeper than each of them nests
        raise PatchFailed from error
    if not isinstance(document, dict) or nests_deeper_than(document, MAX_OBJECT_NESTING):
        raise PatchFailed
    return document


def _validated(operations: Any) -> list[dict[str, Any]]:
    """Returns the operations if all are complete. As in Go, anything but a list of objects is a BadRequest, and an
    incomplete operation raises PatchFailed."""
    if not isinstance(operations, list):
        raise _malformed("a JSON patch must be a list of operations")
    if len(operations) > _MAX_OPERATIONS:
        limit = f"The allowed maximum operations in a JSON patch is {_MAX_OPERATIONS}, got {len(operations)}"
        raise RequestEntityTooLarge(limit)
    for index, operation in enumerate(operations):
        if not isinstance(operation, dict):
            raise _malformed(f"operation {index} must be an object")
        if not all(isinstance(operation.get(key, ""), str) for key in ("op", "path", "from")):
            raise _malformed(f"op, path and from of operation {index} must be strings")
        operands = _OPERANDS.get(operation.get("op", ""))
        if operands is None or not all(key in operation for key in ("path", *operands)):
            raise PatchFailed(operation)
        if nests_deeper_than(operation, MAX_OBJECT_NESTING):
            raise _malformed(f"operation {index} is nested too deeply: more than {MAX_OBJECT_NESTING} levels")
    return operations


def _is_new_member(document: Any, path: str) -> bool:
    parent, _, name = path.rpartition("/")
    found = jsonpointer.JsonPointer(parent).resolve(document, None)
    return isinstance(found, dict) and jsonpointer.unescape(name) not in found


def _resolve(document: Any, pointer: str) -> Any:
    return jsonpointer.JsonPointer(pointer).resolve(document)


def _all_values(value: Any) -> Iterator[Any]:
    pending = [value]
    while pending:
        each = pending.pop()
        yield each
        if isinstance(each, dict):
            pending.extend(each.values())
        elif isinstance(each, list):
            pending.extend(each)


def _malformed(why: str) -> BadRequest:
    return BadRequest(f"error decoding patch: {why}")
