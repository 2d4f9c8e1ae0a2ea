"""An object as the watch cache holds it: encoded once, as bytes that every reader shares."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import groupby
from typing import Any

import orjson

from apiserver.json import deep as deepjson
from apiserver.meta.resource import Age, Key, Object, Resource

_logger = logging.getLogger(__name__)
_MANY_LABELS = 1000
_NOTHING: Mapping[str, str] = {}
_NOT_PACKED: Mapping[str, Any] = {}
# so many objects are in a block, on average
_LED = 64
_OWN_FIELDS = ("apiVersion", "kind", "metadata")


class CachedObject:
    """One state of one object.

    `json` is the whole object, compact; `labels` are what label selectors see, and `fields` what field selectors see
    besides name and namespace; `cells` are the table cells in order: since when, where a cell tells an age, and as JSON
    what stands between those. `leads` tells, by the key alone, whether a block of a compressed list begins with it, and
    `packed` keeps those blocks by the view's form (packing.py).
    """

    __slots__ = (
        "_metadata_end",
        "_metadata_start",
        "cells",
        "fields",
        "json",
        "key",
        "labels",
        "leads",
        "packed",
        "rv",
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
        self.leads = hash(key) % _LED == 0
        self.packed = _NOT_PACKED

    def forget_blocks(self) -> None:
        """When it is no longer the state at present: history keeps it for a while, and need not keep its neighbours."""
        self.packed = _NOT_PACKED

    @property
    def metadata(self) -> bytes:
        """The JSON of its metadata."""
        return self.json[self._metadata_start : self._metadata_end]

    def object(self) -> Object:
        """The object, parsed anew: the caller may change it."""
        parsed: Object = orjson.loads(self.json)
        return parsed


def encode(resource: Resource, obj: Object, *, labels: Mapping[str, str] | None = None) -> CachedObject:
    """`labels`, where given, are what selectors see in place of the object's own. `obj` is not kept."""
    metadata = obj["metadata"]
    head = f'{{"apiVersion":"{resource.api_version}","kind":"{resource.kind}","metadata":'.encode()
    encoded = to_json(metadata)
    others = {name: value for name, value in obj.items() if name not in _OWN_FIELDS}
    tail = b"," + to_json(others)[1:] if others else b"}"
    own = metadata.get("labels") if labels is None else labels
    return CachedObject(
        key=Key(sys.intern(metadata.get("namespace") or ""), metadata.get("name") or ""),
        rv=int(metadata.get("resourceVersion") or 0),
        uid=metadata.get("uid") or "",
        labels=_interned(own) if own else _NOTHING,
        fields={name: value(obj) for name, value in resource.selectable_fields.items()}
        if resource.selectable_fields
        else _NOTHING,
        json=head + encoded + tail,
        cells=_cells(resource, obj),
        metadata=(len(head), len(head) + len(encoded)),
    )


def at_version(resource: Resource, obj: CachedObject, rv: int) -> CachedObject:
    """The content of `obj` under another resourceVersion, as a deletion shows it (WIRE-F5, WIRE-F6)."""
    content = obj.object()
    content["metadata"]["resourceVersion"] = str(rv)
    return encode(resource, content, labels=obj.labels)


def bare(resource: Resource, obj: CachedObject, rv: int) -> CachedObject:
    """No more than which object it is, as at `rv`: for a reader who may no longer see what is in it."""
    identity = {"name": obj.key.name, "namespace": obj.key.namespace, "uid": obj.uid, "resourceVersion": str(rv)}
    return encode(resource, {"metadata": {field: value for field, value in identity.items() if value}})


def to_json(value: Any) -> bytes:
    """Compact JSON."""
    try:
        return deepjson.dumps(value)
    except TypeError:
        # integers over 64 bits and nesting over 254 levels are beyond orjson, not beyond JSON
        return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode(errors="replace")


def _interned(labels: Mapping[str, str]) -> Mapping[str, str]:
    """Few keys and values make up the labels of many objects: keep one string of each. Of very many, none is common."""
    if len(labels) > _MANY_LABELS:
        return dict(labels)
    return {sys.intern(key): sys.intern(value) for key, value in labels.items()}


def _cells(resource: Resource, obj: Object) -> tuple[bytes | int, ...]:
    metadata = obj["metadata"]
    name = metadata.get("name") or ""
    try:
        values = list(resource.cells(obj))
    except (AttributeError, IndexError, KeyError, TypeError, ValueError):
        # an object that clients shaped freely must not stop the stream that it comes in
        _logger.warning("no table cells for %s %s", resource.group_resource, name, exc_info=True)
        values = []
    width = len(resource.columns)
    values = [*values[:width], *[None] * (width - len(values))]
    if resource.replaces_default_columns:
        return _parts(values)
    narrow = [value for value, column in zip(values, resource.columns, strict=True) if not column.priority]
    wide = [value for value, column in zip(values, resource.columns, strict=True) if column.priority]
    return _parts([name, *narrow, Age(epoch(metadata.get("creationTimestamp"))), *wide])


def _parts(values: Sequence[object]) -> tuple[bytes | int, ...]:
    parts: list[bytes | int] = []
    for _, group in groupby(values, lambda value: isinstance(value, Age)):
        run = list(group)
        ages = [each.since for each in run if isinstance(each, Age)]
        parts += ages or [to_json(run)[1:-1]]
    return tuple(parts)


def epoch(timestamp: object) -> int:
    """A timestamp in seconds of the epoch, 0 for what is none."""
    if not isinstance(timestamp, str):
        return 0
    try:
        return int(datetime.fromisoformat(timestamp).timestamp())
    except ValueError:
        return 0
