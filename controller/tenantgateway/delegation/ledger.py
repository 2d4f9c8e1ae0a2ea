"""The states of the delegations of each root, counted by TenantGateway, for its status."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from apiserver.meta.resource import Key, Object
from controller.runtime.workqueue import Enqueue
from controller.tenantgateway.delegation.model import Participant
from controller.tenantgateway.model import RouteId

CONNECTED = "Connected"
MAX_PROBLEMS = 50
"""Problems that a TenantGateway names, each of at most MAX_MESSAGE characters, so that its status fits into etcd."""
MAX_MESSAGE = 512


class DelegationState(NamedTuple):
    """One delegation of a root: `reason` is CONNECTED, or that of a condition."""

    target: RouteId
    reason: str
    message: str = ""


class DelegationSummary(NamedTuple):
    """The delegations of all roots of a TenantGateway: their number by reason, and problems of roots in its own
    namespace."""

    counts: tuple[tuple[str, int], ...] = ()
    problems: tuple[tuple[RouteId, DelegationState], ...] = ()


class DelegationLedger:
    """The states of the delegations of roots. A change enqueues the TenantGateways that the root refers to."""

    def __init__(self, enqueue: Enqueue) -> None:
        self._enqueue = enqueue
        self._states: dict[RouteId, tuple[Sequence[Key], Sequence[DelegationState]]] = {}
        self._counts: dict[Key, Counter[str]] = {}
        self._with_problems: dict[Key, set[RouteId]] = {}

    def record(self, root: RouteId, found: Participant | None, states: Sequence[DelegationState]) -> None:
        """The root does not exist any more if `found` is None."""
        before, now = self._states.get(root, ((), ())), (found.gateways if found is not None else (), states)
        if before == now:
            return
        for gateway in before[0]:
            self._subtract(gateway, root, before[1])
        if now[0]:
            self._states[root] = now
        else:
            self._states.pop(root, None)
        for gateway in now[0]:
            self._counts.setdefault(gateway, Counter()).update(each.reason for each in states)
            if _problems(root, gateway, states):
                self._with_problems.setdefault(gateway, set()).add(root)
        for gateway in dict.fromkeys((*before[0], *now[0])):
            self._enqueue(gateway)

    def summary(self, gateway: Key) -> DelegationSummary:
        roots = heapq.nsmallest(MAX_PROBLEMS, self._with_problems.get(gateway, ()))
        problems = [(root, each) for root in roots for each in _problems(root, gateway, self._states[root][1])]
        return DelegationSummary(tuple(sorted(self._counts.get(gateway, {}).items())), tuple(problems[:MAX_PROBLEMS]))

    def _subtract(self, gateway: Key, root: RouteId, states: Sequence[DelegationState]) -> None:
        counts = self._counts.pop(gateway, Counter())
        counts.subtract(each.reason for each in states)
        # Counter keeps zeros
        if remaining := +counts:
            self._counts[gateway] = remaining
        self._with_problems.get(gateway, set()).discard(root)
        if not self._with_problems.get(gateway):
            self._with_problems.pop(gateway, None)


def render_delegations(summary: DelegationSummary) -> Object | None:
    """`status.delegations` of a TenantGateway; None if it has no roots."""
    if not summary.counts:
        return None
    return {
        "states": [{"state": state, "count": count} for state, count in summary.counts],
        "problems": [
            {"route": root.name, "to": str(each.target), "reason": each.reason, "message": each.message[:MAX_MESSAGE]}
            for root, each in summary.problems
        ],
    }


def _problems(root: RouteId, gateway: Key, states: Sequence[DelegationState]) -> Sequence[DelegationState]:
    """Those that the readers of the TenantGateway may hear of: of roots in its own namespace."""
    return [each for each in states if each.reason != CONNECTED] if root.namespace == gateway.namespace else []
