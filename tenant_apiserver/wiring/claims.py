"""Builds the Backend that keeps hosts, quotas and parents exact across replicas."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
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
from admission.tenant.claims.unconfirmed_writes import UnconfirmedWrites
from admission.tenant.claims.withdrawal import Withdrawal
from admission.tenant.claims.write_history import WriteHistory
from admission.tenant.quota_ledger import NamespaceUsage, no_usage
from apiserver.meta.resource import Key
from apiserver.storage.watch_cache import WatchCache
from registry.application.release_backend import ReleaseBackend
from registry.cluster.interface import ClusterClient
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
class ReplicaState:
    """The state that a replica judges by. `caches` are those that `tree` is made of, and `usage` returns what is used
    in a namespace."""

    cluster: ClusterClient
    cache: WatchCache
    tree: TenantTree
    feed: TenantFeed
    caches: CompleteCaches
    usage: NamespaceUsage = no_usage


@dataclass(frozen=True, slots=True, kw_only=True)
class Claims:
    """The Backend of Tenants, and the tasks that must run for it, by name. `may_be_withdrawn` returns True for a Tenant
    that no controller may act on yet."""

    backend: ClaimingBackend
    tasks: Mapping[str, Callable[[], Awaitable[None]]]
    may_be_withdrawn: Callable[[Key], bool]


def claiming_backend(
    backend: ReleaseBackend, state: ReplicaState, replica: Replica, *, plugins: Sequence[ValidatingPlugin]
) -> Claims:
    """The Backend around `backend`."""
    cluster, cache, tree = state.cluster, state.cache, state.tree
    metrics, clock = ClaimMetrics(replica.metrics), replica.clock
    known = KnownClaims(holder=replica.identity, find=tree.get, clock=clock)
    judge = Judge(tree=tree, cache=cache, caches=state.caches, known=known, cluster=cluster, usage=state.usage)
    lease = ClaimLease(cluster=cluster, namespace=replica.namespace)
    writer = LeaseWriter(lease=lease, known=known, judge=judge, metrics=metrics)
    # a claim to what has been created and deleted is over, but others no longer see that
    cache.subscribe(lambda event: writer.notify() if event.type == "DELETED" else None)
    marks = DeletionMarks(
        cluster=cluster, cache=cache, marks=state.feed.deletion_marks, holder=replica.identity, clock=clock
    )
    locks, events = ParentLocks(), OwnEvents(cache=cache, caches=state.caches)
    verdict = partial(verdict_on, tree=tree, is_marked=marks.is_marked)
    withdrawal = Withdrawal(cluster=cluster, backend=backend, metrics=metrics)
    unconfirmed = UnconfirmedWrites(
        marks=state.feed.unconfirmed,
        tree=tree,
        caches=state.caches,
        verdict=verdict,
        history=WriteHistory(cluster=cluster, tree=tree),
        withdrawal=withdrawal,
        clock=clock,
    )
    cache.subscribe(unconfirmed.on_event)
    parts = ClaimingParts(
        register=ClaimRegister(known=known, judge=judge, writer=writer, metrics=metrics, clock=clock),
        events=events,
        verdict=verdict,
        deleter=TenantDeleter(tree=tree, cache=cache, events=events, marks=marks, locks=locks, caches=state.caches),
        withdrawal=withdrawal,
        unconfirmed=unconfirmed,
        locks=locks,
        plugins=plugins,
        resource=cache.resource,
    )
    return Claims(
        backend=ClaimingBackend(backend, parts),
        tasks={"claims": writer.run, "unconfirmed-writes": unconfirmed.run},
        may_be_withdrawn=unconfirmed.may_be_withdrawn,
    )
