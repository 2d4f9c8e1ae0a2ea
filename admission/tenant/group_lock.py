"""A lock that requests of one group share while requests of other groups wait."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field


@dataclass(eq=False, slots=True)
class _Waiter:
    group: str | None
    admitted: asyncio.Future[None] = field(default_factory=lambda: asyncio.get_running_loop().create_future())


class GroupLock:
    """Held by one group at a time and shared by all of its members; a holder without a group excludes all others.

    Waiters are served in the order of arrival, so no group starves another.
    """

    def __init__(self) -> None:
        self._group: str | None = None
        self._holders = 0
        self._waiters: deque[_Waiter] = deque()

    @asynccontextmanager
    async def hold(self, group: str | None) -> AsyncIterator[None]:
        """Acquires the lock; with `group` None, exclusively."""
        await self._acquire(group)
        try:
            yield
        finally:
            self._release()

    async def _acquire(self, group: str | None) -> None:
        if not self._waiters and self._admits(group):
            self._enter(group)
            return
        waiter = _Waiter(group)
        self._waiters.append(waiter)
        try:
            await waiter.admitted
        except asyncio.CancelledError:
            if waiter.admitted.done() and not waiter.admitted.cancelled():
                self._release()
            else:
                self._waiters.remove(waiter)
                self._wake()
            raise

    def _release(self) -> None:
        self._holders -= 1
        self._wake()

    def _wake(self) -> None:
        while self._waiters and self._admits(self._waiters[0].group):
            waiter = self._waiters.popleft()
            self._enter(waiter.group)
            waiter.admitted.set_result(None)

    def _admits(self, group: str | None) -> bool:
        return not self._holders or (group is not None and group == self._group)

    def _enter(self, group: str | None) -> None:
        self._group = group
        self._holders += 1
