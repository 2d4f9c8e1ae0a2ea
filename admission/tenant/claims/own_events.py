"""Judges at the event of a write of this replica.

There the tree has exactly the writes that were stored before it. So of two writes that exclude each other, each on its
own replica, the later one finds the earlier one, and no earlier one is withdrawn.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from enum import Enum
from typing import Any, Generic, TypeVar

from admission.complete_caches import CompleteCaches
from admission.tenant.claims.claim import ProposedWrite
from admission.tenant.claims.possible_tree import conflicts_with_tree
from apiserver.meta.resource import Key
from apiserver.storage.wait_until import WaitUntil
from apiserver.storage.watch_cache import CacheEvent, WatchCache
from registry.tenant.tree import TenantTree

T = TypeVar("T")


class Verdict(Enum):
    """The verdict on a write that is stored already."""

    ADMITTED = "admitted"
    REJECTED = "rejected"
    """Admission forbids the write in this tree."""
    PARENT_MARKED = "parent marked"
    """The parent may have been deleted by a replica that has not seen this write."""


def verdict_on(write: ProposedWrite, *, tree: TenantTree, is_marked: Callable[[Key], bool]) -> Verdict:
    """`is_marked` returns True for a Tenant that has a deletion mark."""
    if conflicts_with_tree(tree, write):
        return Verdict.REJECTED
    parent = tree.by_namespace(write.key.namespace)
    if write.creates and parent is not None and is_marked(parent.key):
        return Verdict.PARENT_MARKED
    return Verdict.ADMITTED


class Observed(Generic[T]):
    """The results of `judge` at the events of a Tenant, by resourceVersion."""

    def __init__(self, key: Key, judge: Callable[[], T]) -> None:
        self.key = key
        self.judge = judge
        self.results: dict[int, T] = {}
        self._latest = 0
        # not the changes of the whole cache, each of which would wake all who wait for one event
        self._changes = WaitUntil()

    def add(self, version: int, *, is_complete: bool) -> None:
        if is_complete:
            self.results[version] = self.judge()
        self._latest = version
        self._changes.notify()

    async def reaches(self, version: int, seconds: float) -> None:
        """Waits until an event of the Tenant has arrived that is not older, at most `seconds`."""
        if self._latest < version:
            await self._changes.wait(lambda: self._latest >= version, seconds)


class OwnEvents:
    """`caches` are those that the tree is made of. Must be created after the tree, whose listener of the cache has to
    be called first."""

    def __init__(self, *, cache: WatchCache, caches: CompleteCaches) -> None:
        self._cache = cache
        self._caches = caches
        self._observed: dict[Key, list[Observed[Any]]] = {}
        cache.subscribe(self._on_event)

    def observe(self, key: Key, judge: Callable[[], T]) -> Observed[T]:
        """Judges at each event of a Tenant, from before it is written until `forget`."""
        observed = Observed(key, judge)
        self._observed.setdefault(key, []).append(observed)
        return observed

    def forget(self, observed: Observed[T]) -> None:
        """May be called more than once."""
        others = [each for each in self._observed.get(observed.key, ()) if each is not observed]
        if others:
            self._observed[observed.key] = others
        else:
            self._observed.pop(observed.key, None)

    async def result(self, observed: Observed[T], version: int, *, seconds: float) -> T | None:
        """The result at the event with this resourceVersion; None if it does not arrive within `seconds`. If it comes
        with a new list, the result is that of the complete list."""
        deadline = asyncio.get_running_loop().time() + seconds
        if self._cache.rv < version:
            await observed.reaches(version, seconds)
        # without an event, the Tenant was created and deleted while the cache was listed anew
        if self._cache.rv < version:
            return None
        if not await self._caches.are_complete_within(deadline - asyncio.get_running_loop().time()):
            return None
        if version in observed.results:
            return observed.results[version]
        # a list instead of events leaves out versions: then later writes count as well
        return observed.judge()

    def _on_event(self, event: CacheEvent) -> None:
        for observed in self._observed.get(event.object.key, ()):
            observed.add(event.rv, is_complete=self._caches.complete)
