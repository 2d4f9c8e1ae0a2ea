"""Bodies and upgraded connections pass as they come."""

from __future__ import annotations

import asyncio
import base64
import socket
from collections.abc import Callable
from contextlib import suppress

import pytest
from aiohttp import ClientError

from registry.cluster.upgraded_connection import ANSWER_BYTES
from tenant_apiserver.proxy import upgrade
from tenant_apiserver.proxy.relay import UNREAD_BYTES
from tests.tenant_apiserver.proxy.proxied_upstream import RunningProxy, user_certificate

EXEC = "/api/v1/namespaces/a/pods/b/exec?command=sh"
TOKEN = "base64url.bearer.authorization.k8s.io." + base64.urlsafe_b64encode(b"secret-token").decode().rstrip("=")
UPGRADES = [
    pytest.param("POST", "SPDY/3.1", ["X-Stream-Protocol-Version: v4.channel.k8s.io"], id="SPDY"),
    pytest.param(
        "GET",
        "websocket",
        ["Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: eA==", "Sec-WebSocket-Protocol: v5.channel.k8s.io"],
        id="websocket",
    ),
]
PIECE = bytes(range(256)) * 256


async def _upgraded(
    proxy: RunningProxy, method: str, protocol: str, lines: list[str]
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    head = [f"{method} {EXEC} HTTP/1.1", "Host: x", "Connection: Upgrade", f"Upgrade: {protocol}", *lines]
    reader, writer = await proxy.send(*head)
    answer = (await reader.readuntil(b"\r\n\r\n")).decode()
    assert answer.startswith("HTTP/1.1 101")
    assert f"Upgrade: {protocol}\r\n" in answer
    return reader, writer


@pytest.mark.parametrize(("method", "protocol", "lines"), UPGRADES)
async def test_every_byte_passes_in_both_directions_after_an_upgrade(
    proxy: RunningProxy, method: str, protocol: str, lines: list[str]
) -> None:
    reader, writer = await _upgraded(proxy, method, protocol, lines)
    assert await reader.readexactly(5) == b"hello"
    for _ in range(8):
        writer.write(PIECE)
        assert await reader.readexactly(len(PIECE)) == PIECE
    writer.close()
    [request] = proxy.upstream.forwarded
    assert (request.method, request.target) == (method, EXEC)
    assert request.values("impersonate-user") == ["alice"]
    for line in lines:
        name, _, value = line.partition(": ")
        assert request.values(name.lower()) == [value]


async def test_bytes_after_an_upgrade_are_never_another_request(proxy: RunningProxy) -> None:
    """The echo returns a request that follows on the connection, and the cluster gets no head but the first."""
    reader, writer = await _upgraded(proxy, "POST", "SPDY/3.1", [])
    await reader.readexactly(5)
    smuggled = b"GET /api/v1/secrets HTTP/1.1\r\nHost: x\r\n\r\n"
    writer.write(smuggled)
    assert await reader.readexactly(len(smuggled)) == smuggled
    writer.close()
    assert len(proxy.upstream.forwarded) == 1


async def test_a_refused_upgrade_stays_http(proxy: RunningProxy) -> None:
    """CVE-2018-1002105: after anything but a 101, the client speaks to the proxy, as itself."""
    body = b'{"kind":"Status","code":403}'
    proxy.upstream.refusal = (
        b"HTTP/1.1 403 Forbidden\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s"
        % (
            len(body),
            body,
        )
    )
    head = [f"POST {EXEC} HTTP/1.1", "Host: x", "Connection: Upgrade", "Upgrade: SPDY/3.1", "Content-Length: 0"]
    reader, writer = await proxy.send(*head)
    answer = await reader.readuntil(b"\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 403")
    assert await reader.readexactly(len(body)) == body
    proxy.upstream.refusal = b""
    writer.write(b"GET /api/v1/secrets HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    assert (await reader.readuntil(b"\r\n")).startswith(b"HTTP/1.1 200")
    writer.close()
    assert [each.values("impersonate-user") for each in proxy.upstream.forwarded] == [["alice"], ["alice"]]


async def test_an_interim_response_to_an_upgrade_is_not_its_answer(proxy: RunningProxy) -> None:
    proxy.upstream.refusal = (
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"
        b"HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno"
    )
    reader, writer = await proxy.send(f"GET {EXEC} HTTP/1.1", "Host: x", "Connection: Upgrade", "Upgrade: websocket")
    assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 403")
    assert await reader.readexactly(2) == b"no"
    writer.close()


async def test_a_refusal_in_chunks_is_read_to_its_end(proxy: RunningProxy) -> None:
    proxy.upstream.refusal = b"HTTP/1.1 400 Bad Request\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nno!\r\n0\r\n\r\n"
    reader, writer = await proxy.send(
        f"GET {EXEC} HTTP/1.1", "Host: x", "Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Key: eA=="
    )
    answer = await reader.readuntil(b"\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 400")
    assert await reader.readexactly(3) == b"no!"
    writer.close()


async def test_an_upgrade_that_kubernetes_does_not_have_is_an_ordinary_request(proxy: RunningProxy) -> None:
    """curl asks for h2c."""
    async with proxy.session() as session:
        response = await session.get("/api", headers={"Connection": "Upgrade, HTTP2-Settings", "Upgrade": "h2c"})
        assert response.status == 200
    [request] = proxy.upstream.forwarded
    assert (request.values("upgrade"), request.values("http2-settings")) == ([], [])


async def test_the_token_among_the_subprotocols_is_not_forwarded(proxy: RunningProxy) -> None:
    lines = ["Sec-WebSocket-Key: eA==", f"Sec-WebSocket-Protocol: {TOKEN}, v5.channel.k8s.io"]
    _, writer = await _upgraded(proxy, "GET", "websocket", lines)
    writer.close()
    [request] = proxy.upstream.forwarded
    assert request.values("sec-websocket-protocol") == ["v5.channel.k8s.io"]


async def test_a_client_that_does_not_read_stops_the_reading_of_the_cluster(proxy: RunningProxy) -> None:
    """Both directions hold a bounded number of bytes: the echo of an unread stream fills what is between, and then the
    writer has to wait."""
    reader, writer = await _upgraded(proxy, "POST", "SPDY/3.1", [])
    reader._transport.pause_reading()  # type: ignore[attr-defined]
    written = 0
    with suppress(TimeoutError):
        while written < 64 * 1024 * 1024:
            writer.write(PIECE)
            written += len(PIECE)
            async with asyncio.timeout(2):
                await writer.drain()
    assert written < 48 * 1024 * 1024
    writer.transport.abort()


async def test_the_client_gone_closes_the_connection_to_the_cluster(proxy: RunningProxy) -> None:
    closed = asyncio.Event()
    serve = proxy.upstream.serve

    async def observed(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await serve(reader, writer)
        closed.set()

    proxy.upstream.on_connection = observed
    reader, writer = await _upgraded(proxy, "POST", "SPDY/3.1", [])
    await reader.readexactly(5)
    writer.transport.abort()
    async with asyncio.timeout(20):
        await closed.wait()


async def test_a_body_is_forwarded_while_it_arrives(proxy: RunningProxy) -> None:
    content = PIECE * 16
    async with proxy.session() as session:
        response = await session.post("/api/v1/namespaces/a/pods", data=content)
        assert response.status == 200
    [request] = proxy.upstream.forwarded
    assert request.values("content-length") == [str(len(content))]


async def test_each_piece_of_a_stream_reaches_the_client_at_once(proxy: RunningProxy) -> None:
    """The upstream ends the response only when the test has read its first piece."""
    go_on = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n")
        await go_on.wait()
        writer.write(b"4\r\nlast\r\n0\r\n\r\n")
        await writer.drain()
        writer.close()

    proxy.upstream.on_connection = serve
    async with proxy.session() as session:
        response = await session.get("/api/v1/namespaces/a/pods/b/log?follow=true")
        assert await response.content.readany() == b"first"
        go_on.set()
        assert await response.content.read() == b"last"


async def test_a_response_that_breaks_off_breaks_off_for_the_client(proxy: RunningProxy) -> None:
    """A truncated list must not look complete."""
    go_on = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n")
        await go_on.wait()
        writer.transport.abort()

    proxy.upstream.on_connection = serve
    async with proxy.session() as session:
        response = await session.get("/api/v1/pods")
        assert await response.content.readany() == b"first"
        go_on.set()
        with pytest.raises(ClientError):
            await response.content.read()


async def _unread_connection(proxy: RunningProxy, *lines: str) -> asyncio.StreamWriter:
    """A client with a small receive buffer that reads nothing."""
    connected = socket.socket()
    connected.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connected.setblocking(False)
    await asyncio.get_running_loop().sock_connect(connected, ("127.0.0.1", proxy.port))
    tls = proxy.tls()
    reader, writer = await asyncio.open_connection(sock=connected, ssl=tls, server_hostname="127.0.0.1", limit=4096)
    reader._transport.pause_reading()  # type: ignore[attr-defined]
    writer.write("\r\n".join([*lines, "", ""]).encode())
    return writer


def unread_bytes(proxy: RunningProxy, user: str = "alice") -> int:
    return proxy.process.bytes_in_flight._shares.of(user)


async def _settled(value: Callable[[], int]) -> int:
    """The value once it has stayed the same for a while."""
    before = -1
    while (now := value()) != before:
        before = now
        await asyncio.sleep(0.5)
    return now


ENDLESS = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 4000000\r\n\r\n" + b"x" * 4_000_000


async def test_responses_that_are_not_read_count_as_memory_of_their_user(proxy: RunningProxy) -> None:
    """And those of too many end, so that a user of no right cannot fill the memory with answers such as /openapi/v2."""
    proxy.upstream.answer = ENDLESS
    fits = 16 * 1024 * 1024 // UNREAD_BYTES
    writers = [await _unread_connection(proxy, "GET /openapi/v2 HTTP/1.1", "Host: x") for _ in range(fits + 8)]
    assert await _settled(lambda: unread_bytes(proxy)) == fits * UNREAD_BYTES
    async with proxy.session(user_certificate("bob")) as session:
        response = await session.get("/openapi/v2")
        assert len(await response.read()) == 4_000_000
    for writer in writers:
        writer.transport.abort()
    assert await _settled(lambda: unread_bytes(proxy)) == 0


@pytest.mark.parametrize("reads_at_last", [True, False])
async def test_upgraded_connections_that_are_not_read_count_until_they_are(
    proxy: RunningProxy, monkeypatch: pytest.MonkeyPatch, reads_at_last: bool
) -> None:
    monkeypatch.setattr(upgrade, "_REST_SECONDS", 0.1)
    reader, writer = await _upgraded(proxy, "POST", "SPDY/3.1", [])
    assert unread_bytes(proxy) == 0
    reader._transport.pause_reading()  # type: ignore[attr-defined]
    with suppress(TimeoutError):
        while True:
            writer.write(PIECE)
            async with asyncio.timeout(1):
                await writer.drain()
    assert unread_bytes(proxy) in (UNREAD_BYTES, 2 * UNREAD_BYTES)
    if reads_at_last:
        reader._transport.resume_reading()  # type: ignore[attr-defined]
        with suppress(TimeoutError):
            while True:
                async with asyncio.timeout(1):
                    await reader.read(65536)
    else:
        writer.transport.abort()
    assert await _settled(lambda: unread_bytes(proxy)) == 0
    writer.transport.abort()


async def test_an_answer_to_an_upgrade_counts_until_it_is_complete(proxy: RunningProxy) -> None:
    head = b"HTTP/1.1 404 Not Found\r\nContent-Length: 100000\r\n\r\n"
    proxy.upstream.refusal = head + b"x" * 1000
    lines = ("GET /api/v1/namespaces/a/pods/b/proxy/ HTTP/1.1", "Host: x", "Connection: Upgrade")
    _, writer = await proxy.send(*lines, "Upgrade: websocket")
    assert await _settled(lambda: unread_bytes(proxy)) == ANSWER_BYTES
    writer.transport.abort()
    assert await _settled(lambda: unread_bytes(proxy)) == 0
