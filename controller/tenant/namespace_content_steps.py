"""Constructs the steps that write into a Tenant's Namespace, with the handlers that watch what they write."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from apiserver.meta.resource import Key, Object
from controller.tenant import rbac_step as rbac
from controller.tenant import self_access as self_roles
from controller.tenant import tenantgateway_step as tenantgateway
from controller.tenant import values_secret_step as values
from controller.tenant.bound_roles import BoundRoles
from controller.tenant.helm_ownership import ChartMode
from controller.tenant.isolation.step import IsolationStep
from controller.tenant.managed_objects import ContentWriter, ManagedKind, ObjectDigests
from controller.tenant.quota import rendering as quota
from controller.tenant.quota.first_limits import FirstLimits
from controller.tenant.quota.pool_division import PoolDivision
from controller.tenant.quota.pool_limits import PoolLimits
from controller.tenant.quota.pool_watches import PoolUseHandler
from controller.tenant.quota.rendering import ContainerLimits
from controller.tenant.quota.step import QuotaStep
from controller.tenant.quota.strict_limits import StrictLimits
from controller.tenant.rbac_step import RbacStep
from controller.tenant.reconciler import Step
from controller.tenant.self_access import SelfAccess
from controller.tenant.tenantgateway_step import TenantGatewayStep
from controller.tenant.values_secret_step import InheritedValues, ValuesStep
from controller.tenant.watches import TenantEnqueuer, TenantGatewayServedHandler
from registry.cluster.event_handlers import EventHandler
from registry.cluster.interface import CLUSTERROLES, RESOURCEQUOTAS, ClusterClient, ClusterResource
from registry.tenant.pool_quotas import POOL_NAME, WITNESS_NAME, PoolQuotas
from registry.tenant.quota_pools import PoolMode, TenantPools


@dataclass(frozen=True, slots=True, kw_only=True)
class ContentSettings:
    """The current settings of the contents, each read on demand. `unconfirmed` returns the keys of `cluster` that do
    not replace a value of before, `tenantgateway` the spec for an apex domain,
    `pool` how pools of quota are divided, and `served` whether the cluster serves TenantGateways."""

    chart: Callable[[], ChartMode]
    cluster: Callable[[], Mapping[str, str]]
    unconfirmed: Callable[[], Collection[str]]
    limits: Callable[[], ContainerLimits]
    tenantgateway: Callable[[str], Object]
    pool: Callable[[], PoolMode]
    served: Callable[[], bool] = lambda: True


class AddHandler(Protocol):
    def __call__(self, resource: ClusterResource, handler: EventHandler, *, name: str = "") -> None:
        """Add the handler to an informer of the kind in all namespaces; with `name`, of objects of that name only."""
        ...


def self_access(*, contents: ContentWriter, enqueuer: TenantEnqueuer, add_handler: AddHandler) -> SelfAccess:
    """The writer of the objects in the parent's Namespace. Its event handlers are registered with `add_handler`."""

    def digests_of(kind: ManagedKind) -> ObjectDigests:
        digests = ObjectDigests(kind, on_change=self_roles.enqueue_tenant_of(enqueuer.add))
        add_handler(kind.resource, digests)
        return digests

    return SelfAccess(
        contents=contents,
        roles=digests_of(self_roles.MANAGED_SELF_ROLE),
        bindings=digests_of(self_roles.MANAGED_SELF_ROLE_BINDING),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaPools:
    """The pools of the tree, and what their members use. `first_limits` is None if the cluster is known to enforce no
    ResourceQuotas. `enqueue_after` adds a Tenant after some seconds."""

    pools: TenantPools
    quotas: PoolQuotas
    enqueue_after: Callable[[Key, float], None]
    first_limits: FirstLimits | None


def content_steps(
    *,
    cluster: ClusterClient,
    contents: ContentWriter,
    enqueuer: TenantEnqueuer,
    add_handler: AddHandler,
    settings: ContentSettings,
    self_access: SelfAccess,
    pools: QuotaPools,
    isolation: IsolationStep,
) -> Sequence[Step]:
    """The steps in run order: the Namespace is isolated before anybody gets access to it. The event handlers of all
    steps but `isolation` are registered with `add_handler`."""
    build = _StepBuilder(
        cluster=cluster, contents=contents, enqueuer=enqueuer, add_handler=add_handler, settings=settings
    )
    return (
        isolation,
        build.values(),
        build.rbac(self_access, isolated=isolation.permits_access, first_limits=pools.first_limits),
        build.tenantgateway(),
        build.quota(pools),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _StepBuilder:
    """Each method builds a step, and registers the handlers that watch what the step writes and depends on."""

    cluster: ClusterClient
    contents: ContentWriter
    enqueuer: TenantEnqueuer
    add_handler: AddHandler
    settings: ContentSettings

    def values(self) -> ValuesStep:
        secrets = self._digests_of(values.MANAGED_VALUES_SECRET, values.SECRET_NAME)
        inherited = InheritedValues(enqueue_heirs=self.enqueuer.enqueue_heirs)
        self.add_handler(values.MANAGED_VALUES_SECRET.resource, inherited, name=values.SECRET_NAME)
        return ValuesStep(
            contents=self.contents,
            digests=secrets,
            inherited=inherited,
            cluster=self.settings.cluster,
            unconfirmed=self.settings.unconfirmed,
        )

    def rbac(
        self, self_access: SelfAccess, *, isolated: Callable[[str], bool], first_limits: FirstLimits | None
    ) -> RbacStep:
        bound_roles = BoundRoles(rbac.ROLES, on_change=self.enqueuer.enqueue_all)
        self.add_handler(CLUSTERROLES, bound_roles)
        return RbacStep(
            contents=self.contents,
            accounts=self._digests_of(rbac.MANAGED_SERVICE_ACCOUNT),
            bindings=self._digests_of(rbac.MANAGED_ROLE_BINDING),
            self_access=self_access,
            missing_roles=lambda: bound_roles.missing,
            isolated=isolated,
            limited=first_limits.permit_access if first_limits is not None else lambda observed: True,
        )

    def tenantgateway(self) -> TenantGatewayStep:
        kind = tenantgateway.MANAGED_TENANTGATEWAY
        served = TenantGatewayServedHandler(tree=self.enqueuer.tree, enqueue=self.enqueuer.add)
        self.add_handler(kind.resource, served)
        return TenantGatewayStep(
            contents=self.contents,
            digests=self._digests_of(kind),
            spec=self.settings.tenantgateway,
            served=self.settings.served,
        )

    def quota(self, pools: QuotaPools) -> QuotaStep:
        return QuotaStep(
            contents=self.contents,
            quotas=self._digests_of(quota.MANAGED_QUOTA, quota.QUOTA_NAME),
            ranges=self._digests_of(quota.MANAGED_LIMIT_RANGE, quota.LIMIT_RANGE_NAME),
            pools=self._pool_limits(pools),
            first_limits=pools.first_limits,
            limits=self.settings.limits,
            ratios=lambda: self.enqueuer.tree.ratios,
        )

    def _pool_limits(self, pools: QuotaPools) -> PoolLimits:
        digests = {
            POOL_NAME: self._digests_of(quota.MANAGED_POOL_QUOTA, POOL_NAME),
            WITNESS_NAME: self._digests_of(quota.MANAGED_WITNESS, WITNESS_NAME),
        }
        witnesses = PoolQuotas(name=WITNESS_NAME)
        self.add_handler(RESOURCEQUOTAS, witnesses, name=WITNESS_NAME)
        division = PoolDivision(pools=pools.pools, quotas=pools.quotas, mode=self.settings.pool)
        strict = StrictLimits(
            contents=self.contents,
            digests=digests,
            division=division,
            quotas=pools.quotas,
            witnesses=witnesses,
            cluster=self.cluster,
            enqueue_after=pools.enqueue_after,
        )
        uses = PoolUseHandler(
            tree=self.enqueuer.tree,
            pools=pools.pools,
            balances=division.balances,
            mode=self.settings.pool,
            waiting=strict.waiting,
            enqueue=self.enqueuer.add,
        )
        pools.quotas.subscribe(uses.on_change)
        witnesses.subscribe(uses.on_witness_change)
        return PoolLimits(contents=self.contents, digests=digests, division=division, strict=strict)

    def _digests_of(self, kind: ManagedKind, name: str = "") -> ObjectDigests:
        digests = ObjectDigests(kind, on_change=self.enqueuer.enqueue_owner)
        self.add_handler(kind.resource, digests, name=name)
        return digests
