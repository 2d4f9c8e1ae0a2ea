"""Records the claims of this replica in the Lease: one write at a time, each with all claims that wait for it."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Sequence

from admission.tenant.claims import claim_codec
from admission.tenant.claims.claim import ClaimsDocument
from admission.tenant.claims.claim_lease import NAME, ClaimLease
from admission.tenant.claims.judge import Held, Judge
from admission.tenant.claims.known_claims import ClaimState, KnownClaims, OwnClaim
from admission.tenant.claims.metrics import ClaimMetrics
from apiserver.meta import errors
from apiserver.meta.errors import StatusError
from apiserver.storage.wait_until import WaitUntil

LEASE_SECONDS = 10.0
"""The longest time for recording a claim."""
_TRAILING_SECONDS = 1.0
_RETRY_SECONDS = 5.0
_RELEASE_SECONDS = 2.0
_ATTEMPTS = 20
_BACKOFF_SECONDS = 0.02
_logger = logging.getLogger(__name__)

UNAVAILABLE = "hosts and quotas cannot be changed at present, because the claims of the replicas cannot be recorded"


class JudgeAgain(Exception):
    """The verdict on a write no longer holds, because other replicas have written since."""


class LeaseWriter:
    """`run` is a background task. Claims that end are removed from the Lease with the next claim, or about a second
    later if others would count them until then."""

    def __init__(
        self,
        *,
        lease: ClaimLease,
        known: KnownClaims,
        judge: Judge,
        metrics: ClaimMetrics,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._lease = lease
        self._known = known
        self._judge = judge
        self._metrics = metrics
        self._jitter = jitter
        self._io = asyncio.Lock()
        # False also after a write without an answer: the Lease may list claims that have failed here
        self._is_read = False
        self._reads = 0
        self._failing = False
        self._changed = WaitUntil()

    def notify(self) -> None:
        """Reports that a claim waits, that one has ended, or that a Tenant has been deleted."""
        self._changed.notify()

    async def run(self) -> None:
        """Runs until it is cancelled."""
        try:
            while True:
                await self._changed.wait(lambda: self._has_waiting() or self._is_stale, None)
                # the next claim may come in time to share the write
                await self._changed.wait(self._has_waiting, _TRAILING_SECONDS)
                if not await self._write():
                    await self._changed.wait(self._has_waiting, _RETRY_SECONDS)
        finally:
            await self._release()

    async def require_read(self) -> None:
        """Reads the Lease if its content is not known. Raises ServiceUnavailable."""
        if not self._is_read:
            await self.read_again()

    async def read_again(self) -> None:
        """Reads what others have recorded since. Raises ServiceUnavailable."""
        reads = self._reads
        async with self._io:
            if self._reads != reads:
                # somebody else has read it meanwhile
                return
            try:
                async with asyncio.timeout(LEASE_SECONDS):
                    await self._read()
            except (StatusError, TimeoutError) as e:
                raise self._failure(e) from e

    @property
    def _is_stale(self) -> bool:
        """True if the Lease may list claims that are over and hold others up."""
        return self._known.is_stale or not self._is_read

    def _waiting(self) -> Sequence[OwnClaim]:
        return self._known.own(ClaimState.WAITING)

    def _has_waiting(self) -> bool:
        return bool(self._waiting())

    async def _write(self) -> bool:
        """Returns False if the Lease could not be written, and then no claim waits."""
        try:
            async with asyncio.timeout(LEASE_SECONDS), self._io:
                for attempt in range(_ATTEMPTS):
                    if await self._try_to_write():
                        return True
                    await asyncio.sleep(_BACKOFF_SECONDS * attempt * self._jitter())
            self._fail_waiting(Held())
        except (StatusError, TimeoutError) as e:
            self._is_read = False
            self._fail_waiting(self._failure(e))
        return False

    async def _try_to_write(self) -> bool:
        """Returns False if another replica was faster; what it wrote is known then."""
        if not self._is_read:
            await self._read()
        try:
            await self._judge.wait()
        except errors.TooManyRequests as e:
            self._fail_waiting(e)
            return True
        document, batch = self._next_write()
        if not batch and not self._known.is_stale:
            return True
        try:
            await self._lease.write(document)
        except StatusError as e:
            if e.code != 409:
                raise
            self._metrics.lease_write("conflict")
            await self._read()
            return False
        self._metrics.lease_write("written")
        self._failing = False
        self._known.written(document)
        for each in batch:
            each.is_recorded()
        return True

    def _next_write(self) -> tuple[ClaimsDocument, Sequence[OwnClaim]]:
        """The next content of the Lease, and the claims that it records for the first time. Nothing may be awaited
        between this and the write."""
        for each in self._waiting():
            if self._is_allowed(each):
                each.judged_at = self._known.generation
            else:
                self._fail(each, JudgeAgain())
        document = self._known.next_document()
        while not claim_codec.fits(document) and (waiting := self._waiting()):
            self._fail(waiting[-1], Held())
            document = self._known.next_document()
        return document, self._waiting()

    def _is_allowed(self, own: OwnClaim) -> bool:
        """True for a claim that what other replicas have recorded since its verdict does not exclude."""
        if own.judged_at == self._known.generation:
            return True
        return not self._judge.rejects(own.write) and self._judge.obstacle(own.write, besides=own) is None

    async def _read(self) -> None:
        self._known.learn(await self._lease.read())
        self._is_read = True
        self._reads += 1

    def _fail_waiting(self, error: StatusError) -> None:
        for each in self._waiting():
            self._fail(each, error)

    def _fail(self, own: OwnClaim, error: Exception) -> None:
        self._known.remove(own)
        own.fail(error)

    def _failure(self, error: StatusError | TimeoutError) -> StatusError:
        """The error for clients. Only the first failure of a series is logged."""
        self._metrics.lease_write("failed")
        if not self._failing:
            why = str(error) or type(error).__name__
            _logger.warning("Lease %s cannot be read or written, so hosts and quotas cannot be changed: %s", NAME, why)
        self._failing = True
        return errors.ServiceUnavailable(UNAVAILABLE, retry_after=1)

    async def _release(self) -> None:
        """Removes ended claims at the end of the process; others would expire."""
        if not self._known.lists_ended or not self._is_read or self._io.locked():
            return
        try:
            async with asyncio.timeout(_RELEASE_SECONDS):
                await self._lease.write(self._known.next_document())
        except (StatusError, TimeoutError) as e:
            _logger.info("claims that ended cannot be removed, and will expire: %s", e)
