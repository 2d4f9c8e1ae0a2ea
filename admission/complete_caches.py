"""Holds writes back while a cache that admission judges them by is incomplete: at start, and while it is listed anew.

Judged against a half-filled tree, a create would be refused because its parent is missing, or admitted although its
host is taken. So writes wait for a moment, as reads do, and are then answered with 429 (API-18).
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence

from apiserver.admission import Attributes
from apiserver.meta import errors
from apiserver.meta.resource import Object

# as long as reads wait for their cache
_WAIT_SECONDS = 2.0


class CompleteCaches:
    """The first plugin of a chain. Every event in `complete` is set while its cache is complete, such as
    `Informer.complete`."""

    name = "CompleteCaches"

    def __init__(self, complete: Sequence[asyncio.Event], *, seconds: float = _WAIT_SECONDS) -> None:
        self._complete = tuple(complete)
        self._seconds = seconds

    @property
    def complete(self) -> bool:
        return all(event.is_set() for event in self._complete)

    async def wait(self) -> None:
        """Waits until all caches are complete. Raises TooManyRequests, as a read does that waits too long."""
        if not self.complete and not await self.are_complete_within(self._seconds):
            raise errors.TooManyRequests("storage is (re)initializing", retry_after=1)

    async def are_complete_within(self, seconds: float) -> bool:
        """Waits until all caches are complete, at most `seconds`. Returns whether they are."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                # an event can be cleared while another one is awaited
                while not self.complete:
                    for event in self._complete:
                        await event.wait()
        return self.complete

    def handles(self, attributes: Attributes) -> bool:
        return True

    async def admit(self, attributes: Attributes) -> Object | None:
        await self.wait()
        return attributes.object
