"""Nobody comes too late to be told what there is: that is refused, and all who wait for a kind are told at once."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from apiserver.meta.errors import StatusError
from apiserver.meta.resource import Object
from registry.cluster.informer_factory import InformerFactory
from registry.cluster.interface import NAMESPACES, SERVICES, ClusterResource
from tests.fakes import FakeCluster
from tests.virtual_time import virtual


class Told:
    def __init__(self) -> None:
        self.names: list[str] = []

    async def replace(self, items: Sequence[Object], rv: int) -> None:
        self.names = [item["metadata"]["name"] for item in items]

    def apply(self, type: str, obj: Object, rv: int) -> None:
        self.names.append(obj["metadata"]["name"])

    def bookmark(self, rv: int) -> None: ...

    def set_cluster_error(self, error: StatusError | None) -> None: ...


@virtual
async def test_a_handler_that_would_not_be_told_what_there_is_is_refused() -> None:
    cluster = FakeCluster()
    cluster.add(NAMESPACES, {"metadata": {"name": "a"}})
    informers = InformerFactory(cluster)
    informer = informers.get(NAMESPACES)
    task = asyncio.create_task(informers.run())
    await informer.synced.wait()
    with pytest.raises(RuntimeError, match="has called its handlers already"):
        informer.add_handler(Told())
    task.cancel()
    await asyncio.wait([task])


@virtual
async def test_all_who_look_for_a_kind_share_one_informer_from_its_start() -> None:
    cluster = FakeCluster()
    cluster.add(SERVICES, {"metadata": {"name": "a", "namespace": "n"}})
    informers, told = InformerFactory(cluster), [Told(), Told()]

    def follow(handler: Told, found: ClusterResource) -> None:
        # without a store there is nothing to tell late ones
        informers.get(found, store_objects=False).add_handler(handler)

    for each in told:
        sought = informers.watch_availability(SERVICES.group, SERVICES.kind, [SERVICES.version])
        sought.subscribe(lambda found, each=each: follow(each, found))  # type: ignore[misc]
    task = asyncio.create_task(informers.run())
    await informers.wait_until_checked()
    await asyncio.sleep(1)
    assert [each.names for each in told] == [["a"], ["a"]]
    task.cancel()
    await asyncio.wait([task])
