"""Serializes writes that change the tree of Tenants against which other writes are validated.

Validation and write are one critical section, and validation sees all earlier writes of this replica (API-18). This
is enough for a single process; several replicas need claims as well.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from enum import Enum
from typing import Protocol

from admission.complete_caches import CompleteCaches
from admission.plugin_rule import TENANTS, PluginRule
from admission.tenant.group_lock import GroupLock
from apiserver.admission import Attributes
from registry.tenant.summary import summarize


class TreeCache(Protocol):
    async def wait_for_own_writes(self) -> None:
        """Waits until the tree includes all writes of this replica. Raises Timeout."""
        ...


class TreeEffect(Enum):
    """The effect of a write on the state that other writes are validated against."""

    NONE = "none"
    ADDS = "adds"
    """A new Tenant without a host or quota of its own."""
    REMOVES = "removes"
    CLAIMS = "claims"
    """A host or quota is set, changed or removed."""


def tree_effect(attributes: Attributes) -> TreeEffect:
    """Classifies a request by its effect on the validation of other writes.

    Inherited hosts of new Tenants cannot collide: they are <name>.<host of the parent>, and no two parents have the
    same host. So creates without claims need not wait for each other, and neither do deletions, which only free hosts
    and quota."""
    if attributes.operation == "DELETE":
        return TreeEffect.REMOVES
    assert attributes.object is not None
    new = summarize(attributes.object)
    if attributes.old_object is None:
        return TreeEffect.CLAIMS if new.host or new.quotas else TreeEffect.ADDS
    old = summarize(attributes.old_object)
    return TreeEffect.CLAIMS if (new.host, new.quotas) != (old.host, old.quotas) else TreeEffect.NONE


class TreeFreshness:
    """Waits for the tree, and leaves it to claims to keep writes apart (`admission/tenant/claims`)."""

    name = "TenantTreeFreshness"
    _rule = PluginRule(TENANTS, frozenset(("CREATE", "UPDATE", "DELETE")))

    def __init__(self, *, cache: TreeCache) -> None:
        self._cache = cache

    def handles(self, attributes: Attributes) -> bool:
        return self._rule.matches(attributes) and tree_effect(attributes) is not TreeEffect.NONE

    async def validate(self, attributes: Attributes) -> None:
        await self._cache.wait_for_own_writes()


class TreeGuard:
    """A guard that holds the lock for the effect of the request until the write is done."""

    name = "TenantTreeGuard"
    _rule = PluginRule(TENANTS, frozenset(("CREATE", "UPDATE", "DELETE")))

    def __init__(self, *, cache: TreeCache, caches: CompleteCaches) -> None:
        self._cache = cache
        self._caches = caches
        self._lock = GroupLock()

    def handles(self, attributes: Attributes) -> bool:
        return self._rule.matches(attributes) and tree_effect(attributes) is not TreeEffect.NONE

    @asynccontextmanager
    async def guard(self, attributes: Attributes) -> AsyncIterator[None]:
        """Raises TooManyRequests if the tree is not complete in time."""
        effect = tree_effect(attributes)
        while True:
            # waits without the lock, which others may need, and again if events were missed in the meantime
            await self._caches.wait()
            async with self._lock.hold(None if effect is TreeEffect.CLAIMS else effect.value):
                await self._cache.wait_for_own_writes()
                if self._caches.complete:
                    yield
                    return
