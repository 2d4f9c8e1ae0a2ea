"""The quotas of tenants: declared, left for others, and used. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from admission.tenant.quota_ledger import Ledger
from apiserver.meta.resource import Object
from registry.quota_names import COMPUTE
from registry.tenant.quota_amounts import counted_use
from registry.tenant.quota_keys import EQUAL, AllocationRatios, amount_text, comparable_limits
from registry.tenant.quota_left import QuotaLeft, quota_left
from registry.tenant.summary import summarize
from registry.tenant.tree import TenantTree
from tenant_apiserver.kubectl_tenant.tables import bar, table

UNKNOWN_RATIOS = (
    "note: the allocation ratios of the platform are not known: you may not get tenants/explain, or the server is of "
    "an earlier version; ALLOCATED and LEFT are as if requests were as large as limits\n"
)


@dataclass(frozen=True, slots=True)
class QuotaRow:
    """One resource of one tenant, in the unit of what it declares: `allocated` is what its children declare of it,
    `used` the use of its own namespace and of those that share its quota, None where that is not known; `left` is what
    admission grants to children."""

    tenant: str
    resource: str
    declared: str
    allocated: str
    used: str | None
    left: str
    share: str

    def as_object(self) -> Object:
        return {
            "tenant": self.tenant,
            "resource": self.resource,
            "declared": self.declared,
            "allocated": self.allocated,
            "used": self.used,
            "left": self.left,
        }


class Quotas:
    """The quotas of the visible `tenants`, by the sums with which admission compares them. `quotas` are the
    ResourceQuotas of pools, by namespace."""

    def __init__(
        self, tenants: Sequence[Object], quotas: Mapping[str, Object], ratios: AllocationRatios = EQUAL
    ) -> None:
        self._tenants = tenants
        self._tree = TenantTree(map(summarize, tenants), ratios=ratios)
        self._ledger = Ledger(self._tree)
        self._used = {namespace: counted_use(quota) for namespace, quota in quotas.items()}

    def rows(self) -> Sequence[QuotaRow]:
        """A row for each resource that a tenant declares."""
        return [row for tenant in self._tenants for row in self.rows_of(tenant)]

    def rows_of(self, tenant: Object) -> Sequence[QuotaRow]:
        summary = summarize(tenant)
        keys = comparable_limits(summary.quotas, self._tree.ratios).keys()
        if not keys:
            return ()
        used = dict.fromkeys(keys & self._used.get(summary.namespace, {}).keys(), 0)
        used |= self._ledger.used(summary, keys, lambda namespace: self._used.get(namespace, {}))
        allocated = self._ledger.claimed_below(summary, keys)
        found = quota_left(summary.quotas, self._tree.ratios, allocated=allocated, used=used)
        return [_row(f"{summary.key.namespace}/{summary.key.name}", each) for each in found]

    def summary(self, tenant: Object) -> str:
        """The resource of which the least is left, with its bar; empty without a quota."""
        fullest = max(self.rows_of(tenant), key=lambda each: each.share.count("█"), default=None)
        return f"{fullest.share} {fullest.resource} {fullest.left} left" if fullest is not None else ""


def namespaces_with_quota(tenants: Sequence[Object]) -> Sequence[str]:
    """The namespaces of the tenants that declare a quota, and of those below them, which may share it."""
    tree = TenantTree(map(summarize, tenants))
    owners = [each for each in tree if each.quotas]
    return list(dict.fromkeys(each.namespace for owner in owners for each in (owner, *tree.descendants(owner))))


def needs_ratios(tenants: Iterable[Object]) -> bool:
    """True if an amount is divided by an allocation ratio."""
    return any(key in COMPUTE for each in tenants for key in (each.get("spec") or {}).get("resourceQuotas") or ())


def ratios_of(explanation: Object) -> AllocationRatios | None:
    """The platform's ratios, which the answer about a tenant has; None if the server is of an earlier version."""
    found = explanation.get("allocationRatios")
    if not found:
        return None
    return AllocationRatios(*(Fraction(found[each]) for each in ("cpu", "memory", "ephemeralStorage")))


def render_quota(rows: Sequence[QuotaRow]) -> str:
    """Empty if there are no rows."""
    if not rows:
        return ""
    columns = ("TENANT", "RESOURCE", "DECLARED", "ALLOCATED", "USED", "LEFT", "")
    cells = [
        (each.tenant, each.resource, each.declared, each.allocated, each.used or "", each.left, each.share)
        for each in rows
    ]
    return table(columns, cells)


def render_missing_right(denied: Sequence[str], shown: Sequence[str]) -> str:
    """A note for stderr about the namespaces whose use is not known because of a right that the user lacks; empty if
    there is none."""
    named = [each for each in denied if each in shown]
    if not named:
        return ""
    others = f" and {len(named) - 1} more" if len(named) > 1 else ""
    return (
        f"note: USED is not known in {named[0]}{others}: you may not list resourcequotas there; ask for that right, "
        f"which the ClusterRole cozy:tenant has: kubectl auth can-i list resourcequotas -n {named[0]}\n"
    )


def _row(tenant: str, found: QuotaLeft) -> QuotaRow:
    return QuotaRow(
        tenant=tenant,
        resource=found.key,
        declared=found.text,
        allocated=amount_text(found.allocated, found.text),
        used=amount_text(found.used, found.text) if found.used is not None else None,
        left=amount_text(found.left, found.text),
        share=bar(Fraction(found.limit - found.left), Fraction(found.limit)),
    )
