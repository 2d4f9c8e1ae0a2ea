"""Bounds the questions that read much of the cluster at a time, in all and for each user."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from apiserver.meta.errors import TooManyRequests
from registry.names import flow_of

_TOTAL: Final = 4
_PER_USER: Final = 2
_SECONDS: Final = 5.0
"""A client of Kubernetes that is told to come back later does so by itself."""


class ReadingSlots:
    """Some users' questions leave a place to those of others. One waits for its place for at most `seconds`; those of
    users with fewer places come first, and those of one user in their order: several people who ask hundreds of
    questions delay another one by a few."""

    def __init__(
        self,
        *,
        total: int = _TOTAL,
        per_user: int = _PER_USER,
        seconds: float = _SECONDS,
        about: str = "hostnames and who can see a Tenant",
    ) -> None:
        """`about` is what the questions are about, for people."""
        self._about = about
        self._total = total
        self._per_user = per_user
        self._seconds = seconds
        self._used = 0
        self._by_user = Counter[str]()
        # the user who has waited longest for a place first
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}

    @asynccontextmanager
    async def held(self, user: str) -> AsyncIterator[None]:
        """Raises TooManyRequests. ServiceAccounts of a tenant have the places of one user (`flow_of`)."""
        flow = flow_of(user)
        await self._take(flow)
        try:
            yield
        finally:
            self._release(flow)

    async def _take(self, user: str) -> None:
        place = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(user, deque()).append(place)
        self._give()
        try:
            async with asyncio.timeout(self._seconds):
                await place
        except BaseException as error:
            self._give_up(user, place)
            if isinstance(error, TimeoutError):
                raise TooManyRequests(f"Too many questions about {self._about}, please try again later.") from None
            raise

    def _give(self) -> None:
        """Gives free places to those who wait."""
        while self._used < self._total:
            admissible = [each for each in self._waiting if self._by_user[each] < self._per_user]
            if not admissible:
                return
            user = min(admissible, key=self._by_user.__getitem__)
            places = self._waiting.pop(user)
            place = places.popleft()
            if places:
                self._waiting[user] = places
            if not place.done():
                self._used += 1
                self._by_user[user] += 1
                place.set_result(None)

    def _give_up(self, user: str, place: asyncio.Future[None]) -> None:
        """Its question has waited too long, or its client has gone, perhaps when it had just been given the place."""
        if place.done() and not place.cancelled():
            self._release(user)
            return
        places = self._waiting.get(user, deque())
        if place in places:
            places.remove(place)
            if not places:
                del self._waiting[user]

    def _release(self, user: str) -> None:
        self._used -= 1
        self._by_user[user] -= 1
        if not self._by_user[user]:
            del self._by_user[user]
        self._give()
