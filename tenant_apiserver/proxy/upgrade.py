"""Connections that switch to websocket or SPDY: after the 101 of the cluster, raw bytes in both directions.

Neither direction is buffered: while one side does not read, the other is not read from.
"""

from __future__ import annotations

import asyncio
from typing import Final, cast

from aiohttp import web
from multidict import CIMultiDict

from apiserver.meta.errors import ServiceUnavailable, TooManyRequests
from apiserver.request.bytes_in_flight import UNLIMITED, Reservation
from apiserver.request.context import RequestContext
from registry.cluster.interface import ClusterUnreachable
from registry.cluster.upgraded_connection import ANSWER_BYTES, UpgradeAnswer
from registry.cluster.upstream import UpstreamClient
from tenant_apiserver.proxy.headers import answer_headers
from tenant_apiserver.proxy.impersonation_refusal import ImpersonationRefusals
from tenant_apiserver.proxy.relay import UNREAD_BYTES

# how long the cluster may take to read the rest of what a client has sent that is gone
_REST_SECONDS: Final = 30.0
_FORBIDDEN: Final = 403
_WITH_BODY: Final = frozenset({"POST", "PUT", "PATCH"})


async def switch_protocols(
    context: RequestContext,
    upstream: UpstreamClient,
    refusals: ImpersonationRefusals,
    target: str,
    headers: CIMultiDict[str],
) -> web.StreamResponse:
    """Forwards a request to switch protocols, and returns when the connection has ended. An answer other than 101 is
    relayed. Raises ServiceUnavailable if the cluster is gone, or does not let the proxy impersonate, and
    TooManyRequests."""
    headers.popall("Content-Length", None)
    if context.http.method in _WITH_BODY:
        headers["Content-Length"] = "0"
    context.reservation.add(ANSWER_BYTES)
    try:
        answer = await upstream.upgrade(context.http.method, target, headers)
    except ClusterUnreachable as error:
        raise ServiceUnavailable(f"the cluster is unavailable: {error.message}", retry_after=1) from error
    if answer.status == _FORBIDDEN:
        refusals.check_answer(context.info, answer.headers, answer.rest)
    passed = answer_headers(answer.headers)
    context.audit_id = passed.pop("Audit-ID", context.audit_id)
    if answer.transport is None:
        passed.popall("Content-Length", None)
        return web.Response(body=answer.rest, status=answer.status, reason=answer.reason, headers=passed)
    context.reservation.subtract(ANSWER_BYTES)
    passed["Connection"], passed["Upgrade"] = "Upgrade", answer.headers.get("Upgrade", headers["Upgrade"])
    try:
        return await _connect(context, answer, answer.transport, passed)
    finally:
        answer.transport.abort()


async def _connect(
    context: RequestContext, answer: UpgradeAnswer, upstream: asyncio.Transport, headers: CIMultiDict[str]
) -> web.StreamResponse:
    response = web.StreamResponse(status=answer.status, reason=answer.reason, headers=headers)
    # what the client sends next is no HTTP request, so the connection ends with the stream
    response.force_close()
    await response.prepare(context.http)
    client = context.http.transport
    if client is None:
        return response
    server = cast(asyncio.Protocol, client.get_protocol())
    to_upstream = _End(client, upstream, context.reservation)
    to_client = _End(upstream, client, context.reservation)
    client.set_protocol(to_upstream)
    upstream.set_protocol(to_client)
    if answer.rest:
        client.write(answer.rest)
    if upstream.is_closing():
        # it ended before it could be told
        to_client.connection_lost(None)
    upstream.resume_reading()
    client.resume_reading()
    try:
        await _both_ended(to_upstream.closed, to_client.closed)
    finally:
        for end in (to_upstream, to_client):
            end.finish()
        # not before: the server cancels this handler then, which would drop what has not been sent
        to_upstream.closed.add_done_callback(lambda _: server.connection_lost(None))
    return response


async def _both_ended(client: asyncio.Future[None], upstream: asyncio.Future[None]) -> None:
    """As in a kube-apiserver, the end of one side ends the other, once that has got everything."""
    await asyncio.wait({client, upstream}, return_when=asyncio.FIRST_COMPLETED)
    if client.done():
        await asyncio.wait({upstream}, timeout=_REST_SECONDS)
    else:
        await asyncio.wait({client})


class _End(asyncio.Protocol):
    """The end `own` of the pipe: what arrives is written to `peer`. While the client or the upstream at this end does
    not read what was written, that counts as memory of the user, or the connection ends (ATTACK-19)."""

    def __init__(self, own: asyncio.Transport, peer: asyncio.Transport, reservation: Reservation) -> None:
        self._own = own
        self._peer = peer
        self._reservation = reservation
        self._unread = 0
        self.closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def data_received(self, data: bytes) -> None:
        self._peer.write(data)

    def pause_writing(self) -> None:
        try:
            self._reservation.add(UNREAD_BYTES)
        except TooManyRequests:
            self._own.abort()
            return
        self._unread = UNREAD_BYTES
        self._peer.pause_reading()

    def resume_writing(self) -> None:
        self._release()
        self._peer.resume_reading()

    def finish(self) -> None:
        """Counts nothing any more: the request is over."""
        self._release()
        self._reservation = UNLIMITED

    def _release(self) -> None:
        self._reservation.subtract(self._unread)
        self._unread = 0

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.closed.done():
            self.closed.set_result(None)
        self._peer.close()
