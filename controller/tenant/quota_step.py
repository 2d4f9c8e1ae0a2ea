"""The step of what a Tenant may use: ResourceQuota `tenant-quota` with exactly the declared keys (R-313, PEER-13).

With it goes LimitRange `tenant-range-limits`, without which no container could start under the quota.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from apiserver.meta.resource import Object
from controller.runtime.conditions import Finding
from controller.tenant.helm_ownership import tenant_release
from controller.tenant.managed_objects import ContentWriter, ManagedKind, ObjectDigests
from controller.tenant.observe import ObservedTenant
from registry import quantity
from registry.cluster.interface import LIMITRANGES, RESOURCEQUOTAS
from registry.tenant.summary import TenantSummary

QUOTA, LIMITS = "tenant-quota", "tenant-range-limits"

ContainerLimits = Mapping[str, Mapping[str, str]]
"""`default` and `defaultRequest` of containers, by resource."""


def render_quota(tenant: TenantSummary, current: Object | None = None) -> Object:
    """The ResourceQuota as a merge patch. The host writes quantities in a form of its own, and keeps that."""
    held = _hard(current) if current is not None else {}
    hard: Object = {key: None for key in held if key not in tenant.quotas}
    for key, value in sorted(tenant.quotas.items()):
        same = key in held and _amount(held[key]) == _amount(value)
        hard[key] = held[key] if same else str(value)
    return {"metadata": {"name": QUOTA, "namespace": tenant.namespace}, "spec": {"hard": hard}}


def render_limit_range(tenant: TenantSummary, limits: ContainerLimits, current: Object | None = None) -> Object:
    """The LimitRange. A list is written whole or not at all."""
    desired: Object = {
        "metadata": {"name": LIMITS, "namespace": tenant.namespace},
        "spec": {"limits": [{"type": "Container", **{kind: dict(values) for kind, values in limits.items()}}]},
    }
    if current is not None and _limits(current) == _limits(desired):
        return {**desired, "spec": {}}
    held = (current.get("spec") or {}).get("limits") if current is not None else None
    # items that have all that is wanted, and more, are taken for wanted: what is not is named
    [limit] = desired["spec"]["limits"]
    limit |= {field: None for each in held or () for field in each if field not in limit}
    return desired


def _hard(quota: Object) -> Mapping[str, Any]:
    return (quota.get("spec") or {}).get("hard") or {}


def _amount(value: Any) -> str:
    """The same text for the same quantity; damage is only like itself."""
    try:
        return str(quantity.parse(value))
    except (ValueError, TypeError):
        return f"{value!r}"


def _quota(obj: Object) -> object:
    return {key: _amount(value) for key, value in _hard(obj).items()}


def _limits(obj: Object) -> object:
    return [_limit(each) for each in (obj.get("spec") or {}).get("limits") or ()]


def _limit(limit: Mapping[str, Any]) -> object:
    return {
        field: {key: _amount(each) for key, each in value.items()} if isinstance(value, dict) else value
        for field, value in limit.items()
    }


MANAGED_QUOTA = ManagedKind(resource=RESOURCEQUOTAS, normalize=_quota, selects=lambda namespace, name: name == QUOTA)
MANAGED_LIMIT_RANGE = ManagedKind(
    resource=LIMITRANGES, normalize=_limits, selects=lambda namespace, name: name == LIMITS
)


class QuotaStep:
    """Findings: ChartConflict. To be the last of the steps: a quota may count what the others write."""

    name = "quota"
    condition = "QuotaReady"

    def __init__(
        self,
        *,
        contents: ContentWriter,
        quotas: ObjectDigests,
        ranges: ObjectDigests,
        limits: Callable[[], ContainerLimits],
    ) -> None:
        self._writer = contents
        self._quotas = quotas
        self._ranges = ranges
        self._limits = limits

    async def run(self, observed: ObservedTenant) -> Sequence[Finding]:
        tenant, limits, release = observed.tenant, self._limits(), tenant_release(observed.tenant)
        if not tenant.quotas:
            return [
                *await self._writer.remove(self._quotas, tenant.namespace, QUOTA),
                *await self._writer.remove(self._ranges, tenant.namespace, LIMITS),
            ]
        return [
            *await self._writer.ensure(self._ranges, lambda held: render_limit_range(tenant, limits, held), release),
            *await self._writer.ensure(self._quotas, lambda held: render_quota(tenant, held), release),
        ]
