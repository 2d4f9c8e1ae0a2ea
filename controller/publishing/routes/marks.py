"""The marks of the routes that we write, and those of Helm, by which a chart takes a route over. Pure.

There is no ownerReference: a route is in another namespace than everything that could own it.
"""

from __future__ import annotations

from datetime import UTC, datetime
from enum import Enum

from apiserver.meta.resource import Object
from controller.publishing.services import PlatformService
from controller.tenant.helm_ownership import MANAGED_BY_LABEL, OURS, ObjectManager, object_manager
from controller.tenantgateway.parse import mapping, string
from registry.names import RELEASE_NAME_ANNOTATION, RELEASE_NAMESPACE_ANNOTATION

PLATFORM_ROUTE_LABEL = "apps.cozystack.io/platform-route"
UNNEEDED_SINCE_ANNOTATION = "apps.cozystack.io/unneeded-since"
FLUX_RELEASE_LABEL = "helm.toolkit.fluxcd.io/name"
"""Flux puts it on every object that it installs."""
_TIME = "%Y-%m-%dT%H:%M:%SZ"


class RouteOwner(Enum):
    """OFFERED is a route of ours with Helm's marks, which no chart has taken over yet."""

    OURS = "ours"
    OFFERED = "offered"
    HELM = "Helm"
    OTHER = "another client"

    @property
    def is_ours(self) -> bool:
        return self in (RouteOwner.OURS, RouteOwner.OFFERED)


def route_owner(route: Object) -> RouteOwner:
    labels = mapping(route["metadata"].get("labels"))
    manager = object_manager(route)
    if manager is ObjectManager.HELM:
        offered = PLATFORM_ROUTE_LABEL in labels and FLUX_RELEASE_LABEL not in labels
        return RouteOwner.OFFERED if offered else RouteOwner.HELM
    if manager is ObjectManager.OURS and PLATFORM_ROUTE_LABEL in labels:
        return RouteOwner.OURS
    return RouteOwner.OTHER


def our_marks(service: PlatformService) -> Object:
    """The labels and annotations of a route that is needed."""
    return {
        "labels": {MANAGED_BY_LABEL: OURS, PLATFORM_ROUTE_LABEL: service.name},
        "annotations": {
            RELEASE_NAME_ANNOTATION: None,
            RELEASE_NAMESPACE_ANNOTATION: None,
            UNNEEDED_SINCE_ANNOTATION: None,
        },
    }


def offered_marks(service: PlatformService) -> Object:
    """Helm adopts an object with these marks of its release."""
    return {
        "labels": {MANAGED_BY_LABEL: "Helm"},
        "annotations": {
            RELEASE_NAME_ANNOTATION: service.release.name,
            RELEASE_NAMESPACE_ANNOTATION: service.release.namespace,
        },
    }


def unneeded_since(route: Object) -> float | None:
    """The time since the epoch, in seconds, at which the route ceased to be needed; None if it is needed."""
    text = string(mapping(route["metadata"].get("annotations")), UNNEEDED_SINCE_ANNOTATION)
    try:
        return datetime.strptime(text, _TIME).replace(tzinfo=UTC).timestamp()
    except ValueError:
        return None


def unneeded_mark(now: float) -> Object:
    return {UNNEEDED_SINCE_ANNOTATION: datetime.fromtimestamp(now, UTC).strftime(_TIME)}
