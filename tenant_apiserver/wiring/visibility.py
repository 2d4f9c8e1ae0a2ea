"""Builds the visibility sources of Tenants and TenantNamespaces, from RBAC objects or SubjectAccessReviews."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache, partial

from apiserver.authorization.authorizer import Authorizer
from apiserver.meta.resource import Key, Object
from apiserver.storage.visibility import VisibilitySource
from controller.tenant.helm_ownership import MANAGED_BY_LABEL
from registry.cluster.informer import Informer
from registry.cluster.interface import CLUSTERROLEBINDINGS, CLUSTERROLES, ROLEBINDINGS, ROLES, ClusterClient
from registry.names import GROUP
from registry.visibility.by_access_review import AccessReviewVisibility
from registry.visibility.by_rbac import MARGIN_SECONDS, RbacVisibility
from registry.visibility.rbac_feed import RbacFeed
from registry.visibility.rbac_history import RbacHistory
from registry.visibility.visible_objects import NamedObjects, VisibilityCriterion

TENANTS = VisibilityCriterion(GROUP, "tenants", NamedObjects.OBJECTS)
ALL_TENANTS = VisibilityCriterion(GROUP, "tenants")
NAMESPACES = VisibilityCriterion("", "namespaces", NamedObjects.NAMESPACES)
_METADATA = ("name", "namespace", "resourceVersion", "ownerReferences")


@dataclass(frozen=True, kw_only=True)
class VisibilitySources:
    """Tenants are visible to users who may `get` them. A namespace is visible to users who may `get` all Tenants in it,
    or the Namespace."""

    tenants: VisibilitySource
    namespaces: VisibilitySource
    resources: Callable[[str, str], VisibilitySource]
    """Returns the source of a group's resource with this plural name: its objects are visible to users who may `get`
    them."""
    informers: tuple[Informer, ...]
    first_version: Callable[[], int]
    """Returns the version from which on the visibility of users is known, 0 before it is known. Watches resume from it
    on, so the objects that are listed must be of this version at least."""


@dataclass(frozen=True, kw_only=True)
class RbacSources:
    """The cluster's RBAC objects, and the sources that decide by them. The caller runs the informers."""

    history: RbacHistory
    synced: asyncio.Event
    informers: tuple[Informer, ...]

    def first_version(self) -> int:
        """The version from which on the rights of users are known, 0 before they are known. It rises when old changes
        are forgotten."""
        return max(self.history.oldest_rv, *(each.first_version for each in self.informers))

    def new_source(
        self, criteria: Sequence[VisibilityCriterion], *, margin_seconds: float = MARGIN_SECONDS
    ) -> VisibilitySource:
        """A visible object meets one of the criteria. The history never forgets a source."""
        return RbacVisibility(self.history, criteria, synced=self.synced, margin_seconds=margin_seconds)


def rbac_sources(cluster: ClusterClient) -> RbacSources:
    history = RbacHistory()
    feed = RbacFeed(history)
    handlers = {
        ROLES: feed.roles,
        CLUSTERROLES: feed.cluster_roles,
        ROLEBINDINGS: feed.bindings,
        CLUSTERROLEBINDINGS: feed.cluster_bindings,
    }
    informers = []
    for resource, handler in handlers.items():
        informer = Informer(cluster, resource, store_objects=False, transform=_strip)
        informer.add_handler(handler)
        informers.append(informer)
    return RbacSources(history=history, synced=feed.synced, informers=tuple(informers))


def by_rbac(cluster: ClusterClient, *, alone: bool = False) -> VisibilitySources:
    """Decides from the cluster's RBAC objects, with informers that the caller runs. `alone`: no other process serves
    watches, from which clients could come."""
    return visibility_from(rbac_sources(cluster), margin_seconds=0.0 if alone else MARGIN_SECONDS)


def visibility_from(rbac: RbacSources, *, margin_seconds: float = MARGIN_SECONDS) -> VisibilitySources:
    """The sources of the resources that this project serves."""
    new_source = partial(rbac.new_source, margin_seconds=margin_seconds)
    return VisibilitySources(
        tenants=new_source([TENANTS]),
        namespaces=new_source([ALL_TENANTS, NAMESPACES]),
        # kinds come and go, and a source is never forgotten by the history
        resources=cache(lambda group, plural: new_source([VisibilityCriterion(group, plural, NamedObjects.OBJECTS)])),
        informers=rbac.informers,
        first_version=rbac.first_version,
    )


def by_reviews(
    authorizer: Authorizer,
    *,
    namespaces: Callable[[], Iterable[str]],
    own_tenants: Callable[[frozenset[str]], Iterable[Key]],
    version: Callable[[], int],
) -> VisibilitySources:
    """Decides by SubjectAccessReviews of the cluster: one for each namespace, and one for each of the `own_tenants` of
    the visible namespaces."""

    def source(*criteria: VisibilityCriterion) -> AccessReviewVisibility:
        return AccessReviewVisibility(authorizer, criteria, namespaces=namespaces, related=own_tenants, version=version)

    def of_resource(group: str, plural: str) -> AccessReviewVisibility:
        criteria = (VisibilityCriterion(group, plural),)
        return AccessReviewVisibility(authorizer, criteria, namespaces=namespaces, version=version)

    return VisibilitySources(
        tenants=source(TENANTS),
        namespaces=source(ALL_TENANTS, NAMESPACES),
        resources=cache(of_resource),
        informers=(),
        first_version=lambda: 0,
    )


def _strip(obj: Object) -> Object:
    """Removes all fields except those that RBAC depends on, to save memory, and those that name the owner and the
    manager of an object, because the controller of Tenants shares the informers of Roles and RoleBindings."""
    metadata = {name: value for name in _METADATA if (value := obj["metadata"].get(name))}
    if manager := (obj["metadata"].get("labels") or {}).get(MANAGED_BY_LABEL):
        metadata["labels"] = {MANAGED_BY_LABEL: manager}
    return {**{name: obj[name] for name in ("rules", "roleRef", "subjects") if name in obj}, "metadata": metadata}
