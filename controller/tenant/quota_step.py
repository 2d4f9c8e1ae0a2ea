"""The step of a Tenant's ResourceQuota `tenant-quota`, which has exactly the declared keys (R-313, PEER-13).

With a quota, the step also creates LimitRange `tenant-range-limits`: without its defaults, containers that declare no
requests and limits could not start.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from apiserver.meta.label_validation import qualified_name_errors
from apiserver.meta.resource import Object
from controller.runtime.conditions import Finding, join_limited
from controller.tenant.helm_ownership import tenant_release
from controller.tenant.managed_objects import ContentWriter, ManagedKind, ObjectDigests
from controller.tenant.observe import ObservedTenant
from registry import quantity
from registry.cluster.interface import LIMITRANGES, RESOURCEQUOTAS
from registry.tenant.summary import TenantSummary

QUOTA_NAME, LIMIT_RANGE_NAME = "tenant-quota", "tenant-range-limits"
QUOTA_READY = "QuotaReady"
# The number of characters of a key and of a value that a message shows.
_MAX_SHOWN = 64

ContainerLimits = Mapping[str, Mapping[str, str]]
"""`default` and `defaultRequest` of containers, by resource."""


class DeclaredLimits(NamedTuple):
    """`valid` are the declared limits by key, each in canonical form: the only text of them that is ever written.
    `problems` are the reasons why the other entries are no limits.

    These were stored by an earlier version of ours, or written to the HelmRelease, which our admission does not see. A
    kube-apiserver may compute for good when it parses them.
    """

    valid: Mapping[str, str]
    problems: Sequence[str]


def declared_limits(quotas: Mapping[str, str | int]) -> DeclaredLimits:
    valid: dict[str, str] = {}
    problems: list[str] = []
    for key, value in sorted(quotas.items()):
        path = f"spec.resourceQuotas[{key[:_MAX_SHOWN]}]"
        if wrong := qualified_name_errors(key):
            problems.append(f"{path}: {wrong[0]}")
            continue
        try:
            valid[key] = quantity.canonical_limit(value)
        except ValueError as e:
            problems.append(f'{path}: "{str(value)[:_MAX_SHOWN]}": {e}')
    return DeclaredLimits(valid, problems)


def render_quota(namespace: str, limits: Mapping[str, str], current: Object | None = None) -> Object:
    """The ResourceQuota as a merge patch. A stored quantity that equals the limit stays unchanged."""
    present = _hard(current) if current is not None else {}
    hard: Object = {key: None for key in present if key not in limits}
    for key, value in limits.items():
        is_equal = key in present and _comparable(present[key]) == _comparable(value)
        hard[key] = present[key] if is_equal else value
    return {"metadata": {"name": QUOTA_NAME, "namespace": namespace}, "spec": {"hard": hard}}


def render_limit_range(tenant: TenantSummary, limits: ContainerLimits, current: Object | None = None) -> Object:
    """The LimitRange as a merge patch, which replaces the list of limits as a whole or does not contain it."""
    quantities = {
        kind: {key: quantity.canonical_limit(value) for key, value in values.items()} for kind, values in limits.items()
    }
    desired: Object = {
        "metadata": {"name": LIMIT_RANGE_NAME, "namespace": tenant.namespace},
        "spec": {"limits": [{"type": "Container", **quantities}]},
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


def _comparable(value: Any) -> str:
    """A string that is equal for equal quantities; a malformed value equals only itself."""
    try:
        return str(quantity.parse(value))
    except (ValueError, TypeError):
        return f"{value!r}"


def _normalize_quota(obj: Object) -> object:
    return {key: _comparable(value) for key, value in _hard(obj).items()}


def _normalize_limits(obj: Object) -> object:
    return [_normalize_limit(each) for each in (obj.get("spec") or {}).get("limits") or ()]


def _normalize_limit(limit: Mapping[str, Any]) -> object:
    return {
        field: {key: _comparable(each) for key, each in value.items()} if isinstance(value, dict) else value
        for field, value in limit.items()
    }


MANAGED_QUOTA = ManagedKind(
    resource=RESOURCEQUOTAS, normalize=_normalize_quota, selects=lambda namespace, name: name == QUOTA_NAME
)
MANAGED_LIMIT_RANGE = ManagedKind(
    resource=LIMITRANGES, normalize=_normalize_limits, selects=lambda namespace, name: name == LIMIT_RANGE_NAME
)


class QuotaStep:
    """Findings: QuotaReady while a quantity is invalid, and ChartConflict. It must be the last step: a quota may count
    objects that the other steps create."""

    name = "quota"
    condition = QUOTA_READY

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
        declared = declared_limits(tenant.quotas)
        invalid = [_invalid(declared.problems)] if declared.problems else []
        if not declared.valid:
            return [
                *invalid,
                *await self._contents.remove(self._quotas, tenant.namespace, QUOTA_NAME),
                *await self._contents.remove(self._ranges, tenant.namespace, LIMIT_RANGE_NAME),
            ]
        return [
            *invalid,
            *await self._contents.ensure(
                self._ranges, lambda current: render_limit_range(tenant, limits, current), release
            ),
            *await self._contents.ensure(
                self._quotas, lambda current: render_quota(tenant.namespace, declared.valid, current), release
            ),
        ]


def _invalid(problems: Sequence[str]) -> Finding:
    return Finding(QUOTA_READY, "False", "InvalidQuantity", f"not limited: {join_limited(problems)}")
