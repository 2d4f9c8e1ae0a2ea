"""Reconciles a TenantGateway: observe, plan, write the owned objects and its own status, pass on verdicts on routes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Protocol

from apiserver.meta.resource import Key, Object
from controller.tenantgateway.attachment_reconciler import AttachmentReconciler
from controller.tenantgateway.certificate_budget import CertificateBudgets
from controller.tenantgateway.collected_errors import CollectedErrors
from controller.tenantgateway.consent.reference_grants import ReferenceGrants, Referrer
from controller.tenantgateway.consent.references import CORE, Reference
from controller.tenantgateway.consent.resolved_refs import missing_grant
from controller.tenantgateway.delegation.ledger import render_delegations
from controller.tenantgateway.delegation.parts import DelegationParts
from controller.tenantgateway.ensure import ObjectEnsurer
from controller.tenantgateway.model import (
    HostnameOwnership,
    InheritingNamespace,
    Plan,
    RouteNamespace,
    TenantGateway,
)
from controller.tenantgateway.owners.owner_namespaces import describe_refusal, reject_routes
from controller.tenantgateway.owners.remaining_plan import remaining_plan
from controller.tenantgateway.parse import ParsedTenantGateway
from controller.tenantgateway.plan import plan
from controller.tenantgateway.route_admission import AdmittedRoute, admit, admits_namespace, admits_plain_http
from controller.tenantgateway.route_index import RouteIndex
from controller.tenantgateway.route_status import rejections_by_route
from controller.tenantgateway.route_status_reconciler import RouteStatusReconciler
from controller.tenantgateway.route_verdicts import GatewayVerdicts, RouteVerdicts
from controller.tenantgateway.status import ReconcileResult
from controller.tenantgateway.watched_kinds import WatchedKind, WatchedKinds

EMPTY_PLAN = Plan(listeners=(), certificates=(), ownership=HostnameOwnership())


class TenantGatewayStates(Protocol):
    """TenantGateways as they are stored, and parsed."""

    def get(self, key: Key) -> Object | None: ...

    def parsed(self, key: Key) -> ParsedTenantGateway | None: ...

    def __iter__(self) -> Iterator[Key]: ...


class NamespaceLabels(Protocol):
    """The labels of Namespaces that decide about Gateways."""

    def inheriting(self, owner: str) -> Sequence[InheritingNamespace]:
        """The Namespaces that use the Gateway of `owner`, sorted by name."""
        ...

    def labels(self, name: str) -> RouteNamespace:
        """The labels of a Namespace, which may not exist."""
        ...


class ResultWriter(Protocol):
    async def write(self, obj: Object, result: ReconcileResult) -> None:
        """Writes the status of the observed TenantGateway `obj`. Raises the cluster's StatusError."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Stores:
    """The observed state that a reconcile reads. `may_own` decides in which namespaces TenantGateways are served,
    `shared_hostnames` whether namespaces of the platform may share a hostname, `grpc_routes` whether listeners admit
    GRPCRoutes."""

    tenantgateways: TenantGatewayStates
    routes: RouteIndex
    namespaces: NamespaceLabels
    kinds: WatchedKinds
    attachments: AttachmentReconciler
    route_statuses: RouteStatusReconciler
    grants: ReferenceGrants
    budgets: CertificateBudgets
    delegations: DelegationParts
    may_own: Callable[[str], bool]
    shared_hostnames: Callable[[], bool]
    grpc_routes: Callable[[], bool]


class TenantGatewayReconciler:
    """Reconciles by the key of a TenantGateway, which may be deleted while routes still have status entries about
    it."""

    def __init__(
        self, *, stores: Stores, ensurer: ObjectEnsurer, verdicts: RouteVerdicts, status: ResultWriter
    ) -> None:
        """`verdicts` receives the verdicts of each plan on routes."""
        self._stores = stores
        self._ensurer = ensurer
        self._verdicts = verdicts
        self._status = status

    def initial_keys(self) -> Iterable[Key]:
        """The keys to reconcile at the start."""
        return iter(self._stores.tenantgateways)

    async def reconcile(self, key: Key) -> None:
        """Raises one of the cluster's errors, but only after all work that does not depend on the failed calls."""
        errors = CollectedErrors()
        obj, parsed = self._stores.tenantgateways.get(key), self._stores.tenantgateways.parsed(key)
        if obj is None or parsed is None or parsed.gateway.terminating:
            # the garbage collector deletes the owned objects
            self._verdicts.forget(key)
        elif self._is_syncing():
            return
        elif not self._stores.may_own(key.namespace):
            await self._leave_as_it_is(obj, parsed.gateway)
        else:
            await self._reconcile_parsed(obj, parsed, errors)
        errors.raise_most_retryable()

    def _is_syncing(self) -> bool:
        """True if the objects of a kind are still being listed. Reconciling now would remove listeners; when the list
        is complete, all TenantGateways are enqueued."""
        return any(not kind.synced and not kind.unavailable_reason for kind in self._stores.kinds.all)

    def _required_kinds(self) -> Iterable[WatchedKind]:
        """Kinds that planning requires. Those of all routes that listeners admit are among them, because one may own a
        hostname that an HTTPRoute claims, unless the cluster does not serve the kind."""
        kinds = self._stores.kinds
        others = (kinds.tlsroutes, *((kinds.grpcroutes,) if self._stores.grpc_routes() else ()))
        return (kinds.gateways, kinds.httproutes, *(each for each in others if not each.not_served))

    async def _reconcile_parsed(self, obj: Object, parsed: ParsedTenantGateway, errors: CollectedErrors) -> None:
        gateway, stores = parsed.gateway, self._stores
        unavailable = [each.unavailable_reason for each in self._required_kinds() if not each.synced]
        planned, refused_secret = EMPTY_PLAN, self._refuse_secret(gateway)
        if parsed.problem:
            errors.add(parsed.problem)
        elif unavailable:
            for reason in unavailable:
                errors.add(reason)
        else:
            admitted = self._admitted_routes(gateway)
            planned = plan(
                gateway,
                stores.namespaces.inheriting(gateway.key.namespace),
                [each.route for each in admitted],
                current=self._ensurer.observed_gateway(gateway),
                permitted=not refused_secret,
                budgets_of=cache(partial(stores.budgets.of, gateway.key.namespace)),
                shared_hostnames=stores.shared_hostnames(),
                sets=self._ensurer.observed_sets(gateway),
                is_issued=partial(self._ensurer.is_issued, gateway),
            )
            await self._ensurer.ensure(gateway, planned, errors)
            not_counted = {each.route.id: each.rejections for each in admitted if each.rejections}
            routes = frozenset(each.route.id for each in admitted)
            self._verdicts.record(gateway.key, GatewayVerdicts(routes, rejections_by_route(planned, not_counted)))
        if not errors.transient:
            # after a transient error the objects do not match the plan yet, and the retry comes soon
            await self._status.write(obj, self._result(parsed, planned, refused_secret, errors.messages, obj))

    async def _leave_as_it_is(self, obj: Object, gateway: TenantGateway) -> None:
        """Only the status is written: what an earlier version, or other settings, served must not stop by itself."""
        current = self._ensurer.observed_gateway(gateway)
        sets = self._ensurer.observed_sets(gateway)
        planned = remaining_plan(current, sets)
        if current is None:
            self._verdicts.record(gateway.key, GatewayVerdicts(refusal=reject_routes(gateway)))
        elif self._verdicts.get(gateway.key) is not None:
            self._verdicts.forget(gateway.key)
        result = ReconcileResult(
            gateway=gateway,
            plan=planned,
            current=current,
            sets=sets.by_name(),
            certificates=self._ensurer.observed_certificates(gateway, planned),
            refused_namespace=describe_refusal(gateway, exists=current is not None),
            previous=obj.get("status"),
        )
        await self._status.write(obj, result)

    def _admitted_routes(self, gateway: TenantGateway) -> Sequence[AdmittedRoute]:
        """The routes that count. Those of other namespaces are not looked at, however many there are."""
        routes, found, grpc = self._stores.routes, [], self._stores.grpc_routes()
        for name in routes.namespaces_referring_to(gateway.key):
            namespace = self._stores.namespaces.labels(name)
            if admits_namespace(gateway, namespace) or admits_plain_http(gateway, name):
                referring = routes.referring_to(gateway.key, name)
                found += [admit(gateway, each, namespace, grpc_routes=grpc) for each in referring]
        return [each for each in found if each is not None]

    def _refuse_secret(self, gateway: TenantGateway) -> str:
        """The reason why the Gateway may not use the wildcard Secret of another namespace; empty if it may."""
        if gateway.cert_mode != "existingSecret" or not gateway.wildcard_secret_namespace:
            return ""
        secret = Reference(CORE, "Secret", gateway.wildcard_secret_namespace, gateway.wildcard_secret)
        referrer = Referrer("Gateway", gateway.key.namespace)
        return "" if self._stores.grants.permit(referrer, secret) else missing_grant(referrer, secret)

    def _result(
        self, parsed: ParsedTenantGateway, planned: Plan, refused_secret: str, messages: Sequence[str], obj: Object
    ) -> ReconcileResult:
        gateway, attachments = parsed.gateway, self._stores.attachments
        route_statuses = self._stores.route_statuses.errors(gateway.key)
        sets = self._ensurer.observed_sets(gateway)
        return ReconcileResult(
            gateway=gateway,
            plan=planned,
            current=self._ensurer.observed_gateway(gateway),
            sets=sets.by_name(),
            sets_withheld=sets.withheld,
            certificates=self._ensurer.observed_certificates(gateway, planned),
            refused_secret=refused_secret,
            errors=(
                *messages,
                *route_statuses,
                *attachments.errors(gateway.key, gateway.attached),
                *self._stores.delegations.errors_of(gateway.key),
            ),
            delegations=render_delegations(self._stores.delegations.summary(gateway.key)),
            attached_elsewhere=attachments.attached_elsewhere(gateway.key, gateway.attached),
            heirs={each.namespace for each in self._stores.namespaces.inheriting(gateway.key.namespace)},
            previous=obj.get("status"),
        )
