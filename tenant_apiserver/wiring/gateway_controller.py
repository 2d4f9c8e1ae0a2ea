"""Builds the controller of TenantGateways, with the indexes that it reads and the informers that feed them."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Hashable, Iterable
from datetime import UTC, datetime
from functools import partial
from typing import TypeVar

from apiserver.meta.resource import Key
from apiserver.storage.event_history import CacheEvent
from controller.platform.settings import SettingsSource
from controller.publishing.guard import has_publisher
from controller.runtime.apply import ClusterWriter
from controller.runtime.event_recorder import Recorder
from controller.runtime.manager import Controller
from controller.runtime.workqueue import WorkQueue
from controller.runtime.workqueue_metrics import WorkQueueMetrics
from controller.tenantgateway.attachment import AttachmentRules
from controller.tenantgateway.attachment_reconciler import AttachmentReconciler
from controller.tenantgateway.certificate_budget import BudgetListener, CertificateBudgets
from controller.tenantgateway.consent.resolved_refs import ReferenceJudge
from controller.tenantgateway.delegation.judge import DelegationJudge
from controller.tenantgateway.delegation.parts import DelegationParts
from controller.tenantgateway.delegation.reconciler import DelegationReconciler
from controller.tenantgateway.ensure import ObjectEnsurer
from controller.tenantgateway.index import EnqueueNamespace, TenantGatewayIndex
from controller.tenantgateway.judging.gateway_judge import GatewayJudge
from controller.tenantgateway.model import RouteId
from controller.tenantgateway.owners.owner_namespaces import may_own_gateways
from controller.tenantgateway.planning.planner import GatewayPlanner
from controller.tenantgateway.reconciler import Stores, TenantGatewayReconciler
from controller.tenantgateway.route_status_reconciler import RouteStatusReconciler
from controller.tenantgateway.route_verdicts import RouteVerdicts
from controller.tenantgateway.status_writer import StatusWriter
from controller.tenantgateway.watched_kinds import WatchedKinds
from registry.cluster.event_handlers import RelistListener
from registry.cluster.informer_factory import InformerFactory
from registry.cluster.interface import SERVICES
from registry.names import workload_namespace
from registry.tenant.tree import TenantTree
from registry.tenantgateway.types import TENANTGATEWAYS
from tenant_apiserver.wiring.gateway_indexes import GatewayIndexes
from tenant_apiserver.wiring.tenant_api import TenantApi

K = TypeVar("K", bound=Hashable)
NAME = "tenantgateway"
ATTACHMENTS = "attached-namespaces"
ROUTE_STATUSES = "route-statuses"
DELEGATIONS = "delegations"


class GatewayControllers:
    """The controllers of TenantGateways and of the Namespaces attached to them, as one Runnable."""

    name = NAME

    def __init__(
        self,
        *,
        tenants: TenantApi,
        settings: SettingsSource,
        informers: InformerFactory,
        writer: ClusterWriter,
        queues: WorkQueueMetrics,
        recorder: Recorder,
    ) -> None:
        self._kinds = kinds = WatchedKinds(informers)
        self._tenantgateways = informers.get(TENANTGATEWAYS, store_objects=False)
        made, grpc_routes = _Queues(queues), partial(_grpc_routes, settings)
        indexes = _indexes(made, grpc_routes)
        indexes.add_handlers(self._tenantgateways, tenants.namespaces, kinds)
        tenants.cache.subscribe(_TreeListener(indexes.tenantgateways, made.namespaces.add).on_event)
        tenants.cache.subscribe(BudgetListener(tenants.tree, indexes.on_budget).on_event)
        _enqueue_after_changes(kinds, settings, indexes, made)
        self._attachments, attachments = _attachment_controller(tenants, settings, indexes, made, writer)
        self._verdicts = RouteVerdicts(concerned_with=indexes.concerned_with, enqueue_route=indexes.on_verdict)
        informers.get(SERVICES, store_objects=False).add_handler(indexes.services.handler)
        references = ReferenceJudge(kind=kinds.grants, grants=indexes.grants, backends=indexes.services)
        self._delegation = delegation = _delegation_parts(indexes, kinds, made)
        self._delegations = _delegation_controller(indexes, delegation, kinds, made, writer)
        self._route_statuses, route_statuses = _route_status_controller(
            indexes, kinds, self._verdicts, references, delegation, settings, made, writer, recorder
        )
        stores = Stores(
            tenantgateways=indexes.tenantgateways,
            routes=indexes.routes,
            namespaces=indexes.namespaces,
            kinds=kinds,
            attachments=attachments,
            route_statuses=route_statuses,
            grants=indexes.grants,
            delegations=delegation,
            may_own=partial(_may_own, settings),
            grpc_routes=grpc_routes,
            shared_hostnames=lambda: settings.current.gateway.shared_hostnames == "platform",
            budgets=CertificateBudgets(tree=tenants.tree, per_heir=lambda: settings.current.gateway.hostnames_per_heir),
        )
        ensurer = _ensurer(writer, kinds, indexes, settings)
        status = StatusWriter(writer=writer, tenantgateways=indexes.tenantgateways, recorder=recorder, now=_now)
        self._gateways = _gateway_controller(stores, ensurer, self._verdicts, status, made)
        tenants.planner.gateways = GatewayPlanner(stores=stores, namespaces=indexes.namespaces, ensurer=ensurer)

    async def run(self) -> None:
        """Runs until cancelled."""
        self._verdicts.clear()
        # before TenantGateways are listed, all labels would seem unwanted and be removed
        await self._tenantgateways.synced.wait()
        async with asyncio.TaskGroup() as group:
            group.create_task(self._attachments.run(), name=ATTACHMENTS)
            await self._kinds.wait_until_known()
            await self._delegation.record_all()
            group.create_task(self._gateways.run(), name=NAME)
            group.create_task(self._delegations.run(), name=DELEGATIONS)
            group.create_task(self._route_statuses.run(), name=ROUTE_STATUSES)


class _Queues:
    """The queues of TenantGateways, of Namespaces and of routes."""

    def __init__(self, metrics: WorkQueueMetrics) -> None:
        self.gateways = WorkQueue[Key](metrics=metrics.for_queue(NAME))
        self.namespaces = WorkQueue[str](metrics=metrics.for_queue(ATTACHMENTS))
        self.routes = WorkQueue[RouteId](metrics=metrics.for_queue(ROUTE_STATUSES))
        self.delegations = WorkQueue[RouteId](metrics=metrics.for_queue(DELEGATIONS))
        metrics.track(NAME, self.gateways)
        metrics.track(ATTACHMENTS, self.namespaces)
        metrics.track(ROUTE_STATUSES, self.routes)
        metrics.track(DELEGATIONS, self.delegations)


def _indexes(queues: _Queues, grpc_routes: Callable[[], bool]) -> GatewayIndexes:
    return GatewayIndexes(
        enqueue=queues.gateways.add,
        enqueue_namespace=queues.namespaces.add,
        enqueue_route=queues.routes.add,
        enqueue_delegation=queues.delegations.add,
        grpc_routes=grpc_routes,
    )


def _delegation_parts(indexes: GatewayIndexes, kinds: WatchedKinds, queues: _Queues) -> DelegationParts:
    return DelegationParts(
        index=indexes.delegations,
        kinds=kinds,
        enqueue=queues.gateways.add,
        enqueue_route=queues.routes.add,
        enqueue_delegation=queues.delegations.add,
    )


def _ensurer(
    writer: ClusterWriter, kinds: WatchedKinds, indexes: GatewayIndexes, settings: SettingsSource
) -> ObjectEnsurer:
    return ObjectEnsurer(
        writer=writer,
        kinds=kinds,
        certificates=indexes.certificates,
        listener_sets=indexes.listener_sets,
        settings=lambda: settings.current,
    )


def _enqueue_after_changes(
    kinds: WatchedKinds, settings: SettingsSource, indexes: GatewayIndexes, queues: _Queues
) -> None:
    """Settings, and objects that are listed anew, concern every TenantGateway; the latter also every route."""

    enqueue_gateways = partial(_add_all, queues.gateways, indexes.tenantgateways)

    def enqueue_namespaces() -> None:
        _add_all(queues.namespaces, indexes.tenantgateways.listed_namespaces())

    def enqueue_delegations() -> None:
        _add_all(queues.delegations, indexes.delegations)
        _add_all(queues.routes, indexes.delegations)

    for kind in kinds.all:
        kind.add_handler(RelistListener(enqueue_gateways))
    kinds.gateways.add_handler(RelistListener(partial(_add_all, queues.routes, indexes.routes)))
    kinds.grants.add_handler(RelistListener(partial(_add_all, queues.routes, indexes.routes.foreign)))
    kinds.grants.add_handler(RelistListener(enqueue_delegations))
    for kind in kinds.of_routes.values():
        kind.add_handler(RelistListener(enqueue_delegations))
    settings.subscribe(enqueue_gateways)
    settings.subscribe(enqueue_namespaces)
    _enqueue_after_grpc_is_switched(settings, indexes, queues)


def _enqueue_after_grpc_is_switched(settings: SettingsSource, indexes: GatewayIndexes, queues: _Queues) -> None:
    """The setting concerns all GRPCRoutes."""
    before = _grpc_routes(settings)

    def enqueue() -> None:
        nonlocal before
        if (now := _grpc_routes(settings)) == before:
            return
        before = now
        _add_all(queues.delegations, (each for each in indexes.delegations if each.kind == "GRPCRoute"))
        _add_all(queues.routes, (each for each in indexes.routes_with_status() if each.kind == "GRPCRoute"))

    settings.subscribe(enqueue)


def _grpc_routes(settings: SettingsSource) -> bool:
    return settings.current.gateway.grpc_routes


def _add_all(queue: WorkQueue[K], keys: Iterable[K]) -> None:
    for key in keys:
        queue.add(key)


def _gateway_controller(
    stores: Stores, ensurer: ObjectEnsurer, verdicts: RouteVerdicts, status: StatusWriter, queues: _Queues
) -> Controller[Key]:
    reconciler = TenantGatewayReconciler(stores=stores, ensurer=ensurer, verdicts=verdicts, status=status)
    return Controller(name=NAME, queue=queues.gateways, reconciler=reconciler, initial_keys=reconciler.initial_keys)


def _attachment_controller(
    tenants: TenantApi, settings: SettingsSource, indexes: GatewayIndexes, queues: _Queues, writer: ClusterWriter
) -> tuple[Controller[str], AttachmentReconciler]:
    reconciler = AttachmentReconciler(
        writer=writer,
        namespaces=tenants.namespaces.store,
        index=indexes.namespaces,
        tenantgateways=indexes.tenantgateways,
        rules=partial(_attachment_rules, settings, tenants.tree),
        enqueue=queues.gateways.add,
    )
    controller = Controller(
        name=ATTACHMENTS,
        queue=queues.namespaces,
        reconciler=reconciler,
        initial_keys=reconciler.initial_keys,
        workers=2,
    )
    return controller, reconciler


class _TreeListener:
    """Enqueues attached namespaces when Tenants are added or deleted, because the depth of a gateway's namespace in the
    tree decides between two gateways that list the same namespace. Must subscribe after the tree."""

    def __init__(self, tenantgateways: TenantGatewayIndex, enqueue_namespace: EnqueueNamespace) -> None:
        self._tenantgateways = tenantgateways
        self._enqueue_namespace = enqueue_namespace

    def on_event(self, event: CacheEvent) -> None:
        if event.type == "MODIFIED":
            return
        for key in self._tenantgateways.in_namespace(workload_namespace(*event.object.key)):
            parsed = self._tenantgateways.parsed(key)
            for namespace in parsed.gateway.attached if parsed is not None else ():
                self._enqueue_namespace(namespace)


def _delegation_controller(
    indexes: GatewayIndexes, parts: DelegationParts, kinds: WatchedKinds, queues: _Queues, writer: ClusterWriter
) -> Controller[RouteId]:
    reconciler = DelegationReconciler(writer=writer, kinds=kinds, parts=parts, places_of=indexes.places.of)
    return Controller(
        name=DELEGATIONS, queue=queues.delegations, reconciler=reconciler, initial_keys=reconciler.initial_keys
    )


def _route_status_controller(
    indexes: GatewayIndexes,
    kinds: WatchedKinds,
    verdicts: RouteVerdicts,
    references: ReferenceJudge,
    delegation: DelegationParts,
    settings: SettingsSource,
    queues: _Queues,
    writer: ClusterWriter,
    recorder: Recorder,
) -> tuple[Controller[RouteId], RouteStatusReconciler]:
    reconciler = RouteStatusReconciler(
        writer=writer,
        kinds=kinds,
        initial_keys=indexes.routes_with_status,
        gateways=GatewayJudge(
            kinds=kinds,
            routes=indexes.routes,
            namespaces=indexes.namespaces,
            tenantgateways=indexes.tenantgateways,
            verdicts=verdicts,
            may_own=partial(_may_own, settings),
            grpc_routes=partial(_grpc_routes, settings),
        ),
        delegations=DelegationJudge(
            index=indexes.delegations,
            grants=indexes.grants,
            kinds=kinds,
            verdicts=verdicts,
            errors=delegation.errors,
        ),
        references=references,
        enqueue=queues.gateways.add,
        recorder=recorder,
        now=_now,
    )
    controller = Controller(
        name=ROUTE_STATUSES, queue=queues.routes, reconciler=reconciler, initial_keys=reconciler.initial_keys
    )
    return controller, reconciler


def _attachment_rules(settings: SettingsSource, tree: TenantTree) -> AttachmentRules:
    current = settings.current
    return AttachmentRules(
        publisher=current.publishing.ingress_name,
        platform=frozenset(current.gateway.attached_namespaces),
        depth=partial(_depth, tree),
        may_own=partial(_may_own, settings),
        has_publisher=has_publisher(tree, current.publishing.ingress_name),
    )


def _may_own(settings: SettingsSource, namespace: str) -> bool:
    return may_own_gateways(namespace, settings.current.gateway.owner_namespaces)


def _depth(tree: TenantTree, namespace: str) -> int:
    """The distance from the root; a namespace of no Tenant sorts last."""
    tenant = tree.by_namespace(namespace)
    return len(tree.ancestors(tenant)) if tenant is not None else sys.maxsize


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
