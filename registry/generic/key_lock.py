"""A lock for each object, taken by writes that are retried after a conflict.

Without it all of them would retry simultaneously, one would win each round, and the last ones would run out of
attempts.
"""

from __future__ import annotations

import asyncio
from collections.abc import Hashable
from contextlib import AbstractAsyncContextManager, nullcontext
from weakref import WeakValueDictionary


class KeyLock:
    """Locks by key, granted in order of arrival. An unused key takes no memory."""

    def __init__(self) -> None:
        self._locks: WeakValueDictionary[Hashable, asyncio.Lock] = WeakValueDictionary()

    def hold(self, key: Hashable, *, contended: bool) -> AbstractAsyncContextManager[None]:
        """The lock of the key, for one attempt. Without `contended`, as in a first attempt, it is a no-op."""
        if not contended:
            return nullcontext()
        lock = self._locks.get(key)
        if lock is None:
            lock = self._locks[key] = asyncio.Lock()
        return lock
