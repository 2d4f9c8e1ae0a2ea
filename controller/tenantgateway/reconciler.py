"""Brings the host to what a TenantGateway asks for: observe, judge and plan, make, tell the routes, tell the status."""

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
    """Where what is observed comes from."""

    tenantgateways: TenantGatewayIndex
    routes: RouteIndex
    namespaces: NamespaceIndex
    kinds: WatchedKinds
    attachments: AttachmentReconciler


class TenantGatewayReconciler:
    """The keys are those of TenantGatewayIndex, and of Gateways that routes say were judged for one that is gone."""

    def __init__(
        self, *, stores: Stores, ensurer: ObjectEnsurer, route_status: RouteStatusWriter, status: StatusWriter
    ) -> None:
        self._stores = stores
        self._ensurer = ensurer
        self._route_status = route_status
        self._status = status

    def initial_keys(self) -> Iterable[Key]:
        """The keys to begin with."""
        return dict.fromkeys((*self._stores.tenantgateways, *self._stores.routes.gateways_with_status()))

    async def reconcile(self, key: Key) -> None:
        """Raises one of the host's refusals, once everything else is done."""
        errors = CollectedErrors()
        obj, parsed = self._stores.tenantgateways.get(key), self._stores.tenantgateways.parsed(key)
        if obj is None or parsed is None or parsed.gateway.terminating:
            # what was made from it is the garbage collector's
            await self._route_status.withdraw(key, errors)
        elif not self._is_catching_up():
            await self._reconcile_parsed(obj, parsed, errors)
        errors.raise_most_retryable()

    def _is_catching_up(self) -> bool:
        """Whether a kind has just come whose objects are not all stores: without them listeners would be taken away.
        Once they are, every TenantGateway is looked at again."""
        return any(not kind.synced and not kind.unavailable_reason for kind in self._stores.kinds.all)

    def _required_kinds(self) -> Iterable[WatchedKind]:
        """A TLSRoute may own a hostname that an HTTPRoute asks for: without them nobody knows whose it is. A host that
        has no such kind has no such routes."""
        kinds = self._stores.kinds
        return (kinds.gateways, kinds.httproutes, *(() if kinds.tlsroutes.not_served else (kinds.tlsroutes,)))

    async def _reconcile_parsed(self, obj: Object, parsed: ParsedTenantGateway, errors: CollectedErrors) -> None:
        gateway, stores = parsed.gateway, self._stores
        lacking = [each.unavailable_reason for each in self._required_kinds() if not each.synced]
        planned = EMPTY_PLAN
        if parsed.problem:
            errors.add(parsed.problem)
        elif lacking:
            for sentence in lacking:
                errors.add(sentence)
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
            # otherwise what is there is not yet what was just decided, and the next try is soon
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
