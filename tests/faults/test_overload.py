"""Overload: watchers that never read, silent connections, endless request heads and bodies, and large bodies."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pytest

from tests.e2e.support.clusters.cluster import ROOT, tenants_path
from tests.e2e.support.clusters.embedded import EmbeddedCluster
from tests.e2e.support.http.https_client import Client
from tests.e2e.support.http.pace import Pace
from tests.e2e.support.tenants import manifest
from tests.faults.support.many_clients import ClientConnections, Connection, in_parallel
from tests.faults.support.process_usage import memory_mib, other_descriptors
from tests.faults.support.sizes import size

MERGE = "application/merge-patch+json"
MIB = 2**20
# for a request of another client meanwhile, on a machine that runs server and clients
PATIENCE_SECONDS = 5.0
# the listener's timeouts for a TLS handshake and for the head of a request
HANDSHAKE_SECONDS, IDLE_SECONDS = 10.0, 100.0


class SmallHistoryCluster(EmbeddedCluster):
    """Events that a watcher has not read soon drop out of the watch history."""

    flags = ("--watch-history-size=4Mi",)


@pytest.fixture
def small_history(tmp_path: Path) -> Iterator[SmallHistoryCluster]:
    running = SmallHistoryCluster(tmp_path)
    yield running
    assert running.stop() == 0, running.server.tail()


@dataclass(slots=True)
class BackgroundReader:
    """Another client, which reads a Tenant all the time."""

    client: Client
    wait_seconds: list[float] = field(default_factory=list)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Fails if one of the reads inside the context takes too long."""
        pace = await asyncio.to_thread(Pace, self.client)
        task = asyncio.create_task(self._read_repeatedly())
        try:
            yield
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
        longest = max(self.wait_seconds)
        print(f"others waited {longest:.3f} s at most, in {len(self.wait_seconds)} requests")
        assert longest < await asyncio.to_thread(pace.limit, PATIENCE_SECONDS)

    async def _read_repeatedly(self) -> None:
        while True:
            started = time.monotonic()
            answer = await asyncio.to_thread(self.client.get, tenants_path(ROOT, "root"))
            assert answer.status == 200
            self.wait_seconds.append(time.monotonic() - started)
            await asyncio.sleep(0.05)


async def until(what: str, check: Callable[[], object], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not await asyncio.to_thread(check):
        assert time.monotonic() < deadline, f"waited for: {what}"
        await asyncio.sleep(0.2)


class WatchReaders:
    """Watches of one Tenant that read all events, and count the readers of each annotation `number`."""

    def __init__(self, connections: Sequence[Connection]) -> None:
        self._tasks = [asyncio.create_task(self._read(connection)) for connection in connections]
        self.received: dict[str, int] = {}

    async def _read(self, connection: Connection) -> None:
        last = ""
        while True:
            frame = await connection.reader.readuntil(b"}\n")
            metadata = json.loads(frame.rpartition(b"\r\n")[2])["object"]["metadata"]
            value = metadata.get("annotations", {}).get("number", "")
            # status writes of the reconciler repeat the number
            if value != last:
                last, self.received[value] = value, self.received.get(value, 0) + 1

    def have_received(self, number: int, readers: int) -> bool:
        return self.received.get(str(number)) == readers

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


async def annotate(client: Client, name: str, annotations: dict[str, str]) -> None:
    body = {"metadata": {"annotations": annotations}}
    path = tenants_path(ROOT, name)
    answer = await asyncio.to_thread(lambda: client.request("PATCH", path, body, content_type=MERGE))
    assert answer.status == 200, answer.content


def watch_of(name: str, version: str) -> str:
    return f"GET {tenants_path(ROOT)}?watch=1&fieldSelector=metadata.name%3D{name}&resourceVersion={version} HTTP/1.1"


async def test_watchers_that_never_read_do_not_delay_others(small_history: SmallHistoryCluster) -> None:
    readers, stuck, rounds = size(short=270, full=4500), size(short=30, full=500), size(short=40, full=100)
    client, pid = small_history.client(), small_history.server.pid
    for name in ("big", "small"):
        client.request("POST", tenants_path(ROOT), manifest(name)).expect(201)
    version = client.get(tenants_path(ROOT)).expect(200)["metadata"]["resourceVersion"]
    async with ClientConnections(client) as opened:
        reading, not_reading = await opened.open(readers), await opened.open(stuck, reading=False)
        for connections, name in ((reading, "small"), (not_reading, "big")):
            await in_parallel([partial(each.send_request, watch_of(name, version)) for each in connections])
            assert all(b" 200 " in head for head in await in_parallel([each.read_head for each in connections]))
        watch_readers, before = WatchReaders(reading), memory_mib(pid)[0]
        slowest, pace = 0.0, await asyncio.to_thread(Pace, client)
        async with BackgroundReader(client).running():
            for number in range(rounds):
                await annotate(client, "big", {"text": f"{number:06}" * 40_000})
                started = time.monotonic()
                await annotate(client, "small", {"number": str(number)})
                await until("all readers have it", partial(watch_readers.have_received, number, readers), 90)
                slowest = max(slowest, time.monotonic() - started)
            print(f"{watchers(client) - readers} watches that do not read are still open")
        await until("the watches that do not read are closed", lambda: watchers(client) == readers, 90)
        after = memory_mib(pid)
        print(
            f"{readers} watches and {stuck} without reading: "
            f"{before:.0f} MiB, then {after[0]:.0f}, at most {after[1]:.0f}"
        )
        print(f"the last reader had a change after {slowest:.3f} s at most")
        limit = await asyncio.to_thread(pace.limit, PATIENCE_SECONDS)
        await watch_readers.stop()
    assert watch_readers.received == {str(number): readers for number in range(rounds)}
    assert slowest < limit
    # the history, and the largest write, plain and encrypted, for each watch that does not read
    assert after[1] - before < 64 + stuck * 2.0


def watchers(client: Client) -> int:
    lines = client.get("/metrics").content.decode().splitlines()
    [line] = [each for each in lines if each.startswith("apiserver_registered_watchers") and '"tenants"' in each]
    return int(float(line.rpartition(" ")[2]))


async def test_silent_connections_do_not_delay_others(small_history: SmallHistoryCluster) -> None:
    count = size(short=500, full=10_000)
    client, pid = small_history.client(), small_history.server.pid
    before, memory_before = other_descriptors(pid), memory_mib(pid)[0]
    async with ClientConnections(client) as opened:
        async with BackgroundReader(client).running():
            plain = await opened.open(count // 2, tls=False)
            silent = await opened.open(count - len(plain))
            grown = memory_mib(pid)[0] - memory_before
            print(f"{count} connections: {grown:.0f} MiB more")
            await until(
                "connections without a handshake are closed",
                lambda: other_descriptors(pid) <= before + len(silent) + 5,
                60,
            )
            assert all([await connection.wait_until_closed() for connection in plain])
            if size(short=False, full=True):
                await until(
                    "connections without a request are closed",
                    lambda: other_descriptors(pid) <= before + 5,
                    2 * IDLE_SECONDS,
                )
        assert grown < 16 + count * 0.1
    await until("no connection is left open", lambda: other_descriptors(pid) <= before + 5, 90)


async def send_endless_header(connection: Connection, seconds: float) -> None:
    """Sends a header byte by byte."""
    try:
        await connection.send("GET /livez HTTP/1.1\r\nHost: localhost\r\nX-Slow: ")
        async with asyncio.timeout(seconds):
            while True:
                await connection.send("x")
                await asyncio.sleep(1.0)
    except TimeoutError:
        return


async def test_endless_request_heads_do_not_delay_others(small_history: SmallHistoryCluster) -> None:
    count, client, pid = size(short=50, full=500), small_history.client(), small_history.server.pid
    before = other_descriptors(pid)
    async with ClientConnections(client) as opened:
        connections = await opened.open(count)
        async with BackgroundReader(client).running():
            senders = [
                asyncio.create_task(send_endless_header(connection, size(short=3.0, full=1.5 * IDLE_SECONDS)))
                for connection in connections
            ]
            results = await asyncio.gather(*senders, return_exceptions=True)
        if size(short=False, full=True):
            # the server has closed the connections
            assert {type(each) for each in results} <= {ConnectionResetError, BrokenPipeError, type(None)}
            await until("the connections are closed", lambda: other_descriptors(pid) <= before + 5, 90)
    await until("no connection is left open", lambda: other_descriptors(pid) <= before + 5, 90)


async def test_endless_bodies_fail_at_the_request_deadline(small_history: SmallHistoryCluster) -> None:
    count, client = size(short=50, full=500), small_history.client()
    target = f"POST {tenants_path(ROOT)}?timeout=2s HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: 1000"
    async with ClientConnections(client) as opened:
        connections = await opened.open(count)
        async with BackgroundReader(client).running():
            for connection in connections:
                await connection.send_request(target)
            started = time.monotonic()
            # a request without a timeout of its own has 34 seconds
            async with asyncio.timeout(30):
                heads = await asyncio.gather(*(connection.read_head() for connection in connections))
        print(f"ended after {time.monotonic() - started:.1f} s")
        assert {head.split(b" ")[1] for head in heads} == {b"504"}


def large_bodies() -> list[bytes]:
    """A long text and many small values of slightly less than 3 MiB, and a text of slightly more."""
    text = json.dumps(manifest("large", annotations={"a": "x" * (3 * MIB - 1000)})).encode()
    wide = json.dumps({**manifest("large"), "spec": {"resourceQuotas": [{}] * 770_000}}).encode()
    return [text, wide, text + b" " * 2000]


async def test_large_bodies_from_many_clients_do_not_delay_others(small_history: SmallHistoryCluster) -> None:
    clients, client, pid = size(short=16, full=64), small_history.client(), small_history.server.pid
    small_history.grant("heavy", "cluster-admin", ROOT)
    heavy, before = small_history.client("heavy"), memory_mib(pid)[0]
    bodies = large_bodies()

    def post(number: int) -> int:
        return heavy.request("POST", tenants_path(ROOT), bodies[number % len(bodies)]).status

    async with BackgroundReader(client).running():
        posts = [asyncio.to_thread(post, number) for number in range(clients)]
        statuses = await asyncio.gather(*posts)
    after, peak = memory_mib(pid)
    print(f"{clients} bodies of 3 MiB: {before:.0f} MiB, then {after:.0f}, at most {peak:.0f}")
    assert set(statuses) <= {400, 413, 422, 429}
    assert {413, 422} <= set(statuses)
    # the parsed form of one body with many values, and the bytes of all bodies
    assert peak - before < 320 + 12 * clients
