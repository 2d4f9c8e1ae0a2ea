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


async def relay(
    context: RequestContext, received: ClientResponse, *, shutdown: asyncio.Event, begun: bytes = b""
) -> web.StreamResponse:
    """Sends the response while it arrives, after what has been read, `begun`; a watch ends with its events when
    `shutdown` is set. Raises ConnectionResetError if it breaks off."""
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
        if begun:
            await response.write(begun)
        if context.info.is_watch and not begun:
            await _send_watch(response, received, shutdown)
        else:
            async for chunk in received.content.iter_any():
                await response.write(chunk)
        await response.write_eof()
    except (ClientError, TimeoutError) as error:
        _break_off(context)
        raise ConnectionResetError("the response of the cluster broke off") from error
    return response


async def _send_watch(response: web.StreamResponse, received: ClientResponse, shutdown: asyncio.Event) -> None:
    """An event that has begun before `shutdown` is sent to its end."""
    boundary = WatchBoundary(received.content_type)

    async def send() -> None:
        async for piece in received.content.iter_any():
            boundary.feed(piece)
            await response.write(piece)
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
