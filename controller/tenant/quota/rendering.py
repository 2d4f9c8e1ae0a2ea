"""The ResourceQuotas and the LimitRange of a Tenant's namespace: how they are rendered, and which ones are equivalent.
Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from functools import lru_cache
from typing import Any

from apiserver.meta.resource import Object
from controller.runtime.conditions import Finding, join_limited
from controller.tenant.helm_ownership import CHART_CONFLICT
from controller.tenant.managed_objects import ManagedKind
from controller.tenant.quota.first_limits import QUOTA_READY
from registry import quantity
from registry.cluster.interface import LIMITRANGES, RESOURCEQUOTAS
from registry.tenant.pool_quotas import POOL_NAME, WITNESS_NAME
from registry.tenant.quota_keys import NANO, QuotaLimit, amount_text, canonical_key
from registry.tenant.summary import TenantSummary

QUOTA_NAME, LIMIT_RANGE_NAME = "tenant-quota", "tenant-range-limits"

ContainerLimits = Mapping[str, Mapping[str, str]]
"""`default` and `defaultRequest` of containers, by resource."""

# kube-apiserver requires them of each container if a quota limits them
_REQUIRED = ("cpu", "memory")
# the chart computes with floating-point numbers
_ROUNDING = 10**6


def hard_limits(limits: Mapping[str, QuotaLimit]) -> Mapping[str, str]:
    """`spec.hard`: the only text of the declared limits that is ever written."""
    return {key: amount_text(limit.amount, limit.text) for key, limit in limits.items()}


def render_quota(namespace: str, name: str, limits: Mapping[str, str], current: Object | None = None) -> Object:
    """The ResourceQuota as a merge patch. A stored quantity that equals the limit stays unchanged."""
    present = _hard(current) if current is not None else {}
    hard: Object = {key: None for key in present if key not in limits}
    for key, value in limits.items():
        is_equal = key in present and _comparable(present[key]) == _comparable(value)
        hard[key] = present[key] if is_equal else value
    return {"metadata": {"name": name, "namespace": namespace}, "spec": {"hard": hard}}


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


def is_charts_quota(current: Object, desired: Object) -> bool:
    """True if the ResourceQuota of the chart limits what the Tenant declares: no key to another amount, and at least
    one. `tenant-pool` also limits the rest, such as counts of objects."""
    found, wanted = _amounts(current), _amounts(desired)
    common = found.keys() & wanted.keys()
    return bool(common) and all(abs(found[key] - wanted[key]) <= _tolerance(wanted[key]) for key in common)


def lesser_limits(current: Object, desired: Object) -> Sequence[Finding]:
    """QuotaReady is False if the ResourceQuota of the chart limits a key to less than what the Tenant declares. More
    has no effect, because of `tenant-pool`."""
    found, wanted = _amounts(current), _amounts(desired)
    declared = _hard(desired)
    lesser = [
        f"{key} {amount_text(found[name], value)} of {value}"
        for key, value in sorted(declared.items())
        if value is not None
        and (name := canonical_key(key)) in found
        and found[name] < wanted[name] - _tolerance(wanted[name])
    ]
    if not lesser:
        return []
    message = (
        f"the ResourceQuota {QUOTA_NAME} of the tenant's chart has less than what is declared: {join_limited(lesser)}; "
        "ChartConflict tells what to do"
    )
    return [Finding(QUOTA_READY, "False", CHART_CONFLICT, message)]


def _tolerance(amount: int) -> int:
    return amount // _ROUNDING + 1


def is_charts_limit_range(current: Object, desired: Object) -> bool:
    """True if containers that declare no limits get some from the chart's LimitRange, so that a quota lets them
    start."""
    given = _default_limits(current)
    return all(resource in given for resource in _default_limits(desired) if resource in _REQUIRED)


def _default_limits(limit_range: Object) -> Set[str]:
    limits = (limit_range.get("spec") or {}).get("limits") or ()
    return {resource for each in limits if each.get("type") == "Container" for resource in each.get("default") or ()}


def _amounts(quota: Object) -> Mapping[str, int]:
    found = {}
    for key, value in _hard(quota).items():
        try:
            found[canonical_key(key)] = int(quantity.parse_bounded(value) * NANO)
        except (ValueError, TypeError):
            # None is a key that is to be removed
            continue
    return found


def _hard(quota: Object) -> Mapping[str, Any]:
    return (quota.get("spec") or {}).get("hard") or {}


def _comparable(value: Any) -> str:
    """A string that is equal for equal quantities; a malformed value equals only itself."""
    # the same few values are in the objects of most tenants
    if isinstance(value, str) and len(value) <= quantity.MAX_LENGTH:
        return _comparable_text(value)
    return _parsed(value)


@lru_cache(maxsize=4096)
def _comparable_text(value: str) -> str:
    return _parsed(value)


def _parsed(value: Any) -> str:
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
    resource=RESOURCEQUOTAS,
    normalize=_normalize_quota,
    selects=lambda namespace, name: name == QUOTA_NAME,
    accepts_charts=is_charts_quota,
    charts_faults=lesser_limits,
)
MANAGED_POOL_QUOTA = ManagedKind(
    resource=RESOURCEQUOTAS,
    normalize=_normalize_quota,
    selects=lambda namespace, name: name == POOL_NAME,
    # kube-apiserver writes the status with every object that it admits
    is_busy=True,
)
MANAGED_WITNESS = ManagedKind(
    resource=RESOURCEQUOTAS,
    normalize=_normalize_quota,
    selects=lambda namespace, name: name == WITNESS_NAME,
    is_busy=True,
)
MANAGED_LIMIT_RANGE = ManagedKind(
    resource=LIMITRANGES,
    normalize=_normalize_limits,
    selects=lambda namespace, name: name == LIMIT_RANGE_NAME,
    accepts_charts=is_charts_limit_range,
)
