"""Admits writes and keeps their claims until the result of the write is known."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from itertools import count

from admission.tenant.claims.claim import WRITE_SECONDS, ProposedWrite
from admission.tenant.claims.claim_codec import MAX_CLAIMS, narrowed
from admission.tenant.claims.judge import Held, Judge, Obstacle
from admission.tenant.claims.known_claims import ClaimState, KnownClaims, OwnClaim
from admission.tenant.claims.lease_writer import LEASE_SECONDS, UNAVAILABLE, JudgeAgain, LeaseWriter
from admission.tenant.claims.metrics import ClaimMetrics
from apiserver.meta import errors
from apiserver.storage.wait_until import WaitUntil

_VERDICTS = 16
Refuse = Callable[[], Awaitable[None]]
"""Raises the error of admission for a write that the tree forbids; returns if the tree has changed meanwhile."""


class ClaimRegister:
    """`clock` must advance while the process is suspended."""

    def __init__(
        self,
        *,
        known: KnownClaims,
        judge: Judge,
        writer: LeaseWriter,
        metrics: ClaimMetrics,
        clock: Callable[[], float],
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._known = known
        self._judge = judge
        self._writer = writer
        self._metrics = metrics
        self._clock = clock
        self._now = now
        self._numbers = count(1)
        # writes that are recorded are judged in the order of arrival, so that none is overtaken forever
        self._turn = asyncio.Lock()
        self._ended = WaitUntil()
        self._ends = 0

    async def check(self, write: ProposedWrite, refuse: Refuse) -> None:
        """Judges a write that is not to be stored. Raises what `admit` raises."""
        with self._counted():
            if write.needs_record:
                # without a write of the Lease, no conflict would show the claims that others have recorded since
                await self._writer.read_again()
            await self._wait_until_free(write, refuse)

    async def admit(self, write: ProposedWrite, refuse: Refuse) -> OwnClaim:
        """Judges a write and makes its claim, which the caller ends with `end` or `leave`.

        Raises the error of `refuse`; TooManyRequests if the write may be allowed once others are done; and
        ServiceUnavailable if its claim cannot be recorded.
        """
        with self._counted():
            for _ in range(_VERDICTS):
                try:
                    return await (self._recorded(write, refuse) if write.needs_record else self._local(write, refuse))
                except JudgeAgain:
                    continue
            raise Held()

    def may_be_sent(self, own: OwnClaim) -> bool:
        """False if the claim is so old that others may not count it any more when the write is stored."""
        return own.state is ClaimState.LOCAL or self._clock() - own.since < WRITE_SECONDS

    def is_late(self, own: OwnClaim) -> bool:
        """True if others may have stopped counting the claim before the write was stored."""
        return own.state is not ClaimState.LOCAL and self._clock() - own.since >= 2 * WRITE_SECONDS

    def end(self, own: OwnClaim, version: int = 0) -> None:
        """Ends the claim of a write that was stored with this resourceVersion, or 0 if it was not."""
        self._known.remove(own, version if own.state is not ClaimState.LOCAL else 0)
        self._notify()

    def leave(self, own: OwnClaim) -> None:
        """Keeps the claim of a write without a known result, until it expires."""
        if own.state is ClaimState.LOCAL:
            self._known.remove(own)
        else:
            own.state = ClaimState.UNKNOWN
            self._metrics.claim("unknown")
        self._notify()

    @contextmanager
    def _counted(self) -> Iterator[None]:
        try:
            yield
        except Held:
            self._metrics.claim("refused")
            raise

    async def _local(self, write: ProposedWrite, refuse: Refuse) -> OwnClaim:
        await self._wait_until_free(write, refuse)
        return self._add(write, ClaimState.LOCAL)

    async def _recorded(self, write: ProposedWrite, refuse: Refuse) -> OwnClaim:
        await self._writer.require_read()
        async with self._turn:
            await self._wait_until_free(write, refuse)
            own = self._add(write, ClaimState.WAITING)
        self._writer.notify()
        try:
            async with asyncio.timeout(LEASE_SECONDS):
                await own.recorded
        except BaseException as e:
            self._known.remove(own)
            self._notify()
            if isinstance(e, TimeoutError):
                raise errors.ServiceUnavailable(UNAVAILABLE, retry_after=1) from e
            raise
        self._metrics.claim("recorded")
        return own

    def _add(self, write: ProposedWrite, state: ClaimState) -> OwnClaim:
        """Raises TooManyRequests if there are too many claims."""
        if len(self._known.own(ClaimState.WAITING, ClaimState.RECORDED, ClaimState.UNKNOWN)) >= MAX_CLAIMS:
            raise Held()
        holder = self._known.holder
        claim = write.claim(id=f"{holder}-{next(self._numbers)}", holder=holder, base=self._judge.version)
        if state is ClaimState.WAITING:
            claim = narrowed(replace(claim, time=f"{self._now():%Y-%m-%dT%H:%M:%SZ}"))
        own = OwnClaim(
            claim=claim,
            write=write,
            state=state,
            judged_at=self._known.generation,
            since=self._clock(),
        )
        self._known.add(own)
        return own

    async def _wait_until_free(self, write: ProposedWrite, refuse: Refuse) -> None:
        """Returns when the write is allowed; until its claim is added, nothing may be awaited. Raises as `admit`."""
        has_asked, refusals = False, 0
        while True:
            await self._judge.wait()
            if self._judge.rejects(write):
                await refuse()
                refusals += 1
                if refusals >= _VERDICTS:
                    raise Held()
                continue
            obstacle = self._judge.obstacle(write)
            if obstacle is None:
                return
            if obstacle is Obstacle.OWN:
                await self._wait_for_end()
            elif has_asked:
                raise Held()
            else:
                # the claims of others may have ended long ago
                has_asked = True
                await self._writer.read_again()

    async def _wait_for_end(self) -> None:
        """Waits until an own claim ends."""
        ends = self._ends
        await self._ended.wait(lambda: self._ends != ends, None)

    def _notify(self) -> None:
        self._ends += 1
        self._ended.notify()
        self._writer.notify()
