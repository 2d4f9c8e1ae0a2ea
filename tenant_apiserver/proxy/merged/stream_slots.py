"""Bounds the streams of merged watches: each has a connection to the cluster, of about 60 KiB."""

from __future__ import annotations

from collections import Counter
from typing import Final

from apiserver.meta.errors import TooManyRequests

_TOTAL: Final = 5_000
"""About 300 MiB, of the 512 MiB that the Deployment has."""
_PER_USER: Final = 1_500


class StreamSlots:
    """The streams of all watches, and those of one user."""

    def __init__(self, *, total: int = _TOTAL, per_user: int = _PER_USER) -> None:
        self._total = total
        self._per_user = per_user
        self._used = 0
        self._by_user = Counter[str]()

    def change(self, user: str, by: int) -> None:
        """Raises TooManyRequests, and takes none, if `by` more are too many."""
        if by > 0 and self._by_user[user] + by > self._per_user:
            raise TooManyRequests(
                f"the watches of this user have {self._by_user[user]} namespaces together, of at most "
                f"{self._per_user} that the proxy merges for one user: watch fewer kinds, or single namespaces"
            )
        if by > 0 and self._used + by > self._total:
            raise TooManyRequests("Too many merged watches are open, please try again later.")
        self._used += by
        self._by_user[user] += by
        if not self._by_user[user]:
            del self._by_user[user]


class WatchSlots:
    """The streams of one watch."""

    def __init__(self, slots: StreamSlots, user: str) -> None:
        self._slots = slots
        self._user = user
        self._count = 0

    def resize(self, count: int) -> None:
        """Raises TooManyRequests, and changes nothing, for more than are free."""
        self._slots.change(self._user, count - self._count)
        self._count = count
