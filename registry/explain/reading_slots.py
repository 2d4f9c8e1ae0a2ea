"""Bounds the questions that read lists of the cluster at a time, in all and for each user."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from apiserver.meta.errors import TooManyRequests

_TOTAL: Final = 4
_PER_USER: Final = 2
_SECONDS: Final = 5.0
"""A client of Kubernetes that is told to come back later does so by itself."""


class ReadingSlots:
    """Some users' questions leave a place to those of others. One waits for its place for at most `seconds`."""

    def __init__(self, *, total: int = _TOTAL, per_user: int = _PER_USER, seconds: float = _SECONDS) -> None:
        self._total = total
        self._per_user = per_user
        self._seconds = seconds
        self._by_user = Counter[str]()
        self._changed = asyncio.Condition()

    @asynccontextmanager
    async def held(self, user: str) -> AsyncIterator[None]:
        """Raises TooManyRequests."""
        try:
            async with asyncio.timeout(self._seconds), self._changed:
                await self._changed.wait_for(lambda: self._is_free(user))
                self._by_user[user] += 1
        except TimeoutError:
            raise TooManyRequests("Too many questions about hostnames, please try again later.") from None
        try:
            yield
        finally:
            self._by_user[user] -= 1
            if not self._by_user[user]:
                del self._by_user[user]
            async with self._changed:
                self._changed.notify_all()

    def _is_free(self, user: str) -> bool:
        return self._by_user.total() < self._total and self._by_user[user] < self._per_user
