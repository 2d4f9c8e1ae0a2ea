"""The keys of `spec.resourceQuotas`, and what a ResourceQuota has for each: the one table of admission, which compares
quotas, and of the controllers, which write them. Pure.

It is what Cozystack's chart renders: an amount of cpu, memory or ephemeral-storage is that of the limits, and divided
by the platform's allocation ratio that of the requests. Other keys are limited as Kubernetes counts them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

from apiserver.meta.label_validation import qualified_name_errors
from registry import quantity
from registry.quota_names import (
    COMPUTE,
    COUNTED,
    OF_DEVICE_CLASS,
    OF_STORAGE_CLASS,
    is_huge_pages,
    is_whole,
    quota_name_errors,
    uncounted_errors,
    whole_errors,
)

NANO = 10**9
"""The finest unit of a quantity is a billionth. Amounts are whole numbers of it, and of thousandths, because
kube-apiserver rounds them up to these: what is compared is what is enforced."""

_NAMED = (
    *(*COMPUTE, "storage", *COUNTED, *(f"requests.{each}" for each in (*COMPUTE, "storage"))),
    *(*(f"limits.{each}" for each in COMPUTE), "hugepages-<size>", "count/<plural>.<group>"),
    *(f"<class>{end}" for end in (*OF_STORAGE_CLASS, *OF_DEVICE_CLASS)),
)
KNOWN_KEYS = f"must be {', '.join(_NAMED)}, or an extended resource such as nvidia.com/gpu"
_NO_LIMIT = "limits nothing, because Kubernetes counts only requests of extended resources"
# what Kubernetes counts for each class, by the domain
_OF_CLASSES = {
    ".storageclass.storage.k8s.io/": OF_STORAGE_CLASS,
    ".deviceclass.resource.k8s.io/": OF_DEVICE_CLASS,
}
_MAX_SHOWN = 64
_LIMITS = "limits."
# the entries of quotas that are remembered as a whole
_FEW = 16
# a domain, a slash and a name
_MAX_KEY = 317


@dataclass(frozen=True, slots=True, eq=False)
class AllocationRatios:
    """By how much the limits of containers may exceed their requests; the settings `resources.*AllocationRatio`.

    Compared by identity, because the hash of a Fraction is slow.
    """

    cpu: Fraction = Fraction(1)
    memory: Fraction = Fraction(1)
    ephemeral_storage: Fraction = Fraction(1)

    @property
    def values(self) -> tuple[Fraction, ...]:
        return self.cpu, self.memory, self.ephemeral_storage

    def of(self, resource: str) -> Fraction:
        match resource:
            case "cpu":
                return self.cpu
            case "memory":
                return self.memory
            case _:
                return self.ephemeral_storage


EQUAL = AllocationRatios()
"""Requests as large as limits."""


class QuotaLimit(NamedTuple):
    """An `amount` in billionths, and the `key` and the `text` with which the user declared it. The amount is the text
    divided by the `ratio`, and rounded up to thousandths."""

    amount: int
    key: str
    text: str
    ratio: Fraction = Fraction(1)

    def describe(self, target: str, beside: str = "") -> str:
        """The amount as the user wrote it, with its key unless that is the one `beside` it. One that was divided is of
        another key, `target`: it is told where it comes from."""
        if self.ratio == 1:
            return self.text if self.key == beside else f"{self.text} of {self.key}"
        return f"{amount_text(self.amount, self.text)} of {target}{self.origin(target)}"

    def origin(self, target: str) -> str:
        """The words in brackets that say what the user declared, if that is not the key `target`."""
        if self.key == target:
            return ""
        divided = f" divided by the allocation ratio {float(self.ratio):g}" if self.ratio != 1 else ""
        return f" ({self.text} of {self.key}{divided})"


class QuotaLimits(NamedTuple):
    """The limits of a Tenant by the keys of a ResourceQuota. `problems` are the reasons why other entries are none.

    Such entries were stored by an earlier version of ours, or written to the HelmRelease, which our admission does not
    see. A kube-apiserver may never finish parsing them, or reject the ResourceQuota as a whole.
    """

    valid: Mapping[str, QuotaLimit]
    problems: Sequence[str]


class _Target(NamedTuple):
    """A key of a ResourceQuota. With `ratio_of`, the amount is divided by the ratio of that resource."""

    key: str
    ratio_of: str = ""


@lru_cache(maxsize=1024)
def _targets(key: str) -> Sequence[_Target]:
    """The keys of a ResourceQuota that a qualified name stands for; empty if it is no key of a Tenant."""
    if key in COMPUTE:
        return (_Target(f"limits.{key}"), _Target(f"requests.{key}", ratio_of=key))
    target = f"requests.{key}" if key == "storage" or _is_extended(key) else key
    if _limits_extended(key) or quota_name_errors(target) or uncounted_errors(target) or _class_errors(key):
        return ()
    return (_Target(target),)


def _is_extended(key: str) -> bool:
    return "/" in key and not key.startswith(("count/", "requests.", _LIMITS)) and not _is_of_class(key)


def _limits_extended(key: str) -> bool:
    """True for `limits.nvidia.com/gpu`, which a kube-apiserver accepts in a ResourceQuota and counts nothing for."""
    return "/" in key and key.startswith(_LIMITS) and not _is_of_class(key)


def _is_of_class(key: str) -> bool:
    """True if Kubernetes counts this for a class, under its own name."""
    return key.endswith((*OF_STORAGE_CLASS, *OF_DEVICE_CLASS))


def _class_errors(key: str) -> list[str]:
    """The reason why a name in the domain of a class is none that is counted for it."""
    if key.startswith(("count/", "requests.")) or _is_of_class(key):
        return []
    return [
        f"limits nothing; must be {' or '.join(f'<class>{end}' for end in ends)}"
        for domain, ends in _OF_CLASSES.items()
        if domain in key
    ]


def key_errors(key: str) -> list[str]:
    """The reasons why a Tenant cannot declare a quota under this key."""
    if wrong := qualified_name_errors(key):
        return wrong
    if _targets(key):
        return []
    if wrong := _class_errors(key):
        return wrong
    if _limits_extended(key):
        resource = key.removeprefix(_LIMITS)
        return [f"{_NO_LIMIT}; must be {resource} or requests.{resource}"]
    return uncounted_errors(f"requests.{key}" if _is_extended(key) else key) or [KNOWN_KEYS]


def value_errors(key: str, value: str | int) -> list[str]:
    """The reasons why the value of a valid key is no limit."""
    try:
        quantity.parse_limit(value)
    except ValueError as e:
        return [str(e)]
    return whole_errors(quantity.parse(value)) if any(is_whole(target.key) for target in _targets(key)) else []


def canonical_key(key: str) -> str:
    """The one name of resources of a ResourceQuota that Kubernetes counts under two: `count/secrets` is `secrets`, and
    `cpu` is `requests.cpu`, as `hugepages-2Mi` is `requests.hugepages-2Mi`. `count/pods` also counts Pods that have
    ended, so it is another resource than `pods`."""
    if key in COMPUTE or is_huge_pages(key):
        return key if key.startswith("requests.") else f"requests.{key}"
    counted = key.removeprefix("count/")
    return counted if counted in COUNTED and counted != "pods" and "." not in counted else key


_NO_LIMITS: Mapping[str, QuotaLimit] = {}


def rendered_limits(quotas: Mapping[str, str | int], ratios: AllocationRatios) -> QuotaLimits:
    """The limits as a ResourceQuota has them. Of two entries for one key, the lesser binds."""
    valid: dict[str, QuotaLimit] = {}
    problems: list[str] = []
    for key, value in sorted(quotas.items()):
        try:
            limits = _limits(key, value, ratios)
        except ValueError as e:
            problems.append(f'spec.resourceQuotas[{key[:_MAX_SHOWN]}]: "{str(value)[:_MAX_SHOWN]}": {e}')
            continue
        for target, limit in limits:
            if target not in valid or limit.amount < valid[target].amount:
                valid[target] = limit
    return QuotaLimits(valid, problems)


def comparable_limits(quotas: Mapping[str, str | int], ratios: AllocationRatios) -> Mapping[str, QuotaLimit]:
    """The limits by canonical keys, so that all spellings of one resource can be compared."""
    if not quotas:
        return _NO_LIMITS
    items = tuple(quotas.items())
    if len(items) <= _FEW and all(len(key) <= _MAX_SHOWN and len(str(value)) <= _MAX_SHOWN for key, value in items):
        return _few_comparable_limits(items, ratios)
    return _comparable_limits(quotas, ratios)


@lru_cache(maxsize=8192)
def _few_comparable_limits(
    items: tuple[tuple[str, str | int], ...], ratios: AllocationRatios
) -> Mapping[str, QuotaLimit]:
    """Many Tenants have equal quotas, and admission compares those of all children of a Tenant."""
    return _comparable_limits(dict(items), ratios)


def _comparable_limits(quotas: Mapping[str, str | int], ratios: AllocationRatios) -> Mapping[str, QuotaLimit]:
    found: dict[str, QuotaLimit] = {}
    for rendered, limit in rendered_limits(quotas, ratios).valid.items():
        key = canonical_key(rendered)
        if key not in found or limit.amount < found[key].amount:
            found[key] = limit
    return found


def declared_amounts(quotas: Mapping[str, str | int]) -> Mapping[str, int]:
    """The declared amounts in billionths by the keys of the Tenant, without those that are no limits."""
    found: dict[str, int] = {}
    for key, value in quotas.items():
        with suppress(ValueError):
            if _limits(key, value, EQUAL):
                found[key] = int(quantity.parse_limit(value) * NANO)
    return found


def _limits(key: str, value: str | int, ratios: AllocationRatios) -> Sequence[tuple[str, QuotaLimit]]:
    """The limits of one entry. Raises ValueError with the reason why it is none."""
    # the cache must not keep texts of any length
    if len(key) > _MAX_KEY or (isinstance(value, str) and len(value) > quantity.MAX_LENGTH):
        raise ValueError(f"must be no more than {_MAX_KEY if len(key) > _MAX_KEY else quantity.MAX_LENGTH} characters")
    found = _cached_limits(key, value, ratios)
    if isinstance(found, str):
        raise ValueError(found)
    return found


@lru_cache(maxsize=8192)
def _cached_limits(key: str, value: str | int, ratios: AllocationRatios) -> Sequence[tuple[str, QuotaLimit]] | str:
    if wrong := key_errors(key) or value_errors(key, value):
        return wrong[0]
    return [(each.key, _limit(key, value, each, ratios)) for each in _targets(key)]


def _limit(key: str, value: str | int, target: _Target, ratios: AllocationRatios) -> QuotaLimit:
    amount = quantity.parse_limit(value)
    if not target.ratio_of or (ratio := ratios.of(target.ratio_of)) == 1:
        return QuotaLimit(int(amount * NANO), key, str(value))
    divided = amount / ratio
    # as the chart does it: bytes are whole
    rounded = quantity.round_up(divided) if target.ratio_of == "cpu" else Fraction(divided // 1)
    return QuotaLimit(int(rounded * NANO), key, str(value), ratio)


def amount_text(amount: int, like: str) -> str:
    """An amount in the form of the quantity `like`: with a binary suffix if that has one."""
    return quantity.text_like(like, Fraction(amount, NANO))
