"""The events of all parts wait for the client, within bounds of the memory."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import parse_qs, urlsplit

import pytest
from aiohttp import ClientPayloadError

from apiserver.meta.errors import ServiceUnavailable
from apiserver.request.bytes_in_flight import UNLIMITED, BytesInFlight, Reservation
from tenant_apiserver.proxy.merged.packed_list import PackedList, pack
from tenant_apiserver.proxy.merged.part import CollectionPart
from tenant_apiserver.proxy.merged.part_stream import Complete, PartStream, Streams
from tests.virtual_time import virtual

_MIB = 1024 * 1024


class _Cluster:
    """Each part has `objects`, and then events of `line` bytes without end. `in_memory` are the objects of the lists
    that are being read, by part, and `read` is the number of event lines."""

    def __init__(self, *, objects: int = 0, line: int = 100) -> None:
        self._objects = objects
        self._line = b"x" * line
        self.in_memory: Counter[str] = Counter()
        self.read = 0

    @asynccontextmanager
    async def held(self, target: str) -> AsyncIterator[PackedList]:
        parts = urlsplit(target)
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        start = int(query.get("continue", "0"))
        end = min(start + int(query["limit"]), self._objects)
        items = [{"metadata": {"name": f"{parts.path}-{number}"}} for number in range(start, end)]
        self.in_memory[parts.path] += len(items)
        metadata = {"resourceVersion": "7", **({"continue": str(end)} if end < self._objects else {})}
        yield pack({"kind": "ConfigMapList", "apiVersion": "v1", "metadata": metadata, "items": items})
        self.in_memory[parts.path] -= len(items)

    @asynccontextmanager
    async def events(self, target: str) -> AsyncIterator[AsyncIterator[bytes]]:
        async def lines() -> AsyncIterator[bytes]:
            while True:
                self.read += 1
                yield self._line
                await asyncio.sleep(1)

        yield lines()


def _opened(
    cluster: _Cluster, parts: int, *, begins: bool, waiting: Reservation | None = None
) -> tuple[Streams, list[PartStream]]:
    streams = Streams(cluster, {}, waiting or UNLIMITED)
    found = [PartStream(CollectionPart(f"p{n}", f"p{n}"), {}, 0, begins=begins) for n in range(parts)]
    for each in found:
        streams.open(each)
    return streams, found


@virtual
async def test_a_watch_that_is_not_read_holds_about_a_mebibyte_of_events() -> None:
    cluster = _Cluster(line=100_000)
    streams, parts = _opened(cluster, 20, begins=False)
    await asyncio.sleep(100)
    waiting = 0
    while streams.take() is not None:
        waiting += 1
    assert waiting == -(-_MIB // 100_000)
    assert cluster.read == waiting + len(parts)
    await asyncio.sleep(100)
    assert cluster.read > 2 * waiting
    await streams.close(*parts)


@virtual
async def test_small_events_are_limited_by_their_number() -> None:
    cluster = _Cluster()
    streams, parts = _opened(cluster, 3, begins=False)
    await asyncio.sleep(1000)
    assert cluster.read == 256 + len(parts)
    await streams.close(parts[0])
    await asyncio.sleep(1000)
    assert cluster.read > 256 + len(parts)
    await streams.close(*parts[1:])


@virtual
async def test_initial_objects_are_read_in_pages_as_the_client_takes_them() -> None:
    """All parts are opened before the client is answered. Then one further page at a time is in memory."""
    cluster = _Cluster(objects=330)
    streams, parts = _opened(cluster, 60, begins=True)
    assert await asyncio.gather(*(each.opened for each in parts)) == [True] * 60
    names: Counter[str] = Counter()
    complete: list[str] = []
    while len(complete) < len(parts):
        await asyncio.sleep(0.001)
        assert sum(cluster.in_memory.values()) <= 60 * 5 + 100
        while (taken := streams.take()) is not None:
            stream, line = taken
            if isinstance(line, Complete):
                assert (line.version, line.form.kind) == (7, "ConfigMap")
                complete.append(stream.part.name)
            elif stream.part.name not in complete:
                names[json.loads(line)["object"]["metadata"]["name"]] += 1
    assert set(names.values()) == {1}
    assert len(names) == 60 * 330
    await streams.close(*parts)
    assert sum(cluster.in_memory.values()) == 0


class _BreakingCluster(_Cluster):
    """Watches break off after an event, with `error`."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self._error = error

    @asynccontextmanager
    async def events(self, target: str) -> AsyncIterator[AsyncIterator[bytes]]:
        async def lines() -> AsyncIterator[bytes]:
            yield b"{}"
            raise self._error

        try:
            yield lines()
        except ClientPayloadError as error:
            raise ServiceUnavailable("the response of the cluster broke off") from error


@pytest.mark.parametrize("error", [ClientPayloadError(), RuntimeError("unexpected")], ids=repr)
@virtual
async def test_a_part_that_breaks_off_ends_the_watch(error: Exception) -> None:
    """Its client goes on from what it has. It would wait in vain otherwise."""
    streams, parts = _opened(_BreakingCluster(error), 1, begins=False)
    await asyncio.sleep(1)
    assert streams.take() == (parts[0], b"{}")
    assert streams.ended
    await streams.close(*parts)


_ERROR = {
    "kind": "Status",
    "code": 500,
    "message": "a watch stream was requested by the client but the required storage feature RequestWatchProgress is "
    "disabled",
}


class _OldEtcd(_Cluster):
    """A kube-apiserver that begins no watch with bookmarks and without a version."""

    @asynccontextmanager
    async def events(self, target: str) -> AsyncIterator[AsyncIterator[bytes]]:
        async def lines() -> AsyncIterator[bytes]:
            if "allowWatchBookmarks" in target:
                yield json.dumps({"type": "ERROR", "object": _ERROR}).encode()
            else:
                yield b"{}"
                await asyncio.sleep(1)

        yield lines()


@virtual
async def test_a_watch_does_without_bookmarks_that_the_cluster_does_not_have() -> None:
    streams, parts = _opened(_OldEtcd(), 1, begins=False)
    await asyncio.sleep(0.5)
    assert streams.take() == (parts[0], b"{}")
    assert not streams.ended
    await streams.close(*parts)


@virtual
async def test_events_that_nobody_reads_are_bounded_for_all_watches_of_a_user() -> None:
    """A user can have hundreds of watches of one namespace, and change a large object in it. A watch for which there is
    no room ends, and those of others go on."""
    in_memory = BytesInFlight(total=100 * _MIB, per_user=4 * _MIB)
    watches = [_opened(_Cluster(line=_MIB), 1, begins=False, waiting=Reservation(in_memory, "eve")) for _ in range(8)]
    other, _ = _opened(_Cluster(line=_MIB), 1, begins=False, waiting=Reservation(in_memory, "alice"))
    await asyncio.sleep(10)
    assert sum(streams.ended for streams, _ in watches) >= 4
    assert not other.ended
    in_memory.check("eve", 0)
    for streams, parts in watches:
        await streams.close(*parts)
    # all is free again
    in_memory.check("eve", 4 * _MIB)


@virtual
async def test_a_watch_that_is_read_goes_on_while_others_wait() -> None:
    """Small events wait until the client has got those before."""
    in_memory = BytesInFlight(total=100 * _MIB, per_user=100_000)
    streams, parts = _opened(_Cluster(line=10_000), 1, begins=False, waiting=Reservation(in_memory, "eve"))
    await asyncio.sleep(100)
    assert not streams.ended
    for _ in range(100):
        streams.sent()
        await asyncio.sleep(1)
        assert streams.take() is not None
    assert not streams.ended
    await streams.close(*parts)
