"""Builds the Backend that keeps hosts, quotas and parents exact across replicas."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial

from prometheus_client import CollectorRegistry

from admission.chain import ValidatingPlugin
from admission.complete_caches import CompleteCaches
from admission.tenant.claims.claim_lease import ClaimLease
from admission.tenant.claims.claim_register import ClaimRegister
from admission.tenant.claims.claiming_backend import ClaimingBackend, ClaimingParts
from admission.tenant.claims.deletion_marks import DeletionMarks
from admission.tenant.claims.judge import Judge
from admission.tenant.claims.known_claims import KnownClaims
from admission.tenant.claims.lease_writer import LeaseWriter
from admission.tenant.claims.metrics import ClaimMetrics
from admission.tenant.claims.own_events import OwnEvents, verdict_on
from admission.tenant.claims.parent_locks import ParentLocks
from admission.tenant.claims.tenant_deleter import TenantDeleter
from admission.tenant.claims.withdrawal import Withdrawal
from apiserver.storage.watch_cache import WatchCache
from registry.cluster.interface import ClusterClient
from registry.generic.backend import Backend
from registry.tenant.tree import TenantTree
from registry.tenant.watch_feed import TenantFeed


@dataclass(frozen=True, slots=True, kw_only=True)
class Replica:
    """One of several processes on a cluster. `namespace` is that of the Lease of claims, and `identity` is unique for
    each start of a process."""

    identity: str
    namespace: str
    metrics: CollectorRegistry
    clock: Callable[[], float] = time.monotonic


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantState:
    """The state that a replica judges by. `caches` are those that `tree` is made of."""

    cluster: ClusterClient
    cache: WatchCache
    tree: TenantTree
    feed: TenantFeed
    caches: CompleteCaches


def claiming_backend(
    backend: Backend, state: TenantState, replica: Replica, *, plugins: Sequence[ValidatingPlugin]
) -> tuple[ClaimingBackend, Callable[[], Awaitable[None]]]:
    """The Backend around `backend`, and a task that must run for it."""
    cluster, cache, tree = state.cluster, state.cache, state.tree
    metrics, clock = ClaimMetrics(replica.metrics), replica.clock
    known = KnownClaims(holder=replica.identity, find=tree.get, clock=clock)
    judge = Judge(tree=tree, cache=cache, caches=state.caches, known=known, cluster=cluster)
    lease = ClaimLease(cluster=cluster, namespace=replica.namespace)
    writer = LeaseWriter(lease=lease, known=known, judge=judge, metrics=metrics)
    # a claim to what has been created and deleted is over, but others no longer see that
    cache.subscribe(lambda event: writer.notify() if event.type == "DELETED" else None)
    marks = DeletionMarks(
        cluster=cluster, cache=cache, marks=state.feed.deletion_marks, holder=replica.identity, clock=clock
    )
    locks, events = ParentLocks(), OwnEvents(cache=cache, is_complete=lambda: state.caches.complete)
    parts = ClaimingParts(
        register=ClaimRegister(known=known, judge=judge, writer=writer, metrics=metrics, clock=clock),
        events=events,
        verdict=partial(verdict_on, tree=tree, is_marked=marks.is_marked),
        deleter=TenantDeleter(tree=tree, cache=cache, events=events, marks=marks, locks=locks, caches=state.caches),
        withdrawal=Withdrawal(cluster=cluster, backend=backend, metrics=metrics),
        locks=locks,
        plugins=plugins,
        resource=cache.resource,
    )
    return ClaimingBackend(backend, parts), writer.run
