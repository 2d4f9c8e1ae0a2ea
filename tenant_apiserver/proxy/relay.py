"""Sends a response of the cluster to the client, as it comes."""

from __future__ import annotations

import asyncio
from typing import Final

from aiohttp import ClientError, ClientResponse, HttpVersion11, web

from apiserver.request.context import RequestContext
from tenant_apiserver.proxy.headers import answer_headers
from tenant_apiserver.proxy.shutdown import calling_at
from tenant_apiserver.proxy.watch_boundary import WatchBoundary

SMALL: Final = 64 * 1024
"""The size in bytes up to which a response is sent in one piece."""
_PIECE_BYTES: Final = 32 * 1024
UNREAD_BYTES: Final = 384 * 1024
"""The memory of one response that its client does not read, from above, in the connections on both sides."""


async def relay(
    context: RequestContext, received: ClientResponse, *, shutdown: asyncio.Event, begun: bytes = b""
) -> web.StreamResponse:
    """Sends the response while it arrives, after what has been read, `begun`; a watch ends with its events when
    `shutdown` is set. Raises ConnectionResetError if it breaks off, and TooManyRequests, which ends the connection, if
    its client does not read while many others of the user do not."""
    headers = answer_headers(received.headers)
    context.audit_id = headers.pop("Audit-ID", context.audit_id)
    length = received.content_length
    try:
        if length is not None and length <= SMALL and context.http.method != "HEAD":
            body = begun + await received.read()
            headers.popall("Content-Length", None)
            return web.Response(body=body, status=received.status, reason=received.reason, headers=headers)
        response = web.StreamResponse(status=received.status, reason=received.reason, headers=headers)
        if length is None and context.http.version >= HttpVersion11 and context.http.method != "HEAD":
            response.enable_chunked_encoding()
        await response.prepare(context.http)
        sender = _Sender(context, response)
        if begun:
            await sender.send(begun)
        if context.info.is_watch and not begun:
            await _send_watch(sender, received, shutdown)
        else:
            async for piece in received.content.iter_chunked(_PIECE_BYTES):
                await sender.send(piece)
        await response.write_eof()
    except (ClientError, TimeoutError) as error:
        _break_off(context)
        raise ConnectionResetError("the response of the cluster broke off") from error
    return response


class _Sender:
    """Sends the pieces of a response. While the client has not got what was sent before, the response counts as memory
    of its user (ATTACK-19)."""

    def __init__(self, context: RequestContext, response: web.StreamResponse) -> None:
        self._context = context
        self._response = response
        self._counts = False

    async def send(self, piece: bytes) -> None:
        """Raises TooManyRequests."""
        transport = self._context.http.transport
        is_unread = transport is not None and transport.get_write_buffer_size() > 0
        if is_unread and not self._counts:
            self._context.reservation.add(UNREAD_BYTES)
        elif self._counts and not is_unread:
            self._context.reservation.subtract(UNREAD_BYTES)
        self._counts = is_unread
        await self._response.write(piece)


async def _send_watch(sender: _Sender, received: ClientResponse, shutdown: asyncio.Event) -> None:
    """An event that has begun before `shutdown` is sent to its end."""
    boundary = WatchBoundary(received.content_type)

    async def send() -> None:
        async for piece in received.content.iter_chunked(_PIECE_BYTES):
            boundary.feed(piece)
            await sender.send(piece)
            if shutdown.is_set() and boundary.reached:
                return

    try:
        async with asyncio.timeout(None) as limit:
            with calling_at(shutdown, lambda: limit.reschedule(0.0)):
                return await send()
    except TimeoutError:
        if not limit.expired():
            raise
    if not boundary.reached:
        await send()


def _break_off(context: RequestContext) -> None:
    """Lets the client see that the response is incomplete."""
    transport = context.http.transport
    if transport is not None:
        transport.abort()
