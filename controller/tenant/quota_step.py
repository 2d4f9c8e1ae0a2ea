"""The step of a Tenant's ResourceQuota `tenant-quota`, which has exactly the declared keys (R-313, PEER-13).

With a quota, the step also creates LimitRange `tenant-range-limits`: without its defaults, containers that declare no
requests and limits could not start.
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

QUOTA_NAME, LIMIT_RANGE_NAME = "tenant-quota", "tenant-range-limits"

ContainerLimits = Mapping[str, Mapping[str, str]]
"""`default` and `defaultRequest` of containers, by resource."""


def render_quota(tenant: TenantSummary, current: Object | None = None) -> Object:
    """The ResourceQuota as a merge patch. A stored quantity that equals the declared one stays unchanged."""
    present = _hard(current) if current is not None else {}
    hard: Object = {key: None for key in present if key not in tenant.quotas}
    for key, value in sorted(tenant.quotas.items()):
        is_equal = key in present and _canonical_quantity(present[key]) == _canonical_quantity(value)
        hard[key] = present[key] if is_equal else str(value)
    return {"metadata": {"name": QUOTA_NAME, "namespace": tenant.namespace}, "spec": {"hard": hard}}


def render_limit_range(tenant: TenantSummary, limits: ContainerLimits, current: Object | None = None) -> Object:
    """The LimitRange as a merge patch, which replaces the list of limits as a whole or does not contain it."""
    desired: Object = {
        "metadata": {"name": LIMIT_RANGE_NAME, "namespace": tenant.namespace},
        "spec": {"limits": [{"type": "Container", **{kind: dict(values) for kind, values in limits.items()}}]},
    }
    if current is not None and _normalize_limits(current) == _normalize_limits(desired):
        return {**desired, "spec": {}}
    present = (current.get("spec") or {}).get("limits") if current is not None else None
    # an item with additional fields would count as up to date: they are removed explicitly
    [limit] = desired["spec"]["limits"]
    limit |= {field: None for each in present or () for field in each if field not in limit}
    return desired


def _hard(quota: Object) -> Mapping[str, Any]:
    return (quota.get("spec") or {}).get("hard") or {}


def _canonical_quantity(value: Any) -> str:
    """A string that is equal for equal quantities; a malformed value equals only itself."""
    try:
        return str(quantity.parse(value))
    except (ValueError, TypeError):
        return f"{value!r}"


def _normalize_quota(obj: Object) -> object:
    return {key: _canonical_quantity(value) for key, value in _hard(obj).items()}


def _normalize_limits(obj: Object) -> object:
    return [_normalize_limit(each) for each in (obj.get("spec") or {}).get("limits") or ()]


def _normalize_limit(limit: Mapping[str, Any]) -> object:
    return {
        field: {key: _canonical_quantity(each) for key, each in value.items()} if isinstance(value, dict) else value
        for field, value in limit.items()
    }


MANAGED_QUOTA = ManagedKind(
    resource=RESOURCEQUOTAS, normalize=_normalize_quota, selects=lambda namespace, name: name == QUOTA_NAME
)
MANAGED_LIMIT_RANGE = ManagedKind(
    resource=LIMITRANGES, normalize=_normalize_limits, selects=lambda namespace, name: name == LIMIT_RANGE_NAME
)


class QuotaStep:
    """Findings: ChartConflict. It must be the last step: a quota may count objects that the other steps create."""

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
        self._contents = contents
        self._quotas = quotas
        self._ranges = ranges
        self._limits = limits

    async def run(self, observed: ObservedTenant) -> Sequence[Finding]:
        tenant, limits, release = observed.tenant, self._limits(), tenant_release(observed.tenant)
        if not tenant.quotas:
            return [
                *await self._contents.remove(self._quotas, tenant.namespace, QUOTA_NAME),
                *await self._contents.remove(self._ranges, tenant.namespace, LIMIT_RANGE_NAME),
            ]
        return [
            *await self._contents.ensure(
                self._ranges, lambda current: render_limit_range(tenant, limits, current), release
            ),
            *await self._contents.ensure(self._quotas, lambda current: render_quota(tenant, current), release),
        ]
