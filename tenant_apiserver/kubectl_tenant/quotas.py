"""The quotas of tenants: declared, left for others, and used. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from apiserver.meta.resource import Object
from registry import quantity
from tenant_apiserver.kubectl_tenant.tables import bar, table


@dataclass(frozen=True, slots=True)
class QuotaRow:
    """One resource of one tenant: `allocated` is what its children declare of it, `used` the use of its own
    namespace, None where that is not known; `left` is the rest of what it declares."""

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


def quota_rows(tenants: Sequence[Object], quotas: Mapping[str, Object]) -> Sequence[QuotaRow]:
    """A row for each resource that a tenant declares. `quotas` are the ResourceQuotas of pools, by namespace."""
    return [row for tenant in tenants for row in _rows_of(tenant, tenants, quotas)]


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


def quota_summary(tenant: Object, tenants: Sequence[Object], quotas: Mapping[str, Object]) -> str:
    """The resource of which the least is left, with its bar; empty without a quota."""
    rows = _rows_of(tenant, tenants, quotas)
    fullest = max(rows, key=lambda each: each.share.count("█"), default=None)
    return f"{fullest.share} {fullest.resource} {fullest.left} left" if fullest is not None else ""


def _rows_of(tenant: Object, tenants: Sequence[Object], quotas: Mapping[str, Object]) -> Sequence[QuotaRow]:
    declared = _declared(tenant)
    namespace = (tenant.get("status") or {}).get("namespace") or ""
    used = ((quotas.get(namespace) or {}).get("status") or {}).get("used")
    below = [_declared(each) for each in tenants if each["metadata"]["namespace"] == namespace and each is not tenant]
    rows = []
    for key in sorted(declared):
        like = str(declared[key])
        limit, allocated = _amount(like), sum((_amount(each.get(key)) for each in below), Fraction(0))
        taken = _used(used, key)
        rest = max(limit - allocated - (taken or 0), Fraction(0))
        rows.append(
            QuotaRow(
                tenant=f"{tenant['metadata']['namespace']}/{tenant['metadata']['name']}",
                resource=key,
                declared=like,
                allocated=quantity.text_like(like, allocated),
                used=quantity.text_like(like, taken) if taken is not None else None,
                left=quantity.text_like(like, rest),
                share=bar(limit - rest, limit),
            )
        )
    return rows


def _used(used: object, key: str) -> Fraction | None:
    """A ResourceQuota counts what is declared as `cpu` as limits.cpu."""
    found = used if isinstance(used, dict) else {}
    return next((_amount(found[each]) for each in (key, f"limits.{key}") if each in found), None)


def _declared(tenant: Object) -> Mapping[str, object]:
    found = (tenant.get("spec") or {}).get("resourceQuotas")
    return found if isinstance(found, dict) else {}


def _amount(value: object) -> Fraction:
    try:
        return quantity.parse(str(value)) if value is not None else Fraction(0)
    except ValueError:
        return Fraction(0)
