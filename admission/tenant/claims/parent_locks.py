"""Keeps creations in a Tenant and its deletion apart within this process."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from weakref import WeakValueDictionary

from admission.tenant.group_lock import GroupLock


class ParentLocks:
    """One lock for each workload namespace. An unused one takes no memory."""

    def __init__(self) -> None:
        self._locks: WeakValueDictionary[str, GroupLock] = WeakValueDictionary()

    def creating(self, namespace: str) -> AbstractAsyncContextManager[None]:
        """Shared by all creations in the namespace."""
        return self._lock(namespace).hold("creating")

    def deleting(self, namespace: str) -> AbstractAsyncContextManager[None]:
        """Shared by all deletions of the Tenant whose namespace it is."""
        return self._lock(namespace).hold("deleting")

    def _lock(self, namespace: str) -> GroupLock:
        lock = self._locks.get(namespace)
        if lock is None:
            lock = self._locks[namespace] = GroupLock()
        return lock
