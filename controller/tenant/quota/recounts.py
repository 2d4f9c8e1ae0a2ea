"""Tells whether the quota controller has counted all that kube-apiserver has admitted.

kube-apiserver adds an object to `status.used` before it stores it. The quota controller (of kube-controller-manager)
counts anew when `spec.hard` changes, from a cache that can lack what was just admitted, and writes over the sum
(`syncResourceQuota` in pkg/controller/resourcequota; kubernetes#123434). kube-apiserver then admits as much again. A
second ResourceQuota with the same limits, which did not change, remembers it: what is admitted has to fit both.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from registry.tenant.pool_quotas import Shares
from registry.tenant.quota_pools import NOTHING, grain_of

SECONDS_BETWEEN_LOOKS = 0.5
"""Longer than one request needs from one ResourceQuota to the next, so that each of two quotas has been told of what
the other one had at the look before."""
_LEAST_SECONDS = 0.001
_INTERRUPTED_SECONDS = 15.0
"""The duration of a Lease: between two looks, another replica may have led, and have written both ResourceQuotas."""
PATIENCE_SECONDS = 60.0
"""The `--request-timeout` of kube-apiserver: what was admitted before is stored and in every cache, or has failed after
it was counted (which Kubernetes corrects at its next count)."""

Verdict = Literal["counted", "wait", "recount first", "recount witness"]


@dataclass(slots=True)
class _Look:
    first: Shares
    witness: Shares
    at: float
    since: float
    recounts: int = 0
    next_recount: float = field(default=0.0)


class Recounts:
    """`clock` returns seconds. State is kept for namespaces whose limits are about to change; without it, as after a
    change of the leader, two looks are taken again. So they are if the last look was long ago."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._looks: dict[str, _Look] = {}

    def seconds_to_next_look(self, namespace: str) -> float:
        """0 if a look makes sense now."""
        look = self._looks.get(namespace)
        left = look.at + SECONDS_BETWEEN_LOOKS - self._clock() if look is not None else 0.0
        # a timer may end too early by what a float cannot express
        return left if left > _LEAST_SECONDS else 0.0

    def forget(self, namespace: str) -> None:
        self._looks.pop(namespace, None)

    def look(self, namespace: str, first: Shares, witness: Shares) -> Verdict:
        """Has to be called with both ResourceQuotas as the cluster has stored them, `first` read before `witness`, at
        least `seconds_to_next_look` after the last call.

        With equal limits, neither may lack what the other one has; while the limits of `first` have changed already,
        `first` may not lack what the witness has.
        """
        now, before = self._clock(), self._looks.get(namespace)
        if before is None or now - before.at >= _INTERRUPTED_SECONDS:
            self._looks[namespace] = _Look(first, witness, now, now)
            return "wait"
        if _is_unchanged(before.first, first) and _is_unchanged(before.witness, witness):
            is_counted = not _lacks(before.first, witness)
            if _limits(first) == _limits(witness):
                is_counted = is_counted and not _lacks(before.witness, first)
            if is_counted or now - before.since >= PATIENCE_SECONDS:
                self.forget(namespace)
                return "counted"
        before.first, before.witness, before.at = first, witness, now
        return self._recount(before, now)

    def _recount(self, look: _Look, now: float) -> Verdict:
        lacks_first = _lacks(look.first, look.witness)
        lacks_witness = _limits(look.first) == _limits(look.witness) and _lacks(look.witness, look.first)
        if not (lacks_first or lacks_witness) or now < look.next_recount:
            return "wait"
        look.recounts += 1
        look.next_recount = now + SECONDS_BETWEEN_LOOKS * 2**look.recounts
        return "recount first" if lacks_first else "recount witness"


def is_in_effect(shares: Shares) -> bool:
    """True if the quota controller has counted since the limits were written, or has never counted: then nothing can
    be forgotten."""
    if all(share.admitted is None for share in shares.values()):
        return True
    return all(share.hard == share.admitted for share in shares.values() if share.hard is not None)


def have_equal_limits(first: Shares, second: Shares) -> bool:
    return _limits(first) == _limits(second)


def nudged(own: Shares, other: Shares) -> Mapping[str, int]:
    """The limits with the least difference by which the quota controller counts anew, to and fro between two amounts
    if the other quota's is greater, or else down. They never let a namespace use more than before, because the other
    quota holds; where no limit can be lowered, one is a grain more."""
    limits = _limits(own)
    for key, hard in sorted(limits.items()):
        if (other.get(key, NOTHING).hard or 0) > hard:
            is_up = hard // grain_of(key) % 2 == 0
            return {**limits, key: hard + grain_of(key) if is_up else hard - grain_of(key)}
    for key, hard in sorted(limits.items()):
        if hard > 0:
            return {**limits, key: max(0, hard - grain_of(key))}
    key = min(limits)
    return {**limits, key: limits[key] + grain_of(key)}


def _limits(shares: Shares) -> Mapping[str, int]:
    return {key: share.hard for key, share in shares.items() if share.hard is not None}


def _is_unchanged(before: Shares, now: Shares) -> bool:
    return _limits(before) == _limits(now)


def _lacks(own: Shares, other: Shares) -> bool:
    """True if less is counted for one than for the other."""
    keys = _limits(own).keys() & _limits(other).keys()
    return any(own[key].used < other[key].used for key in keys)
