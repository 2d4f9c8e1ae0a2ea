"""Events (events.k8s.io/v1) as `kubectl describe` shows them, written on a best-effort basis and through the gate.

An event that is repeated within six minutes is counted in the series of one Event, which is written at most once a
minute. New events of one object are rate-limited. Therefore even a hot loop causes few writes.
"""

from __future__ import annotations

import asyncio
import logging
import time
import uuid
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal, TypeVar

from apiserver.meta.errors import StatusError
from apiserver.meta.resource import Object
from controller.runtime.apply import ClusterWriter
from controller.runtime.leader_election import format_micro_time
from controller.runtime.workqueue import WorkQueue
from controller.runtime.write_gate import NotLeading
from registry.cluster.interface import EVENTS, ClusterResource

K = TypeVar("K")
V = TypeVar("V")

_logger = logging.getLogger(__name__)
_SERIES_SECONDS = 360.0
_REFRESH_SECONDS = 60.0
_MAX_SERIES = 4096
_BURST = 25.0
_TOKEN_SECONDS = 30.0
# Validation of events.k8s.io/v1 rejects anything longer.
_MAX_REASON = 128
_MAX_NOTE = 1024
_MAX_NAME = 253
# Validation of Events accepts no other namespace for an object that has none.
_CLUSTER_SCOPED = "default"


@dataclass(frozen=True, slots=True, kw_only=True)
class Regarding:
    """The object that an Event is about. The Event is created in its namespace, or in `default` if it has none."""

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str

    @classmethod
    def of(cls, res: ClusterResource, obj: Object) -> Regarding:
        metadata = obj["metadata"]
        return cls(
            api_version=res.api_version,
            kind=res.kind,
            namespace=metadata.get("namespace", ""),
            name=metadata["name"],
            uid=metadata["uid"],
        )

    def reference(self) -> Object:
        reference = {"apiVersion": self.api_version, "kind": self.kind, "name": self.name, "uid": self.uid}
        return {**reference, "namespace": self.namespace} if self.namespace else reference


@dataclass(frozen=True, slots=True)
class Event:
    """One occurrence: `reason` and `action` are CamelCase words, `note` is a human-readable message."""

    type: Literal["Normal", "Warning"]
    reason: str
    action: str
    note: str


class Recorder:
    """The interface of event recorders. This one discards every event."""

    def record(self, regarding: Regarding, event: Event) -> None:
        """Never blocks or raises."""


_SeriesKey = tuple[Regarding, Event]


@dataclass(slots=True)
class _Series:
    """`seen` and `written` are times of the monotonic clock, `last` is the same moment as `seen` by the wall clock.

    `written_count` is the count that the stored Event has, 0 if none has been written.
    """

    count: int
    seen: float
    last: datetime
    event: Object | None = None
    written_count: int = 0
    written: float = 0.0


@dataclass(slots=True)
class _TokenBucket:
    tokens: float
    refilled: float


class EventRecorder(Recorder):
    """A Runnable beside the controllers: recorded events are written while `run` runs. `clock` is monotonic."""

    name = "events"

    def __init__(
        self,
        *,
        writer: ClusterWriter,
        controller: str,
        instance: str,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._writer = writer
        self._controller = controller
        self._instance = instance[:_MAX_REASON]
        self._now = now
        self._clock = clock
        self._queue = WorkQueue[_SeriesKey]()
        self._series: OrderedDict[_SeriesKey, _Series] = OrderedDict()
        self._buckets: OrderedDict[str, _TokenBucket] = OrderedDict()

    def record(self, regarding: Regarding, event: Event) -> None:
        key, seen = (regarding, event), self._clock()
        series = self._series.get(key)
        if series is not None and seen - series.seen <= _SERIES_SECONDS:
            series.count, series.seen, series.last = series.count + 1, seen, self._now()
            self._series.move_to_end(key)
            if series.written_count:
                self._queue.add_after(key, series.written + _REFRESH_SECONDS - seen)
            return
        if not self._take_token(regarding.uid, seen):
            return
        _put_bounded(self._series, key, _Series(count=1, seen=seen, last=self._now()))
        self._queue.add(key)

    async def run(self) -> None:
        """Write events until cancelled."""
        while True:
            key = await self._queue.get()
            try:
                await self._write(key)
            except (StatusError, NotLeading) as e:
                _logger.debug("an event of %s/%s was not written: %s", key[0].namespace, key[0].name, e)
                self._series.pop(key, None)
            finally:
                self._queue.done(key)
            await asyncio.sleep(0)

    async def _write(self, key: _SeriesKey) -> None:
        series = self._series.get(key)
        if series is None or series.count == series.written_count:
            return
        count, last = series.count, series.last
        if series.event is None:
            series.event = await self._writer.create(EVENTS, self._render(*key, series))
        else:
            changes = {"series": {"count": count, "lastObservedTime": format_micro_time(last)}}
            series.event = await self._writer.patch(EVENTS, series.event, changes)
        series.written_count, series.written = count, self._clock()
        if series.count > count:
            self._queue.add_after(key, _REFRESH_SECONDS)

    def _render(self, regarding: Regarding, event: Event, series: _Series) -> Object:
        suffix = uuid.uuid4().hex[:16]
        rendered: Object = {
            "metadata": {
                "name": f"{regarding.name[: _MAX_NAME - len(suffix) - 1].rstrip('-.')}.{suffix}",
                "namespace": regarding.namespace or _CLUSTER_SCOPED,
            },
            "eventTime": format_micro_time(series.last),
            "reportingController": self._controller,
            "reportingInstance": self._instance,
            "action": event.action[:_MAX_REASON],
            "reason": event.reason[:_MAX_REASON],
            "regarding": regarding.reference(),
            "note": _truncated(event.note),
            "type": event.type,
        }
        if series.count > 1:
            rendered["series"] = {"count": series.count, "lastObservedTime": format_micro_time(series.last)}
        return rendered

    def _take_token(self, uid: str, now: float) -> bool:
        bucket = self._buckets.get(uid)
        if bucket is None:
            bucket = _TokenBucket(_BURST, now)
        bucket.tokens = min(_BURST, bucket.tokens + (now - bucket.refilled) / _TOKEN_SECONDS)
        bucket.refilled = now
        _put_bounded(self._buckets, uid, bucket)
        if bucket.tokens < 1:
            return False
        bucket.tokens -= 1
        return True


def _put_bounded(cache: OrderedDict[K, V], key: K, value: V) -> None:
    cache[key] = value
    cache.move_to_end(key)
    if len(cache) > _MAX_SERIES:
        cache.popitem(last=False)


def _truncated(note: str) -> str:
    encoded = note.encode()
    if len(encoded) <= _MAX_NOTE:
        return note
    return encoded[: _MAX_NOTE - 3].decode(errors="ignore") + "..."
