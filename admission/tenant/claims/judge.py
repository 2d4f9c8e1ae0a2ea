"""Judges writes by the cached tree and the known claims, as soon as the cache is recent enough for a verdict."""

from __future__ import annotations

import asyncio
import logging
from enum import Enum

from admission.complete_caches import CompleteCaches
from admission.tenant.claims.claim import Claim, ProposedWrite
from admission.tenant.claims.known_claims import ClaimState, KnownClaims, OwnClaim
from admission.tenant.claims.possible_tree import conflicts_with_claims, conflicts_with_tree
from admission.tenant.quota_ledger import NamespaceUsage, no_usage
from apiserver.meta import errors
from apiserver.meta.errors import StatusError
from apiserver.storage.watch_cache import WatchCache
from registry.cluster.interface import HELMRELEASES, ClusterClient
from registry.names import release_name
from registry.tenant.tree import TenantTree

_CATCH_UP_SECONDS = 3.0
_logger = logging.getLogger(__name__)


class Held(errors.TooManyRequests):
    """The verdict depends on writes that are under way. The message reveals nothing about them (ATTACK-15)."""

    def __init__(self) -> None:
        super().__init__("writes that may concern the same hosts or quotas are under way, try again", retry_after=1)


class Obstacle(Enum):
    """The claims that keep a write from being admitted."""

    OWN = "own"
    """All of them will end soon by writes of this replica."""
    UNPREDICTABLE = "unpredictable"


class Judge:
    """Judges writes by the tree, by the use of its Namespaces, and by the claims of all replicas.

    `wait` is awaited first; its result is valid until the next await.
    """

    def __init__(
        self,
        *,
        tree: TenantTree,
        cache: WatchCache,
        caches: CompleteCaches,
        known: KnownClaims,
        cluster: ClusterClient,
        usage: NamespaceUsage = no_usage,
    ) -> None:
        self._tree = tree
        self._usage = usage
        self._cache = cache
        self._caches = caches
        self._known = known
        self._cluster = cluster

    @property
    def version(self) -> int:
        """The resourceVersion of the tree."""
        return self._cache.rv

    async def wait(self) -> None:
        """Waits until the tree has the writes of all claims that ended. Raises TooManyRequests."""
        while True:
            await self._caches.wait()
            if self._known.expired():
                await asyncio.gather(*(self._end_expired(each) for each in self._known.expired()))
            wanted = self._known.min_version
            if not await self._cache.reaches(wanted, _CATCH_UP_SECONDS):
                await self._doubt(wanted)
            if self._caches.complete and self._cache.rv >= self._known.min_version:
                return

    def rejects(self, write: ProposedWrite) -> bool:
        """True if the tree alone forbids the write."""
        return conflicts_with_tree(self._tree, write, self._usage)

    def obstacle(self, write: ProposedWrite, *, besides: OwnClaim | None = None) -> Obstacle | None:
        """The claims that forbid the write, none of which is `besides`. The tree alone allows it."""
        unpredictable = self._known.unpredictable()
        if unpredictable and conflicts_with_claims(self._tree, unpredictable, write, self._usage):
            return Obstacle.UNPREDICTABLE
        states = [ClaimState.WAITING, ClaimState.RECORDED]
        if write.needs_record:
            # no two writes collide that declare neither hosts nor quotas
            states.append(ClaimState.LOCAL)
        own = [each.claim for each in self._known.own(*states) if each is not besides]
        if own and conflicts_with_claims(self._tree, [*unpredictable, *own], write, self._usage):
            return Obstacle.OWN
        return None

    async def _end_expired(self, claim: Claim) -> None:
        """Ends an expired claim after reading the outcome of its write, which the cache may not have yet."""
        if claim.is_settled(self._tree.get(claim.key)):
            self._known.end_expired(claim, 0)
            return
        try:
            version = await self._live_version(claim)
        except StatusError:
            # the claim remains until the cluster can be read
            return
        if await self._cache.reaches(version, _CATCH_UP_SECONDS):
            self._known.end_expired(claim, version)

    async def _live_version(self, claim: Claim) -> int:
        if not claim.key.name:
            return 0
        namespace, name = claim.key.namespace, release_name(claim.key.name)
        try:
            found = await self._cluster.get(HELMRELEASES, namespace, name)
        except StatusError as e:
            if e.code == 404 and e.reason == "NotFound":
                return 0
            raise
        return int(found["metadata"]["resourceVersion"])

    async def _doubt(self, wanted: int) -> None:
        """Raises TooManyRequests, unless the cluster itself has not reached the version `wanted` because the Lease was
        restored from another cluster."""
        listed = await self._cluster.list(HELMRELEASES, limit=1)
        if int(listed["metadata"]["resourceVersion"]) >= wanted:
            raise errors.TooManyRequests("the watch of HelmReleases lags behind, try again", retry_after=1)
        _logger.warning("the claims name resourceVersion %d, which the cluster has not reached: ignored", wanted)
        self._known.forget_version()
