"""The embedded host's database: one thread, and one transaction for all the writes that wait (group commit).

A write is answered when it is on disk and every listener has heard of it, so whoever wrote can read it.
"""

from __future__ import annotations

import asyncio
import logging
import queue
import sqlite3
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from apiserver.encoding.encoded_object import to_json
from apiserver.meta.errors import ServiceUnavailable
from apiserver.meta.resource import Key, Object
from apiserver.storage.event_history import EventType
from registry.sqlite.statements import DatabaseUnusable, Mutation, RejectReason, Row, StorageKey, Tables

_logger = logging.getLogger(__name__)
# bounds how long the first of a batch waits for the last
_BATCH = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    """One change. `object` is the state to store, on DELETED the last one; it belongs to the database from here on.

    `expected` is the resourceVersion that must be stored, None for ADDED. `parent` must be there, and not be deleted.
    """

    type: EventType
    place: StorageKey
    object: Object
    expected: int | None = None
    parent: StorageKey | None = None
    dry_run: bool = False


@dataclass(frozen=True, slots=True)
class Change:
    """A write that was made. `object` carries the new resourceVersion and is shared: nobody may change it."""

    type: EventType
    place: StorageKey
    object: Object
    rv: int


class WriteRejected(Exception):
    def __init__(self, why: RejectReason) -> None:
        super().__init__(why.name)
        self.why = why


Listener = Callable[[Change], None]
_Work = Callable[[Tables], Any]


@dataclass(frozen=True, slots=True)
class _Job:
    work: _Work
    answer: asyncio.Future[Any]
    write: Write | None = None


@dataclass(slots=True)
class _Done:
    """What became of a batch: a result for each job, or the one error that undid them all."""

    jobs: Sequence[_Job]
    results: list[Any] = field(default_factory=list)
    error: Exception | None = None


class Database:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._listeners: list[Listener] = []
        self._thread: threading.Thread | None = None

    async def open(self) -> None:
        """Raises DatabaseUnusable."""
        loop = asyncio.get_running_loop()
        opened: asyncio.Future[None] = loop.create_future()
        self._thread = threading.Thread(target=self._run, args=(loop, opened), name="sqlite", daemon=True)
        self._thread.start()
        try:
            await opened
        except DatabaseUnusable:
            self._thread = None
            raise

    async def close(self) -> None:
        """What waits is written first."""
        thread, self._thread = self._thread, None
        if thread is not None:
            self._jobs.put(None)
            await asyncio.to_thread(thread.join)

    def subscribe(self, listener: Listener) -> None:
        """Have `listener` called, in the event loop, with every change, in resourceVersion order."""
        self._listeners.append(listener)

    async def rows(self, resource: str) -> tuple[Sequence[Row], int]:
        """All objects of a resource and the resourceVersion at which they are all."""
        found: tuple[Sequence[Row], int] = await self._call(lambda tables: (tables.rows(resource), tables.revision))
        return found

    async def row(self, place: StorageKey) -> Row | None:
        """The stored object, later than every write that was asked for before."""
        found: Row | None = await self._call(lambda tables: tables.row(place))
        return found

    async def contains_uid(self, uid: str) -> bool:
        """Whether any object has this uid."""
        found: bool = await self._call(lambda tables: tables.contains_uid(uid))
        return found

    async def write(self, write: Write) -> Object:
        """The object as stored, with its resourceVersion; as it came for a dry run. Raises Refused."""
        mutation = _mutation(write)
        result: Object | RejectReason = await self._call(lambda tables: tables.apply(mutation), write)
        if isinstance(result, RejectReason):
            raise WriteRejected(result)
        return result

    async def _call(self, work: _Work, write: Write | None = None) -> Any:
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        if self._thread is None:
            raise ServiceUnavailable("the database is closed", retry_after=1)
        self._jobs.put(_Job(work, answer, write))
        return await answer

    # In the thread.

    def _run(self, loop: asyncio.AbstractEventLoop, opened: asyncio.Future[None]) -> None:
        try:
            tables = Tables.open(self._path)
        except Exception as error:
            loop.call_soon_threadsafe(opened.set_exception, error)
            return
        loop.call_soon_threadsafe(opened.set_result, None)
        while batch := self._next_batch():
            done = _perform(tables, batch)
            loop.call_soon_threadsafe(self._deliver, done)
        tables.close()

    def _next_batch(self) -> list[_Job]:
        """The jobs that wait, at least one; empty when the end has come."""
        batch: list[_Job] = []
        job = self._jobs.get()
        while job is not None:
            batch.append(job)
            if len(batch) == _BATCH or self._jobs.empty():
                return batch
            job = self._jobs.get()
        if batch:
            self._jobs.put(None)
        return batch

    # In the event loop.

    def _deliver(self, done: _Done) -> None:
        if done.error is not None:
            _logger.error("a transaction failed: %s", done.error)
            self._refuse(done)
            return
        for job, result in zip(done.jobs, done.results, strict=True):
            value = self._publish(job.write, result) if job.write is not None and isinstance(result, int) else result
            # whoever asked may have gone away meanwhile; what was written stays written
            if not job.answer.done():
                job.answer.set_result(value)

    def _refuse(self, done: _Done) -> None:
        for job in done.jobs:
            if not job.answer.done():
                job.answer.set_exception(ServiceUnavailable("the database cannot be written", retry_after=1))

    def _publish(self, write: Write, rv: int) -> Object:
        if write.dry_run:
            return write.object
        metadata = {**write.object["metadata"], "resourceVersion": str(rv)}
        stored = {**write.object, "metadata": metadata}
        change = Change(write.type, write.place, stored, rv)
        for listener in self._listeners:
            try:
                listener(change)
            except Exception:
                # one that fails must not keep the others, and the writer, from hearing
                _logger.exception("a listener failed on %s %s", write.place.resource, write.place.key.name)
        return stored


def decode_row(row: Row) -> Object:
    """The stored object with its resourceVersion; the caller's own."""
    obj: Object = orjson.loads(row.data)
    obj["metadata"]["resourceVersion"] = str(row.rv)
    return obj


def storage_key(resource: str, namespace: str, name: str) -> StorageKey:
    return StorageKey(resource, Key(namespace, name))


def _mutation(write: Write) -> Mutation:
    metadata = {key: value for key, value in write.object["metadata"].items() if key != "resourceVersion"}
    return Mutation(
        place=write.place,
        expected=write.expected,
        uid=metadata.get("uid", ""),
        data=None if write.type == "DELETED" else to_json({**write.object, "metadata": metadata}),
        deleting=bool(metadata.get("deletionTimestamp")),
        parent=write.parent,
        dry_run=write.dry_run,
    )


def _perform(tables: Tables, batch: Sequence[_Job]) -> _Done:
    done = _Done(batch)
    try:
        tables.begin()
        done.results = [job.work(tables) for job in batch]
        tables.commit()
    except Exception as error:
        # whatever it is, the thread must live on and everybody must be answered
        done.error = error
        _undo(tables)
    return done


def _undo(tables: Tables) -> None:
    try:
        tables.rollback()
    except sqlite3.Error:
        _logger.exception("a transaction could not be rolled back")
