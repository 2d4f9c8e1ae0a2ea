"""Builds the controller of Tenants and its event handlers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial

from apiserver.meta.resource import Key
from controller.platform.settings import SettingsSource
from controller.publishing.guard import PublishingGuard
from controller.publishing.step import PublishingStep
from controller.runtime.apply import ClusterWriter
from controller.runtime.event_recorder import Recorder
from controller.runtime.manager import Controller
from controller.runtime.workqueue import WorkQueue
from controller.runtime.workqueue_metrics import WorkQueueMetrics
from controller.tenant.finalizer import ParentDeletionHandler, TenantFinalizer
from controller.tenant.gateway_ready_step import GatewayIndex, GatewayReadyStep
from controller.tenant.helm_ownership import ChartMode
from controller.tenant.host_conflict_step import HostConflictStep
from controller.tenant.isolation.model import ClusterNetworks
from controller.tenant.isolation.step import IsolationStep
from controller.tenant.managed_objects import ContentWriter
from controller.tenant.namespace_content_steps import ContentSettings, QuotaPools, content_steps, self_access
from controller.tenant.namespace_step import NamespaceStep
from controller.tenant.observe import TenantObserver
from controller.tenant.orphaned_namespaces import OrphanedNamespaceCleanup
from controller.tenant.planning.planner import TenantPlanner
from controller.tenant.platform_settings_step import PlatformSettingsStep, SettingsProblems
from controller.tenant.quota.first_limits import FirstLimits
from controller.tenant.quota.pool_watches import PoolTreeHandler
from controller.tenant.readiness.release_ready_step import ReleaseReadyStep
from controller.tenant.reconciler import Step, TenantReconciler, all_tenant_keys
from controller.tenant.release_adopted_namespace import AdoptedNamespaceCleanup
from controller.tenant.root import ROOT
from controller.tenant.self_access import SelfAccess
from controller.tenant.status import StatusListener, TenantStatusWriter
from controller.tenant.watches import NamespaceEventHandler, TenantEnqueuer, TenantEventHandler
from controller.tenant.workloads_ready_step import WorkloadsReadyStep
from registry.cluster.event_handlers import EventHandler
from registry.cluster.informer_factory import InformerFactory
from registry.cluster.interface import ClusterClient, ClusterResource
from registry.names import release_name
from registry.tenant.quota_pools import TenantPools
from registry.tenantgateway.types import TENANTGATEWAYS
from tenant_apiserver.wiring.content_settings import content_settings
from tenant_apiserver.wiring.isolation import Isolation, isolation
from tenant_apiserver.wiring.publishing import enqueue_publisher
from tenant_apiserver.wiring.tenant_api import TenantApi
from tenant_apiserver.wiring.tenant_state import TenantState, tenant_state

NAME = "tenant"


def _utc_now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class _Dependencies:
    """The objects that most parts of the controller need."""

    cluster: ClusterClient
    tenants: TenantApi
    settings: SettingsSource
    informers: InformerFactory
    writer: ClusterWriter
    recorder: Recorder
    queue: WorkQueue[Key]
    enqueuer: TenantEnqueuer
    now: Callable[[], datetime]
    problems: SettingsProblems | None
    publishing: PublishingGuard | None


def tenant_controller(
    *,
    cluster: ClusterClient,
    tenants: TenantApi,
    settings: SettingsSource,
    informers: InformerFactory,
    writer: ClusterWriter,
    queues: WorkQueueMetrics,
    recorder: Recorder,
    own_networks: ClusterNetworks | None = None,
    problems: SettingsProblems | None = None,
    enforces_quotas: bool = True,
    publishing: PublishingGuard | None = None,
    now: Callable[[], datetime] = _utc_now,
) -> Controller[Key]:
    """Must be called before the informers run, because it adds handlers to them. `own_networks` are those of a cluster
    that knows them itself, `problems` what is wrong with the objects that the settings come from. `enforces_quotas` is
    False for a cluster that is known to enforce no ResourceQuotas."""
    queue = WorkQueue[Key](metrics=queues.for_queue(NAME))
    queues.track(NAME, queue)
    enqueuer = TenantEnqueuer(tree=tenants.tree, enqueue=queue.add)
    given = _Dependencies(
        cluster, tenants, settings, informers, writer, recorder, queue, enqueuer, now, problems, publishing
    )
    namespaces = NamespaceEventHandler(tree=tenants.tree, namespaces=tenants.namespaces.store, enqueue=queue.add)
    tenants.namespaces.add_handler(namespaces, late=True)
    pools = _quota_pools(given, enforces_quotas)
    pool_tree = _follow_tenants(given, namespaces, pools)
    initial_keys = partial(all_tenant_keys, tenants.tree, namespaces)
    reconciler = _new_reconciler(
        given,
        cleanup=OrphanedNamespaceCleanup(writer=writer, cluster=cluster, tree=tenants.tree, namespaces=namespaces),
        isolation=isolation(
            cluster=cluster,
            settings=settings,
            informers=informers,
            writer=writer,
            enqueuer=enqueuer,
            own_networks=own_networks,
        ),
        pools=pools,
    )
    _follow_settings(given, pool_tree, initial_keys)
    return Controller(name=NAME, queue=queue, reconciler=reconciler, initial_keys=initial_keys)


def _quota_pools(given: _Dependencies, enforces_quotas: bool) -> QuotaPools:
    tree, quotas, queue = given.tenants.tree, given.tenants.pool_quotas, given.queue
    pools = TenantPools(tree)
    if not enforces_quotas:
        return QuotaPools(pools=pools, quotas=quotas, first_limits=None, enqueue_after=queue.add_after)
    releases, root = given.tenants.releases.store, Key(ROOT.namespace, release_name(ROOT.name))
    first_limits = FirstLimits(
        tree=tree,
        pools=pools,
        quotas=quotas,
        enqueue=queue.add,
        enqueue_after=queue.add_after,
        root=lambda: releases.get(root),
        now=given.now,
    )
    return QuotaPools(pools=pools, quotas=quotas, first_limits=first_limits, enqueue_after=queue.add_after)


def _follow_tenants(given: _Dependencies, namespaces: NamespaceEventHandler, pools: QuotaPools) -> PoolTreeHandler:
    """Subscribes all handlers of events of Tenants, and returns the one that has state."""
    tree, settings, enqueue = given.tenants.tree, given.settings, given.queue.add
    pool_tree = PoolTreeHandler(
        tree=tree,
        pools=pools.pools,
        quotas=pools.quotas,
        mode=lambda: settings.current.quotas.pool,
        enqueue=enqueue,
    )
    for handler in (
        TenantEventHandler(tree=tree, enqueue=enqueue),
        pool_tree,
        ParentDeletionHandler(tree=tree, namespaces=namespaces, enqueue=enqueue),
    ):
        given.tenants.cache.subscribe(handler.on_event)
    return pool_tree


def _follow_settings(
    given: _Dependencies, pool_tree: PoolTreeHandler, initial_keys: Callable[[], Iterable[Key]]
) -> None:
    """Every Tenant is reconciled when a setting, or a ratio of Cozystack's ConfigMap, has changed."""

    def enqueue_all() -> None:
        pool_tree.forget()
        for key in initial_keys():
            given.queue.add(key)

    given.settings.subscribe(enqueue_all)
    given.tenants.ratios.subscribe(enqueue_all)
    if given.problems is not None:
        given.problems.subscribe_to_problems(lambda: given.queue.add(ROOT))
    if given.publishing is not None:
        enqueue_publisher(given.publishing, given.tenants, given.queue.add)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Contents:
    """Writers of the contents of Namespaces, which also remove them: the steps and the finalizer share them."""

    settings: ContentSettings
    writer: ContentWriter
    adopted_namespaces: AdoptedNamespaceCleanup
    self_access: SelfAccess


def _contents(given: _Dependencies, isolation: Isolation) -> _Contents:
    settings = content_settings(given.settings, given.tenants.tree)
    settings = replace(settings, served=lambda: given.informers.is_served(TENANTGATEWAYS))
    writer = ContentWriter(writer=given.writer, cluster=given.cluster, chart=settings.chart)
    adopted_namespaces = AdoptedNamespaceCleanup(
        writer=given.writer, contents=writer, add_handler=partial(_add_handler, given.informers)
    )
    adopted_namespaces.add_digests(*isolation.kinds.digests)
    return _Contents(
        settings=settings,
        writer=writer,
        adopted_namespaces=adopted_namespaces,
        self_access=self_access(contents=writer, enqueuer=given.enqueuer, add_handler=adopted_namespaces.add_handler),
    )


def _new_reconciler(
    given: _Dependencies, *, cleanup: OrphanedNamespaceCleanup, isolation: Isolation, pools: QuotaPools
) -> TenantReconciler:
    tenants = given.tenants
    contents = _contents(given, isolation)
    state = tenant_state(
        informers=given.informers,
        writer=given.writer,
        tree=tenants.tree,
        enqueue=given.queue.add,
        on_change=given.enqueuer.enqueue_owner,
    )
    steps = _steps(given, contents.settings.chart, state)
    content_steps = _content_steps(given, contents, pools, isolation.step)
    tenants.planner.tenants = TenantPlanner(
        cluster=given.cluster,
        tree=tenants.tree,
        releases=tenants.releases.store,
        namespaces=tenants.namespaces.store,
        steps=steps,
        content_steps=content_steps,
        chart=contents.settings.chart,
        settings=lambda: replace(given.settings.current.release_settings(), finalizer=True),
    )
    status = _status_writer(given, state, pools.first_limits, steps)
    return TenantReconciler(
        cleanup=cleanup,
        observer=TenantObserver(
            tree=tenants.tree, releases=tenants.releases.store, namespaces=tenants.namespaces.store
        ),
        finalizer=_finalizer(given, contents, state.gateways, status),
        steps=steps,
        content_steps=content_steps,
        self_access=contents.self_access,
        status=status,
        may_be_withdrawn=tenants.may_be_withdrawn,
        enqueue_after=given.queue.add_after,
    )


def _status_writer(
    given: _Dependencies, state: TenantState, first_limits: FirstLimits | None, steps: Sequence[Step]
) -> TenantStatusWriter:
    return TenantStatusWriter(
        writer=given.writer,
        now=given.now,
        external_ips=state.workloads.external_ips,
        recorder=given.recorder,
        listeners=[each for each in steps if isinstance(each, StatusListener)],
        quotas_in_effect=lambda: first_limits is not None and first_limits.has_controller,
    )


def _finalizer(
    given: _Dependencies, contents: _Contents, gateways: GatewayIndex, status: TenantStatusWriter
) -> TenantFinalizer:
    return TenantFinalizer(
        writer=given.writer,
        tree=given.tenants.tree,
        releases=given.tenants.releases.store,
        gateways=gateways,
        adopted_namespaces=contents.adopted_namespaces,
        self_access=contents.self_access,
        status=status,
    )


def _steps(given: _Dependencies, chart: Callable[[], ChartMode], state: TenantState) -> Sequence[Step]:
    steps: list[Step] = [
        NamespaceStep(writer=given.writer, now=given.now, chart=chart),
        HostConflictStep(),
        ReleaseReadyStep(chart=chart, enqueue_after=given.queue.add_after),
        GatewayReadyStep(gateways=state.gateways),
        WorkloadsReadyStep(workloads=state.workloads),
    ]
    if given.problems is not None:
        steps.append(PlatformSettingsStep(problems=given.problems, recorder=given.recorder))
    if given.publishing is not None:
        problems = given.problems
        package = (lambda: problems.package) if problems is not None else (lambda: None)
        steps.append(PublishingStep(guard=given.publishing, package=package, recorder=given.recorder))
    return steps


def _content_steps(
    given: _Dependencies, contents: _Contents, pools: QuotaPools, isolation: IsolationStep
) -> Sequence[Step]:
    return content_steps(
        cluster=given.cluster,
        contents=contents.writer,
        enqueuer=given.enqueuer,
        add_handler=contents.adopted_namespaces.add_handler,
        settings=contents.settings,
        self_access=contents.self_access,
        pools=pools,
        isolation=isolation,
    )


def _add_handler(
    informers: InformerFactory, resource: ClusterResource, handler: EventHandler, *, name: str = ""
) -> None:
    """Adds a handler to an informer without a store, because the handler itself stores what it needs."""
    selector = f"metadata.name={name}" if name else ""
    informers.get(resource, field_selector=selector, store_objects=False).add_handler(handler, late=True)
