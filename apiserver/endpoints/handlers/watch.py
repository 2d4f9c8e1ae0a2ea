"""The handler of watch: streams events, one JSON document per line (WIRE-F1 to WIRE-F16)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass
from typing import cast

from aiohttp import HttpVersion11, web

from apiserver import rest
from apiserver.encoding.negotiation import negotiate
from apiserver.encoding.transforms import View, view_of
from apiserver.endpoints.handlers.watch_frames import FrameWriter, error_frame
from apiserver.meta import errors
from apiserver.request.context import RequestContext
from apiserver.request.options import parse_watch_options
from apiserver.storage.watcher import CacheWatcher, WatchItem

# The time that a client has to receive the rest of a stream after the watch has ended.
_GRACE_SECONDS = 10.0


OnEventsSent = Callable[[int], None]
"""Called with the number of events that have been sent."""


def _ignore_count(events: int) -> None:
    pass


async def watch(
    context: RequestContext, storage: rest.Watcher, shutdown: asyncio.Event, sent: OnEventsSent = _ignore_count
) -> web.StreamResponse:
    """Stream events until the watch's deadline, until `shutdown` is set, or until the client disconnects or is too
    slow."""
    info, resource = context.info, cast(rest.Storage, storage).resource
    media = negotiate(context.http.headers.get("Accept", ""), watch=True)
    view = view_of(resource, media, context.query.get("includeObject"))
    options = parse_watch_options(context.query, info, resource.field_labels)
    response = _response(context, media.content_type)
    try:
        changes = await storage.watch(context, info.namespace if resource.namespaced else "", options)
    except (errors.Expired, errors.TooLargeResourceVersion) as error:
        # clients retry a watch that fails with an error status; an ERROR event makes them list again
        with suppress(ConnectionError):
            await response.prepare(context.http)
            await response.write(error_frame(error))
        return response
    # most watches end because their client disconnects
    with suppress(ConnectionError):
        async with aclosing(changes):
            # clients wait for the headers even if there are no events yet (WIRE-F1)
            await response.prepare(context.http)
            await _serve(_Stream(context, response, sent), changes, view, shutdown)
    return response


def _response(context: RequestContext, content_type: str) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": content_type})
    if context.http.version >= HttpVersion11:
        response.enable_chunked_encoding()
    return response


@dataclass(frozen=True, slots=True)
class _Stream:
    context: RequestContext
    response: web.StreamResponse
    sent: OnEventsSent


async def _serve(stream: _Stream, changes: CacheWatcher, view: View, shutdown: asyncio.Event) -> None:
    changes.on_terminate(lambda: _abort(stream.context))
    stop = asyncio.create_task(shutdown.wait(), name="watch-until-shutdown")
    stop.add_done_callback(lambda _: changes.end())
    try:
        async with asyncio.timeout_at(changes.deadline + _GRACE_SECONDS):
            await _pump(stream, changes, view)
    except TimeoutError:
        _abort(stream.context)
    finally:
        stop.cancel()


async def _pump(stream: _Stream, changes: CacheWatcher, view: View) -> None:
    frames = FrameWriter(stream.context.http, stream.response, stream.context.reservation, view)

    def try_send(batch: Sequence[WatchItem]) -> bool:
        if not frames.try_write(batch):
            return False
        stream.sent(len(batch))
        return True

    changes.send_with(try_send)
    async for batch in changes:
        if _is_disconnected(stream.context):
            return
        if batch:
            await frames.write(batch)
            stream.sent(len(batch))


def _is_disconnected(context: RequestContext) -> bool:
    transport = context.http.transport
    return transport is None or transport.is_closing()


def _abort(context: RequestContext) -> None:
    """Abort the connection of a client that does not read."""
    transport = context.http.transport
    if transport is not None:
        transport.abort()
