"""The watch cache: the current objects of one resource, encoded, and their recent history. All reads are served here.

A single writer feeds it synchronously, in resourceVersion order. Reads neither parse nor encode objects.
"""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence

from apiserver.cooperative import iterate_cooperatively
from apiserver.encoding.encoded_object import CachedObject, at_version, encode
from apiserver.meta import errors
from apiserver.meta.resource import Key, Resource
from apiserver.request.options import EXACT, ListOptions, WatchOptions
from apiserver.storage import pagination
from apiserver.storage.event_history import CacheEvent, EventHistory, EventType, HistoryLimits, VisibilityEvent
from apiserver.storage.label_index import LabelIndex, LabelIndexLimits
from apiserver.storage.pagination import LATEST, CacheState, ContinueToken, Page, Snapshots
from apiserver.storage.progress import Progress
from apiserver.storage.relist_events import relist_events
from apiserver.storage.selection_predicate import KeyRange, SelectionPredicate
from apiserver.storage.sorted_objects import SortedObjects
from apiserver.storage.visibility import EVERYTHING, Visibility, VisibilityChange, VisibleObjects
from apiserver.storage.visibility_events import visibility_events
from apiserver.storage.watcher import CacheWatcher, WatchStart
from apiserver.storage.watcher_index import WatcherIndex

__all__ = ["CacheEvent", "CacheWatcher", "CachedObject", "EventType", "HistoryLimits", "WatchCache", "encode"]

EventListener = Callable[[CacheEvent], None]

_DEFAULT_HISTORY = HistoryLimits()
_DEFAULT_LABEL_INDEX = LabelIndexLimits()


class WatchCache:
    def __init__(
        self,
        resource: Resource,
        *,
        history: HistoryLimits = _DEFAULT_HISTORY,
        clock: Callable[[], float] = time.monotonic,
        bookmark_interval: float = 60.0,
        label_index: LabelIndexLimits = _DEFAULT_LABEL_INDEX,
    ) -> None:
        """`bookmark_interval` is in seconds; a random delay of up to a quarter of it is added."""
        self.resource = resource
        self.rv = 0
        self._clock = clock
        self._limits = history
        self._bookmark_interval = bookmark_interval
        self._objects = SortedObjects()
        self._label_index = LabelIndex(limits=label_index, clock=clock)
        self._history = EventHistory(history, 0)
        self._snapshots = Snapshots(clock)
        self.progress = Progress(self._objects.by_key, clock)
        self._watcher_index = WatcherIndex()
        self._visibility_subscriptions: dict[CacheWatcher, Callable[[], None]] = {}
        self._listeners: list[EventListener] = []

    # Called by the writer.

    def replace(self, objects: Sequence[CachedObject], rv: int) -> None:
        """Replace the content by `objects`, listed at `rv`; watches receive the difference as events. The first call
        makes the cache ready. A list that is older than the cache, from a cluster that was restored from a backup, ends
        all watches with 410."""
        for _ in self._replace(objects, rv):
            pass

    async def replace_cooperatively(self, objects: Sequence[CachedObject], rv: int) -> None:
        """As `replace`, but yields to the event loop, so that readers see the changes one by one."""
        async for _ in iterate_cooperatively(self._replace(objects, rv), clock=self._clock):
            pass

    def _replace(self, objects: Sequence[CachedObject], rv: int) -> Iterator[CacheEvent]:
        events = relist_events(self.resource, self._objects.by_key, self.rv, objects, rv, now=self._clock())
        continues = self.ready and rv >= self.rv and all(event.rv > self.rv for event in events)
        if not continues:
            self._reset(rv)
        for event in events:
            self._commit(event, publish=continues)
            yield event
        if continues and rv > self.rv:
            self._history.advance(rv, self._clock())
        self.rv = rv
        self.progress.ready = True
        self.progress.reached(rv)

    def apply(self, type_: EventType, obj: CachedObject) -> None:
        """Apply one change. The `obj` of a deletion has the last content and the resourceVersion of the deletion. A
        change that is not later than the cache was applied before and is ignored (WIRE-F17)."""
        if obj.rv <= self.rv:
            return
        current = self._objects.by_key.get(obj.key)
        if type_ == "DELETED":
            if current is not None:
                self._commit(CacheEvent("DELETED", obj, current, self._clock()))
        else:
            if current is not None and current.uid != obj.uid:
                # the DELETED event was missed; the deletion happened at some version in between (WIRE-F19)
                deleted = at_version(self.resource, current, self.rv + 1)
                self._commit(CacheEvent("DELETED", deleted, current, self._clock()))
                current = None
            self._commit(CacheEvent("MODIFIED" if current is not None else "ADDED", obj, current, self._clock()))
        self.advance(obj.rv)

    def advance(self, rv: int) -> None:
        """Record that the cache is complete up to `rv`, for example after a bookmark of its source."""
        if rv > self.rv:
            self.rv = rv
            self._history.advance(rv, self._clock())
        self.progress.reached(self.rv)

    def subscribe(self, callback: EventListener) -> Callable[[], None]:
        """Call `callback` synchronously with every change from now on. Returns a function that ends the
        subscription."""
        self._listeners.append(callback)
        return lambda: self._listeners.remove(callback)

    def expect_version(self, key: Key, rv: int) -> None:
        """Let reads of the object, and all lists, wait for `rv`, so that this process reads its own writes."""
        self.progress.pending_writes.expect_version(key, rv)

    def expect_deletion(self, key: Key, uid: str) -> None:
        """Let reads of the object, and all lists, wait for its deletion, whose resourceVersion is unknown."""
        self.progress.pending_writes.expect_deletion(key, uid)

    def close(self) -> None:
        """End all watches cleanly. From now on the cache is not ready: nobody feeds it any more."""
        self.progress.ended = True
        for watch in self._watcher_index:
            watch.end()

    def expire(self) -> None:
        """As `close`, but end watches with 410: the kind is no longer served, or no longer like this."""
        self.progress.ended = True
        for watch in self._watcher_index:
            watch.fail(errors.Expired(f"too old resource version: {self.rv} ({self.rv + 1})"))

    # Called by readers.

    @property
    def ready(self) -> bool:
        """True once the cache has a complete list."""
        return self.progress.ready

    def __len__(self) -> int:
        return len(self._objects)

    def __iter__(self) -> Iterator[CachedObject]:
        return iter(tuple(self._objects.items))

    @property
    def watchers(self) -> int:
        return len(self._watcher_index)

    def items(self, namespace: str = "") -> Iterable[CachedObject]:
        """The objects of a namespace ('' for all) in key order."""
        end = Key(f"{namespace}\0", "") if namespace else None
        return self._state().in_range((Key(namespace, ""), end), self.resource)

    def peek(self, key: Key) -> CachedObject | None:
        return self._objects.by_key.get(key)

    async def wait_for_own_writes(self) -> None:
        """Wait until the cache has the writes of this process. TooLargeResourceVersion after 3 seconds (WIRE-D63)."""
        await self.progress.wait_for(0)

    async def reaches(self, rv: int, seconds: float) -> bool:
        """Wait until the cache is complete up to `rv`, at most `seconds`. Returns whether it is."""
        return await self.progress.reaches(rv, seconds)

    async def get(self, key: Key, *, at_least: int = 0) -> CachedObject | None:
        """The object, not older than `at_least`, with this process's writes to it, though not to others. Like `list`
        and `watch`, raises TooManyRequests until the cache is ready, and TooLargeResourceVersion."""
        await self.progress.wait_until_ready()
        await self.progress.wait_for_object(key, at_least)
        return self._objects.by_key.get(key)

    async def list(self, namespace: str, options: ListOptions, *, visible: VisibleObjects = EVERYTHING) -> Page:
        """A list or one page of it (WIRE-D59 to WIRE-D62), restricted to the `visible` objects. Raises Expired, and
        BadRequest for an invalid continue token."""
        await self.progress.wait_until_ready()
        selection = SelectionPredicate(namespace, options.label_selector, options.field_selector)
        keys = selection.range(self.resource)
        if options.continue_token:
            token = pagination.decode_token(options.continue_token, namespaced=self.resource.has_namespace_in_key)
            state = await self._state_for_token(token)
            keys = max(keys[0], token.start), keys[1]
            return self._page(state, keys, selection, options.limit, visible)
        rv = options.resource_version or 0
        await self.progress.wait_for(rv)
        # resourceVersion "0" allows any state, and as in kube-apiserver the limit is then ignored
        limit = options.limit if options.resource_version != 0 else 0
        if options.resource_version_match == EXACT or (rv and options.limit and not options.resource_version_match):
            exact = self._state_at(rv)
            if exact is None:
                raise errors.Expired("The resourceVersion for the provided list is too old.")
            return self._page(exact, keys, selection, limit, visible)
        found = self._select_by_index(keys, selection, visible)
        if found is None:
            return self._page(self._state(), keys, selection, limit, visible)
        return self._cut(found, self._state(), limit) if 0 < limit < len(found) else Page(found, self.rv)

    async def watch(
        self, namespace: str, options: WatchOptions, *, visibility: Visibility | None = None
    ) -> CacheWatcher:
        """Open a watch (WIRE-F8 to WIRE-F14), restricted to the objects that `visibility` allows. Raises Expired."""
        await self.progress.wait_until_ready()
        selection = SelectionPredicate(namespace, options.label_selector, options.field_selector)
        rv = options.resource_version or 0
        initial = options.send_initial_events or (options.send_initial_events is None and not rv)
        if initial:
            await self.progress.wait_for(rv)
            self.progress.require_ready()
            visible = visibility.visible if visibility is not None else EVERYTHING
            start = self._start_with_state(selection, options, visible)
        else:
            start = self._start_after(selection, rv, visibility)
        # nothing may be awaited before the watch is added to the index, or it would miss a change
        watch = CacheWatcher(
            resource=self.resource,
            selection=selection,
            start=start,
            current_rv=lambda: self.rv,
            fan_out=self._watcher_index.fan_out,
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

    def _start_with_state(
        self, selection: SelectionPredicate, options: WatchOptions, visible: VisibleObjects
    ) -> WatchStart:
        keys = selection.range(self.resource)
        items = self._select_by_index(keys, selection, visible)
        if items is None:
            items = self._select(self._state(), keys, selection, visible)
        return WatchStart(initial=items, send_initial_events_end=options.allow_bookmarks, after=self.rv)

    def _start_after(self, selection: SelectionPredicate, rv: int, visibility: Visibility | None) -> WatchStart:
        """Start after `rv`, or after the current version if it is 0."""
        start = rv or self.rv
        missed = self._history.events_after(start)
        if missed is None:
            raise errors.Expired(f"too old resource version: {rv} ({self._history.since})")
        first, end = selection.range(self.resource)
        in_range = [event for event in missed if first <= event.object.key and (end is None or event.object.key < end)]
        if visibility is None or not rv:
            return WatchStart(missed=in_range, after=start)
        change = visibility.change_since(rv, self._history.interval_of(rv))
        if change is None:
            raise errors.Expired(f"too old resource version: {rv} (the user's visibility has changed too often since)")
        others = self._visibility_events(selection, change, missed=in_range)
        return WatchStart(missed=in_range, after=start, visibility_events=others)

    def _visibility_events(
        self, selection: SelectionPredicate, change: VisibilityChange, missed: Sequence[CacheEvent] = ()
    ) -> Sequence[VisibilityEvent]:
        """The events of a changed visibility, for a client that has not received the `missed` events, or a few."""
        objects = self._select(self._state(), selection.range(self.resource), selection, change.affected)
        return visibility_events(self.resource, selection, objects, missed, change, cache_rv=self.rv)

    def _state(self) -> CacheState:
        """The present state, until the next change."""
        return CacheState(self.rv, self._objects.items)

    async def _state_for_token(self, token: ContinueToken) -> CacheState:
        if token.rv == LATEST:
            await self.progress.wait_for(0)
            return self._state()
        await self.progress.wait_for(token.rv)
        state = self._state_at(token.rv)
        if state is None:
            raise pagination.expired(token)
        return state

    def _state_at(self, rv: int) -> CacheState | None:
        """The state at `rv`, which is not in the future; None if the history does not reach back to it."""
        state = self._snapshots.get(rv)
        if state is not None:
            return state
        events = self._history.events_after(rv)
        return None if events is None else CacheState(rv, self._objects.items, events)

    def _select(
        self, state: CacheState, keys: KeyRange, selection: SelectionPredicate, visible: VisibleObjects
    ) -> Sequence[CachedObject]:
        return selection.select(state.in_range(keys, self.resource, visible))

    def _select_by_index(
        self, keys: KeyRange, selection: SelectionPredicate, visible: VisibleObjects
    ) -> Sequence[CachedObject] | None:
        """The selected objects of the current state; None if the index does not help to find them. It does not serve
        users who do not see everything: the time of their lists would tell how many hidden objects have a label
        (ATTACK-15)."""
        first, end = keys
        if selection.labels.empty or selection.name or visible.namespaces is not None:
            return None
        if (candidates := self._label_index.find(selection.labels, self._objects.items)) is None:
            return None
        low = bisect_left(candidates, first)
        high = len(candidates) if end is None else bisect_left(candidates, end, lo=low)
        return selection.select([self._objects.by_key[key] for key in candidates[low:high]])

    def _page(
        self, state: CacheState, keys: KeyRange, selection: SelectionPredicate, limit: int, visible: VisibleObjects
    ) -> Page:
        if limit and visible.namespaces is None:
            state = state.complete()
        items = state.in_range(keys, self.resource, visible)
        total = len(items)
        items = selection.select(items)
        if not limit or len(items) <= limit:
            return Page(items, state.rv)
        return self._cut(items, state, limit, remaining=total - limit if selection.matches_everything else None)

    def _cut(
        self, items: Sequence[CachedObject], state: CacheState, limit: int, *, remaining: int | None = None
    ) -> Page:
        """The first of several pages. The state is kept for the others."""
        self._snapshots.keep(state)
        self._objects.share()
        token = pagination.encode_token(ContinueToken(state.rv, pagination.next_key(items[limit - 1].key)))
        return Page(items[:limit], state.rv, token, remaining)

    def _commit(self, event: CacheEvent, *, publish: bool = True) -> None:
        """Apply `event` to the current state; with `publish`, also add it to the history and send it to watches."""
        self._store(event)
        if publish:
            self.rv = event.rv
            self._history.append(event)
            for watch in self._watcher_index.watchers_for(event.object.key):
                watch.add(event)
                watch.terminate_if_behind(self._history.since)
        for listener in tuple(self._listeners):
            listener(event)

    def _store(self, event: CacheEvent) -> None:
        key = event.object.key
        replaced = self.peek(key)
        self._label_index.update(replaced, event.object if event.type != "DELETED" else None)
        if replaced is not None:
            replaced.drop_gzip_blocks()
        if event.type == "DELETED":
            self._objects.remove(key)
            self.progress.pending_writes.deletion_observed(key, event.object.uid)
        else:
            self._objects.put(event.object)

    def _reset(self, rv: int) -> None:
        # until the new list is applied completely, the content belongs to no resourceVersion
        self.progress.ready = False
        self._history = EventHistory(self._limits, rv)
        self._snapshots.clear()
        for watch in self._watcher_index:
            watch.fail(errors.Expired(f"too old resource version: {self.rv} ({rv})"))
