"""The facts of a Tenant's quota: what it declares and what is left of it, from whose it lives, and its use. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from apiserver.meta.resource import Key
from registry.explain.known import TENANT, KnownQuota, KnownTenant
from registry.explain.types import Fact, fact_object
from registry.tenant.quota_amounts import counted_use
from registry.tenant.quota_keys import amount_text, canonical_key, comparable_limits
from registry.tenant.quota_left import QuotaLeft, quota_left, resources_of

_POOLS = "inheritance.md#pools-of-quota"
_INHERITED = "A tenant that declares no quota of a resource lives from that of its nearest ancestor that declares it."
_FIELD = "spec.resourceQuotas"


def quota_facts(known: KnownTenant, quota: KnownQuota) -> Iterator[Fact]:
    yield from _declared_facts(known, quota)
    yield from _inherited_facts(known, quota)
    yield from _use_facts(known)


def _declared_facts(known: KnownTenant, quota: KnownQuota) -> Iterator[Fact]:
    """Each declared key, what children declare of it, and what is left."""
    rows = quota_left(
        _declared(known), quota.ratios, allocated=quota.allocated or {}, used=counted_use(known.quota or {})
    )
    for row in rows:
        yield Fact(
            object=fact_object(*TENANT, known.key, f"{_FIELD}[{row.key}]"),
            status="True",
            value=_balance(row, quota),
            rule="A tenant may give its children what is left of the quota that it declares.",
            link="tenants.md#rejected-writes",
        )


def _balance(row: QuotaLeft, quota: KnownQuota) -> str:
    bound = row.bound_by
    amount = row.text
    if bound is not None:
        amount += f", limited to {amount_text(row.limit, row.text)} by {bound.text} of {bound.key}"
    if quota.allocated is None:
        return f"{amount}; too many tenants are below to add up here what they declare"
    whose = "its children declare" if quota.sees_all else "the children that you may see declare"
    used = f", its namespace uses {amount_text(row.used, row.text)}" if row.used is not None else ""
    taken = f"{whose} {amount_text(row.allocated, row.text)}{used}"
    return f"{amount}; {taken}; {amount_text(row.left, row.text)} left"


def _inherited_facts(known: KnownTenant, quota: KnownQuota) -> Iterator[Fact]:
    """The ancestors that declare what the Tenant does not, the nearest for each resource."""
    declared = set(comparable_limits(_declared(known), quota.ratios))
    declares_none = not declared
    for ancestor in quota.ancestors:
        for key, value in sorted(ancestor.quotas.items()):
            if resources_of(key, value, quota.ratios) - declared:
                declares_none = False
                yield Fact(
                    object=fact_object(*TENANT, ancestor.key, f"{_FIELD}[{key}]"),
                    status="True",
                    value=f"{value}, shared with those below that declare none",
                    rule=_INHERITED,
                    link=_POOLS,
                )
        declared |= comparable_limits(ancestor.quotas, quota.ratios).keys()
    others = [] if quota.reaches_root else _limited_keys(known, declared)
    if others or declares_none:
        yield _further_fact(known, quota, others)


def _further_fact(known: KnownTenant, quota: KnownQuota, others: list[str]) -> Fact:
    """The resources whose quota is that of an ancestor that the user may not see, or that there is none."""
    if quota.reaches_root:
        value = "none, nor do its ancestors declare any"
    elif others:
        value = f"{', '.join(others)}: from a tenant that you may not see"
    else:
        value = "none; that of an ancestor that you may not see applies, if it declares any"
    return Fact(
        object=fact_object(*TENANT, known.key, _FIELD), status="True", value=value, rule=_INHERITED, link=_POOLS
    )


def _limited_keys(known: KnownTenant, declared: set[str]) -> list[str]:
    """The keys that the ResourceQuota of the namespace limits, and that are not declared."""
    hard = ((known.quota or {}).get("status") or {}).get("hard") or {}
    return sorted(key for key in hard if canonical_key(key) not in declared)


def _use_facts(known: KnownTenant) -> Iterator[Fact]:
    """The use of each limit that binds the namespace."""
    if known.quota is None:
        return
    status = known.quota.get("status") or {}
    hard, used = status.get("hard") or {}, status.get("used") or {}
    metadata = known.quota["metadata"]
    for key in sorted(hard):
        yield Fact(
            object=fact_object(
                "v1", "ResourceQuota", Key(metadata["namespace"], metadata["name"]), f"status.hard[{key}]"
            ),
            status="True",
            value=f"{used.get(key, '0')} of {hard[key]}",
            rule="A tenant and the descendants that declare no quota of their own share what it declares.",
            link=_POOLS,
        )


def _declared(known: KnownTenant) -> Mapping[str, str | int]:
    found: Mapping[str, str | int] = known.spec.get("resourceQuotas") or {}
    return found
