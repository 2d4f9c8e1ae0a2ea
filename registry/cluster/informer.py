"""One list and one watch of a kind of the host, however many listen; it recovers from anything but cancellation.

Handlers are called in resourceVersion order, in the order in which they were added, one at a time.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

from apiserver.cooperative import Yielder
from apiserver.meta.errors import StatusError
from apiserver.meta.resource import Key, Object
from registry.cluster.backoff import Backoff
from registry.cluster.event_handlers import EventHandler
from registry.cluster.interface import ClusterClient, ClusterResource, ClusterUnreachable, WatchEvent
from registry.cluster.object_store import EncodedObjects, ObjectStore, encode, key_of
from registry.cluster.watch_decoder import MalformedStream

_logger = logging.getLogger(__name__)
_WATCH_SECONDS = 300
# An API server that does not know sendInitialEvents may ignore it and never send the bookmark that ends them.
_INITIAL_EVENTS_SECONDS = 60.0
_INITIAL_EVENTS_END = "k8s.io/initial-events-end"
_GONE = 410
# The host has forgotten versions that it once gave out: it was restored from a backup.
_FROM_THE_FUTURE = "ResourceVersionTooLarge"
_LONGEST_RETRY_AFTER = 30
# A watch that ends at once is tried again after a pause, not in a tight loop.
_VERY_SHORT_SECONDS = 1.0


class Informer:
    """`store` holds the objects, unless `keep` is False: for a kind whose handlers keep what they need.

    `slim` gives what is wanted of an object: the store and the handlers see that and no more. It changes nothing.
    `listed` is set once everything has come from the host for the first time, `synced` once the handlers were told of
    it, and `told` once those were that stand behind the others; all stay set.
    """

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
        backoff: Backoff | None = None,
        sleep: Callable[[float], Awaitable[Any]] = asyncio.sleep,
    ) -> None:
        self._cluster = cluster
        self._resource = resource
        self._namespace = namespace
        self._selectors = {"label_selector": label_selector, "field_selector": field_selector}
        self._keep = store_objects
        self._slim = transform
        self._backoff = backoff or Backoff()
        self._sleep = sleep
        self._handlers: list[EventHandler] = []
        self._behind: list[EventHandler] = []
        self._until: Callable[[], Awaitable[Any]] = _nothing
        self._rv = 0
        self._list_from = "0"
        self._watch_list = True
        self._cluster_error: StatusError | None = None
        self._awake = asyncio.Event()
        self.listed = asyncio.Event()
        self.synced = asyncio.Event()
        self.late_synced = asyncio.Event()
        self.store = ObjectStore()

    @property
    def resource(self) -> ClusterResource:
        return self._resource

    @property
    def reachable(self) -> bool:
        """Whether the last call to the host went well."""
        return self._cluster_error is None

    @property
    def resource_version(self) -> int:
        """The version up to which everything was seen, 0 before the first list or while a new one is due."""
        return self._rv

    def add_handler(self, handler: EventHandler, *, late: bool = False) -> None:
        """One that is `behind` is told after the others. Raises RuntimeError once everything has been seen: a handler
        that comes later would not be told of it."""
        if self.synced.is_set():
            raise RuntimeError(f"the informer of {self._resource.plural} has told its handlers already")
        (self._behind if late else self._handlers).append(handler)

    def delay_late_handlers(self, until: Callable[[], Awaitable[Any]]) -> None:
        """Handlers that are behind are told of everything there is after `until`, which is called each time; no event
        is told before that."""
        self._until = until

    async def run(self) -> None:
        """Runs until it is cancelled."""
        while True:
            delay = await self._round()
            if delay:
                await self._pause(delay)

    def retry_now(self) -> None:
        """Do not wait any longer before the next try: someone has just had an answer from the host."""
        self._awake.set()

    async def _pause(self, delay: float) -> None:
        self._awake.clear()
        waits = [asyncio.ensure_future(self._sleep(delay)), asyncio.ensure_future(self._awake.wait())]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()

    async def _round(self) -> float:
        """List if needed, then watch until the stream ends. Seconds to wait before the next round."""
        try:
            if self._cluster_error is not None:
                await self._probe()
            if self._rv or self._watch_list:
                return await self._watch()
            await self._list()
            return 0.0
        except StatusError as e:
            return self._failed(e)
        except Exception:
            # neither a damaged object nor a handler's mistake may end the informer: all is read anew
            _logger.exception("informer of %s: starting over", self._resource.plural)
            self._start_over()
            return self._backoff.next()

    def _failed(self, error: StatusError) -> float:
        gone = error.code == _GONE or any(cause.get("reason") == _FROM_THE_FUTURE for cause in error.causes)
        # a watch that asks for everything names no version that could be gone: that one is refused like any other
        if gone and (self._rv or not self._watch_list):
            _logger.info("informer of %s: version %d is not held, listing anew", self._resource.plural, self._rv)
            self._start_over()
            return self._backoff.next()
        if not self._rv and self._watch_list and not isinstance(error, ClusterUnreachable):
            # with which code it is refused depends on what is missing: the parameter (400, 422), the storage's
            # support for it (an etcd before 3.4.31), or for the moment the cache
            self._watch_list = False
            return 0.0
        if isinstance(error, MalformedStream):
            # resuming would only lead to the same frame again
            self._start_over()
        if self._cluster_error is None:
            cause = error.__cause__ or error
            _logger.warning("informer of %s: the host cannot be watched: %s", self._resource.plural, cause)
        self._tell_reachability(error)
        return max(self._backoff.next(), float(min(error.retry_after, _LONGEST_RETRY_AFTER)))

    def _start_over(self) -> None:
        """The next list gives nothing older than what was seen, unless that is what the host does not have: as
        client-go's reflectors do."""
        self._list_from = str(self._rv or "")
        self._rv = 0

    async def _probe(self) -> None:
        """After an outage, the smallest call that shows that it is over: a quiet watch shows nothing for a minute."""
        await self._cluster.list(self._resource, self._namespace, limit=1, **self._selectors)
        self._backoff.reset()
        self._tell_reachability(None)

    def _tell_reachability(self, error: StatusError | None) -> None:
        if error is None and self._cluster_error is None:
            return
        self._cluster_error = error
        for handler in (*self._handlers, *self._behind):
            handler.set_cluster_error(error)

    async def _list(self) -> None:
        """Read everything, from the host's cache where it has what was seen before; a page of a list that is read
        from etcd costs a host many times as much."""
        encoded: dict[Key, bytes] = {}

        def take(item: Object) -> None:
            encoded[key_of(item)] = encode(self._slim(self._typed(item)))

        rv = await self._cluster.each_list_item(
            self._resource, self._namespace, take=take, resource_version=self._list_from, **self._selectors
        )
        await self._replace(encoded, int(rv))

    def _typed(self, item: Object) -> Object:
        """Items of a list need not say what they are."""
        return {**item, "apiVersion": self._resource.api_version, "kind": self._resource.kind}

    async def _replace(self, encoded: Mapping[Key, bytes], rv: int) -> None:
        items = EncodedObjects(tuple(encoded.values()))
        self.listed.set()
        if self._keep:
            self.store.replace(encoded)
        for handler in self._handlers:
            await handler.replace(items, rv)
        self._rv = rv
        self._tell_reachability(None)
        self._backoff.reset()
        self.synced.set()
        await self._until()
        for handler in self._behind:
            await handler.replace(items, rv)
        self.late_synced.set()
        await self.store.compress()

    async def _watch(self) -> float:
        """Follow the stream to its end. Without a version to start from, it begins with all that there is."""
        started = asyncio.get_running_loop().time()
        initial: dict[Key, bytes] | None = None if self._rv else {}
        turns = Yielder()
        try:
            async with (
                asyncio.timeout(None if self._rv else _INITIAL_EVENTS_SECONDS) as deadline,
                self._events() as events,
            ):
                async for event in events:
                    # many can come at a time
                    await turns.yield_if_due()
                    if initial is None:
                        self._apply(event)
                    elif self._gather(event, initial):
                        deadline.reschedule(None)
                        await self._replace(initial, int(event.object["metadata"]["resourceVersion"]))
                        initial = None
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
            **self._selectors,
        )
        try:
            yield events
        finally:
            if isinstance(events, AsyncGenerator):
                await events.aclose()

    def _gather(self, event: WatchEvent, initial: dict[Key, bytes]) -> bool:
        """Collect an initial event; whether it was the bookmark after the last one."""
        if event.type == "BOOKMARK":
            annotations = event.object["metadata"].get("annotations") or {}
            return annotations.get(_INITIAL_EVENTS_END) == "true"
        if event.type == "DELETED":
            initial.pop(key_of(event.object), None)
        else:
            initial[key_of(event.object)] = encode(self._slim(event.object))
        return False

    def _apply(self, event: WatchEvent) -> None:
        rv = int(event.object["metadata"]["resourceVersion"])
        if rv <= self._rv:
            return
        if event.type == "BOOKMARK":
            for handler in (*self._handlers, *self._behind):
                handler.bookmark(rv)
        else:
            obj = self._slim(event.object)
            self._store(event.type, obj)
            for handler in (*self._handlers, *self._behind):
                handler.apply(event.type, obj, rv)
        self._rv = rv
        self._backoff.reset()

    def _store(self, type_: str, obj: Object) -> None:
        if not self._keep:
            return
        if type_ == "DELETED":
            self.store.remove(obj)
        else:
            self.store.put(obj)


async def _nothing() -> None:
    """Nobody has to be waited for."""
