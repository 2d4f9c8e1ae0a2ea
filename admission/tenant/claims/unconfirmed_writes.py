"""Judges writes that were stored, but not judged at their own event, because their replica was killed or cut off.

Such a write leaves its mark on the HelmRelease: the id of its claim, written with it, so that it costs no request. Each
replica judges every marked write when it sees it. A write that it finds in order, as nearly always, was in order at its
own event, too. Otherwise the replica that wrote it withdraws it. If it is still there after `LATE_SECONDS`, every
replica that runs judges it by the history of the cluster (`write_history.py`), all with the same result, and withdraws
it.

The mark remains until the controllers write the status of the Tenant. They do not touch a Tenant that may be withdrawn.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from admission.complete_caches import CompleteCaches
from admission.tenant.claims.claim import ProposedWrite
from admission.tenant.claims.own_events import Verdict
from admission.tenant.claims.withdrawal import Withdrawal
from admission.tenant.claims.write_history import WriteHistory
from apiserver.cooperative import iterate_cooperatively
from apiserver.meta.errors import StatusError
from apiserver.meta.resource import Key
from apiserver.storage.event_history import CacheEvent
from apiserver.storage.wait_until import WaitUntil
from registry.tenant.tree import TenantTree

LATE_SECONDS = 15.0
"""Longer than a request waits for the verdict on its write, so that nothing is withdrawn that a client will be told to
be stored."""
_RETRY_SECONDS = 5.0
_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Undecided:
    mark: str
    since: float


class UnconfirmedWrites:
    """`run` is a background task. `marks` are those that the cache contains, and `verdict` judges by the present tree.
    Its `on_event` must be subscribed after the tree's."""

    def __init__(
        self,
        *,
        marks: Mapping[Key, str],
        tree: TenantTree,
        caches: CompleteCaches,
        verdict: Callable[[ProposedWrite], Verdict],
        history: WriteHistory,
        withdrawal: Withdrawal,
        clock: Callable[[], float],
    ) -> None:
        self._marks = marks
        self._tree = tree
        self._caches = caches
        self._verdict = verdict
        self._history = history
        self._withdrawal = withdrawal
        self._clock = clock
        self._decided: dict[Key, str] = {}
        self._undecided: dict[Key, _Undecided] = {}
        self._changed = WaitUntil()

    def may_be_withdrawn(self, key: Key) -> bool:
        """True for a Tenant with a mark that another one excludes at present, until that is decided."""
        return key in self._undecided and not self._is_allowed(key)

    def on_event(self, event: CacheEvent) -> None:
        key = event.object.key
        mark = self._marks.get(key)
        if mark is None or event.type == "DELETED":
            self._decided.pop(key, None)
            self._undecided.pop(key, None)
            return
        undecided = self._undecided.get(key)
        if self._decided.get(key) == mark or (undecided is not None and undecided.mark == mark):
            return
        self._decided.pop(key, None)
        self._undecided.pop(key, None)
        if self._caches.complete and self._is_allowed(key):
            self._decided[key] = mark
        else:
            self._undecided[key] = _Undecided(mark, self._clock())
            self._changed.notify()

    async def run(self) -> None:
        """Runs until it is cancelled."""
        while True:
            await self._changed.wait(lambda: bool(self._undecided), None)
            first = min((each.since for each in self._undecided.values()), default=self._clock())
            await asyncio.sleep(first + LATE_SECONDS - self._clock())
            if not await self._decide_late():
                await asyncio.sleep(_RETRY_SECONDS)

    async def _decide_late(self) -> bool:
        """Decides about all writes that are late. Returns False if the cluster does not answer."""
        limit = self._clock() - LATE_SECONDS
        late = [(key, each) for key, each in self._undecided.items() if each.since <= limit]
        try:
            await self._caches.wait()
            async for key, each in iterate_cooperatively(late):
                if self._undecided.get(key) == each:
                    await self._decide(key, each.mark)
        except StatusError as e:
            _logger.warning("writes of a replica that has not confirmed them cannot be judged yet: %s", e)
            return False
        return True

    async def _decide(self, key: Key, mark: str) -> None:
        """Raises StatusError if the cluster does not answer."""
        tenant = self._tree.get(key)
        if tenant is not None and not self._is_allowed(key):
            try:
                past = await self._history.find(tenant, mark)
                if past is not None and past.verdict is not Verdict.ADMITTED:
                    await self._withdrawal.undo(past.write, past.stored)
            except StatusError as e:
                if e.code >= 500 or e.code == 429:
                    raise
                _logger.warning("the history of tenant %s/%s is not known, so that it stays: %s", *key, e)
        if self._marks.get(key) == mark:
            self._decided[key] = mark
        if (undecided := self._undecided.get(key)) is not None and undecided.mark == mark:
            del self._undecided[key]

    def _is_allowed(self, key: Key) -> bool:
        """Judges the Tenant as if it was created now. Its quotas were claimed, and need no second verdict."""
        tenant = self._tree.get(key)
        return tenant is None or self._verdict(ProposedWrite(replace(tenant, quotas={}), None)) is Verdict.ADMITTED
