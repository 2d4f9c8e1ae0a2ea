"""Too many of everything: watchers that never read, connections that say nothing, heads and bodies that never end."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.e2e.support.clusters import ROOT, EmbeddedCluster, tenants_path
from tests.e2e.support.https_client import Client
from tests.e2e.support.tenants import manifest
from tests.faults.many_clients import Crowd, Line, in_parallel
from tests.faults.process_usage import descriptors, memory
from tests.faults.sizes import size

MERGE = "application/merge-patch+json"
MIB = 2**20
# how long anybody else may have to wait meanwhile, on a machine that runs both sides
PATIENCE_SECONDS = 5.0
# of the listener: for a handshake, and for the head of a request
HANDSHAKE_SECONDS, IDLE_SECONDS = 10.0, 100.0


class SmallHistory(EmbeddedCluster):
    """What a watcher did not read is soon forgotten."""

    flags = ("--watch-history-size=4Mi",)


@pytest.fixture
def crowded(tmp_path: Path) -> Iterator[SmallHistory]:
    running = SmallHistory(tmp_path)
    yield running
    assert running.stop() == 0, running.server.tail()


@dataclass(slots=True)
class Others:
    """Somebody else, who asks for a Tenant all the time."""

    client: Client
    waits: list[float] = field(default_factory=list)

    @asynccontextmanager
    async def served(self) -> AsyncIterator[None]:
        """Fails if one of them has to wait too long."""
        task = asyncio.create_task(self._ask())
        try:
            yield
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
        longest = max(self.waits)
        print(f"others waited {longest:.3f} s at most, in {len(self.waits)} requests")
        assert longest < PATIENCE_SECONDS

    async def _ask(self) -> None:
        while True:
            started = time.monotonic()
            answer = await asyncio.to_thread(self.client.get, tenants_path(ROOT, "root"))
            assert answer.status == 200
            self.waits.append(time.monotonic() - started)
            await asyncio.sleep(0.05)


async def until(what: str, check: Callable[[], object], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not await asyncio.to_thread(check):
        assert time.monotonic() < deadline, f"waited for: {what}"
        await asyncio.sleep(0.2)


class Audience:
    """Watchers of one Tenant who read everything."""

    def __init__(self, lines: Sequence[Line]) -> None:
        self._tasks = [asyncio.create_task(self._read(line)) for line in lines]
        self.told: dict[str, int] = {}

    async def _read(self, line: Line) -> None:
        last = ""
        while True:
            frame = await line.reader.readuntil(b"}\n")
            metadata = json.loads(frame.rpartition(b"\r\n")[2])["object"]["metadata"]
            value = metadata.get("annotations", {}).get("number", "")
            # what the reconciler says of the Tenant comes in between
            if value != last:
                last, self.told[value] = value, self.told.get(value, 0) + 1

    async def leave(self) -> None:
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


async def test_watchers_that_never_read_hurt_nobody(crowded: SmallHistory) -> None:
    readers, stuck, rounds = size(short=270, full=4500), size(short=30, full=500), size(short=40, full=100)
    client, pid = crowded.client(), crowded.server.pid
    for name in ("big", "small"):
        client.request("POST", tenants_path(ROOT), manifest(name)).expect(201)
    version = client.get(tenants_path(ROOT)).expect(200)["metadata"]["resourceVersion"]
    async with Crowd(client) as crowd:
        listening, deaf = await crowd.gather(readers), await crowd.gather(stuck, reads=False)
        for lines, name in ((listening, "small"), (deaf, "big")):
            await in_parallel([lambda line=line, name=name: line.ask(watch_of(name, version)) for line in lines])  # type: ignore[misc]
            assert all(b" 200 " in head for head in await in_parallel([line.head for line in lines]))
        audience, before = Audience(listening), memory(pid)[0]
        slowest = 0.0
        async with Others(client).served():
            for number in range(rounds):
                await annotate(client, "big", {"text": f"{number:06}" * 40_000})
                started = time.monotonic()
                await annotate(client, "small", {"number": str(number)})
                await until("all have it", lambda number=number: audience.told.get(str(number)) == readers, 30)  # type: ignore[misc]
                slowest = max(slowest, time.monotonic() - started)
            print(f"still there: {watchers(client) - readers} of those that do not read")
        await until("those that do not read are cut", lambda: watchers(client) == readers, 90)
        after = memory(pid)
        print(
            f"{readers} watchers, {stuck} of them stuck: {before:.0f} MiB, then {after[0]:.0f}, at most {after[1]:.0f}"
        )
        print(f"the last reader had a change after {slowest:.3f} s at most")
        await audience.leave()
    assert audience.told == {str(number): readers for number in range(rounds)}
    assert slowest < PATIENCE_SECONDS
    # the history, and for each of those that are stuck what one write may hold, as it is and encrypted
    assert after[1] - before < 64 + stuck * 2.0


def watchers(client: Client) -> int:
    lines = client.get("/metrics").content.decode().splitlines()
    [line] = [each for each in lines if each.startswith("apiserver_registered_watchers") and '"tenants"' in each]
    return int(float(line.rpartition(" ")[2]))


async def test_connections_that_say_nothing_hurt_nobody(crowded: SmallHistory) -> None:
    count = size(short=500, full=10_000)
    client, pid = crowded.client(), crowded.server.pid
    before, memory_before = descriptors(pid), memory(pid)[0]
    async with Crowd(client) as crowd:
        async with Others(client).served():
            plain = await crowd.gather(count // 2, tls=False)
            silent = await crowd.gather(count - len(plain))
            grown = memory(pid)[0] - memory_before
            print(f"{count} connections: {grown:.0f} MiB more")
            await until("no handshake is waited for", lambda: descriptors(pid) <= before + len(silent) + 5, 60)
            assert all([await line.is_ended() for line in plain])
            if size(short=False, full=True):
                await until("no request is waited for", lambda: descriptors(pid) <= before + 5, 2 * IDLE_SECONDS)
        assert grown < 16 + count * 0.1
    await until("nothing is left open", lambda: descriptors(pid) <= before + 5, 30)


async def drip(line: Line, seconds: float) -> None:
    """A header that grows by a byte at a time."""
    try:
        await line.say("GET /livez HTTP/1.1\r\nHost: localhost\r\nX-Slow: ")
        async with asyncio.timeout(seconds):
            while True:
                await line.say("x")
                await asyncio.sleep(1.0)
    except TimeoutError:
        return


async def test_heads_that_never_end_hurt_nobody(crowded: SmallHistory) -> None:
    count, client, pid = size(short=50, full=500), crowded.client(), crowded.server.pid
    before = descriptors(pid)
    async with Crowd(client) as crowd:
        lines = await crowd.gather(count)
        async with Others(client).served():
            dripping = [asyncio.create_task(drip(line, size(short=3.0, full=1.5 * IDLE_SECONDS))) for line in lines]
            done = await asyncio.gather(*dripping, return_exceptions=True)
        if size(short=False, full=True):
            # who is cut is told so by the connection
            assert {type(each) for each in done} <= {ConnectionResetError, BrokenPipeError, type(None)}
            await until("they are cut", lambda: descriptors(pid) <= before + 5, 30)
    await until("nothing is left open", lambda: descriptors(pid) <= before + 5, 30)


async def test_bodies_that_never_end_are_ended_at_their_deadline(crowded: SmallHistory) -> None:
    count, client = size(short=50, full=500), crowded.client()
    target = f"POST {tenants_path(ROOT)}?timeout=2s HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: 1000"
    async with Crowd(client) as crowd:
        lines = await crowd.gather(count)
        async with Others(client).served():
            for line in lines:
                await line.ask(target)
            started = time.monotonic()
            async with asyncio.timeout(20):
                heads = await asyncio.gather(*(line.head() for line in lines))
        print(f"ended after {time.monotonic() - started:.1f} s")
        assert {head.split(b" ")[1] for head in heads} == {b"504"}


def large_bodies() -> list[bytes]:
    """A little less than 3 MiB, and a little more: one long text, and very many small things."""
    text = json.dumps(manifest("large", annotations={"a": "x" * (3 * MIB - 1000)})).encode()
    wide = json.dumps({**manifest("large"), "spec": {"resourceQuotas": [{}] * 770_000}}).encode()
    return [text, wide, text + b" " * 2000]


async def test_large_bodies_from_many_clients_hurt_nobody(crowded: SmallHistory) -> None:
    clients, client, pid = size(short=16, full=64), crowded.client(), crowded.server.pid
    crowded.grant("heavy", "cluster-admin", ROOT)
    heavy, before = crowded.client("heavy"), memory(pid)[0]
    bodies = large_bodies()

    def post(number: int) -> int:
        return heavy.request("POST", tenants_path(ROOT), bodies[number % len(bodies)]).status

    async with Others(client).served():
        posts = [asyncio.to_thread(post, number) for number in range(clients)]
        statuses = await asyncio.gather(*posts)
    after, peak = memory(pid)
    print(f"{clients} bodies of 3 MiB: {before:.0f} MiB, then {after:.0f}, at most {peak:.0f}")
    assert set(statuses) <= {400, 413, 422, 429}
    assert {413, 422} <= set(statuses)
    # what one body of very many values takes while it is parsed, and what all of them hold as bytes
    assert peak - before < 320 + 12 * clients
