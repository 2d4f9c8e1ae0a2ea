"""Index of routes by the Gateways that they refer to and by namespace, so that a change enqueues only what depends on
it (GW-19)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

from apiserver.meta.resource import Key, Object
from controller.runtime.workqueue import Enqueue
from controller.tenantgateway import parse
from controller.tenantgateway.consent.foreign_references import ForeignReferences
from controller.tenantgateway.consent.references import Reference, is_foreign, references
from controller.tenantgateway.index import NamespaceIndex, TenantGatewayIndex, enqueue_related
from controller.tenantgateway.model import ROUTE_KINDS, Route, RouteId, RouteKind, RouteNamespace
from controller.tenantgateway.names import redirect_name
from controller.tenantgateway.route_admission import admits_namespace, admits_plain_http
from registry.cluster.event_handlers import ProjectionStore
from registry.multimap import Multimap

EnqueueRoute = Callable[[RouteId], None]


@dataclass(frozen=True, slots=True)
class _RouteReferences:
    """The indexed part of a route: its references by Gateway, and the Gateways that our entries in its status name.

    `version` is the resourceVersion of redirects and of routes that have our entries, so that every change of these
    counts as a change; it is empty for all other routes. `foreign` are all of its references if one is to another
    namespace.
    """

    routes: Mapping[Key, Route]
    status_gateways: frozenset[Key]
    version: str
    foreign: frozenset[Reference] = frozenset()


_NO_REFERENCES = _RouteReferences({}, frozenset(), "")


class RouteIndex:
    """Routes of each kind by the Gateways that they refer to, and by those that our status entries name.

    A change of a route enqueues it, and the TenantGateways that it refers to and that admit its namespace; so does a
    change of the namespace's labels, for each of its routes. Routes that no Gateway admits cost no plan.
    """

    def __init__(
        self,
        *,
        tenantgateways: TenantGatewayIndex,
        namespaces: NamespaceIndex,
        enqueue: Enqueue,
        enqueue_route: EnqueueRoute,
    ) -> None:
        self._tenantgateways = tenantgateways
        self._namespaces = namespaces
        self._enqueue = enqueue
        self._enqueue_route = enqueue_route
        self._routes: dict[Key, dict[str, dict[RouteId, Route]]] = {}
        self._in_namespace: dict[str, dict[RouteId, _RouteReferences]] = {}
        self._with_status: Multimap[Key, RouteId] = Multimap()
        self.foreign = ForeignReferences()
        self.handlers: Mapping[RouteKind, ProjectionStore[_RouteReferences]] = {
            kind: ProjectionStore(project=partial(_route_references, kind=kind), on_change=partial(self._changed, kind))
            for kind in ROUTE_KINDS
        }
        namespaces.subscribe(self._on_labels)

    def namespaces_referring_to(self, gateway: Key) -> Collection[str]:
        """The namespaces that have routes which refer to a Gateway."""
        return self._routes.get(gateway, {}).keys()

    def referring_to(self, gateway: Key, namespace: str) -> Collection[Route]:
        """The routes of a namespace that refer to a Gateway, as seen by it."""
        return self._routes.get(gateway, {}).get(namespace, {}).values()

    def concerned_with(self, gateway: Key) -> Iterator[RouteId]:
        """All routes that refer to a Gateway, or whose status has an entry of ours about it; some of them twice."""
        for routes in tuple(self._routes.get(gateway, {}).values()):
            yield from tuple(routes)
        yield from self._with_status[gateway]

    def with_status_of(self, gateway: Key) -> Collection[RouteId]:
        """The routes with a status entry of this controller about a Gateway."""
        return self._with_status[gateway]

    def __iter__(self) -> Iterator[RouteId]:
        """All routes that refer to a Gateway, or whose status has an entry of ours."""
        for kind, handler in self.handlers.items():
            for key, _ in handler.items():
                yield RouteId(key.namespace, key.name, kind)

    def _changed(
        self, kind: RouteKind, key: Key, before: _RouteReferences | None, now: _RouteReferences | None
    ) -> None:
        route = RouteId(key.namespace, key.name, kind)
        old, new = before or _NO_REFERENCES, now or _NO_REFERENCES
        self._update_routes(route, old, new)
        if old.foreign != new.foreign:
            self.foreign.update(route, new.foreign)
        for gateway in old.status_gateways - new.status_gateways:
            self._with_status.discard(gateway, route)
        for gateway in new.status_gateways - old.status_gateways:
            self._with_status.add(gateway, route)
        for gateway in old.routes.keys() | new.routes.keys():
            if old.routes.get(gateway) != new.routes.get(gateway):
                self._enqueue_admitting(gateway, self._namespaces.labels(key.namespace))
        self._enqueue_route(route)
        if kind == "HTTPRoute" and key.name.endswith(redirect_name("")):
            enqueue_related(self._tenantgateways, self._enqueue, key)

    def _update_routes(self, route: RouteId, old: _RouteReferences, new: _RouteReferences) -> None:
        for gateway in old.routes.keys() - new.routes.keys():
            _drop(self._routes[gateway], route)
            if not self._routes[gateway]:
                del self._routes[gateway]
        for gateway, reference in new.routes.items():
            self._routes.setdefault(gateway, {}).setdefault(route.namespace, {})[route] = reference
        if new.routes:
            self._in_namespace.setdefault(route.namespace, {})[route] = new
        elif old.routes:
            _drop(self._in_namespace, route)

    def _on_labels(self, before: RouteNamespace, now: RouteNamespace) -> None:
        routes = self._in_namespace.get(now.name, {})
        for gateway in {gateway for each in routes.values() for gateway in each.routes}:
            self._enqueue_admitting(gateway, before, now)
        for route in routes:
            self._enqueue_route(route)

    def _enqueue_admitting(self, gateway: Key, *namespaces: RouteNamespace) -> None:
        parsed = self._tenantgateways.parsed(gateway)
        if parsed is None or parsed.gateway.terminating:
            return
        if any(admits_namespace(parsed.gateway, each) or admits_plain_http(parsed.gateway, each.name)
               for each in namespaces):  # fmt: skip
            self._enqueue(gateway)


class GatewaysOfRoutes:
    """Enqueues the routes that refer to a Gateway when it is created or deleted, or when a TenantGateway adopts it."""

    def __init__(self, *, routes: RouteIndex, enqueue_route: EnqueueRoute) -> None:
        self._routes = routes
        self._enqueue_route = enqueue_route
        self.handler = ProjectionStore[bool](project=parse.is_of_tenantgateway, on_change=self._changed)

    def _changed(self, key: Key, before: bool | None, now: bool | None) -> None:
        for route in self._routes.concerned_with(key):
            self._enqueue_route(route)


def _drop(routes: dict[str, dict[RouteId, Route]] | dict[str, dict[RouteId, _RouteReferences]], route: RouteId) -> None:
    del routes[route.namespace][route]
    if not routes[route.namespace]:
        del routes[route.namespace]


def _route_references(obj: Object, *, kind: RouteKind) -> _RouteReferences | None:
    metadata = obj["metadata"]
    status_gateways = frozenset(parse.gateways_in_status(obj))
    follow_every_change = status_gateways or metadata["name"].endswith(redirect_name(""))
    version = str(metadata["resourceVersion"]) if follow_every_change else ""
    referred = frozenset(references(obj))
    foreign = referred if any(is_foreign(each, metadata["namespace"]) for each in referred) else frozenset[Reference]()
    found = _RouteReferences(parse.routes_by_gateway(obj, kind), status_gateways, version, foreign)
    return found if found.routes or follow_every_change else None
