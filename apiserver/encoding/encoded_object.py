"""An object in the watch cache: encoded once, as bytes that all readers share."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import orjson

from apiserver.json import deep as deepjson
from apiserver.meta.resource import Age, Key, Object, Resource

_logger = logging.getLogger(__name__)
_MANY_LABELS = 1000
_EMPTY: Mapping[str, str] = {}
_NO_BLOCKS: Mapping[str, Any] = {}
# the average number of objects in a gzip block
_OBJECTS_PER_BLOCK = 64
_OWN_FIELDS = ("apiVersion", "kind", "metadata")


class CachedObject:
    """One state of one object.

    `json` is the whole object, compact. Label selectors match `labels`; field selectors match `fields`, the name and
    the namespace. `cells` is the JSON array of the table cells, cut at each age: JSON and creation times (in seconds of
    the epoch) in turns, from `[` to `]`. The text of an age belongs at the place of its time. `starts_block` says, from
    the key alone, whether the object starts a block of a compressed list; `gzip_blocks` caches these blocks by
    `View.form` (gzip_blocks.py).
    """

    __slots__ = (
        "_metadata_end",
        "_metadata_start",
        "cells",
        "fields",
        "gzip_blocks",
        "json",
        "key",
        "labels",
        "rv",
        "starts_block",
        "uid",
    )

    def __init__(
        self,
        *,
        key: Key,
        rv: int,
        uid: str,
        labels: Mapping[str, str],
        fields: Mapping[str, str],
        json: bytes,
        cells: tuple[bytes | int, ...],
        metadata: tuple[int, int],
    ) -> None:
        self.key = key
        self.rv = rv
        self.uid = uid
        self.labels = labels
        self.fields = fields
        self.json = json
        self.cells = cells
        self._metadata_start, self._metadata_end = metadata
        self.starts_block = hash(key) % _OBJECTS_PER_BLOCK == 0
        self.gzip_blocks = _NO_BLOCKS

    def drop_gzip_blocks(self) -> None:
        """Called when this is no longer the object's current state. The event history retains the object for a while,
        and its blocks would keep neighbouring objects in memory."""
        self.gzip_blocks = _NO_BLOCKS

    @property
    def metadata(self) -> bytes:
        """The JSON of the object's metadata."""
        return self.json[self._metadata_start : self._metadata_end]

    def object(self) -> Object:
        """A freshly parsed copy, which the caller may change."""
        parsed: Object = orjson.loads(self.json)
        return parsed


def encode(
    resource: Resource, obj: Object, *, labels: Mapping[str, str] | None = None, key: Key | None = None
) -> CachedObject:
    """Encode `obj`, without keeping a reference to it. Label selectors match `labels` instead of the object's own
    labels if they are passed. `key` is for an object that lacks what its key depends on."""
    metadata = obj["metadata"]
    head = f'{{"apiVersion":"{resource.api_version}","kind":"{resource.kind}","metadata":'.encode()
    encoded = to_json(metadata)
    others = {name: value for name, value in obj.items() if name not in _OWN_FIELDS}
    tail = b"," + to_json(others)[1:] if others else b"}"
    selectable = metadata.get("labels") if labels is None else labels
    return CachedObject(
        key=key or Key(sys.intern(_namespace(resource, obj)), sys.intern(metadata.get("name") or "")),
        rv=int(metadata.get("resourceVersion") or 0),
        uid=metadata.get("uid") or "",
        labels=_interned(selectable) if selectable else _EMPTY,
        fields={name: value(obj) for name, value in resource.selectable_fields.items()}
        if resource.selectable_fields
        else _EMPTY,
        json=head + encoded + tail,
        cells=_cells(resource, obj),
        metadata=(len(head), len(head) + len(encoded)),
    )


def at_version(resource: Resource, obj: CachedObject, rv: int) -> CachedObject:
    """A copy of `obj` with another resourceVersion, as DELETED events need it (WIRE-F5, WIRE-F6)."""
    content = obj.object()
    content["metadata"]["resourceVersion"] = str(rv)
    return encode(resource, content, labels=obj.labels)


def identity_only(resource: Resource, obj: CachedObject, rv: int) -> CachedObject:
    """A copy of `obj` reduced to name, namespace and uid, with resourceVersion `rv`, for clients that may no longer
    read its content."""
    namespace = obj.key.namespace if resource.namespaced else ""
    identity = {"name": obj.key.name, "namespace": namespace, "uid": obj.uid, "resourceVersion": str(rv)}
    return encode(resource, {"metadata": {field: value for field, value in identity.items() if value}}, key=obj.key)


def to_json(value: Any) -> bytes:
    """Compact JSON."""
    try:
        return deepjson.dumps(value)
    except TypeError:
        # orjson rejects integers over 64 bits and nesting over 254 levels; both are valid JSON
        return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode(errors="replace")


def _namespace(resource: Resource, obj: Object) -> str:
    if resource.namespace_of is not None:
        return resource.namespace_of(obj)
    return obj["metadata"].get("namespace") or ""


def _interned(labels: Mapping[str, str]) -> Mapping[str, str]:
    """Many objects share few label keys and values, so equal strings are stored once. An object with very many labels
    is an exception: its labels are not interned."""
    if len(labels) > _MANY_LABELS:
        return dict(labels)
    return {sys.intern(key): sys.intern(value) for key, value in labels.items()}


def _cells(resource: Resource, obj: Object) -> tuple[bytes | int, ...]:
    metadata = obj["metadata"]
    name = metadata.get("name") or ""
    try:
        values = list(resource.cells(obj))
    except (AttributeError, IndexError, KeyError, TypeError, ValueError):
        # clients choose the object's shape; an unexpected one must not break the whole list or watch
        _logger.warning("no table cells for %s %s", resource.group_resource, name, exc_info=True)
        values = []
    width = len(resource.columns)
    values = [*values[:width], *[None] * (width - len(values))]
    if resource.replaces_default_columns:
        return _cut_at_ages(values)
    narrow = [value for value, column in zip(values, resource.columns, strict=True) if not column.priority]
    wide = [value for value, column in zip(values, resource.columns, strict=True) if column.priority]
    return _cut_at_ages([name, *narrow, Age(epoch(metadata.get("creationTimestamp"))), *wide])


def _cut_at_ages(values: Sequence[object]) -> tuple[bytes | int, ...]:
    """See `CachedObject.cells`."""
    pieces: list[bytes | int] = []
    text, begin = b"[", 0
    for at, value in enumerate(values):
        if isinstance(value, Age):
            pieces += (text + _cells_between(values, begin, at) + (b',"' if at else b'"'), value.since)
            text, begin = b'"', at + 1
    return (*pieces, text + _cells_between(values, begin, len(values)) + b"]")


def _cells_between(values: Sequence[object], begin: int, end: int) -> bytes:
    if begin == end:
        return b""
    return (b"," if begin else b"") + to_json(values[begin:end])[1:-1]


def epoch(timestamp: object) -> int:
    """A timestamp in seconds of the epoch, 0 if it cannot be parsed."""
    if not isinstance(timestamp, str):
        return 0
    try:
        return int(datetime.fromisoformat(timestamp).timestamp())
    except ValueError:
        return 0
