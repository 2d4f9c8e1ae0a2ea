"""Limits the open connections of a port: those of each user, and those of which the user is not known (ATTACK-19)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Final

UNIDENTIFIED: Final = ""
"""The owner of a connection on which nobody has been authenticated yet."""

ConnectionOwner = str | None
"""A user's name. The connections of owner None are not limited."""

IsIdle = Callable[[], bool]


def _always() -> bool:
    return True


class Connections:
    """Closes the oldest connection above a limit, so that new clients are served: any connection of an unidentified
    client, but only an idle one of a user.

    `owner_of` is called for an unidentified connection before it is closed, as its handshake may name the owner.
    """

    def __init__(
        self,
        *,
        unidentified: int = 1000,
        per_user: int = 3000,
        owner_of: Callable[[asyncio.Transport], ConnectionOwner] = lambda _: UNIDENTIFIED,
    ) -> None:
        self._unidentified = unidentified
        self._per_user = per_user
        self._owner_of = owner_of
        self._owners: dict[asyncio.Transport, ConnectionOwner] = {}
        self._by_owner: dict[ConnectionOwner, dict[asyncio.Transport, IsIdle]] = {}

    def __len__(self) -> int:
        return len(self._owners)

    def __iter__(self) -> Iterator[asyncio.Transport]:
        return iter(tuple(self._owners))

    def opened(self, transport: asyncio.Transport) -> None:
        self._add(transport, UNIDENTIFIED, _always)
        while len(self._by_owner.get(UNIDENTIFIED, ())) > self._unidentified:
            self._identify_or_close_oldest()

    def closed(self, transport: asyncio.Transport) -> None:
        if transport in self._owners:
            self._remove(transport)

    def identify(self, transport: asyncio.Transport, owner: ConnectionOwner, is_idle: IsIdle) -> None:
        """From now on `transport` is a connection of this owner."""
        if transport not in self._owners:
            return
        self._remove(transport)
        self._add(transport, owner, is_idle)
        if owner is not None and len(self._by_owner[owner]) > self._per_user:
            self._close_idle(owner, except_for=transport)

    def close_unidentified(self) -> bool:
        """Close the oldest connection of an unidentified client. Returns False if there is none."""
        while UNIDENTIFIED in self._by_owner:
            if self._identify_or_close_oldest():
                return True
        return False

    def _identify_or_close_oldest(self) -> bool:
        """Returns True if the oldest unidentified connection was closed."""
        oldest = next(iter(self._by_owner[UNIDENTIFIED]))
        owner = self._owner_of(oldest)
        if owner != UNIDENTIFIED:
            self.identify(oldest, owner, _always)
            return False
        self._close(oldest)
        return True

    def _close_idle(self, owner: str, *, except_for: asyncio.Transport) -> None:
        for transport, is_idle in self._by_owner[owner].items():
            if transport is not except_for and (transport.is_closing() or is_idle()):
                self._close(transport)
                return

    def _close(self, transport: asyncio.Transport) -> None:
        self._remove(transport)
        transport.abort()

    def _add(self, transport: asyncio.Transport, owner: ConnectionOwner, is_idle: IsIdle) -> None:
        self._owners[transport] = owner
        self._by_owner.setdefault(owner, {})[transport] = is_idle

    def _remove(self, transport: asyncio.Transport) -> None:
        owner = self._owners.pop(transport)
        group = self._by_owner[owner]
        del group[transport]
        if not group:
            del self._by_owner[owner]
