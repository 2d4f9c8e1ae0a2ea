"""The existing Services, so that a route is told if one that it refers to is missing."""

from __future__ import annotations

from collections.abc import Callable

from apiserver.meta.resource import Key, Object
from controller.tenantgateway.consent.foreign_references import ForeignReferences
from controller.tenantgateway.consent.references import CORE, Reference
from controller.tenantgateway.model import RouteId
from registry.cluster.event_handlers import ProjectionStore

SERVICE = "Service"


class ReferredServices:
    """The names of all Services; one that is created or deleted enqueues the routes that refer to it."""

    def __init__(self, *, routes: ForeignReferences, enqueue_route: Callable[[RouteId], None]) -> None:
        self._routes = routes
        self._enqueue_route = enqueue_route
        self.handler = ProjectionStore[bool](project=_exists, on_change=self._changed)

    def exists(self, reference: Reference) -> bool:
        """False also for objects of other kinds, which are not known."""
        is_service = (reference.group, reference.kind) == (CORE, SERVICE)
        return is_service and self.handler.get(Key(reference.namespace, reference.name)) is not None

    def _changed(self, key: Key, before: bool | None, now: bool | None) -> None:
        for route in self._routes.referring_to(Reference(CORE, SERVICE, key.namespace, key.name)):
            self._enqueue_route(route)


def _exists(service: Object) -> bool:
    return True
