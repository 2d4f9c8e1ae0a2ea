"""The indexes of Tenants that explanations are read from, and who may see which of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from apiserver.meta.resource import Key
from apiserver.request.context import User
from apiserver.storage.visibility import VisibilitySource
from apiserver.storage.watch_cache import WatchCache
from registry.explain.status_hosts import StatusHosts
from registry.tenant.tree import TenantTree


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainSources:
    """`hosts` and `tree` follow `tenants`, and `visibility` decides which of them lists show to a user. `gateway_name`
    is the name of the TenantGateways and Gateways of tenants. `may_set_host` is the host policy."""

    tree: TenantTree
    tenants: WatchCache
    hosts: StatusHosts
    visibility: VisibilitySource
    gateway_name: str
    may_set_host: Callable[[User], bool]

    async def visible(self, user: User) -> Callable[[Iterable[Key]], list[Key]]:
        """Returns a function that selects the Tenants that lists show to the user, in their order. Raises
        ServiceUnavailable while that is not known."""
        visible = (await self.visibility.for_user(user)).visible
        return lambda keys: [each for each in keys if visible.includes(self.tenants.resource, each)]
