"""Watches and lists of the host that end after every possible byte: no event is lost, doubled or half read."""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from itertools import count

import pytest

from apiserver.meta.errors import StatusError
from apiserver.meta.resource import Object
from registry.cluster.client import HttpClusterClient
from registry.cluster.informer import Informer
from registry.cluster.interface import CONFIGMAPS, MERGE_PATCH
from registry.cluster.kubernetes_asyncio_shim import Configuration
from tests.e2e.support.clusters import EmbeddedCluster
from tests.faults.cutting_relay import REFUSED, Cut, CuttingRelay
from tests.faults.sizes import size

OBJECTS = 3
# the head of an answer, and two events or three items behind it
STREAM_BYTES, LIST_BYTES = 1700, 2500
# everything there is, and some changes
FIRST_BYTES = 4000


class Seen:
    """Tells the informer's handlers' contract: what is replaced is whole, and versions only grow."""

    def __init__(self) -> None:
        self.objects: dict[str, Object] = {}
        self.replaced: list[int] = []
        self.version = 0
        self.events = 0

    async def replace(self, items: Sequence[Object], rv: int) -> None:
        self.objects = {item["metadata"]["name"]: item for item in items}
        self.replaced.append(len(items))
        self.version = rv

    def apply(self, type: str, obj: Object, rv: int) -> None:
        assert rv > self.version
        assert (obj["metadata"]["name"] in self.objects) == (type != "ADDED")
        self.version = rv
        self.events += 1
        if type == "DELETED":
            del self.objects[obj["metadata"]["name"]]
        else:
            self.objects[obj["metadata"]["name"]] = obj

    def bookmark(self, rv: int) -> None:
        assert rv >= self.version
        self.version = rv

    def set_cluster_error(self, error: StatusError | None) -> None:
        pass


async def _at_once(_: float) -> None:
    """There is no pause before the next try."""
    await asyncio.sleep(0)


def configured(url: str) -> Configuration:
    configuration = Configuration()
    configuration.host = url
    return configuration


class Stage:
    """A namespace of the embedded host with a few ConfigMaps, and clients of it: one past the relay, one through it."""

    def __init__(
        self, cluster: EmbeddedCluster, namespace: str, straight: HttpClusterClient, through: HttpClusterClient
    ) -> None:
        self.cluster = cluster
        self.namespace = namespace
        self.straight = straight
        self._through = through

    def informer(self) -> tuple[Informer, Seen]:
        seen = Seen()
        made = Informer(self._through, CONFIGMAPS, namespace=self.namespace, sleep=_at_once)
        made.add_handler(seen)
        return made, seen

    async def change(self, number: int) -> None:
        body = {"metadata": {"annotations": {"number": str(number)}}}
        name = f"c{number % OBJECTS}"
        await self.straight.patch(CONFIGMAPS, self.namespace, name, body, content_type=MERGE_PATCH)

    async def held(self) -> dict[str, Object]:
        found = await self.straight.list(CONFIGMAPS, self.namespace)
        return {item["metadata"]["name"]: item["metadata"]["resourceVersion"] for item in found["items"]}


def versions(seen: Seen) -> dict[str, Object]:
    return {name: obj["metadata"]["resourceVersion"] for name, obj in seen.objects.items()}


@asynccontextmanager
async def staged(cluster: EmbeddedCluster, namespace: str, cut: Cut) -> AsyncIterator[Stage]:
    tls: ssl.SSLContext = cluster.admin.tls
    relay = CuttingRelay(cluster.port, tls, cut)
    await relay.start()
    direct = CuttingRelay(cluster.port, tls, lambda head: None)
    await direct.start()
    through, straight = HttpClusterClient(configured(relay.url)), HttpClusterClient(configured(direct.url))
    try:
        yield Stage(cluster, namespace, straight, through)
    finally:
        await through.close()
        await straight.close()
        await relay.close()
        await direct.close()


@pytest.fixture
def namespace(embedded: EmbeddedCluster, unique: str) -> str:
    client = embedded.client()
    client.request("POST", "/api/v1/namespaces", {"metadata": {"name": unique}}).expect(201)
    path = f"/api/v1/namespaces/{unique}/configmaps"
    for number in range(OBJECTS):
        client.request("POST", path, {"metadata": {"name": f"c{number}"}}).expect(201)
    return unique


@asynccontextmanager
async def running(informer: Informer) -> AsyncIterator[None]:
    task = asyncio.create_task(informer.run())
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def until(what: str, check: Callable[[], object]) -> None:
    deadline = time.monotonic() + 60
    while not check():
        assert time.monotonic() < deadline, f"waited for: {what}"
        await asyncio.sleep(0.005)


async def test_a_watch_that_is_cut_after_every_byte(embedded: EmbeddedCluster, namespace: str) -> None:
    offsets = count(1, size(short=23, full=1))
    cuts = list[int]()

    def cut(head: bytes) -> int | None:
        if b"watch=true" not in head:
            return None
        if b"sendInitialEvents" in head:
            # it goes on as a watch: that ends too, to be resumed
            return FIRST_BYTES
        if cuts and cuts[-1] >= STREAM_BYTES:
            return None
        cuts.append(next(offsets))
        return cuts[-1]

    async with staged(embedded, namespace, cut) as stage:
        informer, seen = stage.informer()
        async with running(informer):
            await until("everything is seen", lambda: seen.replaced)
            numbers = count()
            while not cuts or cuts[-1] < STREAM_BYTES:
                await stage.change(next(numbers))
            await stage.change(next(numbers))
            held = await stage.held()
            await until("the informer has caught up", lambda: versions(seen) == held)
        assert len(seen.replaced) == 1
        assert seen.events == next(numbers)
        print(f"{len(cuts)} cuts, {seen.events} events")


@pytest.mark.parametrize("watch_list", [True, False], ids=["a watch that begins with everything", "a list"])
async def test_a_first_look_that_is_cut_after_every_byte(
    embedded: EmbeddedCluster, namespace: str, watch_list: bool
) -> None:
    left: list[int] = []

    def cut(head: bytes) -> int | None:
        if b"sendInitialEvents" in head and not watch_list:
            return REFUSED
        wanted = b"sendInitialEvents" in head if watch_list else b"watch=true" not in head
        return left.pop() if wanted and left else None

    async with staged(embedded, namespace, cut) as stage:
        held = await stage.held()
        for offset in range(1, LIST_BYTES, size(short=61, full=1)):
            left.append(offset)
            informer, seen = stage.informer()
            async with running(informer):
                await until("everything is seen", lambda seen=seen: seen.replaced)  # type: ignore[misc]
            assert not left
            assert (set(seen.replaced), versions(seen)) == ({len(held)}, held), f"cut after {offset} bytes"
