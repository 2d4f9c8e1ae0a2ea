"""Who may see which tenants and tenant namespaces, put together: four informers -> record -> sights, or reviews."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from apiserver.authorization.authorizer import Authorizer
from apiserver.meta.resource import Object
from apiserver.storage.visibility import VisibilitySource
from registry.cluster.informer import Informer
from registry.cluster.interface import CLUSTERROLEBINDINGS, CLUSTERROLES, ROLEBINDINGS, ROLES, ClusterClient
from registry.names import GROUP
from registry.visibility.by_access_review import AccessReviewVisibility
from registry.visibility.by_rbac import RbacVisibility
from registry.visibility.rbac_feed import RbacFeed
from registry.visibility.rbac_history import RbacHistory
from registry.visibility.visible_namespaces import VisibilityCriterion

TENANTS = VisibilityCriterion(GROUP, "tenants")
NAMESPACES = VisibilityCriterion("", "namespaces", by_name=True)


@dataclass(frozen=True, kw_only=True)
class VisibilitySources:
    """Whoever may get Tenants in a namespace sees those in it, and the namespace; who may get the Namespace sees
    that."""

    tenants: VisibilitySource
    namespaces: VisibilitySource
    informers: tuple[Informer, ...]


def by_rbac(cluster: ClusterClient) -> VisibilitySources:
    """From the host's RBAC objects; nothing runs yet."""
    record = RbacHistory()
    feed = RbacFeed(record)
    handlers = {
        ROLES: feed.roles,
        CLUSTERROLES: feed.cluster_roles,
        ROLEBINDINGS: feed.bindings,
        CLUSTERROLEBINDINGS: feed.cluster_bindings,
    }
    informers = []
    for resource, handler in handlers.items():
        informer = Informer(cluster, resource, store_objects=False, transform=_slim)
        informer.add_handler(handler)
        informers.append(informer)
    return VisibilitySources(
        tenants=RbacVisibility(record, [TENANTS], synced=feed.synced),
        namespaces=RbacVisibility(record, [TENANTS, NAMESPACES], synced=feed.synced),
        informers=tuple(informers),
    )


def by_reviews(
    authorizer: Authorizer, *, places: Callable[[], Iterable[str]], version: Callable[[], int]
) -> VisibilitySources:
    """From the host's SubjectAccessReviews, about each of `places`."""

    def source(*questions: VisibilityCriterion) -> AccessReviewVisibility:
        return AccessReviewVisibility(authorizer, questions, namespaces=places, version=version)

    return VisibilitySources(tenants=source(TENANTS), namespaces=source(TENANTS, NAMESPACES), informers=())


def _slim(obj: Object) -> Object:
    metadata = {
        name: value for name in ("name", "namespace", "resourceVersion") if (value := obj["metadata"].get(name))
    }
    return {**{name: obj[name] for name in ("rules", "roleRef", "subjects") if name in obj}, "metadata": metadata}
