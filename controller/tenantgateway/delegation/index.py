"""Index of delegation: routes, the flat routes written for them, and what a change of either concerns."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import partial
from typing import NamedTuple

from apiserver.meta.resource import Key, Object
from controller.tenantgateway.consent.reference_grants import Permission, ReferenceGrants
from controller.tenantgateway.delegation.edges import reference, referrer
from controller.tenantgateway.delegation.flat_routes import FlatRouteId, flat_name, parse_flat_route, vertex_label
from controller.tenantgateway.delegation.graph import DelegationGraph
from controller.tenantgateway.delegation.model import Participant
from controller.tenantgateway.delegation.participants import lacks_group, participant
from controller.tenantgateway.delegation.roots import reject_root
from controller.tenantgateway.hostname_ownership import WILDCARD
from controller.tenantgateway.hostname_validation import HostnameRejection
from controller.tenantgateway.index import NamespaceIndex, TenantGatewayIndex
from controller.tenantgateway.model import ROUTE_KINDS, RouteId, RouteKind, RouteNamespace
from controller.tenantgateway.names import GATEWAY_API_GROUP
from controller.tenantgateway.parse import mapping, own_status_entries, parent_gateway, parent_refs
from registry.cluster.event_handlers import ProjectionStore
from registry.multimap import Multimap

EnqueueRoute = Callable[[RouteId], None]

_Content = tuple[RouteKind, str]
"""The kind of a route, and the VERTEX_LABEL of the flat routes with its rules."""


class _Observed(NamedTuple):
    """The indexed part of a route. `version` is the resourceVersion of flat routes, and of routes whose status has an
    entry of ours about a parent of delegation, so that every change of these counts. The status `is_ours` to write,
    even of a route that takes no part, if it names a TenantGateway without its group."""

    participant: Participant | None
    flat: FlatRouteId | None
    version: str
    is_ours: bool = False


class DelegationIndex:
    """The graph of all delegations. A change enqueues the routes whose flat routes or status may change with it."""

    def __init__(
        self,
        *,
        tenantgateways: TenantGatewayIndex,
        namespaces: NamespaceIndex,
        grants: ReferenceGrants,
        enqueue: EnqueueRoute,
        enqueue_status: EnqueueRoute,
        grpc_routes: Callable[[], bool],
    ) -> None:
        """`grpc_routes` tells whether Gateways admit GRPCRoutes."""
        self._tenantgateways = tenantgateways
        self._namespaces = namespaces
        self._enqueue = enqueue
        self._enqueue_status = enqueue_status
        self._grpc_routes = grpc_routes
        self._flat_by_content: Multimap[_Content, FlatRouteId] = Multimap()
        self._flat_by_root: Multimap[RouteId, FlatRouteId] = Multimap()
        self._contents: dict[_Content, RouteId] = {}
        self.graph = DelegationGraph(
            permits=lambda parent, vertex: grants.permit(referrer(parent), reference(vertex)),
            admits=lambda root: all(not self.reject_root(root, each) for each in root.gateways),
        )
        self.handlers: Mapping[RouteKind, ProjectionStore[_Observed]] = {
            kind: ProjectionStore(project=partial(_observe, kind=kind), on_change=partial(self._changed, kind))
            for kind in ROUTE_KINDS
        }
        self.tenantgateways = ProjectionStore[object](project=_deciding_fields, on_change=self._on_tenantgateway)
        namespaces.subscribe(self._on_labels)

    def __iter__(self) -> Iterator[RouteId]:
        """All roots, vertices and flat routes, and the routes with a status entry of ours about one."""
        for kind, handler in self.handlers.items():
            for key, _ in handler.items():
                yield RouteId(key.namespace, key.name, kind)

    def reject_root(self, root: Participant, tenantgateway: Key) -> HostnameRejection | None:
        """The reason why a TenantGateway does not serve a root; None if it does."""
        parsed = self._tenantgateways.parsed(tenantgateway)
        gateway = parsed.gateway if parsed is not None and not parsed.gateway.terminating else None
        namespace = self._namespaces.labels(root.id.namespace)
        return reject_root(root, tenantgateway, gateway, namespace, grpc_routes=self._grpc_routes())

    def flat_routes_of(self, route: RouteId) -> Collection[FlatRouteId]:
        """The existing flat routes with the rules of a route."""
        return self._flat_by_content[_content(route)]

    def flat_routes_below(self, root: RouteId) -> Collection[FlatRouteId]:
        """The existing flat routes of a root."""
        return self._flat_by_root[root]

    def flat_route(self, route: RouteId) -> FlatRouteId | None:
        """The route as a flat route; None if it is none."""
        found = self._observed(route)
        return found.flat if found is not None else None

    def is_wanted(self, flat: FlatRouteId) -> bool:
        """True if delegations ask for an existing flat route."""
        vertex = self._content_of(flat)
        if vertex is None:
            return False
        wanted = (each.root for each in self.graph.flat_routes(vertex))
        return any(flat_name(each.id, vertex) == flat.id.name and each.id == flat.root for each in wanted)

    def concerned_by_flat(self, route: RouteId) -> Iterable[RouteId]:
        """The routes whose status tells what becomes of a flat route; none if the route is no flat route."""
        flat = self.flat_route(route)
        if flat is None:
            return ()
        vertex = self._content_of(flat)
        return (flat.root,) if vertex is None else (flat.root, vertex)

    def on_grant(self, namespace: str, permission: Permission) -> None:
        """A permission of a namespace was granted or withdrawn."""
        kind = permission.referrer.kind
        if kind not in self.handlers or permission.referrer.group != GATEWAY_API_GROUP:
            return
        if (permission.group, permission.kind) == (GATEWAY_API_GROUP, kind):
            named = self.graph.named_in(namespace)
            self._touch(self.graph.concerned_by([each for each in named if permission.name in ("", each.name)]))
        elif (permission.group, permission.kind) == ("", "Service"):
            for each in self.graph.in_namespace(namespace):
                self._enqueue_status(each)

    def on_listeners(self, tenantgateway: Key, changed: frozenset[str]) -> None:
        """Listeners of a Gateway with these hostnames came, went or moved: flat routes name the object they are on."""
        is_any = any(each.startswith(WILDCARD) for each in changed)
        for root in self.graph.roots_of_gateway(tenantgateway):
            found = self.graph.get(root)
            if found is not None and (is_any or not changed.isdisjoint(found.hostnames)):
                for flat in self.flat_routes_below(root):
                    self._enqueue(self._content_of(flat) or flat.id)

    def _observed(self, route: RouteId) -> _Observed | None:
        return self.handlers[route.kind].get(Key(route.namespace, route.name)) if route.kind in self.handlers else None

    def _changed(self, kind: RouteKind, key: Key, before: _Observed | None, now: _Observed | None) -> None:
        route = RouteId(key.namespace, key.name, kind)
        old, new = (each.participant if each is not None else None for each in (before, now))
        if old != new:
            self._update_label(route, new)
            self._touch(self.graph.update(route, new))
        self._change_flat(before.flat if before is not None else None, now.flat if now is not None else None)
        self._enqueue_status(route)

    def _update_label(self, route: RouteId, now: Participant | None) -> None:
        if now is not None:
            self._contents[_content(route)] = route
        else:
            self._contents.pop(_content(route), None)

    def _content_of(self, flat: FlatRouteId) -> RouteId | None:
        return self._contents.get((flat.id.kind, flat.vertex))

    def _change_flat(self, before: FlatRouteId | None, now: FlatRouteId | None) -> None:
        if before is not None and before != now:
            self._flat_by_content.discard((before.id.kind, before.vertex), before)
            self._flat_by_root.discard(before.root, before)
        if now is not None and before != now:
            self._flat_by_content.add((now.id.kind, now.vertex), now)
            self._flat_by_root.add(now.root, now)
        for flat in filter(None, (before, now)):
            vertex = self._content_of(flat)
            self._enqueue(flat.id if vertex is None else vertex)
            self._enqueue(flat.id)
            for each in (flat.root, vertex):
                if each is not None:
                    self._enqueue_status(each)

    def _touch(self, routes: Iterable[RouteId]) -> None:
        for each in routes:
            self._enqueue(each)
            self._enqueue_status(each)

    def _on_labels(self, before: RouteNamespace, now: RouteNamespace) -> None:
        found = (self.graph.get(each) for each in self.graph.in_namespace(now.name))
        self._touch(self.graph.concerned_by([each.id for each in found if each is not None and each.gateways]))

    def _on_tenantgateway(self, key: Key, before: object, now: object) -> None:
        self._touch(self.graph.concerned_by(self.graph.roots_of_gateway(key)))


def _content(route: RouteId) -> _Content:
    return route.kind, vertex_label(route)


def _observe(obj: Object, *, kind: RouteKind) -> _Observed | None:
    found, flat = participant(obj, kind), parse_flat_route(obj, kind)
    namespace = obj["metadata"]["namespace"]
    told = any(parent_gateway(mapping(each.get("parentRef")), namespace) is None for each in own_status_entries(obj))
    is_ours = any(map(lacks_group, parent_refs(obj)))
    if found is None and flat is None and not told and not is_ours:
        return None
    version = str(obj["metadata"]["resourceVersion"]) if flat is not None or told else ""
    return _Observed(found, flat, version, is_ours)


def _deciding_fields(tenantgateway: Object) -> object:
    """The fields of a TenantGateway that decide which roots it serves."""
    spec, metadata = mapping(tenantgateway.get("spec")), tenantgateway["metadata"]
    return spec.get("apex"), spec.get("tlsPassthroughServices"), "deletionTimestamp" in metadata, metadata["uid"]
