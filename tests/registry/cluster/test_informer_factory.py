"""One informer of each kind, and kinds that come later."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest

from apiserver.meta import errors
from apiserver.meta.errors import StatusError
from apiserver.meta.resource import Key, Object
from registry.cluster import informer_factory as looking
from registry.cluster.informer_factory import InformerFactory
from registry.cluster.interface import NAMESPACES, SECRETS, ClusterResource, ClusterUnreachable, NotServed
from tests.fakes import FakeCluster
from tests.virtual_time import virtual

OLD = ClusterResource("gateway.networking.k8s.io", "v1alpha2", "tlsroutes", "TLSRoute")
NEW = ClusterResource("gateway.networking.k8s.io", "v1", "tlsroutes", "TLSRoute")


class Names:
    def __init__(self) -> None:
        self.seen: set[str] = set()
        self.changed = asyncio.Event()

    async def replace(self, items: Sequence[Object], rv: int) -> None:
        self.seen = {item["metadata"]["name"] for item in items}
        self.changed.set()

    def apply(self, type: str, obj: Object, rv: int) -> None:
        self.seen.add(obj["metadata"]["name"])

    def bookmark(self, rv: int) -> None: ...

    def set_cluster_error(self, error: StatusError | None) -> None: ...


class Serving:
    """A host that serves some kinds only."""

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
    monkeypatch.setattr(looking, "_CHECK_SECONDS", 0.005)


def test_who_asks_for_the_same_gets_the_same() -> None:
    informers = InformerFactory(FakeCluster())
    assert informers.get(SECRETS) is informers.get(SECRETS)
    assert informers.get(SECRETS, field_selector="metadata.name=a") is not informers.get(SECRETS)
    assert len(informers.all) == 2


def test_what_somebody_else_runs_is_shared_and_not_run_again() -> None:
    namespaces = InformerFactory(FakeCluster()).get(NAMESPACES)
    informers = InformerFactory(FakeCluster(), shared=[namespaces])
    assert informers.get(NAMESPACES) is namespaces
    assert informers.get(NAMESPACES, label_selector="a=b") is not namespaces
    assert namespaces not in informers.all


async def test_all_of_them_run_and_later_ones_too() -> None:
    host, first, second = FakeCluster(), Names(), Names()
    host.add(NAMESPACES, {"metadata": {"name": "a"}})
    host.add(SECRETS, {"metadata": {"name": "b", "namespace": "a"}})
    informers = InformerFactory(host)
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
    sought = informers.watch_availability(NEW.group, NEW.kind, ["v1", "v1alpha3", "v1alpha2"])
    told: asyncio.Queue[ClusterResource] = asyncio.Queue()
    sought.subscribe(told.put_nowait)
    async with running(informers):
        assert await asyncio.wait_for(told.get(), 5) == found
    assert sought.resource == found
    sought.subscribe(told.put_nowait)
    assert told.get_nowait() == found


@pytest.mark.usefixtures("quick")
async def test_a_kind_that_is_missing_is_looked_for_until_it_comes() -> None:
    serving = Serving()
    informers = InformerFactory(FakeCluster(before=serving))
    sought = informers.watch_availability(NEW.group, NEW.kind, ["v1", "v1alpha2"])
    told: asyncio.Queue[ClusterResource] = asyncio.Queue()
    sought.subscribe(told.put_nowait)
    async with running(informers):
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(told.get(), 0.05)
        serving.away = True
        serving.kinds.add(OLD)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(told.get(), 0.05)
        assert sought.resource is None
        serving.away = False
        assert await asyncio.wait_for(told.get(), 5) == OLD


@pytest.mark.usefixtures("quick")
async def test_a_kind_that_is_merely_missing_alarms_nobody(caplog: pytest.LogCaptureFixture) -> None:
    """Many hosts lack some: only who asks for details is told, and that once."""
    asked = asyncio.Semaphore(0)

    async def lacks(verb: str, res: ClusterResource, key: Key) -> None:
        asked.release()
        raise NotServed

    informers = InformerFactory(FakeCluster(before=lacks))
    informers.watch_availability(OLD.group, OLD.kind, ["v1alpha2"])
    with caplog.at_level(logging.DEBUG, logger="registry.cluster.informer_factory"):
        async with running(informers):
            for _ in range(3):
                await asyncio.wait_for(asked.acquire(), 5)
    assert [(each.levelno, each.getMessage()) for each in caplog.records] == [
        (logging.DEBUG, "kube-apiserver does not serve tlsroutes.gateway.networking.k8s.io yet")
    ]


@pytest.mark.usefixtures("quick")
async def test_a_host_without_the_whole_group_is_one_that_lacks_the_kind() -> None:
    serving = Serving(OLD)
    serving.without_group = True
    informers = InformerFactory(FakeCluster(before=serving))
    sought = informers.watch_availability(NEW.group, NEW.kind, ["v1", "v1alpha2"])
    async with running(informers):
        await asyncio.wait_for(sought.checked.wait(), 5)
        assert sought.resource is None
        serving.without_group = False
        told: asyncio.Queue[ClusterResource] = asyncio.Queue()
        sought.subscribe(told.put_nowait)
        assert await asyncio.wait_for(told.get(), 5) == OLD


async def test_a_host_that_is_away_does_not_make_an_old_version_the_newest() -> None:
    """The first version could not be asked for: to go on with the second would settle on it for good."""
    asked: asyncio.Queue[str] = asyncio.Queue()

    async def before(verb: str, res: ClusterResource, key: Key) -> None:
        asked.put_nowait(res.version)
        raise errors.TooManyRequests("later", retry_after=1)

    informers = InformerFactory(FakeCluster(before=before))
    sought = informers.watch_availability(NEW.group, NEW.kind, ["v1", "v1alpha2"])
    async with running(informers):
        assert await asyncio.wait_for(asked.get(), 5) == "v1"
    assert asked.empty()
    assert sought.resource is None


async def changed(cluster: FakeCluster, serving: Serving, *kinds: ClusterResource) -> None:
    """From now on the host serves these kinds; watches of others end, and a long time passes."""
    serving.kinds = set(kinds)
    cluster.unreachable = True
    await asyncio.sleep(1)
    cluster.unreachable = False
    await asyncio.sleep(300)


@virtual
async def test_a_kind_that_comes_to_be_served_in_another_version_only_is_followed_there() -> None:
    serving = Serving(OLD)
    host, names, told = FakeCluster(before=serving), Names(), list[ClusterResource]()
    host.add(NEW, {"metadata": {"name": "a", "namespace": "n"}})
    informers = InformerFactory(host)

    def follow(found: ClusterResource) -> None:
        informers.get(found).add_handler(names)
        told.append(found)

    sought = informers.watch_availability(NEW.group, NEW.kind, ["v1", "v1alpha2"])
    sought.subscribe(follow)
    async with running(informers):
        await asyncio.sleep(60)
        assert (told, names.seen) == ([OLD], {"a"})
        await changed(host, serving, NEW)
        assert (told, sought.resource) == ([OLD, NEW], NEW)
        host.add(NEW, {"metadata": {"name": "b", "namespace": "n"}})
        await asyncio.sleep(1)
        assert names.seen == {"a", "b"}
        assert [each.resource for each in informers.all] == [NEW]
        assert {task.get_name() for task in asyncio.all_tasks() if "informer-" in task.get_name()} == {
            "informer-tlsroutes"
        }


@virtual
async def test_a_kind_that_is_gone_stays_as_it_was_seen() -> None:
    """An empty list would take down all that hangs on it, and the host may only be starting."""
    serving = Serving(OLD)
    host, names = FakeCluster(before=serving), Names()
    host.add(OLD, {"metadata": {"name": "a", "namespace": "n"}})
    informers = InformerFactory(host)
    sought = informers.watch_availability(NEW.group, NEW.kind, ["v1", "v1alpha2"])
    sought.subscribe(lambda found: informers.get(found).add_handler(names))
    async with running(informers):
        await asyncio.sleep(60)
        await changed(host, serving)
        assert [each.reachable for each in informers.all] == [False]
        assert (names.seen, sought.resource) == ({"a"}, OLD)
        host.add(OLD, {"metadata": {"name": "b", "namespace": "n"}})
        await changed(host, serving, OLD)
        assert [each.reachable for each in informers.all] == [True]
        assert names.seen == {"a", "b"}
