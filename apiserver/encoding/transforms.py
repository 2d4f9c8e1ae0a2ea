"""What of an object a response shows: the whole, its metadata, or a table row. Views turn bytes into bytes."""

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
    """`now` is the time in seconds of the epoch, of which table rows tell the age."""

    @property
    def form(self) -> str:
        """Views of one resource and one form show an object in the same bytes."""
        ...

    def lasts(self, objects: Sequence[CachedObject], now: float) -> float:
        """Until when `objects` are shown in the same bytes as now, in seconds of the epoch."""
        ...

    def items(self, objects: Sequence[CachedObject], now: float) -> list[bytes]:
        """Each as an element of a list."""
        ...

    def single(self, obj: CachedObject, now: float) -> bytes:
        """The answer to a GET, and the object of a watch event."""
        ...

    def list_head(self, metadata: bytes) -> bytes:
        """A list up to its first item; its end is `]}` with every view. `metadata` is the JSON of its ListMeta."""
        ...

    def bookmark(self, metadata: bytes) -> bytes:
        """The object of a bookmark event."""
        ...

    def following(self) -> View:
        """The view of a watch's events after the first."""
        ...


@dataclass(frozen=True)
class WholeView:
    resource: Resource
    form = ""

    def lasts(self, objects: Sequence[CachedObject], now: float) -> float:
        return math.inf

    def items(self, objects: Sequence[CachedObject], now: float) -> list[bytes]:
        return [obj.json for obj in objects]

    def single(self, obj: CachedObject, now: float) -> bytes:
        return obj.json

    def list_head(self, metadata: bytes) -> bytes:
        return _list_head(self.resource.list_kind, self.resource.api_version, metadata, b"items")

    def bookmark(self, metadata: bytes) -> bytes:
        return _document(self.resource.kind, self.resource.api_version, metadata) + b"}"

    def following(self) -> View:
        return self


@dataclass(frozen=True)
class PartialView:
    """WIRE-E8. `version` is that of meta.k8s.io."""

    version: str = "v1"

    @cached_property
    def form(self) -> str:
        return f"{PARTIAL}/{self.version}"

    def lasts(self, objects: Sequence[CachedObject], now: float) -> float:
        return math.inf

    @cached_property
    def _head(self) -> bytes:
        return _document(PARTIAL, _meta(self.version), b"")

    def items(self, objects: Sequence[CachedObject], now: float) -> list[bytes]:
        head = self._head
        return [b"%b%b}" % (head, obj.metadata) for obj in objects]

    def single(self, obj: CachedObject, now: float) -> bytes:
        return self._head + obj.metadata + b"}"

    def list_head(self, metadata: bytes) -> bytes:
        return _list_head(PARTIAL_LIST, _meta(self.version), metadata, b"items")

    def bookmark(self, metadata: bytes) -> bytes:
        return self._head + metadata + b"}"

    def following(self) -> View:
        return self


@dataclass(frozen=True)
class TableView:
    """WIRE-E11 to WIRE-E15. `include` is what a row's object holds; only a watch's first event tells the columns."""

    resource: Resource
    version: str = "v1"
    include: str = "Metadata"
    with_columns: bool = True

    @cached_property
    def form(self) -> str:
        return f"{TABLE}/{self.version}/{self.include}/{self.with_columns}"

    def lasts(self, objects: Sequence[CachedObject], now: float) -> float:
        return table.lasts(objects, now)

    @cached_property
    def _partial(self) -> PartialView:
        return PartialView(self.version)

    @cached_property
    def _columns(self) -> bytes:
        return table.column_definitions(self.resource) if self.with_columns else b"null"

    def items(self, objects: Sequence[CachedObject], now: float) -> list[bytes]:
        if self.include == "Object":
            return table.rows(objects, [obj.json for obj in objects], now)
        shown = self._partial.items(objects, now) if self.include == "Metadata" else [b"null"] * len(objects)
        return table.rows(objects, shown, now)

    def single(self, obj: CachedObject, now: float) -> bytes:
        return b"".join((self.list_head(list_metadata(obj.rv)), *self.items((obj,), now), b"]}"))

    def list_head(self, metadata: bytes) -> bytes:
        return b"".join(
            (_document(TABLE, _meta(self.version), metadata), b',"columnDefinitions":', self._columns, b',"rows":[')
        )

    def bookmark(self, metadata: bytes) -> bytes:
        cells = to_json([""] * len(table.columns_of(self.resource)))
        shown = self._partial.bookmark(metadata)
        return b"".join((self.list_head(metadata), b'{"cells":', cells, b',"object":', shown, b"}]}"))

    def following(self) -> View:
        return replace(self, with_columns=False) if self.with_columns else self


def view_of(resource: Resource, media: MediaType, include: str) -> View:
    """The view that `media` asks for, of single objects and watch events. Raises BadRequest for an unknown
    `include`, NotAcceptable for a list's (WIRE-E9)."""
    if media.transform == PARTIAL_LIST:
        raise NotAcceptable(f"you requested {PARTIAL_LIST}, but the requested object is not a list ({resource.kind})")
    return _view(resource, media, include)


def list_view_of(resource: Resource, media: MediaType, include: str) -> View:
    """The view that `media` asks for, of lists. Raises as `view_of`."""
    if media.transform == PARTIAL:
        raise NotAcceptable(f"you requested {PARTIAL}, but the requested object is a list ({resource.list_kind})")
    return _view(resource, media, include)


def _view(resource: Resource, media: MediaType, include: str) -> View:
    if media.transform == TABLE:
        return TableView(resource, media.version, table.include_object(include))
    return PartialView(media.version) if media.transform else WholeView(resource)


def list_metadata(rv: int, continue_token: str = "", remaining: int | None = None) -> bytes:
    """JSON of a ListMeta (WIRE-D61)."""
    metadata: dict[str, str | int] = {"resourceVersion": str(rv)}
    if continue_token:
        metadata["continue"] = continue_token
    if remaining is not None:
        metadata["remainingItemCount"] = remaining
    return to_json(metadata)


def bookmark_metadata(rv: int, annotations: Mapping[str, str]) -> bytes:
    """JSON of a bookmark's ObjectMeta (WIRE-F16)."""
    metadata: dict[str, object] = {"resourceVersion": str(rv)}
    if annotations:
        metadata["annotations"] = annotations
    return to_json(metadata)


def _meta(version: str) -> str:
    return f"meta.k8s.io/{version}"


def _document(kind: str, api_version: str, metadata: bytes) -> bytes:
    return f'{{"kind":"{kind}","apiVersion":"{api_version}","metadata":'.encode() + metadata


def _list_head(kind: str, api_version: str, metadata: bytes, items: bytes) -> bytes:
    return _document(kind, api_version, metadata) + b',"' + items + b'":['
