"""Writes the routes of the platform's services, and deletes those that are no longer needed."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from apiserver.meta.errors import StatusError
from apiserver.meta.resource import Object
from controller.publishing.routes.decision import Moment, RouteDecision, decide
from controller.publishing.routes.marks import route_owner
from controller.publishing.services import SERVICES, PlatformService
from controller.publishing.verdicts import PublishingFacts
from controller.runtime.apply import ClusterWriter
from controller.tenantgateway.model import RouteKind
from controller.tenantgateway.parse import route_id
from registry.cluster.event_handlers import NoOpEventHandler
from registry.cluster.interface import ClusterClient, ClusterResource, is_terminating

_logger = logging.getLogger(__name__)
_BY_ROUTE = {each.route_id: each.name for each in SERVICES.values()}


class RouteListener(NoOpEventHandler):
    """Calls back with the name of each service whose route may have changed."""

    def __init__(self, kind: RouteKind, on_change: Callable[[str], None]) -> None:
        self._kind = kind
        self._on_change = on_change

    async def replace(self, items: Sequence[Object], rv: int) -> None:
        for service in SERVICES.values():
            if service.kind == self._kind:
                self._on_change(service.name)

    def apply(self, type: str, obj: Object, rv: int) -> None:
        if (name := _BY_ROUTE.get(route_id(obj, self._kind))) is not None:
            self._on_change(name)


class _OurRoutes:
    """An Owner of the routes with our marks."""

    def refusal(self, current: Object) -> str:
        owner = route_owner(current)
        metadata = current["metadata"]
        if owner.is_ours:
            return ""
        return f"{current.get('kind', 'route')} {metadata['namespace']}/{metadata['name']} belongs to {owner.value}"


class PlatformRouteReconciler:
    """Reconciles services by name. A route is read from the cluster each time: there are seven, and informers store
    only parts of them."""

    def __init__(
        self,
        *,
        writer: ClusterWriter,
        cluster: ClusterClient,
        facts: Callable[[], PublishingFacts],
        resource: Callable[[RouteKind], ClusterResource | None],
        moment: Callable[[], Moment],
        add_after: Callable[[str, float], None],
    ) -> None:
        """`resource` returns the served version of a kind; None if there is none."""
        self._writer = writer
        self._cluster = cluster
        self._facts = facts
        self._resource = resource
        self._moment = moment
        self._add_after = add_after

    async def reconcile(self, key: str) -> None:
        service = SERVICES[key]
        resource = self._resource(service.kind)
        if resource is None:
            return
        current = await self._read(resource, service)
        if current is not None and is_terminating(current):
            return
        found = decide(service, self._facts(), current, self._moment())
        await self._act(resource, current, found)
        if found.again is not None:
            self._add_after(key, found.again)

    async def _act(self, resource: ClusterResource, current: Object | None, found: RouteDecision) -> None:
        if found.delete and current is not None:
            metadata = current["metadata"]
            _logger.info("%s %s/%s is no longer needed", resource.kind, metadata["namespace"], metadata["name"])
            await self._writer.delete(resource, current)
        elif found.desired is not None:
            desired = found.desired
            await self._writer.ensure(resource, lambda _: desired, observed=current, owner=_OurRoutes())

    async def _read(self, resource: ClusterResource, service: PlatformService) -> Object | None:
        try:
            return await self._cluster.get(resource, service.namespace, service.route)
        except StatusError as e:
            if e.code != 404:
                raise
            return None
