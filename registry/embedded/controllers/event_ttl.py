"""Deletes Events an hour after their last write, the default of kube-apiserver's --event-ttl."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from datetime import datetime

from apiserver.meta import errors
from apiserver.meta.resource import Key, Object
from apiserver.request.options import DeleteOptions
from registry.sqlite.backend import SqliteBackend

_TTL_SECONDS = 3600.0
_SWEEP_INTERVAL_SECONDS = 60.0


class EventTtlController:
    def __init__(self, backend: SqliteBackend, *, clock: Callable[[], float] = time.time) -> None:
        """`clock` returns seconds since the epoch."""
        self._backend = backend
        self._clock = clock

    async def run(self) -> None:
        while True:
            await self.delete_expired()
            await asyncio.sleep(_SWEEP_INTERVAL_SECONDS)

    async def delete_expired(self) -> None:
        """Deletes all Events that are older than an hour."""
        expired_before = self._clock() - _TTL_SECONDS
        for cached in list(self._backend.cache):
            obj = cached.object()
            if last_written(obj) < expired_before:
                await self._delete(cached.key, obj)

    async def _delete(self, key: Key, obj: Object) -> None:
        try:
            await self._backend.delete(key, obj, DeleteOptions())
        except (errors.Conflict, errors.NotFound):
            # written again or deleted in the meantime
            return


def last_written(obj: Object) -> float:
    """Returns the latest timestamp of a core/v1 Event in seconds since the epoch, 0 if it has none."""
    return max(_times(obj), default=0.0)


def _times(obj: Object) -> Iterator[float]:
    series = obj.get("series") or {}
    texts = (
        obj["metadata"].get("creationTimestamp"),
        obj.get("lastTimestamp"),
        obj.get("eventTime"),
        series.get("lastObservedTime") if isinstance(series, dict) else None,
    )
    for text in texts:
        try:
            yield datetime.fromisoformat(text).timestamp() if isinstance(text, str) else 0.0
        except ValueError:
            continue
