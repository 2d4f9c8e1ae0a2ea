"""The frames of a watch: few of them are in memory for a client that does not read (ATTACK-19)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any, cast

import pytest
from aiohttp import web

from apiserver.encoding.transforms import TableView, View, WholeView
from apiserver.endpoints.handlers import watch_frames
from apiserver.endpoints.handlers.watch_frames import FrameWriter
from apiserver.request.bytes_in_flight import UNLIMITED, BytesInFlight, Reservation
from apiserver.storage.event_history import CacheEvent
from apiserver.storage.watcher import Bookmark
from tests.apiserver.storage.test_watcher import THINGS, thing


class Connection:
    """Its client has received everything that is written to it, but for `unsent` bytes."""

    def __init__(self) -> None:
        self.unsent = 0
        self.closing = False
        self.written: list[bytes] = []

    def is_closing(self) -> bool:
        return self.closing

    def get_write_buffer_size(self) -> int:
        return self.unsent

    def write(self, data: bytes) -> None:
        self.written.append(data)


class Client:
    """Receives what is written, as long as it reads."""

    chunked = True

    def __init__(self, *, reads: bool = True) -> None:
        self.reads = asyncio.Event()
        self.pieces: list[bytes] = []
        self.transport: Connection | None = Connection()
        if reads:
            self.reads.set()

    async def write(self, piece: bytes) -> None:
        self.pieces.append(piece)
        await self.reads.wait()

    def events(self) -> list[tuple[str, str]]:
        frames = [json.loads(line) for line in b"".join(self.pieces).splitlines()]
        return [(frame["type"], frame["object"]["metadata"].get("name", "")) for frame in frames]

    def writer(self, reservation: Reservation = UNLIMITED, view: View | None = None) -> FrameWriter:
        request, response = cast(web.BaseRequest, self), cast(web.StreamResponse, self)
        return FrameWriter(request, response, reservation, view or WholeView(THINGS))


def event(name: str, size: int, *, shared: bool = False) -> CacheEvent:
    found = CacheEvent("ADDED", thing(name, 5, text="x" * size))
    if shared:
        found.share_frames()
    return found


async def test_small_frames_are_written_together_and_large_ones_in_pieces() -> None:
    client = Client()
    items: list[Any] = [event("a", 10), event("b", 10), event("c", 100_000), event("d", 100_000, shared=True)]
    await client.writer().write([*items, Bookmark(7)])
    assert client.events() == [("ADDED", name) for name in "abcd"] + [("BOOKMARK", "")]
    assert max(map(len, client.pieces)) == 32 * 1024
    assert len(client.pieces) == 1 + 4 + 4 + 1


async def several_iterations() -> None:
    """In each iteration of the event loop, one large frame of a user has its turn."""
    for _ in range(10):
        await asyncio.sleep(0)


async def test_large_frames_of_their_own_wait_for_the_memory_of_the_user() -> None:
    in_flight = BytesInFlight(per_user=150_000)
    clients = [Client(reads=False) for _ in range(3)]
    writing = [
        asyncio.create_task(client.writer(Reservation(in_flight, "alice")).write([event("a", 100_000, shared=shared)]))
        for client, shared in zip(clients, (False, False, True), strict=True)
    ]
    await several_iterations()
    assert [len(client.pieces) for client in clients] == [1, 0, 1]
    clients[0].reads.set()
    await writing[0]
    await several_iterations()
    assert len(clients[1].pieces) == 1
    for client in clients:
        client.reads.set()
    await asyncio.gather(*writing)
    in_flight.reserve("alice", 150_000)


async def test_a_client_that_does_not_receive_a_large_frame_gives_its_memory_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(watch_frames, "_LARGE_FRAME_SECONDS", 0.01)
    in_flight = BytesInFlight(per_user=150_000)
    with pytest.raises(TimeoutError):
        await Client(reads=False).writer(Reservation(in_flight, "alice")).write([event("a", 100_000)])
    in_flight.reserve("alice", 150_000)


async def test_shared_frames_are_written_at_once_to_a_client_that_has_received_all_before() -> None:
    client, chunks = Client(), Client()
    chunks.chunked = False
    for each in (client, chunks):
        assert each.writer().try_write([event("a", 10, shared=True), Bookmark(7)])
        assert each.pieces == []
    [chunk], [plain] = (each.transport.written for each in (client, chunks) if each.transport is not None)
    assert [json.loads(line)["type"] for line in plain.splitlines()] == ["ADDED", "BOOKMARK"]
    assert chunk == f"{len(plain):x}\r\n".encode() + plain + b"\r\n"


def unsent(client: Client) -> None:
    assert client.transport is not None
    client.transport.unsent = 1


def closing(client: Client) -> None:
    assert client.transport is not None
    client.transport.closing = True


def lost(client: Client) -> None:
    client.transport = None


@pytest.mark.parametrize(
    ("prepare", "items"),
    [
        pytest.param(unsent, [event("a", 10, shared=True)], id="a client that has not received all before"),
        pytest.param(closing, [event("a", 10, shared=True)], id="a connection that closes"),
        pytest.param(lost, [event("a", 10, shared=True)], id="a connection that is lost"),
        pytest.param(
            lambda client: None, [event("a", 10, shared=True), event("b", 10)], id="a frame of this watch alone"
        ),
        pytest.param(lambda client: None, [event("a", 40_000, shared=True)], id="a large frame"),
    ],
)
async def test_nothing_is_written_at_once_that_may_have_to_wait(
    prepare: Callable[[Client], None], items: list[Any]
) -> None:
    client = Client()
    connection = client.transport
    prepare(client)
    assert not client.writer().try_write(items)
    assert connection is not None
    assert connection.written == []


async def test_a_table_has_its_columns_once_however_its_frames_are_written() -> None:
    client = Client()
    writer = client.writer(view=TableView(THINGS, include="None"))
    await writer.write([event("a", 10, shared=True)])
    assert writer.try_write([event("b", 10, shared=True)])
    assert client.transport is not None
    [first], [chunk] = client.pieces, client.transport.written
    assert json.loads(first)["object"]["columnDefinitions"]
    assert not json.loads(chunk.splitlines()[1])["object"].get("columnDefinitions")
