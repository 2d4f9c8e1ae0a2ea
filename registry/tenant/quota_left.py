"""The rest of each key that a Tenant declares, as admission grants it to children, in the unit of the key. Pure.

A key such as `cpu` stands for two resources of a ResourceQuota, and other keys of the Tenant may mean one of them, too:
the resource of which the least is left decides.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from fractions import Fraction
from typing import NamedTuple

from registry.tenant.quota_keys import (
    NANO,
    AllocationRatios,
    QuotaLimit,
    canonical_key,
    comparable_limits,
    declared_amounts,
    rendered_limits,
)


class QuotaLeft(NamedTuple):
    """One declared key. Amounts are in billionths, in its unit. `used` is None where the use is not known; `limit` is
    less than the declared `text` if that of another key, `bound_by`, is the smaller one."""

    key: str
    text: str
    limit: int
    allocated: int
    used: int | None
    left: int
    bound_by: QuotaLimit | None = None


def quota_left(
    quotas: Mapping[str, str | int],
    ratios: AllocationRatios,
    *,
    allocated: Mapping[str, int],
    used: Mapping[str, int],
) -> Sequence[QuotaLeft]:
    """The rest of each valid entry of `spec.resourceQuotas`, by key. `allocated` is what children declare and
    `used` what is used besides, as far as it is known: in billionths by canonical key."""
    binding = comparable_limits(quotas, ratios)
    found = []
    for key, value in sorted(quotas.items()):
        rows = [
            _row(own, binding[resource], allocated.get(resource, 0), used.get(resource))
            for resource, own in _resources(key, value, ratios).items()
        ]
        if rows:
            # of two that leave the same, the first has limits, which are not divided
            found.append(min(rows, key=lambda each: each.left))
    return found


def resources_of(key: str, value: str | int, ratios: AllocationRatios) -> Set[str]:
    """The canonical keys of the resources that an entry limits; none if it is not valid."""
    return _resources(key, value, ratios).keys()


def _resources(key: str, value: str | int, ratios: AllocationRatios) -> Mapping[str, QuotaLimit]:
    return {canonical_key(rendered): limit for rendered, limit in rendered_limits({key: value}, ratios).valid.items()}


def _row(own: QuotaLimit, bound: QuotaLimit, allocated: int, used: int | None) -> QuotaLeft:
    """The rest that one resource leaves of the entry `own`; `bound` is the limit of that resource."""
    is_own, taken = bound.amount == own.amount, allocated + (used or 0)
    limit = declared_amounts({own.key: own.text})[own.key] if is_own else _in_unit(bound.amount * own.ratio, own)
    # divided amounts are rounded: both of these are granted
    left = max(limit - taken * own.ratio, (bound.amount - taken) * own.ratio, Fraction(0))
    return QuotaLeft(
        key=own.key,
        text=own.text,
        limit=limit,
        allocated=_in_unit(allocated * own.ratio, own),
        used=None if used is None else _in_unit(used * own.ratio, own),
        left=_in_unit(min(left, Fraction(limit)), own),
        bound_by=None if is_own else bound,
    )


def _in_unit(amount: Fraction, own: QuotaLimit) -> int:
    """Rounded down to what can be declared: thousandths, of divided bytes whole ones."""
    grain = NANO // 1000 if own.ratio == 1 or own.key == "cpu" else NANO
    return int(amount // grain) * grain
