"""Claims: what the writes that are under way would change for others. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction

from apiserver.meta.resource import Key
from registry import quantity
from registry.cluster.interface import REQUEST_SECONDS
from registry.names import MAX_HOST, workload_namespace
from registry.tenant.quota_keys import NANO, declared_amounts
from registry.tenant.summary import TenantSummary

WRITE_SECONDS = REQUEST_SECONDS
"""The longest time of a write, and the longest time before it since its claim was made."""

EXPIRY_SECONDS = 2 * WRITE_SECONDS
"""A claim ends at this age, counted by a replica's own clock from when it first saw the claim: the write was stored by
then, or never will be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The possible effect of a write on a Tenant: its host, and the changed quotas by the keys of the Tenant, as
    canonical amounts. A host of None and all other quotas are unchanged; an amount of None is removed."""

    host: str | None = None
    quotas: Mapping[str, str | None] = field(default_factory=dict)

    def applied_to(self, tenant: TenantSummary) -> TenantSummary:
        unchanged = {key: amount for key, amount in tenant.quotas.items() if key not in self.quotas}
        quotas = unchanged | {key: amount for key, amount in self.quotas.items() if amount is not None}
        return replace(tenant, host=tenant.host if self.host is None else self.host, quotas=quotas)


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """One write of a replica, the `holder`. `base` is the resourceVersion that the write starts from, for a create the
    one at which the Tenant did not exist. A `wide` claim has amounts that are too many to be recorded: it conflicts
    with all others. `time` is informative: clocks of others are never compared."""

    id: str
    holder: str
    key: Key
    base: int
    creates: bool
    outcomes: tuple[Outcome, ...]
    wide: bool = False
    time: str = ""

    @property
    def sets_host(self) -> bool:
        return any(each.host is not None for each in self.outcomes)

    @property
    def may_be_undone(self) -> bool:
        """True if the write may be followed by another one that restores the Tenant."""
        return len(self.outcomes) > 1

    def applied_to(self, tenant: TenantSummary | None) -> tuple[TenantSummary, ...]:
        """The Tenant after each outcome; None is a Tenant that does not exist."""
        before = tenant or TenantSummary(key=self.key, namespace=workload_namespace(*self.key))
        return tuple(each.applied_to(before) for each in self.outcomes)

    def is_settled(self, tenant: TenantSummary | None) -> bool:
        """True if the cached `tenant` shows that the write is over. An update is conditional on `base`, and a name is
        created once, so nothing later than `base` can still be changed by the write."""
        return tenant is not None and tenant.rv > self.base and not self.may_be_undone


@dataclass(frozen=True, slots=True)
class ProposedWrite:
    """A create or an update that is to be judged; `old` is None on create."""

    new: TenantSummary
    old: TenantSummary | None

    @property
    def key(self) -> Key:
        return self.new.key

    @property
    def creates(self) -> bool:
        return self.old is None

    @property
    def sets_host(self) -> bool:
        """True if the effective host changes, as it always does for a new Tenant."""
        return self.old is None or self.old.host != self.new.host

    @property
    def sets_quotas(self) -> bool:
        old = declared_amounts(self.old.quotas) if self.old is not None else {}
        return declared_amounts(self.new.quotas) != old

    @property
    def is_judged_again(self) -> bool:
        """True if claims alone do not protect the write, because a create without a host or quotas makes none that
        others see. It is judged again at its own event, and has a mark until then."""
        return self.creates or self.sets_host

    @property
    def needs_record(self) -> bool:
        """True if other replicas have to know about the write before it is sent. A create without a host or quotas of
        its own is not recorded: it is judged again when its event arrives."""
        return self.sets_quotas or (bool(self.new.host) if self.creates else self.sets_host)

    def claim(self, *, id: str, holder: str, base: int) -> Claim:
        outcomes = [_outcome(self.new, self.old)]
        if self.old is not None and self.sets_host:
            # a host that turns out to be taken is set back
            outcomes.append(_outcome(self.old, self.new))
        return Claim(
            id=id,
            holder=holder,
            key=self.key,
            base=self.old.rv if self.old is not None else base,
            creates=self.creates,
            outcomes=tuple(outcomes),
        )


def _outcome(tenant: TenantSummary, other: TenantSummary | None) -> Outcome:
    """The fields of `tenant` that differ from `other`; all of them if `other` is None."""
    amounts = declared_amounts(tenant.quotas)
    others = declared_amounts(other.quotas) if other is not None else {}
    changed: dict[str, str | None] = {key: None for key in others if key not in amounts}
    changed |= {
        key: quantity.to_text(Fraction(amount, NANO)) for key, amount in amounts.items() if others.get(key) != amount
    }
    # as in the tree, which ignores the rest of a longer host
    host = tenant.host[: MAX_HOST + 2] if other is None or tenant.host != other.host else None
    return Outcome(host=host, quotas=changed)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimsDocument:
    """The content of the Lease. A judge waits until its cache has `min_version`, a resourceVersion of HelmReleases: it
    covers the writes of all claims that are no longer listed."""

    claims: tuple[Claim, ...] = ()
    min_version: int = 0
