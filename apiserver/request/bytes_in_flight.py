"""Limits the bytes of requests that are in memory: bodies and large heads, as a whole and for each user."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Final

from apiserver.cooperative import Turns
from apiserver.meta.errors import TooManyRequests
from apiserver.request.fair_shares import FairShares

_MIB: Final = 1024 * 1024
_TOTAL: Final = 64 * _MIB
"""Decoded, these bytes are up to three times as many: together half of the memory limit of the Deployment."""
_PER_USER: Final = 16 * _MIB
"""Five bodies of the largest size. Usual bodies have a few kilobytes."""
_ALWAYS: Final = 64 * 1024

UNIDENTIFIED: Final = ""
"""The user of requests that are not authenticated yet."""


class BytesInFlight:
    """Bounds the bytes of request bodies that are in memory, and those of one user to a quarter of them (FairShares).

    `flow_of` names the flow of a user: users of one flow have one share together, here and in other limits. (Priority
    and fairness of a kube-apiserver has the same term.)
    """

    def __init__(
        self,
        *,
        total: int = _TOTAL,
        per_user: int = _PER_USER,
        always: int = _ALWAYS,
        flow_of: Callable[[str], str] = lambda user: user,
    ) -> None:
        self.flow_of = flow_of
        self._turns = Turns()
        self._shares = FairShares(total=total, per_user=per_user, always=always)
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}

    def reserve(self, user: str, count: int) -> None:
        """Raises TooManyRequests, and reserves nothing, if too many bytes are in use."""
        self.check(user, count)
        self._shares.add(user, count)

    def check(self, user: str, count: int) -> None:
        """Raises TooManyRequests if `count` more bytes cannot be reserved now."""
        if not self._shares.allows(user, count):
            raise TooManyRequests("Too many bytes of requests are in progress, please try again later.")

    def release(self, user: str, count: int) -> None:
        self._shares.add(user, -count)
        for waiting in tuple(self._waiting):
            self._wake(waiting)

    async def turn(self, user: str) -> None:
        await self._turns.wait(user)

    async def reserve_in_turn(self, user: str, count: int) -> None:
        """As `reserve`, but waits until the bytes are free, for at most as many as a user can have."""
        while True:
            with suppress(TooManyRequests):
                self.reserve(user, count)
                break
            await self._wait(user)
        # what was released may be enough for the next one, too
        self._wake(user)

    async def _wait(self, user: str) -> None:
        waiting, released = self._waiting.setdefault(user, deque()), asyncio.get_running_loop().create_future()
        waiting.append(released)
        try:
            await released
        except asyncio.CancelledError:
            self._wake(user)
            raise

    def _wake(self, user: str) -> None:
        """Let the first one that waits try again."""
        waiting = self._waiting.get(user, ())
        while waiting:
            released = waiting.popleft()
            if not released.done():
                released.set_result(None)
                break
        if not waiting:
            self._waiting.pop(user, None)


class Reservation:
    """The bytes that one request, or one connection, has reserved."""

    __slots__ = ("_bytes", "_in_flight", "flow")

    def __init__(self, in_flight: BytesInFlight | None = None, user: str = UNIDENTIFIED) -> None:
        """Without `in_flight` nothing is limited."""
        self._in_flight = in_flight
        self.flow = in_flight.flow_of(user) if in_flight is not None else user
        self._bytes = 0

    def add(self, count: int) -> None:
        """Raises TooManyRequests."""
        if self._in_flight is not None:
            self._in_flight.reserve(self.flow, count)
            self._bytes += count

    def subtract(self, count: int) -> None:
        """Releases `count` of the reserved bytes."""
        self.resize(self._bytes - count)

    async def turn(self) -> None:
        """Waits for the user's turn to do work that would delay others if all requests of the user did it together."""
        if self._in_flight is not None:
            await self._in_flight.turn(self.flow)

    @asynccontextmanager
    async def held(self, count: int) -> AsyncIterator[None]:
        """Waits until `count` more bytes are free, and reserves them for the block."""
        if self._in_flight is None:
            yield
            return
        await self._in_flight.reserve_in_turn(self.flow, count)
        try:
            yield
        finally:
            self._in_flight.release(self.flow, count)

    def check(self, count: int) -> None:
        """Raises TooManyRequests if `count` more bytes cannot be reserved now."""
        if self._in_flight is not None:
            self._in_flight.check(self.flow, count)

    def resize(self, count: int) -> None:
        """Reserve `count` bytes in total. Raises TooManyRequests, and changes nothing, for more than is free."""
        if count > self._bytes:
            self.add(count - self._bytes)
        elif count < self._bytes and self._in_flight is not None:
            self._in_flight.release(self.flow, self._bytes - count)
            self._bytes = count


UNLIMITED: Final = Reservation()
