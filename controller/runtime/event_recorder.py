"""Events (events.k8s.io/v1): what a person wants to see in `kubectl describe`. Best effort, through the gate.

What is told again within six minutes is counted in the series of one Event, written at most once a minute; of one
object no more are told than its share. So a loop that runs hot writes next to nothing.
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
_MOST_SERIES = 4096
_BURST = 25.0
_TOKEN_SECONDS = 30.0
# Limits of the kind.
_MAX_REASON = 128
_MAX_NOTE = 1024
_MAX_NAME = 253


@dataclass(frozen=True, slots=True, kw_only=True)
class Regarding:
    """What an Event is about; the Event lives in its namespace."""

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
            namespace=metadata["namespace"],
            name=metadata["name"],
            uid=metadata["uid"],
        )

    def reference(self) -> Object:
        return {
            "apiVersion": self.api_version,
            "kind": self.kind,
            "namespace": self.namespace,
            "name": self.name,
            "uid": self.uid,
        }


@dataclass(frozen=True, slots=True)
class Event:
    """What happened: `reason` and `action` are CamelCase words, `note` is a sentence."""

    type: Literal["Normal", "Warning"]
    reason: str
    action: str
    note: str


class Recorder:
    """Whoever has nobody to tell uses this one."""

    def record(self, regarding: Regarding, event: Event) -> None:
        """Never blocks or raises."""


_SeriesKey = tuple[Regarding, Event]


@dataclass(slots=True)
class _Series:
    count: int
    seen: float
    last: datetime
    event: Object | None = None
    told: int = 0
    written: float = 0.0


@dataclass(slots=True)
class _Share:
    tokens: float
    filled: float


class EventRecorder(Recorder):
    """A Runnable beside the controllers: what was recorded is written while `run` runs. `clock` is monotonic."""

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
        self._shares: OrderedDict[str, _Share] = OrderedDict()

    def record(self, regarding: Regarding, event: Event) -> None:
        key, seen = (regarding, event), self._clock()
        held = self._series.get(key)
        if held is not None and seen - held.seen <= _SERIES_SECONDS:
            held.count, held.seen, held.last = held.count + 1, seen, self._now()
            self._series.move_to_end(key)
            if held.told:
                self._queue.add_after(key, held.written + _REFRESH_SECONDS - seen)
            return
        if not self._may_tell(regarding.uid, seen):
            return
        _keep(self._series, key, _Series(count=1, seen=seen, last=self._now()))
        self._queue.add(key)

    async def run(self) -> None:
        """Writes until it is cancelled."""
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
        if series is None or series.count == series.told:
            return
        told, last = series.count, series.last
        if series.event is None:
            series.event = await self._writer.create(EVENTS, self._new(*key, series))
        else:
            changes = {"series": {"count": told, "lastObservedTime": format_micro_time(last)}}
            series.event = await self._writer.patch(EVENTS, series.event, changes)
        series.told, series.written = told, self._clock()
        if series.count > told:
            self._queue.add_after(key, _REFRESH_SECONDS)

    def _new(self, regarding: Regarding, occurrence: Event, series: _Series) -> Object:
        suffix = uuid.uuid4().hex[:16]
        event: Object = {
            "metadata": {
                "name": f"{regarding.name[: _MAX_NAME - len(suffix) - 1]}.{suffix}",
                "namespace": regarding.namespace,
            },
            "eventTime": format_micro_time(series.last),
            "reportingController": self._controller,
            "reportingInstance": self._instance,
            "action": occurrence.action[:_MAX_REASON],
            "reason": occurrence.reason[:_MAX_REASON],
            "regarding": regarding.reference(),
            "note": _shortened(occurrence.note),
            "type": occurrence.type,
        }
        if series.count > 1:
            event["series"] = {"count": series.count, "lastObservedTime": format_micro_time(series.last)}
        return event

    def _may_tell(self, uid: str, now: float) -> bool:
        share = self._shares.get(uid)
        if share is None:
            share = _Share(_BURST, now)
        share.tokens = min(_BURST, share.tokens + (now - share.filled) / _TOKEN_SECONDS)
        share.filled = now
        _keep(self._shares, uid, share)
        if share.tokens < 1:
            return False
        share.tokens -= 1
        return True


def _keep(held: OrderedDict[K, V], key: K, value: V) -> None:
    held[key] = value
    held.move_to_end(key)
    if len(held) > _MOST_SERIES:
        held.popitem(last=False)


def _shortened(note: str) -> str:
    encoded = note.encode()
    if len(encoded) <= _MAX_NOTE:
        return note
    return encoded[: _MAX_NOTE - 3].decode(errors="ignore") + "..."
