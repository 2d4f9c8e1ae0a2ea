"""Watches while the process shuts down."""

from __future__ import annotations

import asyncio

import pytest
from aiohttp import ClientResponse

from tenant_apiserver.proxy.watch_boundary import WatchBoundary
from tests.tenant_apiserver.proxy.proxied_upstream import RunningProxy

WATCH = "/api/v1/namespaces/a/pods?watch=true"
PROTOBUF = "application/vnd.kubernetes.protobuf"


class _Stream:
    """An upstream that sends pieces of one response without end."""

    def __init__(self, proxy: RunningProxy, media_type: str = "application/json") -> None:
        self._head = f"HTTP/1.1 200 OK\r\nContent-Type: {media_type}\r\nTransfer-Encoding: chunked\r\n\r\n"
        self._pieces: asyncio.Queue[bytes] = asyncio.Queue()
        self.closed = asyncio.Event()
        proxy.upstream.on_connection = self._serve

    def send(self, piece: bytes) -> None:
        self._pieces.put_nowait(b"%x\r\n%s\r\n" % (len(piece), piece))

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(self._head.encode())
        sending = asyncio.create_task(self._send(writer))
        await reader.read()
        sending.cancel()
        writer.close()
        self.closed.set()

    async def _send(self, writer: asyncio.StreamWriter) -> None:
        while True:
            writer.write(await self._pieces.get())


async def _first_piece(response: ClientResponse) -> bytes:
    assert response.status == 200
    return await response.content.readany()


async def test_a_forwarded_watch_ends_cleanly(proxy: RunningProxy) -> None:
    """With a terminating chunk, as that of a kube-apiserver; and so does the watch on the cluster."""
    stream = _Stream(proxy)
    async with proxy.session() as session:
        stream.send(b'{"type":"ADDED"}\n')
        response = await session.get(WATCH)
        assert await _first_piece(response) == b'{"type":"ADDED"}\n'
        proxy.process.stages.shutdown.set()
        assert await response.content.read() == b""
    async with asyncio.timeout(20):
        await stream.closed.wait()


@pytest.mark.parametrize(
    ("media_type", "begun", "rest"),
    [
        pytest.param("application/json", b'{"type":', b'"ADDED"}\n', id="JSON"),
        pytest.param(f"{PROTOBUF};stream=watch", b"\0\0\0\x05ab", b"cde", id="protobuf"),
        pytest.param(f"{PROTOBUF};stream=watch", b"\0\0", b"\0\x01x", id="protobuf within the length"),
    ],
)
async def test_an_event_that_has_begun_is_sent_to_its_end(
    proxy: RunningProxy, media_type: str, begun: bytes, rest: bytes
) -> None:
    stream = _Stream(proxy, media_type)
    async with proxy.session() as session:
        stream.send(begun)
        response = await session.get(WATCH)
        assert await _first_piece(response) == begun
        proxy.process.stages.shutdown.set()
        stream.send(rest)
        assert await response.content.read() == rest


async def test_other_streams_go_on(proxy: RunningProxy) -> None:
    """A log that ends cleanly would look like that of a container that has ended."""
    stream = _Stream(proxy)
    async with proxy.session() as session:
        stream.send(b"one\n")
        response = await session.get("/api/v1/namespaces/a/pods/b/log?follow=true")
        assert await _first_piece(response) == b"one\n"
        proxy.process.stages.draining.set()
        proxy.process.stages.shutdown.set()
        stream.send(b"two\n")
        assert await response.content.readany() == b"two\n"


async def test_new_watches_are_told_to_retry(proxy: RunningProxy) -> None:
    """Other requests are served meanwhile."""
    proxy.process.stages.draining.set()
    async with proxy.session() as session:
        refused = await session.get(WATCH)
        assert (refused.status, refused.headers["Retry-After"]) == (429, "1")
        assert (await refused.json())["message"] == "apiserver is shutting down"
        assert (await session.get("/api/v1/namespaces/a/pods")).status == 200
    assert [each.target for each in proxy.upstream.forwarded] == ["/api/v1/namespaces/a/pods"]


def test_a_boundary_is_after_whole_events() -> None:
    events = b"\0\0\0\x02ab\0\0\0\0\0\0\0\x01c"
    boundary, found = WatchBoundary(PROTOBUF), []
    for position in range(len(events)):
        boundary.feed(events[position : position + 1])
        found.append(boundary.reached)
    assert [position + 1 for position, reached in enumerate(found) if reached] == [6, 10, 15]
    whole = WatchBoundary(PROTOBUF)
    whole.feed(events)
    assert whole.reached
