"""The database of the embedded cluster: one thread, and one transaction for all waiting writes (group commit).

A write returns when it is on disk and all listeners have been called, so that its caller can read it.
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
# bounds the time that the first write of a batch waits for the last one
_BATCH = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    """A write request. `object` is the new state, or the last one for DELETED; the caller must not change it any more.

    `expected` is the resourceVersion that must be stored, None for ADDED. `parent` must exist and not be terminating.
    """

    type: EventType
    target: StorageKey
    object: Object
    expected: int | None = None
    parent: StorageKey | None = None
    dry_run: bool = False


@dataclass(frozen=True, slots=True)
class Change:
    """A committed write. `object` has the new resourceVersion; it is shared and must not be changed."""

    type: EventType
    target: StorageKey
    object: Object
    rv: int


class WriteRejected(Exception):
    """A precondition of the write does not hold; `why` is the reason."""

    def __init__(self, why: RejectReason) -> None:
        super().__init__(why.name)
        self.why = why


DatabaseListener = Callable[[Change], None]
_Work = Callable[[Tables], Any]


@dataclass(frozen=True, slots=True)
class _Job:
    """`copy_to` is the file of a copy, which is made outside of transactions and without `work`."""

    work: _Work
    answer: asyncio.Future[Any]
    write: Write | None = None
    copy_to: Path | None = None


@dataclass(slots=True)
class _BatchResult:
    """The outcome of a batch: a result for each job, or the error that rolled back all of them."""

    jobs: Sequence[_Job]
    results: list[Any] = field(default_factory=list)
    error: Exception | None = None


class Database:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._listeners: list[DatabaseListener] = []
        self._thread: threading.Thread | None = None

    async def open(self) -> None:
        """Opens the database in its thread. Raises DatabaseUnusable."""
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
        """Waits until all pending writes are done."""
        thread, self._thread = self._thread, None
        if thread is not None:
            self._jobs.put(None)
            await asyncio.to_thread(thread.join)

    def subscribe(self, listener: DatabaseListener) -> None:
        """Calls `listener` in the event loop with every change, in resourceVersion order."""
        self._listeners.append(listener)

    def unsubscribe(self, listener: DatabaseListener) -> None:
        """Undoes `subscribe`, also while a change is delivered."""
        self._listeners = [each for each in self._listeners if each != listener]

    async def rows(self, resource: str) -> tuple[Sequence[Row], int]:
        """All objects of a resource, and the resourceVersion at which they were read."""
        found: tuple[Sequence[Row], int] = await self._call(lambda tables: (tables.rows(resource), tables.revision))
        return found

    async def row(self, key: StorageKey) -> Row | None:
        """The stored object, read after all writes that were requested before."""
        found: Row | None = await self._call(lambda tables: tables.row(key))
        return found

    async def contains_uid(self, uid: str) -> bool:
        """True if any object has this uid."""
        found: bool = await self._call(lambda tables: tables.contains_uid(uid))
        return found

    async def write(self, write: Write) -> Object:
        """Returns the object with its new resourceVersion, unchanged for a dry run. Raises WriteRejected."""
        mutation = _mutation(write)
        result: Object | RejectReason = await self._call(lambda tables: tables.apply(mutation), write)
        if isinstance(result, RejectReason):
            raise WriteRejected(result)
        return result

    async def copy_to(self, path: Path) -> None:
        """Copies the database into a new file, while writes go on. Raises ServiceUnavailable."""
        await self._call(_nothing, copy_to=path)

    async def _call(self, work: _Work, write: Write | None = None, copy_to: Path | None = None) -> Any:
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        if self._thread is None:
            raise ServiceUnavailable("the database is closed", retry_after=1)
        self._jobs.put(_Job(work, answer, write, copy_to))
        return await answer

    # These methods run in the thread.

    def _run(self, loop: asyncio.AbstractEventLoop, opened: asyncio.Future[None]) -> None:
        try:
            tables = Tables.open(self._path)
        except Exception as error:
            loop.call_soon_threadsafe(opened.set_exception, error)
            return
        loop.call_soon_threadsafe(opened.set_result, None)
        while batch := self._next_batch():
            writes = [job for job in batch if job.copy_to is None]
            if writes:
                loop.call_soon_threadsafe(self._deliver, _perform(tables, writes))
            for job in batch:
                if job.copy_to is not None:
                    loop.call_soon_threadsafe(self._deliver, self._copy(tables, job, job.copy_to, loop))
        tables.close()

    def _copy(self, tables: Tables, job: _Job, path: Path, loop: asyncio.AbstractEventLoop) -> _BatchResult:
        def perform_waiting() -> None:
            waiting, later = self._take_waiting()
            if waiting:
                loop.call_soon_threadsafe(self._deliver, _perform(tables, waiting))
            for each in later:
                self._jobs.put(each)

        done = _BatchResult([job], [None])
        try:
            tables.copy_to(path, perform_waiting)
        except Exception as error:
            # as in _perform
            done.error = error
        return done

    def _take_waiting(self) -> tuple[list[_Job], list[_Job | None]]:
        """The jobs that are queued now, and those that must wait for the end of a copy."""
        waiting: list[_Job] = []
        later: list[_Job | None] = []
        while len(waiting) < _BATCH and not self._jobs.empty():
            job = self._jobs.get()
            if job is None or job.copy_to is not None:
                later.append(job)
                break
            waiting.append(job)
        return waiting, later

    def _next_batch(self) -> list[_Job]:
        """Waits for jobs and returns those that are queued, empty when the database is closed."""
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

    # These methods run in the event loop.

    def _deliver(self, done: _BatchResult) -> None:
        if done.error is not None:
            _logger.error("a transaction failed: %s", done.error)
            self._fail_all(done)
            return
        for job, result in zip(done.jobs, done.results, strict=True):
            value = self._publish(job.write, result) if job.write is not None and isinstance(result, int) else result
            # the caller may have been cancelled; the write is committed nevertheless
            if not job.answer.done():
                job.answer.set_result(value)

    def _fail_all(self, done: _BatchResult) -> None:
        for job in done.jobs:
            if not job.answer.done():
                job.answer.set_exception(ServiceUnavailable("the database cannot be written", retry_after=1))

    def _publish(self, write: Write, rv: int) -> Object:
        if write.dry_run:
            return write.object
        metadata = {**write.object["metadata"], "resourceVersion": str(rv)}
        stored = {**write.object, "metadata": metadata}
        change = Change(write.type, write.target, stored, rv)
        for listener in self._listeners:
            try:
                listener(change)
            except Exception:
                # an error in one listener must not affect the others and the caller
                _logger.exception("a listener failed on %s %s", write.target.resource, write.target.key.name)
        return stored


def _nothing(tables: Tables) -> None:
    pass


def decode_row(row: Row) -> Object:
    """The stored object with its resourceVersion; the caller owns it."""
    obj: Object = orjson.loads(row.data)
    obj["metadata"]["resourceVersion"] = str(row.rv)
    return obj


def storage_key(resource: str, namespace: str, name: str) -> StorageKey:
    return StorageKey(resource, Key(namespace, name))


def _mutation(write: Write) -> Mutation:
    metadata = {key: value for key, value in write.object["metadata"].items() if key != "resourceVersion"}
    return Mutation(
        target=write.target,
        expected=write.expected,
        uid=metadata.get("uid", ""),
        data=None if write.type == "DELETED" else to_json({**write.object, "metadata": metadata}),
        deleting=bool(metadata.get("deletionTimestamp")),
        parent=write.parent,
        dry_run=write.dry_run,
    )


def _perform(tables: Tables, batch: Sequence[_Job]) -> _BatchResult:
    done = _BatchResult(batch)
    try:
        tables.begin()
        done.results = [job.work(tables) for job in batch]
        tables.commit()
    except Exception as error:
        # the thread must survive any error, and every caller needs a result
        done.error = error
        _rollback(tables)
    return done


def _rollback(tables: Tables) -> None:
    try:
        tables.rollback()
    except sqlite3.Error:
        _logger.exception("a transaction could not be rolled back")
