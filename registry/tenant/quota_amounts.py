"""The amounts in the limits and the use of a ResourceQuota. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from apiserver.meta.resource import Object
from registry import quantity
from registry.quota_names import LARGEST_WHOLE, is_whole
from registry.tenant.quota_keys import NANO, canonical_key

_MOST, _MOST_COUNTED = quantity.LARGEST * NANO, LARGEST_WHOLE * NANO


def counted_use(quota: Object) -> Mapping[str, int]:
    """The use that the cluster has counted for a ResourceQuota, in billionths by canonical key."""
    return amounts(quota.get("status"), "used")


def amounts(fields: object, name: str = "hard") -> Mapping[str, int]:
    """Those under this name of a spec or a status, in billionths by canonical key."""
    values = (fields if isinstance(fields, dict) else {}).get(name)
    found = {}
    for key, value in values.items() if isinstance(values, dict) else ():
        canonical, most = _key_and_most(key)
        found[canonical] = min(_amount(value), most)
    return found


@lru_cache(maxsize=1024)
def _key_and_most(key: str) -> tuple[str, int]:
    """The canonical key, and the greatest amount that a Tenant can declare of it."""
    canonical = canonical_key(key)
    return canonical, _MOST_COUNTED if is_whole(canonical) else _MOST


def _amount(value: Any) -> int:
    return _cached_amount(value) if isinstance(value, str) and len(value) <= quantity.MAX_LENGTH else _MOST


@lru_cache(maxsize=4096)
def _cached_amount(value: str) -> int:
    try:
        return min(_MOST, max(0, int(quantity.round_up(quantity.parse(value)) * NANO)))
    except ValueError:
        return _MOST
