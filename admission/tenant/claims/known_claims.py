"""The claims that a replica takes into account: its own, and those of others as last read from the Lease."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum

from admission.tenant.claims.claim import EXPIRY_SECONDS, Claim, ClaimsDocument, ProposedWrite
from apiserver.meta.resource import Key
from registry.tenant.summary import TenantSummary


class ClaimState(Enum):
    """The states of a replica's own claim."""

    LOCAL = "local"
    """Only this replica takes it into account."""
    WAITING = "waiting"
    """It is to be recorded in the Lease; its write has not been sent."""
    RECORDED = "recorded"
    UNKNOWN = "unknown"
    """The write got no answer. It may still be stored."""


@dataclass(eq=False, slots=True, kw_only=True)
class OwnClaim:
    """`judged_at` is the generation of the claims by which the write was judged, and `since` the time before the claim
    was sent to the Lease."""

    claim: Claim
    write: ProposedWrite
    state: ClaimState
    judged_at: int
    since: float
    recorded: asyncio.Future[None] = field(default_factory=lambda: asyncio.get_running_loop().create_future())

    def is_recorded(self) -> None:
        self.state = ClaimState.RECORDED
        if not self.recorded.done():
            self.recorded.set_result(None)

    def fail(self, error: Exception) -> None:
        if not self.recorded.done():
            self.recorded.set_exception(error)
            # nobody waits any longer if the request was cancelled
            self.recorded.exception()


class KnownClaims:
    """`find` returns the cached Tenant of a key. Times are those of `clock`."""

    def __init__(self, *, holder: str, find: Callable[[Key], TenantSummary | None], clock: Callable[[], float]) -> None:
        self.holder = holder
        self._find = find
        self._clock = clock
        self._document = ClaimsDocument()
        self._first_seen: dict[str, float] = {}
        self._over: set[str] = set()
        self._own: dict[str, OwnClaim] = {}
        self._ended_version = 0
        self.generation = 0
        """Increases with every change by another replica."""

    @property
    def min_version(self) -> int:
        """The resourceVersion that a judge's cache needs, so that it has the writes of all claims that ended."""
        return max(self._document.min_version, self._ended_version)

    @property
    def lists_ended(self) -> bool:
        """True if the Lease lists claims that are over."""
        return any(self._is_over(each) for each in self._document.claims)

    @property
    def is_stale(self) -> bool:
        """True if the Lease lists claims that are over, and others do not see that from the Tenant."""
        return any(self._is_over(each) and not self._is_settled(each) for each in self._document.claims)

    def learn(self, document: ClaimsDocument | None) -> None:
        """Takes over what the Lease contains; None is no Lease, which ends no claim."""
        if document is None:
            document = self._document
        others = {each.id for each in document.claims if each.holder != self.holder}
        now = self._clock()
        self._first_seen = {id_: self._first_seen.get(id_, now) for id_ in others}
        self._over &= others
        self._document = document
        self.generation += 1

    def written(self, document: ClaimsDocument) -> None:
        """Reports that the Lease contains `document`, which has the claims of others that were known already."""
        self._document = document
        ids = {each.id for each in document.claims}
        self._first_seen = {id_: seen for id_, seen in self._first_seen.items() if id_ in ids}
        self._over &= ids

    def add(self, own: OwnClaim) -> None:
        self._own[own.claim.id] = own

    def remove(self, own: OwnClaim, version: int = 0) -> bool:
        """Ends an own claim, whose write was stored with this resourceVersion; 0 if it was not. Returns False if the
        claim had ended before."""
        self._ended_version = max(self._ended_version, version)
        return self._own.pop(own.claim.id, None) is not None

    def own(self, *states: ClaimState) -> Sequence[OwnClaim]:
        """The own claims in these states, in the order in which they were judged."""
        return [each for each in self._own.values() if each.state in states]

    def unpredictable(self) -> Sequence[Claim]:
        """Claims whose end this replica cannot wait for: those of others, and own ones whose result is unknown."""
        others = [
            each
            for each in self._document.claims
            if each.holder != self.holder and each.id not in self._over and not self._is_settled(each)
        ]
        return [*others, *(each.claim for each in self.own(ClaimState.UNKNOWN))]

    def expired(self) -> Sequence[Claim]:
        """Claims that are so old that their writes have ended, with any result."""
        limit = self._clock() - EXPIRY_SECONDS
        listed = {each.id: each for each in self._document.claims}
        others = [listed[id_] for id_, seen in self._first_seen.items() if seen <= limit and id_ not in self._over]
        return [*others, *(each.claim for each in self.own(ClaimState.UNKNOWN) if each.since <= limit)]

    def end_expired(self, claim: Claim, version: int) -> None:
        """Ends a claim whose Tenant was found at this resourceVersion, 0 if there is none."""
        self._ended_version = max(self._ended_version, version)
        own = self._own.pop(claim.id, None)
        if own is None:
            self._over.add(claim.id)

    def forget_version(self) -> None:
        """Drops a `min_version` that the cluster has never had."""
        self._ended_version = 0
        self._document = replace(self._document, min_version=0)

    def next_document(self) -> ClaimsDocument:
        """The document that this replica would write into the Lease now."""
        open_claims: Iterable[Claim] = (each for each in self._document.claims if not self._is_over(each))
        mine = {each.claim.id: each.claim for each in self._own.values() if each.state is not ClaimState.LOCAL}
        others = [each for each in open_claims if each.id not in mine]
        return ClaimsDocument(claims=(*others, *mine.values()), min_version=self.min_version)

    def _is_settled(self, claim: Claim) -> bool:
        return claim.is_settled(self._find(claim.key))

    def _is_over(self, claim: Claim) -> bool:
        return claim.id not in self._own if claim.holder == self.holder else claim.id in self._over
