"""Reconciles a TenantGateway: observe, plan, write the owned objects, the status of routes, and its own status."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from apiserver.meta.resource import Key, Object
from controller.tenantgateway.attachment_reconciler import AttachmentReconciler
from controller.tenantgateway.collected_errors import CollectedErrors
from controller.tenantgateway.ensure import ObjectEnsurer
from controller.tenantgateway.index import NamespaceIndex, RouteIndex, TenantGatewayIndex
from controller.tenantgateway.model import HostnameOwnership, Plan
from controller.tenantgateway.parse import ParsedTenantGateway
from controller.tenantgateway.plan import plan
from controller.tenantgateway.route_status import rejections_by_route
from controller.tenantgateway.route_status_writer import RouteStatusWriter
from controller.tenantgateway.status import ReconcileResult
from controller.tenantgateway.status_writer import StatusWriter
from controller.tenantgateway.watched_kinds import WatchedKind, WatchedKinds

EMPTY_PLAN = Plan(listeners=(), certificates=(), ownership=HostnameOwnership())


@dataclass(frozen=True, slots=True, kw_only=True)
class Stores:
    """The observed state that a reconcile reads."""

    tenantgateways: TenantGatewayIndex
    routes: RouteIndex
    namespaces: NamespaceIndex
    kinds: WatchedKinds
    attachments: AttachmentReconciler


class TenantGatewayReconciler:
    """Reconciles by the key of a TenantGateway, which may be deleted while routes still have status entries about
    it."""

    def __init__(
        self, *, stores: Stores, ensurer: ObjectEnsurer, route_status: RouteStatusWriter, status: StatusWriter
    ) -> None:
        self._stores = stores
        self._ensurer = ensurer
        self._route_status = route_status
        self._status = status

    def initial_keys(self) -> Iterable[Key]:
        """The keys to reconcile at the start."""
        return dict.fromkeys((*self._stores.tenantgateways, *self._stores.routes.gateways_with_status()))

    async def reconcile(self, key: Key) -> None:
        """Raises one of the cluster's errors, but only after all work that does not depend on the failed calls."""
        errors = CollectedErrors()
        obj, parsed = self._stores.tenantgateways.get(key), self._stores.tenantgateways.parsed(key)
        if obj is None or parsed is None or parsed.gateway.terminating:
            # the garbage collector deletes the owned objects
            await self._route_status.withdraw(key, errors)
        elif not self._is_syncing():
            await self._reconcile_parsed(obj, parsed, errors)
        errors.raise_most_retryable()

    def _is_syncing(self) -> bool:
        """True if the objects of a kind are still being listed. Reconciling now would remove listeners; when the list
        is complete, all TenantGateways are enqueued."""
        return any(not kind.synced and not kind.unavailable_reason for kind in self._stores.kinds.all)

    def _required_kinds(self) -> Iterable[WatchedKind]:
        """Kinds that planning requires. TLSRoutes are among them, because one may own a hostname that an
        HTTPRoute claims, unless the cluster does not serve the kind."""
        kinds = self._stores.kinds
        return (kinds.gateways, kinds.httproutes, *(() if kinds.tlsroutes.not_served else (kinds.tlsroutes,)))

    async def _reconcile_parsed(self, obj: Object, parsed: ParsedTenantGateway, errors: CollectedErrors) -> None:
        gateway, stores = parsed.gateway, self._stores
        unavailable = [each.unavailable_reason for each in self._required_kinds() if not each.synced]
        planned = EMPTY_PLAN
        if parsed.problem:
            errors.add(parsed.problem)
        elif unavailable:
            for reason in unavailable:
                errors.add(reason)
        else:
            planned = plan(
                gateway,
                stores.namespaces.inheriting(gateway.key.namespace),
                stores.routes.referring_to(gateway.key),
                current=self._ensurer.observed_gateway(gateway),
            )
            await self._ensurer.ensure(gateway, planned, errors)
            await self._route_status.write(gateway.key, rejections_by_route(planned), errors)
        if not errors.transient:
            # after a transient error the objects do not match the plan yet, and the retry comes soon
            await self._status.write(obj, self._result(parsed, planned, errors.messages, obj))

    def _result(
        self, parsed: ParsedTenantGateway, planned: Plan, messages: Sequence[str], obj: Object
    ) -> ReconcileResult:
        gateway, attachments = parsed.gateway, self._stores.attachments
        return ReconcileResult(
            gateway=gateway,
            plan=planned,
            current=self._ensurer.observed_gateway(gateway),
            certificates=self._ensurer.observed_certificates(gateway, planned),
            errors=(*messages, *attachments.errors(gateway.key, gateway.attached)),
            attached_elsewhere=attachments.attached_elsewhere(gateway.key, gateway.attached),
            previous=obj.get("status"),
        )
