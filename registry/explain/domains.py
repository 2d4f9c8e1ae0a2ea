"""Finds the Tenants with a domain around a hostname, as far as the user may see them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import NamedTuple

from apiserver.meta.resource import Key, Object
from registry.explain.hostnames import domains_around
from registry.explain.known import KnownTenant
from registry.explain.sight import MOST_REVIEWS, Sight
from registry.explain.sources import ExplainSources
from registry.tenant.summary import status_host


class TenantsAround(NamedTuple):
    """Those with the longest domain first, the oldest first of those with the same one. `longest` is the domain of the
    first. `truncated`: there are more."""

    tenants: Sequence[Object] = ()
    longest: str = ""
    truncated: bool = False


async def tenants_around(sources: ExplainSources, sight: Sight, tenant: KnownTenant, host: str) -> TenantsAround:
    """Other Tenants whose statuses have a domain around the host.

    Lists show them to the user, and each is reviewed besides. So neither the Tenants nor the number of reviews tell
    whether others, which are hidden, have one of the domains.
    """
    # also where no Tenant has one of the domains: where reviews decide, it takes time
    select = await sources.visible(sight.user)
    seen: list[tuple[str, Key]] = []
    for domain in domains_around(host):
        others = (each for each in sources.hosts.tenants_with(domain) if each != tenant.key)
        seen += ((domain, each) for each in sorted(select(others), key=lambda each: _age(sources, each)))
    some = seen[:MOST_REVIEWS]
    allowed = await asyncio.gather(*(sight.may_get_tenant(key) for _, key in some))
    found: list[tuple[str, Object]] = []
    for (domain, key), may in zip(some, allowed, strict=True):
        cached = await sources.tenants.get(key) if may else None
        # it may have changed during the reviews
        if cached is not None and status_host(obj := cached.object()) == domain:
            found.append((domain, obj))
    longest = found[0][0] if found else ""
    return TenantsAround([obj for _, obj in found], longest, truncated=len(seen) > len(some))


def _age(sources: ExplainSources, key: Key) -> tuple[str, Key]:
    found = sources.tree.get(key)
    return (found.created if found is not None else "", key)
