"""Tenants by the domain in their status.

A status may lag behind the specs that it follows from, and its readers may not see all of these: a spec of a hidden
ancestor changes the domains of all below it at once. An explanation is of what the user can read (ATTACK-15).
"""

from __future__ import annotations

from collections.abc import Collection

from apiserver.meta.resource import Key
from apiserver.storage.event_history import CacheEvent
from registry.multimap import Multimap
from registry.tenant.tree import TenantTree


class StatusHosts:
    """Updated by the events of a watch cache, after the tree, which has read the object of the event:
    `cache.subscribe(hosts.on_event)`."""

    def __init__(self, tree: TenantTree) -> None:
        self._tree = tree
        self._host_of: dict[Key, str] = {}
        self._keys: Multimap[str, Key] = Multimap()

    def on_event(self, event: CacheEvent) -> None:
        key = event.object.key
        tenant = self._tree.get(key) if event.type != "DELETED" else None
        host = tenant.status_host if tenant is not None else ""
        before = self._host_of.get(key, "")
        if host == before:
            return
        if before:
            del self._host_of[key]
            self._keys.discard(before, key)
        if host:
            self._host_of[key] = host
            self._keys.add(host, key)

    def tenants_with(self, host: str) -> Collection[Key]:
        """The Tenants whose status has this host, which is canonical, without an order."""
        return self._keys[host]
