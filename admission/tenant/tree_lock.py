"""Keeps requests apart whose judgement depends on the tree of Tenants and that change what others are judged by.

Judging and storing are one step under its lock, and the judgement sees what this replica has stored (API-18).
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from enum import Enum
from typing import Protocol

from admission.plugin_rule import TENANTS, Rule
from admission.tenant.group_lock import GroupLock
from apiserver.admission import Attributes
from registry.tenant.summary import facts_of


class Cache(Protocol):
    async def fresh(self) -> None:
        """Wait until the tree has what this replica wrote. Raises Timeout."""
        ...


class Effect(Enum):
    """What a request may change of what others are judged by."""

    NONE = "none"
    GROWS = "grows"
    """A Tenant more, that claims neither a host nor a quota."""
    SHRINKS = "shrinks"
    CLAIMS = "claims"
    """A host or a quota."""


def effect(attributes: Attributes) -> Effect:
    """Derived hosts of new Tenants cannot meet: they are <name>.<host of the parent>, and no two parents have one
    host. So plain creates need not wait for each other, and neither do deletions, which only make room."""
    if attributes.operation == "DELETE":
        return Effect.SHRINKS
    assert attributes.object is not None
    new = facts_of(attributes.object)
    if attributes.old_object is None:
        return Effect.CLAIMS if new.host or new.quotas else Effect.GROWS
    old = facts_of(attributes.old_object)
    return Effect.CLAIMS if (new.host, new.quotas) != (old.host, old.quotas) else Effect.NONE


class TreeGuard:
    name = "TenantTreeGuard"
    _rule = Rule(TENANTS, frozenset(("CREATE", "UPDATE", "DELETE")))

    def __init__(self, *, cache: Cache) -> None:
        self._cache = cache
        self._lock = GroupLock()

    def handles(self, attributes: Attributes) -> bool:
        return self._rule.matches(attributes) and effect(attributes) is not Effect.NONE

    @asynccontextmanager
    async def guard(self, attributes: Attributes) -> AsyncIterator[None]:
        changes = effect(attributes)
        async with self._lock.hold(None if changes is Effect.CLAIMS else changes.value):
            await self._cache.fresh()
            yield
