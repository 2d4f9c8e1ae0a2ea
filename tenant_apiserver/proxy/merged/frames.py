"""Objects in the events of merged watches, in the three forms that they have: whole, Table and
PartialObjectMetadata. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from apiserver.json import deep as deepjson
from apiserver.meta.resource import Object

INITIAL_EVENTS_END: Final = "k8s.io/initial-events-end"
_TABLE: Final = "Table"
_UID = "uid"


class Form(NamedTuple):
    """The form of the objects: their kind, and the number of cells of a Table's row."""

    kind: str = ""
    api_version: str = ""
    cells: int = 0


NO_FORM: Final = Form()
_NO_ROW: Final[tuple[Object, ...]] = ({},)


def form_of_list(document: Object) -> Form:
    kind = str(document.get("kind") or "")
    cells = len(document.get("columnDefinitions") or ())
    return Form(kind if kind == _TABLE else kind.removesuffix("List"), str(document.get("apiVersion") or ""), cells)


def form_of_object(obj: Object) -> Form:
    rows = obj.get("rows") or _NO_ROW
    return Form(str(obj.get("kind") or ""), str(obj.get("apiVersion") or ""), len(rows[0].get("cells") or ()))


def metadata_of(item: Object) -> Mapping[str, Any]:
    """The metadata of an object, of a Table's only row, or of a row. Empty for a row without its object."""
    if item.get("kind") == _TABLE:
        rows = item.get("rows") or _NO_ROW
        item = rows[0]
    if "cells" in item:
        item = item.get("object") or {}
    return item.get("metadata") or {}


def key_of(metadata: Mapping[str, Any]) -> str:
    return f"{metadata.get('namespace', '')}/{metadata.get('name', '')}"


def uid_of(metadata: Mapping[str, Any]) -> str:
    return str(metadata.get(_UID) or "")


def version_of(obj: Object) -> int:
    """The resourceVersion of an object or a bookmark, 0 without a number."""
    text = str(metadata_of(obj).get("resourceVersion") or (obj.get("metadata") or {}).get("resourceVersion") or "")
    return int(text) if text.isdecimal() else 0


def bookmark_frame(form: Form, version: int, *, ends_initial: bool) -> bytes:
    """A bookmark has nothing but its version, and the mark of the end of the initial events."""
    metadata: Object = {"resourceVersion": str(version)}
    if ends_initial:
        metadata["annotations"] = {INITIAL_EVENTS_END: "true"}
    if form.kind != _TABLE:
        return _frame("BOOKMARK", {"kind": form.kind, "apiVersion": form.api_version, "metadata": metadata})
    return _frame("BOOKMARK", _row(form, [None] * form.cells, metadata, version))


def deleted_frame(form: Form, key: str, uid: str, version: int) -> bytes:
    """The event of an object that the client may no longer see. It has no more than its identity."""
    namespace, _, name = key.partition("/")
    metadata = {"name": name, "namespace": namespace, _UID: uid, "resourceVersion": str(version)}
    metadata = {field: value for field, value in metadata.items() if value}
    if form.kind != _TABLE:
        return _frame("DELETED", {"kind": form.kind, "apiVersion": form.api_version, "metadata": metadata})
    return _frame("DELETED", _row(form, [name, *[None] * (form.cells - 1)], metadata, version))


def _row(form: Form, cells: Sequence[object], metadata: Mapping[str, Any], version: int) -> Object:
    partial = {"kind": "PartialObjectMetadata", "apiVersion": form.api_version, "metadata": metadata}
    table = {"kind": _TABLE, "apiVersion": form.api_version, "metadata": {"resourceVersion": str(version)}}
    return {**table, "columnDefinitions": None, "rows": [{"cells": cells, "object": partial}]}


def frame_of_json(type_: str, obj: bytes) -> bytes:
    return b'{"type":"' + type_.encode() + b'","object":' + obj + b"}\n"


def _frame(type_: str, obj: Object) -> bytes:
    return frame_of_json(type_, deepjson.dumps(obj))
