"""Writes responses: documents, objects, lists and errors in the negotiated format (WIRE-D21, WIRE-D73, WIRE-E1 to
WIRE-E22)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from aiohttp import web
from isal import isal_zlib

from apiserver.encoding.encoded_object import CachedObject, encode, to_json
from apiserver.encoding.gzip_blocks import LEVEL, gzip_list
from apiserver.encoding.list_formats import ListFormat, indented, indented_list, to_yaml, yaml_list
from apiserver.encoding.negotiation import JSON, YAML, MediaType, negotiate
from apiserver.encoding.offload import run_in_thread
from apiserver.encoding.transforms import View, list_metadata, view_of
from apiserver.json.values import MAX_OBJECT_NESTING
from apiserver.meta.errors import NotAcceptable, StatusError
from apiserver.meta.resource import Object, Resource
from apiserver.request.bytes_in_flight import Reservation
from apiserver.request.context import RequestContext
from apiserver.storage.pagination import Page

_GZIP_BYTES = 128 * 1024
_GZIP_HEADERS = {"Content-Encoding": "gzip", "Vary": "Accept-Encoding"}
# the wbits argument of zlib for a gzip header
_GZIP_WINDOW = 31
_SLOW_BYTES = 64 * 1024
_PIECE_BYTES = 256 * 1024
# objects whose bytes are added up in one step
_COUNTED = 100
# of JSON, which are converted in one call of a thread
_REWRITTEN_BYTES = 64 * 1024
# Reserved at most for what is converted in one call: half of a user's share.
_MAX_REWRITTEN_BYTES = 8 * 1024 * 1024
_BEFORE_LINES = (b",", b"{", b"[", b"}", b"]")
_PRETTY_AGENTS = ("curl", "Wget", "Mozilla/5.0")
_TRUE = ("1", "t", "T", "TRUE", "true", "True")


def json_response(
    context: RequestContext,
    document: Any,
    *,
    code: int = 200,
    headers: Mapping[str, str] | None = None,
    indent: bool = False,
) -> web.Response:
    """`document` as JSON, indented if `indent` is set or the client is a human's: curl, wget or a browser
    (WIRE-D73)."""
    body = _json(context, document, indent=indent)
    return web.Response(body=body, status=code, headers={**(headers or {}), "Content-Type": JSON})


def _json(context: RequestContext, document: Any, *, indent: bool) -> bytes:
    body = to_json(document)
    return indented(body) if indent or is_pretty_requested(context) else body + b"\n"


def status_response(context: RequestContext, error: StatusError) -> web.Response:
    """The Status of `error`, as JSON or YAML, never transformed (WIRE-D21). It is large if it quotes a large value."""
    headers = {"Retry-After": str(error.retry_after)} if error.retry_after else {}
    if error.code == 403:
        headers["X-Content-Type-Options"] = "nosniff"
    try:
        media = negotiate(context.http.headers.get("Accept", ""))
    except NotAcceptable:
        media = MediaType()
    if media.type == YAML:
        return _response(to_yaml(to_json(error.status())), error.code, {**headers, "Content-Type": YAML})
    body = _json(context, error.status(), indent=media.pretty)
    return _response(body, error.code, {**headers, "Content-Type": JSON})


def object_response(
    context: RequestContext, resource: Resource, obj: Object, *, code: int = 200, media: MediaType
) -> web.Response:
    """The response to a write. Raises NotAcceptable for a transformation of lists (WIRE-E9), and BadRequest for an
    invalid includeObject (WIRE-E14)."""
    return cached_object_response(context, resource, encode(resource, obj), code=code, media=media)


def cached_object_response(
    context: RequestContext, resource: Resource, obj: CachedObject, *, code: int = 200, media: MediaType
) -> web.Response:
    """As `object_response`, but reuses the encoded bytes of a cached object."""
    view = view_of(resource, media, context.query.get("includeObject"))
    body = view.single(obj, time.time())
    return _respond(context, [body], len(body), media, code)


class LargeResponse(web.Response):
    """A response that occupies about `memory` bytes while it is sent. A body that is an iterator is produced
    meanwhile."""

    def __init__(
        self, *, body: AsyncIterator[bytes] | bytes, memory: int, status: int, headers: Mapping[str, str]
    ) -> None:
        super().__init__(body=body, status=status, headers=headers)
        self.memory = memory


def _response(body: bytes, code: int, headers: Mapping[str, str]) -> web.Response:
    size = len(body)
    if size < _SLOW_BYTES:
        return web.Response(body=body, status=code, headers=headers)
    content = body if size <= _PIECE_BYTES else _sliced(body)
    return LargeResponse(body=content, memory=size, status=code, headers=headers)


async def _sliced(body: bytes) -> AsyncIterator[bytes]:
    """The slices of `body`, which would be copied to be sent as a whole."""
    for start in range(0, len(body), _PIECE_BYTES):
        yield body[start : start + _PIECE_BYTES]


async def send_large(context: RequestContext, response: LargeResponse) -> None:
    """Sends the response now, and counts its memory as that of the request: a client that reads it slowly occupies it.
    Raises TooManyRequests, and sends nothing."""
    context.reservation.add(response.memory)
    await response.prepare(context.http)
    await response.write_eof()


def list_response(context: RequestContext, view: View, page: Page, *, media: MediaType) -> web.Response:
    """A list. A long one is streamed: the items' bytes are joined, or converted, while they are sent."""
    metadata = list_metadata(page.resource_version, page.continue_token, page.remaining)
    size = _size_at_least(page.items)
    now = time.time()
    rewritten = _rewriter(context, media) is not None
    if size > _GZIP_BYTES and _accepts_gzip(context) and not rewritten:
        compressed = gzip_list(view, page.items, metadata, now)
        headers = {"Content-Type": media.type, **_GZIP_HEADERS}
        return LargeResponse(body=compressed, memory=_GZIP_BYTES, status=200, headers=headers)
    if size >= _SLOW_BYTES and rewritten:
        form = (yaml_list if media.type == YAML else indented_list)(view.list_head(metadata))
        stream = _rewritten_list(context.reservation, form, view, page.items, now)
        return _stream(context, stream, media, 200, size=size, memory=0)
    if size <= _PIECE_BYTES:
        return _respond(context, _list_pieces(view, [page.items], metadata, now), size, media, 200)
    pieces = _list_pieces(view, _chunks(page.items, _PIECE_BYTES), metadata, now)
    # one piece is in memory at a time, of which the last object can be of any size
    memory = _PIECE_BYTES + max(map(len, [obj.json for obj in page.items]))
    return _stream(context, _streamed(pieces), media, 200, size=size, memory=memory)


def _size_at_least(items: Sequence[CachedObject]) -> int:
    """A lower bound of the list's size in bytes; it stops counting above _PIECE_BYTES."""
    size = 0
    for start in range(0, len(items), _COUNTED):
        size += sum(map(len, [obj.json for obj in items[start : start + _COUNTED]]))
        if size > _PIECE_BYTES:
            break
    return size


def _list_pieces(view: View, runs: Iterable[Sequence[CachedObject]], metadata: bytes, now: float) -> Iterator[bytes]:
    yield view.list_head(metadata)
    separator = b""
    for run in runs:
        yield separator + view.items(run, now)
        separator = b","
    yield b"]}"


async def _rewritten_list(
    reservation: Reservation, form: ListFormat, view: View, items: Sequence[CachedObject], now: float
) -> AsyncIterator[bytes]:
    yield form.head
    separator = b""
    for run in _chunks(items, _REWRITTEN_BYTES):
        content = [view.items((each,), now) for each in run]
        async with reservation.held(_rewritten_bytes(content)):
            yield separator + await run_in_thread(partial(form.items, content))
        separator = form.separator
    yield form.tail


def _rewritten_bytes(content: Sequence[bytes]) -> int:
    """An estimate of the bytes of JSON in an indented form, from above: each value on a line of its own, behind two
    spaces for each level. A list of 115 levels takes a hundred times its bytes (ATTACK-19)."""
    size = 0
    for each in content:
        levels = min(each.count(b"{") + each.count(b"["), MAX_OBJECT_NESTING)
        size += len(each) + 2 * levels * sum(map(each.count, _BEFORE_LINES))
    return min(size, _MAX_REWRITTEN_BYTES)


def _chunks(items: Sequence[CachedObject], length: int) -> Iterator[Sequence[CachedObject]]:
    """Split the list into runs of about `length` bytes; each run becomes one piece of the response."""
    begin = size = 0
    for at, obj in enumerate(items):
        size += len(obj.json)
        if size >= length:
            yield items[begin : at + 1]
            begin, size = at + 1, 0
    if begin < len(items):
        yield items[begin:]


def _respond(context: RequestContext, pieces: Iterable[bytes], size: int, media: MediaType, code: int) -> web.Response:
    """`size` is a lower bound of the body's size. Small bodies are built on the event loop; large ones are converted
    in a thread, or sent piece by piece, each of which passes all filters."""
    rewrite = _rewriter(context, media)
    if rewrite:
        return _respond_rewritten(context, b"".join(pieces), rewrite, media, code)
    if size < _SLOW_BYTES:
        return web.Response(body=b"".join([*pieces, b"\n"]), status=code, headers={"Content-Type": media.type})
    if size <= _PIECE_BYTES and not _is_compressed(context, size, code):
        return _response(b"".join([*pieces, b"\n"]), code, {"Content-Type": media.type})
    return _stream(context, _streamed(pieces), media, code, size=size, memory=max(size, _PIECE_BYTES))


def _respond_rewritten(
    context: RequestContext, content: bytes, rewrite: Callable[[bytes], bytes], media: MediaType, code: int
) -> web.Response:
    if _rewritten_bytes([content]) < _PIECE_BYTES:
        return web.Response(body=rewrite(content), status=code, headers={"Content-Type": media.type})
    stream = _rewritten(context.reservation, content, rewrite)
    return _stream(context, stream, media, code, size=len(content), memory=0)


def _stream(
    context: RequestContext, stream: AsyncIterator[bytes], media: MediaType, code: int, *, size: int, memory: int
) -> LargeResponse:
    """`size` is that of the JSON. A stream that reserves its memory itself has none of its own: all of a user's streams
    would wait for each other's."""
    headers = {"Content-Type": media.type}
    if _is_compressed(context, size, code):
        headers |= _GZIP_HEADERS
        stream = _compressed(stream)
    return LargeResponse(body=stream, memory=memory, status=code, headers=headers)


def _rewriter(context: RequestContext, media: MediaType) -> Callable[[bytes], bytes] | None:
    """The function that converts compact JSON to the requested format; None if compact JSON was requested."""
    if media.type == YAML:
        return to_yaml
    return indented if media.pretty or is_pretty_requested(context) else None


async def _streamed(pieces: Iterable[bytes]) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece
        # yield to the event loop: writing to a fast client never blocks
        await asyncio.sleep(0)
    yield b"\n"


async def _rewritten(
    reservation: Reservation, content: bytes, rewrite: Callable[[bytes], bytes]
) -> AsyncIterator[bytes]:
    async with reservation.held(_rewritten_bytes([content])):
        yield await run_in_thread(partial(rewrite, content))


async def _compressed(stream: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    compressor = isal_zlib.compressobj(LEVEL, isal_zlib.DEFLATED, _GZIP_WINDOW)
    async for piece in stream:
        if compressed := await asyncio.to_thread(compressor.compress, piece):
            yield compressed
    yield compressor.flush()


def is_pretty_requested(context: RequestContext) -> bool:
    pretty = context.query.get("pretty")
    if pretty:
        return pretty in _TRUE
    return context.http.headers.get("User-Agent", "").startswith(_PRETTY_AGENTS)


def _is_compressed(context: RequestContext, size: int, code: int) -> bool:
    return code == 200 and size > _GZIP_BYTES and _accepts_gzip(context)


def _accepts_gzip(context: RequestContext) -> bool:
    return context.http.method == "GET" and "gzip" in context.http.headers.get("Accept-Encoding", "")
