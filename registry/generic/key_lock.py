"""Turns at one object, for those whose write met another's.

If all of them tried again at once, every round would have one winner, and the last ones would run out of tries.
"""

from __future__ import annotations

import asyncio
from collections.abc import Hashable
from contextlib import AbstractAsyncContextManager, nullcontext
from weakref import WeakValueDictionary


class KeyLock:
    """First come, first served, within this process; a key costs nothing once nobody is at it."""

    def __init__(self) -> None:
        self._locks: WeakValueDictionary[Hashable, asyncio.Lock] = WeakValueDictionary()

    def hold(self, key: Hashable, *, contended: bool) -> AbstractAsyncContextManager[None]:
        """Held for one try; whoever is not `waiting`, because nobody has come between yet, just goes ahead."""
        if not contended:
            return nullcontext()
        lock = self._locks.get(key)
        if lock is None:
            lock = self._locks[key] = asyncio.Lock()
        return lock
