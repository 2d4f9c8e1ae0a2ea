"""Views of encoded objects: whole, metadata only, or as table rows. A view turns bytes into bytes without parsing."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

from apiserver.encoding import table
from apiserver.encoding.encoded_object import CachedObject, to_json
from apiserver.encoding.negotiation import MediaType
from apiserver.meta.errors import NotAcceptable
from apiserver.meta.resource import Resource

TABLE = "Table"
PARTIAL = "PartialObjectMetadata"
PARTIAL_LIST = "PartialObjectMetadataList"


class View(Protocol):
    """`now` is in seconds of the epoch; table rows compute ages from it."""

    @property
    def form(self) -> str:
        """Identifies the view among those of its resource: views with the same form produce the same bytes."""
        ...

    def unchanged_until(self, objects: Sequence[CachedObject], now: float) -> float:
        """The time, in seconds of the epoch, until which `objects` are rendered to the same bytes as now."""
        ...

    def items(self, objects: Sequence[CachedObject], now: float) -> bytes:
        """The objects as the items of a list, with commas between them."""
        ...

    def single(self, obj: CachedObject, now: float) -> bytes:
        """The object as the response to a GET, or in a watch event."""
        ...

    def list_head(self, metadata: bytes) -> bytes:
        """The bytes of a list before its first item; with every view it ends with `]}`. `metadata` is the JSON of the
        ListMeta."""
        ...

    def bookmark(self, metadata: bytes) -> bytes:
        """The object of a bookmark event."""
        ...

    def for_next_event(self) -> View:
        """The view for the next event of the same watch."""
        ...


@dataclass(frozen=True)
class WholeView:
    resource: Resource
    form = ""

    def unchanged_until(self, objects: Sequence[CachedObject], now: float) -> float:
        return math.inf

    def items(self, objects: Sequence[CachedObject], now: float) -> bytes:
        return b",".join([obj.json for obj in objects])

    def single(self, obj: CachedObject, now: float) -> bytes:
        return obj.json

    def list_head(self, metadata: bytes) -> bytes:
        return _list_head(self.resource.list_kind, self.resource.api_version, metadata, b"items")

    def bookmark(self, metadata: bytes) -> bytes:
        return _object_head(self.resource.kind, self.resource.api_version, metadata) + b"}"

    def for_next_event(self) -> View:
        return self


@dataclass(frozen=True)
class PartialView:
    """Objects as PartialObjectMetadata (WIRE-E8). `version` is the version of meta.k8s.io."""

    version: str = "v1"

    @cached_property
    def form(self) -> str:
        return f"{PARTIAL}/{self.version}"

    def unchanged_until(self, objects: Sequence[CachedObject], now: float) -> float:
        return math.inf

    @cached_property
    def head(self) -> bytes:
        """The bytes of an object before its metadata."""
        return _object_head(PARTIAL, _meta_api_version(self.version), b"")

    def items(self, objects: Sequence[CachedObject], now: float) -> bytes:
        if not objects:
            return b""
        return b"".join((self.head, (b"}," + self.head).join([obj.metadata for obj in objects]), b"}"))

    def single(self, obj: CachedObject, now: float) -> bytes:
        return self.head + obj.metadata + b"}"

    def list_head(self, metadata: bytes) -> bytes:
        return _list_head(PARTIAL_LIST, _meta_api_version(self.version), metadata, b"items")

    def bookmark(self, metadata: bytes) -> bytes:
        return self.head + metadata + b"}"

    def for_next_event(self) -> View:
        return self


@dataclass(frozen=True)
class TableView:
    """Objects as rows of a Table (WIRE-E11 to WIRE-E15). `include` is includeObject: None, Metadata or Object. In a
    watch only the first event has column definitions."""

    resource: Resource
    version: str = "v1"
    include: str = "Metadata"
    with_columns: bool = True

    @cached_property
    def form(self) -> str:
        return f"{TABLE}/{self.version}/{self.include}/{self.with_columns}"

    def unchanged_until(self, objects: Sequence[CachedObject], now: float) -> float:
        return table.unchanged_until(objects, now)

    @cached_property
    def _partial(self) -> PartialView:
        return PartialView(self.version)

    @cached_property
    def _columns(self) -> bytes:
        return table.column_definitions(self.resource) if self.with_columns else b"null"

    def items(self, objects: Sequence[CachedObject], now: float) -> bytes:
        if self.include == "Metadata":
            return table.rows(objects, [obj.metadata for obj in objects], now, around=(self._partial.head, b"}"))
        contents = [obj.json for obj in objects] if self.include == "Object" else [b"null"] * len(objects)
        return table.rows(objects, contents, now, around=(b"", b""))

    def single(self, obj: CachedObject, now: float) -> bytes:
        return b"".join((self.list_head(list_metadata(obj.rv)), self.items((obj,), now), b"]}"))

    def list_head(self, metadata: bytes) -> bytes:
        return b"".join(
            (
                _object_head(TABLE, _meta_api_version(self.version), metadata),
                b',"columnDefinitions":',
                self._columns,
                b',"rows":[',
            )
        )

    def bookmark(self, metadata: bytes) -> bytes:
        cells = to_json([""] * len(table.columns_of(self.resource)))
        row_object = self._partial.bookmark(metadata)
        return b"".join((self.list_head(metadata), b'{"cells":', cells, b',"object":', row_object, b"}]}"))

    def for_next_event(self) -> View:
        return replace(self, with_columns=False) if self.with_columns else self


def view_of(resource: Resource, media: MediaType, include: str) -> View:
    """The view of single objects and watch events for `media`. Raises BadRequest for an unknown `include`, and
    NotAcceptable for a transformation of lists (WIRE-E9)."""
    if media.transform == PARTIAL_LIST:
        raise NotAcceptable(f"you requested {PARTIAL_LIST}, but the requested object is not a list ({resource.kind})")
    return _view(resource, media, include)


def list_view_of(resource: Resource, media: MediaType, include: str) -> View:
    """The view of lists for `media`. Raises BadRequest for an unknown `include`, and NotAcceptable for a transformation
    of single objects (WIRE-E9)."""
    if media.transform == PARTIAL:
        raise NotAcceptable(f"you requested {PARTIAL}, but the requested object is a list ({resource.list_kind})")
    return _view(resource, media, include)


def _view(resource: Resource, media: MediaType, include: str) -> View:
    if media.transform == TABLE:
        return TableView(resource, media.version, table.include_object(include))
    return PartialView(media.version) if media.transform else WholeView(resource)


def list_metadata(rv: int, continue_token: str = "", remaining: int | None = None) -> bytes:
    """The JSON of a ListMeta (WIRE-D61)."""
    metadata: dict[str, str | int] = {"resourceVersion": str(rv)}
    if continue_token:
        metadata["continue"] = continue_token
    if remaining is not None:
        metadata["remainingItemCount"] = remaining
    return to_json(metadata)


def bookmark_metadata(rv: int, annotations: Mapping[str, str]) -> bytes:
    """The JSON of a bookmark's ObjectMeta (WIRE-F16)."""
    metadata: dict[str, object] = {"resourceVersion": str(rv)}
    if annotations:
        metadata["annotations"] = annotations
    return to_json(metadata)


def _meta_api_version(version: str) -> str:
    return f"meta.k8s.io/{version}"


def _object_head(kind: str, api_version: str, metadata: bytes) -> bytes:
    return f'{{"kind":"{kind}","apiVersion":"{api_version}","metadata":'.encode() + metadata


def _list_head(kind: str, api_version: str, metadata: bytes, items: bytes) -> bytes:
    return _object_head(kind, api_version, metadata) + b',"' + items + b'":['
