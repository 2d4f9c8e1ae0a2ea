"""Keeps requests apart whose judgement depends on the tree of Tenants and that change what others are judged by.

Judging and storing are one step under its lock, and the judgement sees what this replica has stored (API-18).
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from enum import Enum
from typing import Protocol

from admission.plugin_rule import TENANTS, PluginRule
from admission.tenant.group_lock import GroupLock
from apiserver.admission import Attributes
from registry.tenant.summary import summarize


class TreeCache(Protocol):
    async def wait_for_own_writes(self) -> None:
        """Wait until the tree has what this replica wrote. Raises Timeout."""
        ...


class TreeEffect(Enum):
    """What a request may change of what others are judged by."""

    NONE = "none"
    ADDS = "grows"
    """A Tenant more, that claims neither a host nor a quota."""
    REMOVES = "shrinks"
    CLAIMS = "claims"
    """A host or a quota."""


def tree_effect(attributes: Attributes) -> TreeEffect:
    """Derived hosts of new Tenants cannot meet: they are <name>.<host of the parent>, and no two parents have one
    host. So plain creates need not wait for each other, and neither do deletions, which only make room."""
    if attributes.operation == "DELETE":
        return TreeEffect.REMOVES
    assert attributes.object is not None
    new = summarize(attributes.object)
    if attributes.old_object is None:
        return TreeEffect.CLAIMS if new.host or new.quotas else TreeEffect.ADDS
    old = summarize(attributes.old_object)
    return TreeEffect.CLAIMS if (new.host, new.quotas) != (old.host, old.quotas) else TreeEffect.NONE


class TreeGuard:
    name = "TenantTreeGuard"
    _rule = PluginRule(TENANTS, frozenset(("CREATE", "UPDATE", "DELETE")))

    def __init__(self, *, cache: TreeCache) -> None:
        self._cache = cache
        self._lock = GroupLock()

    def handles(self, attributes: Attributes) -> bool:
        return self._rule.matches(attributes) and tree_effect(attributes) is not TreeEffect.NONE

    @asynccontextmanager
    async def guard(self, attributes: Attributes) -> AsyncIterator[None]:
        changes = tree_effect(attributes)
        async with self._lock.hold(None if changes is TreeEffect.CLAIMS else changes.value):
            await self._cache.wait_for_own_writes()
            yield
