"""Tells whether the limits of a namespace are in effect: kube-apiserver admits by `status.hard` of a ResourceQuota,
into which the quota controller (of kube-controller-manager) copies `spec.hard`."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from apiserver.meta.resource import Key, Object
from controller.runtime.conditions import Finding, find_condition
from controller.runtime.workqueue import Enqueue
from controller.tenant.bound_roles import ACCESS_READY
from controller.tenant.namespace_ownership import parse_time
from controller.tenant.observe import ObservedTenant
from controller.tenant.readiness.stored_status import read_status
from controller.tenant.readiness.unanswered import PATIENCE_SECONDS, Unanswered, loop_time
from registry.names import ROOT_NAME, ROOT_NAMESPACE
from registry.tenant.pool_quotas import PoolQuotas, Shares
from registry.tenant.quota_pools import NOTHING, TenantPools
from registry.tenant.tree import TenantTree

QUOTA_READY = "QuotaReady"
WAITS_FOR_QUOTA = "WaitsForQuota"
"""The reason of AccessReady while nobody gets access because the limits are not in effect."""
SEEN_FIELD = "quotasInEffect"
"""In the stored status of the root Tenant: True since a quota of any Tenant was seen in effect."""
NO_QUOTA_CONTROLLER = "NoQuotaController"
NOT_ENFORCED = "NotEnforced"
"""The reason on a cluster that is known to enforce no ResourceQuotas: that does not count for Ready."""
_NOBODY = (
    "nothing enforces the declared limits: no quota controller has looked at a quota of any tenant for "
    f"{PATIENCE_SECONDS:.0f} s; start kube-controller-manager"
)


class FirstLimits:
    """A listener of PoolQuotas: it enqueues a Tenant when limits of its namespace come into effect. `tenant-pool` has
    every limit of the namespace, and the least.

    A cluster may have no quota controller. One that has ever put a quota of a Tenant into effect has one, and is waited
    for without end: the status of the root Tenant keeps that. On any other, a Tenant waits for PATIENCE_SECONDS, over
    changes of the leader.
    """

    def __init__(
        self,
        *,
        tree: TenantTree,
        pools: TenantPools,
        quotas: PoolQuotas,
        enqueue: Enqueue,
        enqueue_after: Callable[[Key, float], None],
        root: Callable[[], Object | None],
        now: Callable[[], datetime],
        clock: Callable[[], float] = loop_time,
    ) -> None:
        """Must be called before the informer of the quotas runs. `root` returns the HelmRelease of the root Tenant,
        and `now` the time that creation timestamps are compared with."""
        self._tree = tree
        self._pools = pools
        self._quotas = quotas
        self._enqueue = enqueue
        self._enqueue_after = enqueue_after
        self._root = root
        self._now = now
        self._unanswered = Unanswered(clock=clock)
        self._seen_controller = False
        quotas.subscribe(self._on_change)

    @property
    def has_controller(self) -> bool:
        """True if a quota of a Tenant was ever seen in effect, perhaps by another leader."""
        if not self._seen_controller:
            root = self._root()
            self._seen_controller = root is not None and read_status(root).get(SEEN_FIELD) is True
        return self._seen_controller

    def permit_access(self, observed: ObservedTenant) -> bool:
        """True if people may get access to a new namespace, because they cannot exceed its limits."""
        return self._are_in_effect(observed) or self._is_overdue(observed)

    def finding(self, observed: ObservedTenant) -> Finding | None:
        """QuotaReady of a Tenant with quotas of its own, while they are not in effect."""
        if not observed.tenant.quotas or self._are_in_effect(observed):
            return None
        if self._is_overdue(observed):
            return Finding(QUOTA_READY, "False", NO_QUOTA_CONTROLLER, _NOBODY)
        return Finding(
            QUOTA_READY, "Unknown", "Pending", "waits for the quota controller to put the limits into effect"
        )

    def _are_in_effect(self, observed: ObservedTenant) -> bool:
        shares = self._quotas.of(observed.tenant.namespace)
        pools = self._pools.governing(observed.tenant)
        if any(shares.get(key, NOTHING).admitted is None for key in pools):
            return False
        self._unanswered.forget(observed.tenant.key)
        return True

    def _is_overdue(self, observed: ObservedTenant) -> bool:
        if self.has_controller:
            return False
        if _was_found_overdue(observed):
            return True
        tenant = observed.tenant
        waited = self._unanswered.seconds(tenant.key, (tenant.uid, None), before=lambda: self._waited_before(observed))
        left = PATIENCE_SECONDS - waited
        if left > 0:
            self._enqueue_after(tenant.key, left)
        return left <= 0

    def _waited_before(self, observed: ObservedTenant) -> float:
        """The seconds that the quota controller had, if another leader has already waited for it."""
        found = find_condition(read_status(observed.release).get("conditions"), ACCESS_READY)
        created = parse_time(self._quotas.created(observed.tenant.namespace))
        if found is None or found.get("reason") != WAITS_FOR_QUOTA or created is None:
            return 0.0
        return min(max(0.0, (self._now() - created).total_seconds()), PATIENCE_SECONDS)

    def _on_change(self, namespace: str, before: Shares, after: Shares) -> None:
        admitted = {key for key, share in after.items() if share.admitted is not None}
        if admitted and not self.has_controller:
            self._seen_controller = True
            self._enqueue(Key(ROOT_NAMESPACE, ROOT_NAME))
        known = {key for key, share in before.items() if share.admitted is not None}
        tenant = self._tree.by_namespace(namespace) if admitted - known else None
        if tenant is not None:
            self._enqueue(tenant.key)


def _was_found_overdue(observed: ObservedTenant) -> bool:
    """True if a quota controller has been waited for before, perhaps by another leader."""
    found = find_condition(read_status(observed.release).get("conditions"), QUOTA_READY)
    return found is not None and found.get("reason") == NO_QUOTA_CONTROLLER
