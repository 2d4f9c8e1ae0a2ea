"""A scripted ClusterClient, and recording handlers, for tests of the informer."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import Any

from apiserver.meta.errors import StatusError
from apiserver.meta.resource import Object
from registry.cluster.backoff import Backoff
from registry.cluster.informer import Informer
from registry.cluster.interface import NAMESPACES, ClusterResource, WatchEvent
from registry.cluster.outage_log import OutageLog

END = {"annotations": {"k8s.io/initial-events-end": "true"}}


def obj(name: str, rv: int) -> Object:
    return {"metadata": {"name": name, "resourceVersion": str(rv), "managedFields": [{}]}}


def event(type_: str, name: str, rv: int) -> WatchEvent:
    return WatchEvent(type_, obj(name, rv))


def bookmark(rv: int, **metadata: Any) -> WatchEvent:
    return WatchEvent("BOOKMARK", {"metadata": {"resourceVersion": str(rv), **metadata}})


def page(rv: int, *items: Object) -> Object:
    return {"metadata": {"resourceVersion": str(rv)}, "items": list(items)}


class Script:
    """A ClusterClient that plays a script of lists and watches, followed by a watch without events."""

    def __init__(self, *steps: Object | StatusError | Sequence[WatchEvent | Exception]) -> None:
        self._steps = list(steps)
        self.calls: list[str] = []
        self.over = asyncio.Event()
        self.outages = OutageLog()

    async def list(self, res: ClusterResource, namespace: str = "", *, limit: int, **options: Any) -> Object:
        assert limit == 1
        self.calls.append("probe")
        return self._answer()

    async def each_list_item(
        self,
        res: ClusterResource,
        namespace: str = "",
        *,
        visit: Callable[[Object], None],
        resource_version: str,
        **options: Any,
    ) -> str:
        self.calls.append(f"list {resource_version}".rstrip())
        answer = self._answer()
        for item in answer["items"]:
            visit(item)
        version: str = answer["metadata"]["resourceVersion"]
        return version

    def _answer(self) -> Object:
        step = self._steps.pop(0)
        if isinstance(step, StatusError):
            raise step
        assert isinstance(step, Mapping)
        return dict(step)

    async def watch(
        self,
        res: ClusterResource,
        namespace: str = "",
        *,
        resource_version: str,
        send_initial_events: bool,
        on_open: Callable[[], object],
        **options: Any,
    ) -> AsyncIterator[WatchEvent]:
        self.calls.append("watchlist" if send_initial_events else f"watch {resource_version}")
        if not self._steps:
            on_open()
            self.over.set()
            await asyncio.Event().wait()
        step = self._steps.pop(0)
        if isinstance(step, StatusError):
            raise step
        assert isinstance(step, Sequence)
        on_open()
        for each in step:
            if isinstance(each, Exception):
                raise each
            yield each


class RecordingHandler:
    def __init__(self) -> None:
        self.handled: list[Any] = []
        self.objects: list[Object] = []

    async def replace(self, items: Sequence[Object], rv: int) -> None:
        self.objects += items
        self.handled.append(("replace", [item["metadata"]["name"] for item in items], rv))

    def apply(self, type: str, obj: Object, rv: int) -> None:
        self.objects.append(obj)
        self.handled.append((type, obj["metadata"]["name"], rv))

    def bookmark(self, rv: int) -> None:
        self.handled.append(("bookmark", rv))

    def set_cluster_error(self, error: StatusError | None) -> None:
        self.handled.append(("unreachable", error.code if error else None))


class Run:
    """`completeness` tells for each of the delays whether the informer was complete meanwhile."""

    def __init__(
        self, script: Script, informer: Informer, record: RecordingHandler, pauses: Sequence[tuple[float, bool]]
    ) -> None:
        self.calls, self.informer = script.calls, informer
        self.delays, self.completeness = [each[0] for each in pauses], [each[1] for each in pauses]
        self.handled, self.objects = record.handled, record.objects


def whole(obj: Object) -> Object:
    return obj


async def at_once(seconds: float) -> None:
    pass


async def play(
    *steps: Any,
    store_objects: bool = True,
    transform: Callable[[Object], Object] = whole,
    keeps: Callable[[Object], bool] | None = None,
    minimum_version: Callable[[], int] = lambda: 0,
    if_forbidden: str = "",
    sleep: Callable[[float], Awaitable[None]] = at_once,
) -> Run:
    """Runs an informer through the script, without delays by default."""
    script, record, pauses = Script(*steps), RecordingHandler(), list[tuple[float, bool]]()

    async def pause(seconds: float) -> None:
        pauses.append((seconds, informer.complete.is_set()))
        await sleep(seconds)

    backoff = Backoff(jitter=lambda: 0.0)
    informer = Informer(
        script,  # type: ignore[arg-type]
        NAMESPACES,
        store_objects=store_objects,
        transform=transform,
        keeps=keeps,
        minimum_version=minimum_version,
        backoff=backoff,
        sleep=pause,
    )
    informer.if_forbidden = if_forbidden
    informer.add_handler(record)
    task = asyncio.create_task(informer.run())
    await asyncio.wait_for(script.over.wait(), 5 if sleep is at_once else 3600)
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
    return Run(script, informer, record, pauses)


INITIAL = [event("ADDED", "a", 3), event("ADDED", "b", 2), bookmark(5, **END)]
