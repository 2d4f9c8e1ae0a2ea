"""Lists and watches the objects of one resource for any number of handlers, and recovers from every error.

Handlers are called one at a time and in the order in which they were added, with events in resourceVersion order.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from typing import Any

from apiserver.cooperative import Yielder
from apiserver.meta.errors import StatusError
from apiserver.meta.resource import Object
from registry.cluster.backoff import Backoff
from registry.cluster.collected_objects import CollectedObjects
from registry.cluster.event_handlers import EventHandler
from registry.cluster.failure_log import FailureLog
from registry.cluster.interface import FORBIDDEN, ClusterClient, ClusterResource, ClusterUnreachable, WatchEvent
from registry.cluster.object_store import ObjectStore, key_of
from registry.cluster.watch_decoder import MalformedStream

_logger = logging.getLogger(__name__)
_WATCH_SECONDS = 300
# An API server that does not know sendInitialEvents may ignore it and never send the bookmark after them.
_INITIAL_EVENTS_SECONDS = 60.0
_GONE = 410
# kube-apiserver does not have the version yet: etcd was restored from an older backup.
_VERSION_TOO_LARGE = "ResourceVersionTooLarge"
_LONGEST_RETRY_AFTER = 30
# The time for which lists wait for those that come before them.
_ANSWER_SECONDS = 60.0
# A shorter watch is followed by a pause, to avoid a tight loop.
_VERY_SHORT_SECONDS = 1.0


class Informer:
    """`store` contains the objects. With `store_objects=False` it stays empty: the handlers store what they need.

    `transform` returns the object that the store and the handlers see; it does not modify its argument. Objects that
    `keeps` returns nothing for do not exist for the store and the handlers; it needs the store. `synced` is set when
    the handlers have processed the first complete list, and `late_synced` when the late handlers have, too. `complete`
    is set like `synced`, but cleared while a new list is needed, because events were missed, and until the handlers
    have processed it. `seen_version` is that of the latest change in the store, also meanwhile.

    `minimum_version` returns the version that the objects must at least be of. kube-apiserver's watch cache of a
    resource that has not changed for long has an older one: it is then listed from etcd, which has the present one.
    """

    if_forbidden = ""
    """Logged, and no warning, while the account may not read a kind that is off by default."""

    def __init__(
        self,
        cluster: ClusterClient,
        resource: ClusterResource,
        *,
        namespace: str = "",
        label_selector: str = "",
        field_selector: str = "",
        store_objects: bool = True,
        transform: Callable[[Object], Object] = lambda obj: obj,
        keeps: Callable[[Object], object] | None = None,
        minimum_version: Callable[[], int] = lambda: 0,
        backoff: Backoff | None = None,
        sleep: Callable[[float], Awaitable[Any]] = asyncio.sleep,
    ) -> None:
        self._cluster = cluster
        self._resource = resource
        self._namespace = namespace
        self._selectors = {"label_selector": label_selector, "field_selector": field_selector}
        self._store_objects = store_objects
        self._transform = transform
        self._keeps = keeps
        self._minimum_version = minimum_version
        self._backoff = backoff or Backoff()
        self._sleep = sleep
        self._handlers: list[EventHandler] = []
        self._late_handlers: list[EventHandler] = []
        self._before_late_handlers: Callable[[], Awaitable[Any]] = _nothing
        self._rv, self._list_from = 0, "0"
        self._watch_list = True
        self._expired_in_a_row = 0
        self.cluster_error: StatusError | None = None
        self._failures = FailureLog(resource.plural, cluster.outages)
        self._retry = asyncio.Event()
        self.heard_at: float | None = None
        """The monotonic time at which the cluster last confirmed the objects, in seconds."""
        self.answered = asyncio.Event()
        """Set once the cluster has answered with a list that the handlers have processed, or with an error."""
        self.seen_version = 0
        self.first_version = 0
        """The version of the first complete list, 0 until it has been received."""
        self.synced = asyncio.Event()
        self.complete = asyncio.Event()
        self.late_synced = asyncio.Event()
        self.store = ObjectStore()

    @property
    def resource(self) -> ClusterResource:
        return self._resource

    @property
    def field_selector(self) -> str:
        return self._selectors["field_selector"]

    @property
    def reachable(self) -> bool:
        """True if the last call succeeded; `cluster_error` is None then."""
        return self.cluster_error is None

    @property
    def resource_version(self) -> int:
        """The version up to which all events were processed, 0 before the first list and when a new one is needed."""
        return self._rv

    def add_handler(self, handler: EventHandler, *, late: bool = False) -> None:
        """Adds a handler; a `late` one is called after all others. Raises RuntimeError after the first list, which the
        handler would miss."""
        if self.synced.is_set():
            raise RuntimeError(f"the informer of {self._resource.plural} has called its handlers already")
        (self._late_handlers if late else self._handlers).append(handler)

    def delay_late_handlers(self, until: Callable[[], Awaitable[Any]]) -> None:
        """Awaits `until` before late handlers get a complete list, each time; later events wait for it, too."""
        self._before_late_handlers = until

    async def run(self) -> None:
        """Runs until it is cancelled."""
        try:
            while True:
                if delay := await self._list_and_watch():
                    await self._pause(delay)
        finally:
            self._failures.ended()

    def retry_now(self) -> None:
        """Ends the pause before the next attempt, because another call has just succeeded."""
        self._retry.set()

    async def _pause(self, delay: float) -> None:
        self._retry.clear()
        waits = [asyncio.ensure_future(self._sleep(delay)), asyncio.ensure_future(self._retry.wait())]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()

    async def _list_and_watch(self) -> float:
        """Lists if needed, then watches until the stream ends. Returns the seconds to wait before the next round."""
        try:
            if self.cluster_error is not None:
                await self._probe(self.cluster_error)
            if self._rv or self._watch_list:
                return await self._watch()
            await self._list()
            # not before the list, without which nothing can be judged
            return self._backoff.next() if self._expired_in_a_row > 1 else 0.0
        except StatusError as e:
            return self._handle_error(e)
        except Exception:
            # an invalid object or a bug in a handler must not end the informer
            _logger.exception("informer of %s: starting over", self._resource.plural)
            self._start_over()
            return self._backoff.next()

    def _handle_error(self, error: StatusError) -> float:
        unavailable = error.code == _GONE or any(cause.get("reason") == _VERSION_TOO_LARGE for cause in error.causes)
        # a watch that starts with initial events names no version that could have expired
        if unavailable and (self._rv or not self._watch_list):
            self._failures.lists_again(self._rv)
            return self._handle_unavailable_version()
        if not self._rv and self._watch_list and not isinstance(error, ClusterUnreachable):
            # sendInitialEvents is rejected with different codes: the parameter is unknown (400, 422), the storage does
            # not support it (etcd before 3.4.31), or the watch cache is not ready
            self._watch_list = False
            return 0.0
        if isinstance(error, MalformedStream):
            # resuming would lead to the same event again
            self._start_over()
        self._failures.failed(error, if_forbidden=self.if_forbidden)
        self._set_cluster_error(error)
        return max(self._backoff.next(), float(min(error.retry_after, _LONGEST_RETRY_AFTER)))

    def _handle_unavailable_version(self) -> float:
        """Lists again without a delay, since the cache is incomplete meanwhile; a list that fails, too, and a stream
        that ends so after each of its lists, are repeated after a delay."""
        is_watch = self._rv > 0
        self._start_over()
        if not is_watch:
            return self._backoff.next()
        self._expired_in_a_row += 1
        return self._backoff.next() if self._watch_list and self._expired_in_a_row > 1 else 0.0

    def _start_over(self) -> None:
        """Makes the next round list again, at a version no older than the last one seen, as client-go's Reflector does;
        at any version if there was none."""
        self._list_from = str(self._rv or "")
        self._rv = 0
        self.complete.clear()

    async def _probe(self, last: StatusError) -> None:
        """Sends a small request after an outage: a watch may be accepted only after a while."""
        await self._cluster.list(self._resource, self._namespace, limit=1, **self._selectors)
        # an account that may list may not be allowed to watch
        if last.code != FORBIDDEN:
            self._backoff.reset()
            self._set_cluster_error(None)

    def _set_cluster_error(self, error: StatusError | None) -> None:
        if error is None and self.cluster_error is None:
            return
        if error is None:
            self._failures.recovered()
        self.answered.set()
        self.cluster_error = error
        for handler in (*self._handlers, *self._late_handlers):
            handler.set_cluster_error(error)

    async def _list(self) -> None:
        """Lists all objects, if possible from kube-apiserver's watch cache: a list from etcd is many times as
        expensive."""
        found, rv = await self._collected_list(self._list_from)
        if rv < self._minimum_version():
            found, rv = await self._collected_list("")
        await self._replace(found, rv)

    async def _collected_list(self, resource_version: str) -> tuple[CollectedObjects, int]:
        found = CollectedObjects(self._keeps, self._transform)

        def collect(item: Object) -> None:
            found.put(self._with_type(item))

        rv = await self._cluster.each_list_item(
            self._resource, self._namespace, visit=collect, resource_version=resource_version, **self._selectors
        )
        return found, int(rv)

    def _with_type(self, item: Object) -> Object:
        """Adds apiVersion and kind, which items of a list may lack."""
        return {**item, "apiVersion": self._resource.api_version, "kind": self._resource.kind}

    async def _replace(self, found: CollectedObjects, rv: int) -> None:
        items = found.objects()
        self.heard_at = time.monotonic()
        self.first_version = self.first_version or rv
        self.seen_version = rv
        if self._store_objects:
            self.store.replace(found.encoded)
        for handler in self._handlers:
            await handler.replace(items, rv)
        self._rv = rv
        self._set_cluster_error(None)
        self._backoff.reset()
        self.synced.set()
        self.answered.set()
        self.complete.set()
        await self._before_late_handlers()
        for handler in self._late_handlers:
            await handler.replace(items, rv)
        self.late_synced.set()
        await self.store.compress()

    async def _watch(self) -> float:
        """Processes a watch until its end. Without a version to resume from, it starts with initial events."""
        started = asyncio.get_running_loop().time()
        initial = None if self._rv else CollectedObjects(self._keeps, self._transform)
        yielder = Yielder()
        try:
            async with (
                asyncio.timeout(None if self._rv else _INITIAL_EVENTS_SECONDS) as deadline,
                self._events() as events,
            ):
                async for event in events:
                    # many events can arrive at once
                    await yielder.yield_if_due()
                    if initial is None:
                        self._apply(event)
                    elif initial.collect(event):
                        deadline.reschedule(None)
                        await self._replace(initial, int(event.object["metadata"]["resourceVersion"]))
                        initial = None
                    if event.type == "BOOKMARK" and 0 < self._rv < self._minimum_version():
                        self._watch_list = False
                        self._start_over()
                        return 0.0
        except TimeoutError:
            self._watch_list = False
            return 0.0
        if initial is not None:
            self._watch_list = False
        lasted = asyncio.get_running_loop().time() - started
        return 0.0 if lasted >= _VERY_SHORT_SECONDS else self._backoff.next()

    @asynccontextmanager
    async def _events(self) -> AsyncIterator[AsyncIterator[WatchEvent]]:
        events = self._cluster.watch(
            self._resource,
            self._namespace,
            resource_version=str(self._rv or ""),
            send_initial_events=not self._rv,
            timeout_seconds=_WATCH_SECONDS,
            on_open=self._opened,
            **self._selectors,
        )
        try:
            yield events
        finally:
            if isinstance(events, AsyncGenerator):
                await events.aclose()

    def _opened(self) -> None:
        """The cluster sends what the store lacks, if anything. Initial events it may yet fail to send."""
        if self._rv:
            self.heard_at = time.monotonic()
            self._set_cluster_error(None)

    def _apply(self, event: WatchEvent) -> None:
        self.heard_at = time.monotonic()
        rv = int(event.object["metadata"]["resourceVersion"])
        if rv <= self._rv:
            return
        if event.type == "BOOKMARK":
            for handler in (*self._handlers, *self._late_handlers):
                handler.bookmark(rv)
        elif self._keeps is None or self._keeps(event.object):
            self._tell(event.type, event.object, rv)
        elif key_of(event.object) in self.store:
            self._tell("DELETED", event.object, rv)
        self._rv = self.seen_version = rv
        self._expired_in_a_row = 0
        self._backoff.reset()

    def _tell(self, type_: str, found: Object, rv: int) -> None:
        obj = self._transform(found)
        self._store(type_, obj)
        for handler in (*self._handlers, *self._late_handlers):
            handler.apply(type_, obj, rv)

    def _store(self, type_: str, obj: Object) -> None:
        if not self._store_objects:
            return
        if type_ == "DELETED":
            self.store.remove(obj)
        else:
            self.store.put(obj)


async def wait_until_answered(informers: Iterable[Informer]) -> None:
    """Waits until the handlers of each have processed its list, or the cluster has answered with an error; for a
    limited time, because a cluster may not answer at all."""
    with suppress(TimeoutError):
        async with asyncio.timeout(_ANSWER_SECONDS):
            for informer in informers:
                await informer.answered.wait()


async def _nothing() -> None:
    """The default of `_before_late_handlers`."""
