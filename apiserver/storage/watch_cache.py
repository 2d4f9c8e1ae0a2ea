"""The watch cache: the current objects of one kind, encoded, with their recent history; every read is served here.

One writer feeds it synchronously, in resourceVersion order. Nothing here parses or encodes an object for a reader.
"""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from operator import attrgetter

from apiserver.cooperative import iterate_cooperatively
from apiserver.encoding.encoded_object import CachedObject, at_version, encode
from apiserver.meta import errors
from apiserver.meta.resource import Key, Resource
from apiserver.request.options import EXACT, ListOptions, WatchOptions
from apiserver.storage import pagination as paging
from apiserver.storage.event_history import Event, EventHistory, EventType, HistoryLimits, VisibilityEvent
from apiserver.storage.pagination import LATEST, CacheState, ContinueToken, Page, Snapshots
from apiserver.storage.pending_writes import PendingWrites
from apiserver.storage.relist_events import relist_events
from apiserver.storage.selection_predicate import KeyRange, SelectionPredicate
from apiserver.storage.visibility import Visibility, VisibilityChange, VisibleNamespaces
from apiserver.storage.visibility_events import created_keys, deletions_while_away, visibility_events
from apiserver.storage.wait_until import WaitUntil
from apiserver.storage.watcher import CacheWatcher, WatchStart
from apiserver.storage.watcher_index import WatcherIndex

__all__ = ["CacheWatcher", "CachedObject", "Event", "EventType", "HistoryLimits", "WatchCache", "encode"]

EventListener = Callable[[Event], None]

_DEFAULT_HISTORY = HistoryLimits()
_READY_SECONDS = 2.0
_CATCH_UP_SECONDS = 3.0
_EXPIRED_TOKEN = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without "
    "the continue parameter, or use the continue token in this response to retrieve the remainder of the results. "
    "Continuing with the provided token results in an inconsistent list - objects that were created, modified, or "
    "deleted between the time the first chunk was returned and now may show up in the list."
)
_by_key = attrgetter("key")


class WatchCache:
    def __init__(
        self,
        resource: Resource,
        *,
        history: HistoryLimits = _DEFAULT_HISTORY,
        clock: Callable[[], float] = time.monotonic,
        bookmark_interval: float = 60.0,
    ) -> None:
        """`bookmark_interval` is in seconds; up to a quarter of it is added by chance."""
        self.resource = resource
        self.ready = False
        self.rv = 0
        self._clock = clock
        self._limits = history
        self._bookmark_interval = bookmark_interval
        self._index: dict[Key, CachedObject] = {}
        self._items: list[CachedObject] = []
        self._history = EventHistory(history, 0)
        self._snapshots = Snapshots(clock)
        self._pending_writes = PendingWrites(clock)
        self._changes = WaitUntil()
        self._watcher_index = WatcherIndex()
        self._visibility_subscriptions: dict[CacheWatcher, Callable[[], None]] = {}
        self._listeners: list[EventListener] = []

    # What the writer calls.

    def replace(self, objects: Sequence[CachedObject], rv: int) -> None:
        """Hold exactly `objects`, as listed at `rv`: the difference becomes events. The first call makes the cache
        ready. A list that contradicts what is held (an older one, of a restored host) ends all watches with 410."""
        for _ in self._replace(objects, rv):
            pass

    async def replace_cooperatively(self, objects: Sequence[CachedObject], rv: int) -> None:
        """The same, with turns for others in between, who see the changes one after the other."""
        async for _ in iterate_cooperatively(self._replace(objects, rv), clock=self._clock):
            pass

    def _replace(self, objects: Sequence[CachedObject], rv: int) -> Iterator[Event]:
        events = relist_events(self.resource, self._index, self.rv, objects, rv, now=self._clock())
        continues = self.ready and rv >= self.rv and all(event.rv > self.rv for event in events)
        if not continues:
            self._reset(rv)
        for event in events:
            self._commit(event, publish=continues)
            yield event
        self.rv = rv
        self.ready = True
        self._changes.notify()

    def apply(self, type_: EventType, obj: CachedObject) -> None:
        """Take one change. A deletion's `obj` has the last content and the deletion's resourceVersion. What is not
        later than the cache has been seen before and changes nothing (WIRE-F17)."""
        if obj.rv <= self.rv:
            return
        held = self._index.get(obj.key)
        if type_ == "DELETED":
            if held is not None:
                self._commit(Event("DELETED", obj, held, self._clock()))
        else:
            if held is not None and held.uid != obj.uid:
                # a deletion was not told of; it happened at some version in between (WIRE-F19)
                gone = at_version(self.resource, held, self.rv + 1)
                self._commit(Event("DELETED", gone, held, self._clock()))
                held = None
            self._commit(Event("MODIFIED" if held is not None else "ADDED", obj, held, self._clock()))
        self.advance(obj.rv)

    def advance(self, rv: int) -> None:
        """Nothing happened up to `rv` but what the cache knows: a bookmark of its source."""
        self.rv = max(self.rv, rv)
        self._changes.notify()

    def subscribe(self, callback: EventListener) -> Callable[[], None]:
        """Have `callback` called, synchronously, with every change from now on; the result ends that."""
        self._listeners.append(callback)
        return lambda: self._listeners.remove(callback)

    def expect_version(self, rv: int) -> None:
        """The next read waits for `rv`: what this process wrote, it reads."""
        self._pending_writes.expect_version(rv)

    def expect_deletion(self, key: Key, uid: str) -> None:
        """The same for a deletion whose resourceVersion is not known."""
        self._pending_writes.expect_deletion(key, uid)

    def close(self) -> None:
        """End all watches cleanly."""
        for watch in self._watcher_index:
            watch.end()

    # What readers call.

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[CachedObject]:
        return iter(tuple(self._items))

    @property
    def watchers(self) -> int:
        return len(self._watcher_index)

    def items(self, namespace: str = "") -> Iterable[CachedObject]:
        """The objects of a namespace ('' for all) in key order."""
        end = Key(f"{namespace}\0", "") if namespace else None
        return self._state().in_range((Key(namespace, ""), end), self.resource)

    def peek(self, key: Key) -> CachedObject | None:
        return self._index.get(key)

    async def wait_for_own_writes(self) -> None:
        """Wait for what this process wrote. Raises TooLargeResourceVersion after 3 seconds (WIRE-D63)."""
        await self.wait_for(0)

    async def wait_for(self, rv: int) -> None:
        """Wait for `rv`, and for what this process wrote. Raises TooLargeResourceVersion after 3 seconds (WIRE-D63)."""

        def arrived() -> bool:
            return self.rv >= rv and self._pending_writes.all_observed(self.rv, self._index)

        if not arrived() and not await self._changes.wait(arrived, _CATCH_UP_SECONDS):
            raise errors.TooLargeResourceVersion(max(rv, self._pending_writes.rv, self.rv + 1), self.rv)

    async def get(self, key: Key, *, at_least: int = 0) -> CachedObject | None:
        """Raises TooManyRequests while the cache is being filled, TooLargeResourceVersion; so do list and watch."""
        await self._wait_until_ready()
        await self.wait_for(at_least)
        return self._index.get(key)

    async def list(self, namespace: str, options: ListOptions, *, visible: VisibleNamespaces = None) -> Page:
        """WIRE-D59 to WIRE-D62; what is elsewhere than in `places` is as if it were not there. Raises Expired,
        BadRequest for a continue token that is none."""
        await self._wait_until_ready()
        selection = SelectionPredicate(namespace, options.label_selector, options.field_selector)
        keys = selection.range(self.resource)
        if options.continue_token:
            token = paging.decode_token(options.continue_token, namespaced=self.resource.namespaced)
            state = await self._state_for_token(token)
            keys = max(keys[0], token.start), keys[1]
            return self._page(state, keys, selection, options.limit, visible)
        rv = options.resource_version or 0
        await self.wait_for(rv)
        state = self._state()
        if options.resource_version_match == EXACT or (rv and options.limit and not options.resource_version_match):
            exact = self._state_at(rv)
            if exact is None:
                raise errors.Expired("The resourceVersion for the provided list is too old.")
            state = exact
        # resourceVersion "0" means whatever is at hand, and that is everything
        limit = options.limit if options.resource_version != 0 else 0
        return self._page(state, keys, selection, limit, visible)

    async def watch(
        self, namespace: str, options: WatchOptions, *, visibility: Visibility | None = None
    ) -> CacheWatcher:
        """WIRE-F8 to WIRE-F14; what is out of `visibility` is as if it were not there. Raises Expired."""
        await self._wait_until_ready()
        selection = SelectionPredicate(namespace, options.label_selector, options.field_selector)
        rv = options.resource_version or 0
        initial = options.send_initial_events or (options.send_initial_events is None and not rv)
        if initial:
            await self.wait_for(rv)
        places = visibility.namespaces if visibility is not None else None
        if initial:
            start = self._start_with_state(selection, options, places)
        else:
            start = self._start_after(selection, rv, visibility)
        # from here to the entry into the audience nothing may be awaited, or a change would be missed
        watch = CacheWatcher(
            resource=self.resource,
            selection=selection,
            start=start,
            current_rv=lambda: self.rv,
            on_close=self._forget_watcher,
            bookmark_interval=self._bookmark_interval if options.allow_bookmarks else None,
            timeout_seconds=options.timeout_seconds,
            visibility=visibility,
        )
        self._watcher_index.add(watch)
        if visibility is not None:
            self._visibility_subscriptions[watch] = visibility.subscribe(
                lambda change: watch.add_visibility_events(self._visibility_events(selection, change))
            )
        return watch

    def _forget_watcher(self, watch: CacheWatcher) -> None:
        self._watcher_index.discard(watch)
        if end := self._visibility_subscriptions.pop(watch, None):
            end()

    async def _wait_until_ready(self) -> None:
        if not self.ready and not await self._changes.wait(lambda: self.ready, _READY_SECONDS):
            raise errors.TooManyRequests("storage is (re)initializing", retry_after=1)

    def _start_with_state(
        self, selection: SelectionPredicate, options: WatchOptions, places: VisibleNamespaces
    ) -> WatchStart:
        items = self._select(self._state(), selection.range(self.resource), selection, places)
        return WatchStart(initial=items, send_initial_events_end=options.allow_bookmarks, after=self.rv)

    def _start_after(self, selection: SelectionPredicate, rv: int, visibility: Visibility | None) -> WatchStart:
        """A start at `rv`; at the present for 0."""
        start = rv or self.rv
        missed = self._history.events_after(start)
        if missed is None:
            raise errors.Expired(f"too old resource version: {rv} ({self._history.since})")
        first, end = selection.range(self.resource)
        concerned = [event for event in missed if first <= event.object.key and (end is None or event.object.key < end)]
        if visibility is None or not rv:
            return WatchStart(missed=concerned, after=start)
        change = visibility.change_since(rv, self._history.interval_of(rv))
        if change is None:
            raise errors.Expired(f"too old resource version: {rv} (who may see what has changed too often since)")
        cache_rv, unknown = self.rv, created_keys(missed)
        gone = deletions_while_away(self.resource, missed, change, cache_rv=cache_rv)
        return WatchStart(
            missed=concerned,
            after=start,
            visibility_events=[*gone, *self._visibility_events(selection, change, unknown=unknown)],
        )

    def _visibility_events(
        self, selection: SelectionPredicate, change: VisibilityChange, *, unknown: Collection[Key] = ()
    ) -> Sequence[VisibilityEvent]:
        objects = self._select(self._state(), selection.range(self.resource), selection, change.affected)
        return visibility_events(self.resource, objects, change, cache_rv=self.rv, never_seen=unknown)

    def _state(self) -> CacheState:
        return CacheState(self.rv, tuple(self._items))

    async def _state_for_token(self, token: ContinueToken) -> CacheState:
        if token.rv == LATEST:
            await self.wait_for(0)
            return self._state()
        await self.wait_for(token.rv)
        state = self._state_at(token.rv)
        if state is None:
            raise errors.Expired(_EXPIRED_TOKEN, continue_token=paging.encode_token(ContinueToken(LATEST, token.start)))
        return state

    def _state_at(self, rv: int) -> CacheState | None:
        """The state at `rv`, which is not in the future; None if it cannot be told any more."""
        state = self._snapshots.get(rv)
        if state is None:
            events = self._history.events_after(rv)
            if events is None:
                return None
            state = paging.rewind(self._state(), events, rv) if events else CacheState(rv, tuple(self._items))
        return state

    def _select(
        self, state: CacheState, keys: KeyRange, selection: SelectionPredicate, places: VisibleNamespaces
    ) -> Sequence[CachedObject]:
        items = state.in_range(keys, self.resource, places)
        return items if selection.matches_everything else [obj for obj in items if selection.matches(obj)]

    def _page(
        self, state: CacheState, keys: KeyRange, selection: SelectionPredicate, limit: int, places: VisibleNamespaces
    ) -> Page:
        items = state.in_range(keys, self.resource, places)
        total = len(items)
        if not selection.matches_everything:
            items = [obj for obj in items if selection.matches(obj)]
        if not limit or len(items) <= limit:
            return Page(items, state.rv)
        self._snapshots.keep(state)
        shown = items[:limit]
        token = paging.encode_token(ContinueToken(state.rv, paging.next_key(shown[-1].key)))
        return Page(shown, state.rv, token, total - limit if selection.matches_everything else None)

    def _commit(self, event: Event, *, publish: bool = True) -> None:
        """Make `event` part of the state; with `publish` of the history too, and tell the watches that it concerns."""
        self._store(event)
        if publish:
            self.rv = event.rv
            self._history.append(event)
            for watch in self._watcher_index.watchers_for(event.object.key):
                watch.add(event)
                watch.terminate_if_behind(self._history.since)
        for listener in tuple(self._listeners):
            listener(event)

    def _store(self, event: Event) -> None:
        key = event.object.key
        position = bisect_left(self._items, key, key=_by_key)
        held = self._index.get(key)
        if held is not None:
            held.drop_gzip_blocks()
        if event.type == "DELETED":
            del self._index[key], self._items[position]
            self._pending_writes.deletion_observed(key, event.object.uid)
        elif held is not None:
            self._index[key] = self._items[position] = event.object
        else:
            self._index[key] = event.object
            self._items.insert(position, event.object)

    def _reset(self, rv: int) -> None:
        # until all is as it was listed, there is no version of which it could be said
        self.ready = False
        self._history = EventHistory(self._limits, rv)
        self._snapshots.clear()
        for watch in self._watcher_index:
            watch.fail(errors.Expired(f"too old resource version: {self.rv} ({rv})"))
