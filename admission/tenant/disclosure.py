"""Limits what a refusal reveals about Tenants to what its caller could `get` (ATTACK-15)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence, Set

from apiserver.authorization.authorizer import AccessAttributes, Authorizer, PrivilegedGroups
from apiserver.meta.errors import StatusError
from apiserver.meta.resource import Key
from apiserver.request.context import User
from registry.names import GROUP, VERSION
from registry.tenant.summary import TenantSummary

# A refusal costs no more reviews than this for each of its questions.
_MOST_REVIEWS = 20


class Disclosure:
    """Calls the authorizer only when a request is refused. If it cannot decide, nothing is revealed. `tells_amounts`
    returns the platform's setting for the refusals of quota."""

    def __init__(self, authorizer: Authorizer, *, tells_amounts: Callable[[], bool] = lambda: True) -> None:
        self._authorizer = authorizer
        self._tells_amounts = tells_amounts

    async def visible(self, user: User, tenants: Sequence[TenantSummary]) -> Sequence[TenantSummary]:
        """The subset of `tenants`, which are in one namespace, that the user may get. If the user may get only single
        ones by name, the first twenty are considered."""
        if not tenants or await self._may_get(user, tenants[0].key.namespace):
            return tenants
        named = await self.names(user, [each.key for each in tenants])
        return [each for each in tenants if each.key in named]

    async def names(self, user: User, tenants: Sequence[Key]) -> Set[Key]:
        """Those of `tenants` that the user may get. Only the first twenty are considered."""
        some = tenants[:_MOST_REVIEWS]
        allowed = await asyncio.gather(*(self._may_get(user, *each) for each in some))
        return {each for each, is_allowed in zip(some, allowed, strict=True) if is_allowed}

    async def tells_amount_of(self, user: User, tenant: TenantSummary) -> bool:
        """True if the user may know what is left of the quota of `tenant`."""
        return self._tells_amounts() and await self._may_get(user, *tenant.key)

    async def tells_amounts_in(self, user: User, namespaces: Sequence[str]) -> bool:
        """True if the user may know the sum of what the Tenants in `namespaces` declare."""
        if not self._tells_amounts():
            return False
        if await self._may_get(user, ""):
            return True
        if len(namespaces) > _MOST_REVIEWS:
            return False
        return all(await asyncio.gather(*(self._may_get(user, each) for each in namespaces)))

    async def _may_get(self, user: User, namespace: str, name: str = "") -> bool:
        """Without a name, all Tenants of the namespace; without a namespace, all Tenants."""
        access = AccessAttributes(
            user=user, verb="get", group=GROUP, version=VERSION, resource="tenants", namespace=namespace, name=name
        )
        try:
            return (await self._authorizer.authorize(access)).allowed
        except StatusError:
            return False


MASTERS_ONLY = Disclosure(PrivilegedGroups())
