"""exec, attach and port-forward through the proxy, with TLS on both sides, as between kubectl and a kube-apiserver."""

from __future__ import annotations

import asyncio
import functools
from array import array
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from registry.cluster.upgraded_connection import read_nothing_ahead
from tests.tenant_apiserver.proxy.proxied_upstream import RunningProxy, proxied_upstream

POD = "/api/v1/namespaces/a/pods/b"
SUBRESOURCES = ["exec?command=sh&stdin=true", "attach?stdin=true", "portforward?ports=80"]
# as kubectl sends them, the newer protocol first
WEBSOCKET = (
    "GET",
    "websocket",
    "Sec-WebSocket-Version: 13",
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
    "Sec-WebSocket-Protocol: v5.channel.k8s.io, v4.channel.k8s.io",
)
SPDY = (
    "POST",
    "SPDY/3.1",
    "X-Stream-Protocol-Version: v4.channel.k8s.io",
    "X-Stream-Protocol-Version: v3.channel.k8s.io",
)
PROTOCOLS = [pytest.param(WEBSOCKET, id="websocket"), pytest.param(SPDY, id="SPDY")]
MIB = 1024 * 1024

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
Upgrade = tuple[str, ...]


@functools.cache
def content() -> bytes:
    """32 MiB. No two of its blocks are equal, so that lost, doubled and exchanged ones are seen."""
    return array("Q", range(32 * MIB // 8)).tobytes()


@pytest.fixture(params=["openssl", "asyncio"])
async def proxy(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[RunningProxy]:
    """With both of --tls-transport."""
    async with proxied_upstream(tmp_path, over_tls=True, transport=request.param) as running:
        yield running


def switching(serve: Serve) -> Serve:
    """An upstream that switches protocols, and then serves the stream."""

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # or else this upstream would lose what the tests look for
        read_nothing_ahead(writer.transport)
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n")
        await serve(reader, writer)

    return accept


@asynccontextmanager
async def upgraded(
    proxy: RunningProxy, upgrade: Upgrade = SPDY, subresource: str = SUBRESOURCES[0]
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    method, protocol, *lines = upgrade
    head = [f"{method} {POD}/{subresource} HTTP/1.1", "Host: x", "Connection: Upgrade", f"Upgrade: {protocol}", *lines]
    reader, writer = await proxy.send(*head)
    read_nothing_ahead(writer.transport)
    try:
        async with asyncio.timeout(30):
            assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 101")
            yield reader, writer
    finally:
        writer.transport.abort()


@pytest.mark.parametrize("subresource", SUBRESOURCES, ids=lambda each: each.partition("?")[0])
@pytest.mark.parametrize("upgrade", PROTOCOLS)
async def test_the_cluster_gets_the_request_of_the_client_and_every_byte_after_it(
    proxy: RunningProxy, upgrade: Upgrade, subresource: str
) -> None:
    """The upstream returns what it gets."""
    async with upgraded(proxy, upgrade, subresource) as (reader, writer):
        assert await reader.readexactly(5) == b"hello"
        writer.write(content()[:MIB])
        assert await reader.readexactly(MIB) == content()[:MIB]
    [request] = proxy.upstream.forwarded
    method, protocol, *lines = upgrade
    assert (request.method, request.target) == (method, f"{POD}/{subresource}")
    assert request.values("upgrade") == [protocol]
    assert request.values("connection") == ["Upgrade"]
    assert request.values("impersonate-user") == ["alice"]
    for line in lines:
        name, _, value = line.partition(": ")
        assert value in request.values(name.lower())


async def test_all_that_the_client_sent_before_it_ended_its_side_reaches_the_cluster(proxy: RunningProxy) -> None:
    """kubectl cp ends so. As with a kube-apiserver, the end of one side ends the other."""
    arrived: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

    async def read_slowly(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        content = bytearray()
        while data := await reader.read(16384):
            content += data
            for _ in range(10):
                await asyncio.sleep(0)
        arrived.set_result(bytes(content))
        writer.close()

    proxy.upstream.on_connection = switching(read_slowly)
    async with upgraded(proxy) as (_reader, writer):
        writer.write(content())
        writer.close()
        assert await arrived == content()


async def test_a_client_may_be_gone_before_the_cluster_reads(proxy: RunningProxy) -> None:
    gone = asyncio.Event()
    arrived: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

    async def read_late(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await gone.wait()
        arrived.set_result(await reader.read())
        writer.close()

    proxy.upstream.on_connection = switching(read_late)
    async with upgraded(proxy) as (_reader, writer):
        writer.write(content()[:MIB])
        writer.close()
        # what it has sent is on its way, and so is its end
        for _ in range(2000):
            await asyncio.sleep(0)
        gone.set()
        assert await arrived == content()[:MIB]


async def test_all_that_the_cluster_sent_before_it_ended_its_side_reaches_the_client(proxy: RunningProxy) -> None:
    """As the output of a command that has ended. The client reads only once the cluster is gone."""
    ended = asyncio.Event()

    async def send_and_end(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(content())
        ended.set()
        writer.close()

    proxy.upstream.on_connection = switching(send_and_end)
    async with upgraded(proxy) as (reader, _writer):
        await ended.wait()
        assert await reader.read() == content()


async def test_a_cluster_may_end_its_side_with_its_answer(proxy: RunningProxy) -> None:
    async def end(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"bye")
        writer.close()

    proxy.upstream.on_connection = switching(end)
    for _ in range(20):
        async with upgraded(proxy) as (reader, _writer):
            assert await reader.read() == b"bye"


async def test_a_cluster_that_breaks_off_ends_the_stream_of_the_client(proxy: RunningProxy) -> None:
    async def break_off(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"first")
        await reader.readexactly(4)
        writer.transport.abort()

    proxy.upstream.on_connection = switching(break_off)
    async with upgraded(proxy) as (reader, writer):
        assert await reader.readexactly(5) == b"first"
        writer.write(b"last")
        assert await reader.read() == b""


async def test_the_lines_of_a_followed_log_arrive_one_by_one(proxy: RunningProxy) -> None:
    """The upstream writes a line once the client has read the one before."""
    read = asyncio.Semaphore(1)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n")
        for number in range(20):
            await read.acquire()
            writer.write(b"8\r\nline %02d\n\r\n" % number)
        writer.write(b"0\r\n\r\n")
        await writer.drain()
        writer.close()

    proxy.upstream.on_connection = serve
    async with proxy.session() as session, session.get(f"{POD}/log?follow=true") as response:
        for number in range(20):
            assert await response.content.readline() == b"line %02d\n" % number
            read.release()
        assert await response.content.read() == b""
