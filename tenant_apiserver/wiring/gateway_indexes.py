"""Builds the indexes of what the controllers of TenantGateways watch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from apiserver.meta.resource import Key
from controller.runtime.workqueue import Enqueue
from controller.tenantgateway.consent.reference_grants import Permission, ReferenceGrants
from controller.tenantgateway.consent.referred_services import ReferredServices
from controller.tenantgateway.delegation.index import DelegationIndex
from controller.tenantgateway.index import EnqueueNamespace, NamespaceIndex, OwnedObjectIndex, TenantGatewayIndex
from controller.tenantgateway.listenersets.existing_sets import may_grow
from controller.tenantgateway.listenersets.listener_places import ListenerPlaces
from controller.tenantgateway.model import RouteId
from controller.tenantgateway.route_index import EnqueueRoute, GatewaysOfRoutes, RouteIndex
from controller.tenantgateway.watched_kinds import WatchedKinds
from registry.cluster.event_handlers import ProjectionStore
from registry.cluster.informer import Informer


class GatewayIndexes:
    """The indexes of watched objects, which enqueue the TenantGateways, Namespaces and routes that a change
    concerns."""

    def __init__(
        self,
        *,
        enqueue: Enqueue,
        enqueue_namespace: EnqueueNamespace,
        enqueue_route: EnqueueRoute,
        enqueue_delegation: EnqueueRoute,
        grpc_routes: Callable[[], bool],
    ) -> None:
        self.tenantgateways = TenantGatewayIndex(enqueue=enqueue, enqueue_namespace=enqueue_namespace)
        self.namespaces = NamespaceIndex(
            tenantgateways=self.tenantgateways, enqueue=enqueue, enqueue_namespace=enqueue_namespace
        )
        self.routes = RouteIndex(
            tenantgateways=self.tenantgateways,
            namespaces=self.namespaces,
            enqueue=enqueue,
            enqueue_route=enqueue_route,
        )
        self.grants = ReferenceGrants(self._on_grant)
        self.services = ReferredServices(routes=self.routes.foreign, enqueue_route=enqueue_route)
        self.delegations = DelegationIndex(
            tenantgateways=self.tenantgateways,
            namespaces=self.namespaces,
            grants=self.grants,
            enqueue=enqueue_delegation,
            enqueue_status=enqueue_route,
            grpc_routes=grpc_routes,
        )
        self.places = ListenerPlaces(tenantgateways=self.tenantgateways, on_change=self.delegations.on_listeners)
        self.gateways_of_routes = GatewaysOfRoutes(routes=self.routes, enqueue_route=enqueue_route)
        self.gateways, self.issuers, self.certificates, self.listener_sets = (
            OwnedObjectIndex(tenantgateways=self.tenantgateways, enqueue=enqueue) for _ in range(4)
        )
        self.classes = ProjectionStore[bool](project=partial(may_grow, "auto"), on_change=self._on_class)

        self._enqueue, self._enqueue_route = enqueue, enqueue_route

    def routes_with_status(self) -> Iterator[RouteId]:
        """All routes whose status this controller writes; some of them twice."""
        yield from self.routes
        yield from self.delegations

    def concerned_with(self, gateway: Key) -> Iterator[RouteId]:
        """All routes whose status depends on the plan of a Gateway; some of them twice."""
        yield from self.routes.concerned_with(gateway)
        yield from self.delegations.graph.roots_of_gateway(gateway)

    def on_verdict(self, route: RouteId) -> None:
        """The verdict on a route has changed; that on a flat route is also told where its rules come from."""
        for each in (route, *self.delegations.concerned_by_flat(route)):
            self._enqueue_route(each)

    def _on_grant(self, namespace: str, permission: Permission) -> None:
        self.delegations.on_grant(namespace, permission)
        for route in self.routes.foreign.concerned_by(namespace, permission):
            self._enqueue_route(route)
        for key in self.tenantgateways.in_namespace(permission.referrer.namespace):
            parsed = self.tenantgateways.parsed(key)
            if parsed is not None and parsed.gateway.wildcard_secret_namespace == namespace:
                self._enqueue(key)

    def _on_class(self, key: Key, before: bool | None, now: bool | None) -> None:
        for each in self.tenantgateways:
            parsed = self.tenantgateways.parsed(each)
            if bool(before) != bool(now) and parsed is not None and parsed.gateway.class_name == key.name:
                self._enqueue(each)

    def on_budget(self, namespace: str) -> None:
        """The quota of certificates of the Tenant with this namespace has changed."""
        for key in self.tenantgateways.in_namespace(self.namespaces.labels(namespace).gateway):
            self._enqueue(key)

    def add_handlers(self, tenantgateways: Informer, namespaces: Informer, kinds: WatchedKinds) -> None:
        tenantgateways.add_handler(self.tenantgateways.handler)
        tenantgateways.add_handler(self.delegations.tenantgateways)
        namespaces.add_handler(self.namespaces.handler, late=True)
        for kind, watched in kinds.of_routes.items():
            watched.add_handler(self.routes.handlers[kind])
            watched.add_handler(self.delegations.handlers[kind])
        kinds.gateways.add_handler(self.gateways.handler)
        kinds.gateways.add_handler(self.gateways_of_routes.handler)
        kinds.grants.add_handler(self.grants.handler)
        kinds.listener_sets.add_handler(self.listener_sets.handler)
        kinds.gateways.add_handler(self.places.gateways)
        kinds.listener_sets.add_handler(self.places.listener_sets)
        kinds.gateway_classes.add_handler(self.classes)
        kinds.issuers.add_handler(self.issuers.handler)
        kinds.certificates.add_handler(self.certificates.handler)
