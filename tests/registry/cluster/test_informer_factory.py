"""Sharing of informers, and kinds that are served later."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from apiserver.meta import errors
from apiserver.meta.errors import StatusError
from apiserver.meta.resource import Key, Object
from registry.cluster import informer_factory
from registry.cluster.aggregated_discovery import Discovered, DiscoveryRequests
from registry.cluster.event_handlers import NoOpEventHandler
from registry.cluster.informer_factory import InformerFactory
from registry.cluster.interface import (
    NAMESPACES,
    NETWORKPOLICIES,
    SECRETS,
    ClusterResource,
    ClusterUnreachable,
    NotServed,
    ServedResource,
)
from tests.fake_cluster import FakeCluster
from tests.virtual_time import virtual

OLD = ClusterResource("gateway.networking.k8s.io", "v1alpha2", "tlsroutes", "TLSRoute")
NEW = ClusterResource("gateway.networking.k8s.io", "v1", "tlsroutes", "TLSRoute")


class NameCollector(NoOpEventHandler):
    def __init__(self) -> None:
        self.seen: set[str] = set()
        self.changed = asyncio.Event()

    async def replace(self, items: Sequence[Object], rv: int) -> None:
        self.seen = {item["metadata"]["name"] for item in items}
        self.changed.set()

    def apply(self, type: str, obj: Object, rv: int) -> None:
        self.seen.add(obj["metadata"]["name"])


class Serving:
    """Makes a FakeCluster serve only some kinds."""

    def __init__(self, *kinds: ClusterResource) -> None:
        self.kinds = set(kinds)
        self.away = False
        self.without_group = False

    async def __call__(self, verb: str, res: ClusterResource, key: Key) -> None:
        if self.away:
            raise ClusterUnreachable
        if self.without_group:
            raise NotServed
        if res not in self.kinds:
            raise StatusError(404, "NotFound", "the server could not find the requested resource")


@asynccontextmanager
async def running(informers: InformerFactory) -> AsyncIterator[None]:
    task = asyncio.create_task(informers.run())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(informer_factory, "_CHECK_SECONDS", 0.005)


def test_informers_are_shared_by_resource_and_selector() -> None:
    informers = InformerFactory(FakeCluster())
    assert informers.get(SECRETS) is informers.get(SECRETS)
    assert informers.get(SECRETS, field_selector="metadata.name=a") is not informers.get(SECRETS)
    assert len(informers.all) == 2


def test_a_shared_informer_is_returned_and_not_run() -> None:
    namespaces = InformerFactory(FakeCluster()).get(NAMESPACES)
    informers = InformerFactory(FakeCluster(), shared=[namespaces])
    assert informers.get(NAMESPACES) is namespaces
    assert informers.get(NAMESPACES, label_selector="a=b") is not namespaces
    assert namespaces not in informers.all


def test_a_shared_informer_of_some_objects_is_returned_for_its_field_selector() -> None:
    named = InformerFactory(FakeCluster()).get(SECRETS, field_selector="metadata.name=a")
    informers = InformerFactory(FakeCluster(), shared=[named])
    assert informers.get(SECRETS, field_selector="metadata.name=a") is named
    assert informers.get(SECRETS) is not named
    assert informers.get(SECRETS, field_selector="metadata.name=b") is not named


async def test_all_informers_run_including_later_ones() -> None:
    cluster, first, second = FakeCluster(), NameCollector(), NameCollector()
    cluster.add(NAMESPACES, {"metadata": {"name": "a"}})
    cluster.add(SECRETS, {"metadata": {"name": "b", "namespace": "a"}})
    informers = InformerFactory(cluster)
    informers.get(NAMESPACES).add_handler(first)
    async with running(informers):
        await asyncio.wait_for(first.changed.wait(), 5)
        informers.get(SECRETS).add_handler(second)
        await asyncio.wait_for(second.changed.wait(), 5)
    assert (first.seen, second.seen) == ({"a"}, {"b"})
    assert informers.is_served(NAMESPACES)
    assert not informers.is_served(OLD)


@pytest.mark.parametrize(
    ("served", "found"),
    [
        pytest.param([OLD], OLD, id="the only version"),
        pytest.param([OLD, NEW], NEW, id="the newest of two"),
    ],
)
async def test_the_newest_version_that_is_served_is_found(
    served: list[ClusterResource], found: ClusterResource
) -> None:
    informers = InformerFactory(FakeCluster(before=Serving(*served)))
    availability = informers.watch_availability(NEW.group, NEW.kind, ["v1", "v1alpha3", "v1alpha2"])
    notified: asyncio.Queue[ClusterResource] = asyncio.Queue()
    availability.subscribe(notified.put_nowait)
    async with running(informers):
        assert await asyncio.wait_for(notified.get(), 5) == found
    assert availability.resource == found
    availability.subscribe(notified.put_nowait)
    assert notified.get_nowait() == found


async def test_a_kind_can_be_asked_for_while_others_are_watched() -> None:
    """Its plural need not be the kind with an s."""
    informers = InformerFactory(FakeCluster(before=Serving(NETWORKPOLICIES)))
    async with running(informers):
        await asyncio.sleep(0)
        availability = informers.watch_availability(
            NETWORKPOLICIES.group, NETWORKPOLICIES.kind, ["v1"], plural=NETWORKPOLICIES.plural
        )
        await asyncio.wait_for(availability.checked.wait(), 5)
    assert availability.resource == NETWORKPOLICIES


@pytest.mark.usefixtures("quick")
async def test_a_missing_kind_is_checked_until_it_is_served() -> None:
    serving = Serving()
    informers = InformerFactory(FakeCluster(before=serving))
    availability = informers.watch_availability(NEW.group, NEW.kind, ["v1", "v1alpha2"])
    notified: asyncio.Queue[ClusterResource] = asyncio.Queue()
    availability.subscribe(notified.put_nowait)
    async with running(informers):
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(notified.get(), 0.05)
        serving.away = True
        serving.kinds.add(OLD)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(notified.get(), 0.05)
        assert availability.resource is None
        serving.away = False
        assert await asyncio.wait_for(notified.get(), 5) == OLD


class DiscoveringCluster(FakeCluster):
    """A FakeCluster with aggregated discovery, which counts requests once it lacks a kind."""

    def __init__(self, serving: Serving) -> None:
        super().__init__(before=serving)
        self.serving = serving
        self.discoveries = self.lists = 0
        self.asked = asyncio.Semaphore(0)
        self.broken = False
        self._discovery = DiscoveryRequests(self._document)

    async def served_resources(self) -> Collection[ServedResource] | None:
        return await self._discovery.served_resources()

    async def _document(self, path: str, last: Discovered) -> Discovered:
        if path != "/apis":
            return Discovered(served=())
        self.discoveries += 1
        # the answer takes a moment, as that of a cluster does
        await asyncio.sleep(0)
        self.asked.release()
        if self.broken:
            raise ClusterUnreachable
        return Discovered(served={(each.group, each.version, each.plural) for each in self.serving.kinds})

    async def list(self, res: ClusterResource, namespace: str = "", **options: Any) -> Object:
        self.lists += 1
        return await super().list(res, namespace, **options)


@virtual
async def test_missing_kinds_are_looked_for_by_one_request_in_ten_seconds() -> None:
    cluster = DiscoveringCluster(Serving())
    informers = InformerFactory(cluster)
    kinds = "Box", "Crate", "Tin"
    found = [informers.watch_availability("example.org", kind, ["v1", "v1beta1"]) for kind in kinds]
    async with running(informers):
        await informers.wait_until_checked()
        first = cluster.lists
        await asyncio.sleep(95)
        assert (cluster.discoveries, cluster.lists - first) == (9, 0)
        cluster.serving.kinds.add(ClusterResource("example.org", "v1beta1", "crates", "Crate"))
        await asyncio.sleep(10)
    assert [each.resource is not None for each in found] == [False, True, False]


@virtual
@pytest.mark.parametrize("with_discovery", [True, False])
async def test_the_error_of_an_outage_ends_once_the_kind_is_known_to_be_missing(with_discovery: bool) -> None:
    serving, reported = Serving(), list[StatusError | None]()
    cluster = DiscoveringCluster(serving) if with_discovery else FakeCluster(before=serving)
    informers = InformerFactory(cluster)
    availability = informers.watch_availability(OLD.group, OLD.kind, [OLD.version])
    availability.subscribe(lambda found: None, on_error=reported.append)
    async with running(informers):
        await asyncio.sleep(30)
        assert reported == []
        serving.away = True
        if isinstance(cluster, DiscoveringCluster):
            cluster.broken = True
        await asyncio.sleep(30)
        assert {type(each) for each in reported} == {ClusterUnreachable}
        serving.away = False
        if isinstance(cluster, DiscoveringCluster):
            cluster.broken = False
        await asyncio.sleep(30)
    assert [each for each in reported if each is None] == [None]
    assert reported[-1] is None


@virtual
async def test_a_lookup_that_is_refused_is_logged_once_it_lasts(caplog: pytest.LogCaptureFixture) -> None:
    """A kube-apiserver that has just started refuses for a moment what it allows afterwards."""
    until = 0.0

    async def refuse(verb: str, res: ClusterResource, key: Key) -> None:
        if asyncio.get_running_loop().time() < until:
            raise StatusError(403, "Forbidden", "it is forbidden")
        raise NotServed

    informers = InformerFactory(FakeCluster(before=refuse))
    informers.watch_availability("", "PersistentVolumeClaim", ["v1"])
    async with running(informers):
        for seconds, lines in ((5.0, 0), (60.0, 1)):
            until = asyncio.get_running_loop().time() + seconds
            await asyncio.sleep(100)
            assert (
                caplog.messages
                == ["cannot check whether kube-apiserver serves persistentvolumeclaims: it is forbidden"] * lines
            )


@pytest.mark.usefixtures("quick")
async def test_a_kind_is_found_without_discovery() -> None:
    cluster = DiscoveringCluster(Serving())
    cluster.broken = True
    informers = InformerFactory(cluster)
    availability = informers.watch_availability(OLD.group, OLD.kind, [OLD.version])
    notified: asyncio.Queue[ClusterResource] = asyncio.Queue()
    availability.subscribe(notified.put_nowait)
    async with running(informers):
        await asyncio.wait_for(cluster.asked.acquire(), 5)
        cluster.serving.kinds.add(OLD)
        assert await asyncio.wait_for(notified.get(), 5) == OLD


@pytest.mark.usefixtures("quick")
async def test_a_missing_kind_is_logged_once_at_debug_level(caplog: pytest.LogCaptureFixture) -> None:
    """Many clusters lack some kinds, so a missing one is not a warning."""
    checks = asyncio.Semaphore(0)

    async def lacks(verb: str, res: ClusterResource, key: Key) -> None:
        checks.release()
        raise NotServed

    informers = InformerFactory(FakeCluster(before=lacks))
    informers.watch_availability(OLD.group, OLD.kind, ["v1alpha2"])
    with caplog.at_level(logging.DEBUG, logger="registry.cluster.informer_factory"):
        async with running(informers):
            for _ in range(3):
                await asyncio.wait_for(checks.acquire(), 5)
    assert [(each.levelno, each.getMessage()) for each in caplog.records] == [
        (logging.DEBUG, "kube-apiserver does not serve tlsroutes.gateway.networking.k8s.io yet")
    ]


@pytest.mark.usefixtures("quick")
async def test_a_missing_group_counts_as_a_missing_kind() -> None:
    serving = Serving(OLD)
    serving.without_group = True
    informers = InformerFactory(FakeCluster(before=serving))
    availability = informers.watch_availability(NEW.group, NEW.kind, ["v1", "v1alpha2"])
    async with running(informers):
        await asyncio.wait_for(availability.checked.wait(), 5)
        assert availability.resource is None
        assert informers.missing == [f"{NEW.plural}.{NEW.group}"]
        serving.without_group = False
        notified: asyncio.Queue[ClusterResource] = asyncio.Queue()
        availability.subscribe(notified.put_nowait)
        assert await asyncio.wait_for(notified.get(), 5) == OLD


async def test_a_failed_check_does_not_select_an_older_version() -> None:
    """The check of the first version failed. Accepting the second one would be permanent."""
    checks: asyncio.Queue[str] = asyncio.Queue()

    async def before(verb: str, res: ClusterResource, key: Key) -> None:
        checks.put_nowait(res.version)
        raise errors.TooManyRequests("later", retry_after=1)

    informers = InformerFactory(FakeCluster(before=before))
    availability = informers.watch_availability(NEW.group, NEW.kind, ["v1", "v1alpha2"])
    async with running(informers):
        assert await asyncio.wait_for(checks.get(), 5) == "v1"
    assert checks.empty()
    assert availability.resource is None


async def change_served_kinds(cluster: FakeCluster, serving: Serving, *kinds: ClusterResource) -> None:
    """Makes the cluster serve only these kinds, ends the watches of all others, and waits."""
    serving.kinds = set(kinds)
    cluster.unreachable = True
    await asyncio.sleep(1)
    cluster.unreachable = False
    await asyncio.sleep(300)


@virtual
async def test_a_kind_that_changes_its_version_gets_a_new_informer() -> None:
    serving = Serving(OLD)
    cluster, names, notified = FakeCluster(before=serving), NameCollector(), list[ClusterResource]()
    cluster.add(NEW, {"metadata": {"name": "a", "namespace": "n"}})
    informers = InformerFactory(cluster)

    def follow(found: ClusterResource) -> None:
        informers.get(found).add_handler(names)
        notified.append(found)

    availability = informers.watch_availability(NEW.group, NEW.kind, ["v1", "v1alpha2"])
    availability.subscribe(follow)
    async with running(informers):
        await asyncio.sleep(60)
        assert (notified, names.seen) == ([OLD], {"a"})
        await change_served_kinds(cluster, serving, NEW)
        assert (notified, availability.resource) == ([OLD, NEW], NEW)
        cluster.add(NEW, {"metadata": {"name": "b", "namespace": "n"}})
        await asyncio.sleep(1)
        assert names.seen == {"a", "b"}
        assert [each.resource for each in informers.all] == [NEW]
        assert {task.get_name() for task in asyncio.all_tasks() if "informer-" in task.get_name()} == {
            "informer-tlsroutes"
        }


@virtual
async def test_a_kind_that_is_no_longer_served_counts_as_unchanged() -> None:
    """An empty list would delete everything that depends on the kind, and kube-apiserver may only be starting."""
    serving = Serving(OLD)
    cluster, names = FakeCluster(before=serving), NameCollector()
    cluster.add(OLD, {"metadata": {"name": "a", "namespace": "n"}})
    informers = InformerFactory(cluster)
    availability = informers.watch_availability(NEW.group, NEW.kind, ["v1", "v1alpha2"])
    availability.subscribe(lambda found: informers.get(found).add_handler(names))
    async with running(informers):
        await asyncio.sleep(60)
        await change_served_kinds(cluster, serving)
        assert [each.reachable for each in informers.all] == [False]
        assert (names.seen, availability.resource) == ({"a"}, OLD)
        cluster.add(OLD, {"metadata": {"name": "b", "namespace": "n"}})
        await change_served_kinds(cluster, serving, OLD)
        assert [each.reachable for each in informers.all] == [True]
        assert names.seen == {"a", "b"}
    assert informers.missing == []
