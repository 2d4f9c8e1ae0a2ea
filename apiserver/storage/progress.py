"""How far a watch cache is, and waits until it is far enough: to be ready, for a version, and for its own writes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from apiserver.encoding.encoded_object import CachedObject
from apiserver.meta import errors
from apiserver.meta.resource import Key
from apiserver.storage.pending_writes import PendingWrites
from apiserver.storage.wait_until import WaitUntil

_READY_SECONDS: Final = 2.0
_CATCH_UP_SECONDS: Final = 3.0


class Progress:
    """`rv` is the version up to which the `objects` have all changes. While a new list is applied in steps, it is that
    of before: an object that has changed twice is then as it was before both changes, whatever the others are."""

    def __init__(self, objects: Mapping[Key, CachedObject], clock: Callable[[], float]) -> None:
        self.rv = 0
        self.ready = False
        self.ended = False
        self.pending_writes = PendingWrites(clock)
        self._objects = objects
        self._changes = WaitUntil()

    def reached(self, rv: int) -> None:
        """The objects have all changes up to `rv`."""
        self.rv = rv
        self.pending_writes.version_observed(rv)
        self._changes.notify()

    async def wait_until_ready(self) -> None:
        """Raises TooManyRequests after two seconds."""
        if not self.ready:
            await self._changes.wait(lambda: self.ready, _READY_SECONDS)
        self.require_ready()

    def require_ready(self) -> None:
        """Raises TooManyRequests, also of a cache that has ended: soon, the kind has another one, or is not served."""
        if self.ended or not self.ready:
            raise errors.TooManyRequests("storage is (re)initializing", retry_after=1)

    async def wait_for(self, rv: int) -> None:
        """Wait for `rv`, and the writes of this process. Raises TooLargeResourceVersion after 3 seconds (WIRE-D63)."""

        def is_current() -> bool:
            return self.rv >= rv and self.pending_writes.all_observed(self.rv, self._objects)

        if not is_current():
            await self._catch_up(rv, is_current)

    async def wait_for_object(self, key: Key, rv: int) -> None:
        """As `wait_for`, but of the writes of this process only for those to one object."""

        def is_current() -> bool:
            return self.rv >= rv and self.pending_writes.observed(key, self.rv, self._objects)

        if not is_current():
            await self._catch_up(rv, is_current)

    async def reaches(self, rv: int, seconds: float) -> bool:
        """Wait for `rv`, at most `seconds`. Returns whether it was reached."""
        return self.rv >= rv or await self._changes.wait(lambda: self.rv >= rv, seconds)

    async def _catch_up(self, rv: int, is_current: Callable[[], bool]) -> None:
        if not await self._changes.wait(is_current, _CATCH_UP_SECONDS):
            raise errors.TooLargeResourceVersion(max(rv, self.pending_writes.rv, self.rv + 1), self.rv)
