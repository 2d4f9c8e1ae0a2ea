"""Who may see which tenants and tenant namespaces, put together: four informers -> record -> sights, or reviews."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from apiserver.authorization.authorizer import Authorizer
from apiserver.meta.resource import Object
from apiserver.storage.visibility import Sights
from registry.cluster.informer import Informer
from registry.cluster.interface import CLUSTERROLEBINDINGS, CLUSTERROLES, ROLEBINDINGS, ROLES, ClusterClient
from registry.names import GROUP
from registry.visibility.by_access_review import ReviewedSights
from registry.visibility.by_rbac import RbacSights
from registry.visibility.rbac_feed import RbacFeed
from registry.visibility.rbac_history import RbacRecord
from registry.visibility.visible_namespaces import Question

TENANTS = Question(GROUP, "tenants")
NAMESPACES = Question("", "namespaces", by_name=True)


@dataclass(frozen=True, kw_only=True)
class Visibility:
    """Whoever may get Tenants in a namespace sees those in it, and the namespace; who may get the Namespace sees
    that."""

    tenants: Sights
    namespaces: Sights
    informers: tuple[Informer, ...]


def by_rbac(cluster: ClusterClient) -> Visibility:
    """From the host's RBAC objects; nothing runs yet."""
    record = RbacRecord()
    feed = RbacFeed(record)
    handlers = {
        ROLES: feed.roles,
        CLUSTERROLES: feed.cluster_roles,
        ROLEBINDINGS: feed.bindings,
        CLUSTERROLEBINDINGS: feed.cluster_bindings,
    }
    informers = []
    for resource, handler in handlers.items():
        informer = Informer(cluster, resource, keep=False, slim=_slim)
        informer.add_handler(handler)
        informers.append(informer)
    return Visibility(
        tenants=RbacSights(record, [TENANTS], synced=feed.synced),
        namespaces=RbacSights(record, [TENANTS, NAMESPACES], synced=feed.synced),
        informers=tuple(informers),
    )


def by_reviews(
    authorizer: Authorizer, *, places: Callable[[], Iterable[str]], version: Callable[[], int]
) -> Visibility:
    """From the host's SubjectAccessReviews, about each of `places`."""

    def sights(*questions: Question) -> ReviewedSights:
        return ReviewedSights(authorizer, questions, places=places, version=version)

    return Visibility(tenants=sights(TENANTS), namespaces=sights(TENANTS, NAMESPACES), informers=())


def _slim(obj: Object) -> Object:
    metadata = {
        name: value for name in ("name", "namespace", "resourceVersion") if (value := obj["metadata"].get(name))
    }
    return {**{name: obj[name] for name in ("rules", "roleRef", "subjects") if name in obj}, "metadata": metadata}
