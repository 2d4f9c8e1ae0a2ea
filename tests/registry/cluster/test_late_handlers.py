"""No handler misses the first list: late ones are rejected, and the subscribers of a kind are called together."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from apiserver.meta.resource import Object
from registry.cluster.event_handlers import NoOpEventHandler
from registry.cluster.informer_factory import InformerFactory
from registry.cluster.interface import NAMESPACES, SERVICES, ClusterResource
from tests.fake_cluster import FakeCluster
from tests.virtual_time import virtual


class RecordingHandler(NoOpEventHandler):
    def __init__(self) -> None:
        self.names: list[str] = []

    async def replace(self, items: Sequence[Object], rv: int) -> None:
        self.names = [item["metadata"]["name"] for item in items]

    def apply(self, type: str, obj: Object, rv: int) -> None:
        self.names.append(obj["metadata"]["name"])


@virtual
async def test_a_handler_added_after_the_first_list_is_rejected() -> None:
    cluster = FakeCluster()
    cluster.add(NAMESPACES, {"metadata": {"name": "a"}})
    informers = InformerFactory(cluster)
    informer = informers.get(NAMESPACES)
    task = asyncio.create_task(informers.run())
    await informer.synced.wait()
    with pytest.raises(RuntimeError, match="has called its handlers already"):
        informer.add_handler(RecordingHandler())
    task.cancel()
    await asyncio.wait([task])


@virtual
async def test_all_subscribers_of_a_kind_share_one_informer_from_its_start() -> None:
    cluster = FakeCluster()
    cluster.add(SERVICES, {"metadata": {"name": "a", "namespace": "n"}})
    informers, handlers = InformerFactory(cluster), [RecordingHandler(), RecordingHandler()]

    def follow(handler: RecordingHandler, found: ClusterResource) -> None:
        # without a store, a handler that is added later gets no objects
        informers.get(found, store_objects=False).add_handler(handler)

    for each in handlers:
        availability = informers.watch_availability(SERVICES.group, SERVICES.kind, [SERVICES.version])
        availability.subscribe(lambda found, each=each: follow(each, found))  # type: ignore[misc]
    task = asyncio.create_task(informers.run())
    await informers.wait_until_checked()
    await asyncio.sleep(1)
    assert [each.names for each in handlers] == [["a"], ["a"]]
    task.cancel()
    await asyncio.wait([task])
