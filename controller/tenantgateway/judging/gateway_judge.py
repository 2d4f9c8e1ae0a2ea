"""Decides on the parentRefs of routes that refer to Gateways: what their status tells."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from apiserver.meta.resource import Key
from controller.runtime.conditions import Finding
from controller.tenantgateway import parse
from controller.tenantgateway.hostname_ownership import binds_plain_http
from controller.tenantgateway.index import NamespaceIndex, TenantGatewayIndex
from controller.tenantgateway.model import ParentRef, ParentRefVerdict, RouteId
from controller.tenantgateway.route_admission import reject_parent
from controller.tenantgateway.route_index import RouteIndex
from controller.tenantgateway.route_status import accept, orphan, reject
from controller.tenantgateway.route_verdicts import RouteVerdicts
from controller.tenantgateway.watched_kinds import WatchedKinds


class GatewayJudge:
    """Judges by the labels of namespaces as they are now, and by the last plan of each Gateway."""

    def __init__(
        self,
        *,
        kinds: WatchedKinds,
        routes: RouteIndex,
        namespaces: NamespaceIndex,
        tenantgateways: TenantGatewayIndex,
        verdicts: RouteVerdicts,
        may_own: Callable[[str], bool],
        grpc_routes: Callable[[], bool],
    ) -> None:
        """`may_own` decides in which namespaces TenantGateways are served, `grpc_routes` whether listeners admit
        GRPCRoutes."""
        self._kinds = kinds
        self._routes = routes
        self._namespaces = namespaces
        self._tenantgateways = tenantgateways
        self._verdicts = verdicts
        self._may_own = may_own
        self._grpc_routes = grpc_routes

    def is_undecided(self, route: RouteId, parent: Mapping[str, Any]) -> bool:
        """True if the parentRef is about a Gateway of ours, or one that may become ours."""
        gateway = parse.parent_gateway(parent, route.namespace)
        return gateway is not None and not self._is_foreign(gateway)

    def judge(
        self, route: RouteId, parent: Mapping[str, Any], hostnames: Sequence[str], resolved: Finding | None
    ) -> ParentRefVerdict | None:
        """The verdict on a parentRef; None if it is undecided, or not ours. `resolved` is the condition ResolvedRefs of
        those that count."""
        gateway = parse.parent_gateway(parent, route.namespace)
        return self._judge_parent(route, parent, gateway, hostnames, resolved) if gateway is not None else None

    def _judge_parent(
        self,
        route: RouteId,
        parent: Mapping[str, Any],
        gateway: Key,
        hostnames: Sequence[str],
        resolved: Finding | None,
    ) -> ParentRefVerdict | None:
        parsed, reference = self._tenantgateways.parsed(gateway), parse.parent_ref(parent)
        if parsed is None or parsed.gateway.terminating:
            return orphan(parent, route.namespace) if self._is_orphan(gateway, route, reference) else None
        planned = self._verdicts.get(gateway)
        if planned is None:
            return None
        if planned.refusal is not None:
            return reject(parent, planned.refusal)
        if not self._namespaces.is_known(route.namespace):
            # a route that is created right after its namespace must not be told that this has no label
            return None
        namespace = self._namespaces.labels(route.namespace)
        grpc = self._grpc_routes()
        if rejection := reject_parent(parsed.gateway, reference, route.kind, hostnames, namespace, grpc_routes=grpc):
            return reject(parent, rejection)
        if binds_plain_http(reference):
            return replace(accept(parent), references=resolved)
        if route not in planned.admitted:
            # the next plan decides: the labels of the namespace have changed since the last one
            return None
        rejected = planned.rejections.get(route)
        verdict = reject(parent, rejected) if rejected is not None else accept(parent)
        return replace(verdict, references=resolved)

    def _is_orphan(self, gateway: Key, route: RouteId, reference: ParentRef) -> bool:
        """True if there is no such Gateway, and it was ours or could only be: a namespace that may own TenantGateways,
        of a tenant or by the settings, has no others, but it may have ListenerSets of other Gateways."""
        if not self._kinds.gateways.synced or self._is_foreign(gateway):
            return False
        can_only_be_ours = self._may_own(gateway.namespace) and not reference.listener_set
        return can_only_be_ours or route in self._routes.with_status_of(gateway)

    def _is_foreign(self, gateway: Key) -> bool:
        """True if the Gateway exists and no TenantGateway has ever owned it."""
        if self._tenantgateways.is_active(gateway):
            return False
        found = self._kinds.gateways.get(gateway)
        return found is not None and not parse.is_of_tenantgateway(found)
