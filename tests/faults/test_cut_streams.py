"""Watches and lists of the cluster that are cut after every possible byte: no event is lost, repeated or truncated."""

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
from apiserver.patch.media_types import MERGE_PATCH
from registry.cluster.client import HttpClusterClient
from registry.cluster.informer import Informer
from registry.cluster.interface import CONFIGMAPS
from registry.cluster.kubernetes_asyncio_shim import Configuration
from tests.e2e.support.clusters.embedded import EmbeddedCluster
from tests.faults.support.cutting_relay import REFUSED, Cut, CuttingRelay
from tests.faults.support.sizes import size

OBJECTS = 3
# more than the head of a response with two events, and with three items
STREAM_BYTES, LIST_BYTES = 1700, 2500
# more than the initial events and some changes
FIRST_BYTES = 4000


class RecordingHandler:
    """Stores what the informer delivers, and checks the contract of event handlers: versions only increase, and only
    unknown objects are ADDED."""

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


async def _no_delay(_: float) -> None:
    """Lets the informer retry without a pause."""
    await asyncio.sleep(0)


def configuration_for(url: str) -> Configuration:
    configuration = Configuration()
    configuration.host = url
    return configuration


class WatchedNamespace:
    """A namespace of the embedded cluster with a few ConfigMaps, and clients with and without the cutting relay."""

    def __init__(
        self, cluster: EmbeddedCluster, namespace: str, direct: HttpClusterClient, relayed: HttpClusterClient
    ) -> None:
        self.cluster = cluster
        self.namespace = namespace
        self.direct = direct
        self._relayed = relayed

    def informer(self) -> tuple[Informer, RecordingHandler]:
        handler = RecordingHandler()
        informer = Informer(self._relayed, CONFIGMAPS, namespace=self.namespace, sleep=_no_delay)
        informer.add_handler(handler)
        return informer, handler

    async def change(self, number: int) -> None:
        body = {"metadata": {"annotations": {"number": str(number)}}}
        name = f"c{number % OBJECTS}"
        await self.direct.patch(CONFIGMAPS, self.namespace, name, body, content_type=MERGE_PATCH)

    async def stored_versions(self) -> dict[str, Object]:
        found = await self.direct.list(CONFIGMAPS, self.namespace)
        return {item["metadata"]["name"]: item["metadata"]["resourceVersion"] for item in found["items"]}


def versions(handler: RecordingHandler) -> dict[str, Object]:
    return {name: obj["metadata"]["resourceVersion"] for name, obj in handler.objects.items()}


@asynccontextmanager
async def relayed_namespace(cluster: EmbeddedCluster, namespace: str, cut: Cut) -> AsyncIterator[WatchedNamespace]:
    tls: ssl.SSLContext = cluster.admin.tls
    relay = CuttingRelay(cluster.port, tls, cut)
    await relay.start()
    uncut = CuttingRelay(cluster.port, tls, lambda head: None)
    await uncut.start()
    relayed, direct = HttpClusterClient(configuration_for(relay.url)), HttpClusterClient(configuration_for(uncut.url))
    try:
        yield WatchedNamespace(cluster, namespace, direct, relayed)
    finally:
        await relayed.close()
        await direct.close()
        await relay.close()
        await uncut.close()


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


async def test_a_watch_cut_after_any_byte_loses_no_event(embedded: EmbeddedCluster, namespace: str) -> None:
    offsets = count(1, size(short=23, full=1))
    cuts = list[int]()

    def cut(head: bytes) -> int | None:
        if b"watch=true" not in head:
            return None
        if b"sendInitialEvents" in head:
            # the stream with initial events continues as a watch, which has to be resumed as well
            return FIRST_BYTES
        if cuts and cuts[-1] >= STREAM_BYTES:
            return None
        cuts.append(next(offsets))
        return cuts[-1]

    async with relayed_namespace(embedded, namespace, cut) as watched:
        informer, handler = watched.informer()
        async with running(informer):
            await until("the informer has listed", lambda: handler.replaced)
            numbers = count()
            while not cuts or cuts[-1] < STREAM_BYTES:
                await watched.change(next(numbers))
            await watched.change(next(numbers))
            stored = await watched.stored_versions()
            await until("the informer has caught up", lambda: versions(handler) == stored)
        assert len(handler.replaced) == 1
        assert handler.events == next(numbers)
        print(f"{len(cuts)} cuts, {handler.events} events")


@pytest.mark.parametrize("watch_list", [True, False], ids=["a watch with initial events", "a list"])
async def test_an_initial_list_cut_after_any_byte_is_repeated(
    embedded: EmbeddedCluster, namespace: str, watch_list: bool
) -> None:
    offsets: list[int] = []

    def cut(head: bytes) -> int | None:
        if b"sendInitialEvents" in head and not watch_list:
            return REFUSED
        wanted = b"sendInitialEvents" in head if watch_list else b"watch=true" not in head
        return offsets.pop() if wanted and offsets else None

    async with relayed_namespace(embedded, namespace, cut) as watched:
        stored = await watched.stored_versions()
        for offset in range(1, LIST_BYTES, size(short=61, full=1)):
            offsets.append(offset)
            informer, handler = watched.informer()
            async with running(informer):
                await until("the informer has listed", lambda handler=handler: handler.replaced)  # type: ignore[misc]
            assert not offsets
            assert (set(handler.replaced), versions(handler)) == ({len(stored)}, stored), f"cut after {offset} bytes"
