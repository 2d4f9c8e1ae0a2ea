"""Plans the Gateways of namespaces by the reconciler of TenantGateways, with what was planned before."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import replace

from apiserver.meta.resource import Key, Object
from controller.runtime.planning_writer import PlanningWriter
from controller.tenantgateway import parse
from controller.tenantgateway.ensure import ObjectEnsurer
from controller.tenantgateway.index import NamespaceIndex
from controller.tenantgateway.parse import ParsedTenantGateway
from controller.tenantgateway.reconciler import Stores, TenantGatewayReconciler, TenantGatewayStates
from controller.tenantgateway.route_verdicts import RouteVerdicts
from controller.tenantgateway.status import ReconcileResult
from registry.cluster.interface import NAMESPACES
from registry.tenantgateway.types import TENANTGATEWAYS


class GatewayPlanner:
    def __init__(self, *, stores: Stores, namespaces: NamespaceIndex, ensurer: ObjectEnsurer) -> None:
        """`stores` and `ensurer` are those of the reconciler, which they stay as they are for."""
        self._stores = stores
        self._namespaces = namespaces
        self._ensurer = ensurer

    async def plan(self, writer: PlanningWriter, namespaces: Set[str]) -> None:
        """Plans the objects of the TenantGateways of these namespaces, and of those that `writer` has planned. Raises
        the cluster's StatusError."""
        changed = writer.planned_objects(TENANTGATEWAYS)
        gateways = _PlannedTenantGateways(self._stores.tenantgateways, changed)
        labels = {key.name: each for key, each in writer.planned_objects(NAMESPACES).items() if each is not None}
        reconciler = TenantGatewayReconciler(
            stores=replace(self._stores, tenantgateways=gateways, namespaces=self._namespaces.with_changes(labels)),
            ensurer=self._ensurer.planning(writer),
            verdicts=RouteVerdicts(concerned_with=lambda gateway: (), enqueue_route=lambda route: None),
            status=_NoStatus(),
        )
        for key in sorted({key for key in self._stores.tenantgateways if key.namespace in namespaces} | set(changed)):
            if changed.get(key, ...) is None:
                await self._delete(key, writer)
            else:
                await reconciler.reconcile(key)

    async def _delete(self, key: Key, writer: PlanningWriter) -> None:
        parsed = self._stores.tenantgateways.parsed(key)
        if parsed is not None:
            await self._ensurer.delete_all(parsed.gateway, writer)


class _PlannedTenantGateways:
    """TenantGateways as they are, and some as they would be."""

    def __init__(self, stored: TenantGatewayStates, changed: Mapping[Key, Object | None]) -> None:
        self._stored = stored
        # a new one has no uid yet
        self._changed = {key: _with_identity(each) for key, each in changed.items()}

    def get(self, key: Key) -> Object | None:
        return self._changed[key] if key in self._changed else self._stored.get(key)

    def parsed(self, key: Key) -> ParsedTenantGateway | None:
        if key not in self._changed:
            return self._stored.parsed(key)
        found = self._changed[key]
        return parse.tenantgateway(found) if found is not None else None

    def __iter__(self) -> Iterator[Key]:
        return iter(self._stored)


class _NoStatus:
    async def write(self, obj: Object, result: ReconcileResult) -> None:
        """A status tells what was observed, so that none is planned."""


def _with_identity(obj: Object | None) -> Object | None:
    if obj is None:
        return None
    return {**obj, "metadata": {"uid": "", "generation": 1, **obj["metadata"]}}
