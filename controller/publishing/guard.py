"""The publishing guard: keeps what the verdicts are made of, and gives them whenever it is asked, on every replica."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial

from apiserver.meta.resource import Key, Object
from controller.platform.settings import SettingsSource
from controller.publishing import facts
from controller.publishing.facts import PublishedIngress, PublishedListener, PublishedRoute, ServicePorts
from controller.publishing.verdicts import PublishingFacts, PublishingVerdict, verdicts
from controller.tenantgateway.model import RouteId, RouteKind
from registry.cluster.event_handlers import ProjectionStore
from registry.names import ROOT_NAMESPACE
from registry.tenant.summary import TenantSummary
from registry.tenant.tree import TenantTree
from registry.tenantgateway.types import TENANTGATEWAY_NAME


def has_publisher(tree: TenantTree, publisher: str) -> bool:
    """True if the namespace is that of a tenant. The root is one, even before it was created."""
    return publisher == ROOT_NAMESPACE or tree.by_namespace(publisher) is not None


class PublishingGuard:
    """The attributes are handlers of the informers."""

    def __init__(self, *, settings: SettingsSource, tree: TenantTree) -> None:
        self._settings = settings
        self._tree = tree
        self._callbacks: list[Callable[[], None]] = []
        self.httproutes = self._routes("HTTPRoute")
        self.tlsroutes = self._routes("TLSRoute")
        self.services = ProjectionStore[ServicePorts](project=facts.backend, on_change=self._changed)
        self.ingresses = ProjectionStore[PublishedIngress](project=facts.ingress, on_change=self._ingress_changed)
        self.tenantgateways = ProjectionStore[Mapping[str, PublishedListener]](
            project=_listeners, on_change=self._gateway_changed
        )

    def subscribe(self, callback: Callable[[], None]) -> None:
        """Call `callback` when something that verdicts depend on has changed, other than settings and Tenants."""
        self._callbacks.append(callback)

    @property
    def publisher(self) -> str:
        """The namespace of the tenant that publishes the platform's services."""
        return self._settings.current.publishing.ingress_name

    @property
    def named_namespaces(self) -> Collection[str]:
        """The namespaces that the settings name as those of tenants."""
        publishing = self._settings.current.publishing
        return (publishing.ingress_name, publishing.ingress_name_admin)

    @property
    def tenant(self) -> TenantSummary | None:
        """The Tenant that publishes, None if the setting names the namespace of none."""
        return self._tree.by_namespace(self.publisher)

    def wrong_publishers(self) -> Sequence[str]:
        """One sentence for each setting that names the namespace of no tenant. The one that publishes matters only if
        something is to be published."""
        publishing = self._settings.current.publishing
        named = {
            "ingressName": publishing.ingress_name if self.verdicts() else "",
            "ingressNameAdmin": publishing.ingress_name_admin,
        }
        return [
            f"publishing.{field} is {name}, which is the namespace of no tenant"
            for field, name in named.items()
            if name and not has_publisher(self._tree, name)
        ]

    def publisher_changed(self) -> None:
        """The Tenant that publishes was created or deleted."""
        self._on_change()

    def verdicts(self) -> Sequence[PublishingVerdict]:
        return verdicts(self.facts())

    def describe(self) -> str:
        """The services that are not served, as readyz shows them; empty if all are, or none is asked for."""
        missing = [each.service for each in self.verdicts() if not each.served]
        return f"not served: {', '.join(missing)}" if missing else ""

    def facts(self) -> PublishingFacts:
        current, publisher = self._settings.current, self.publisher
        gateway = Key(publisher, TENANTGATEWAY_NAME)
        hosts = [each.hosts for _, each in self.ingresses.items() if each.class_name == publisher]
        by_kind: Sequence[tuple[RouteKind, ProjectionStore[PublishedRoute]]] = (
            ("HTTPRoute", self.httproutes),
            ("TLSRoute", self.tlsroutes),
        )
        return PublishingFacts(
            enabled=current.gateway.enabled,
            exposed=current.publishing.exposed_services,
            host=self._tree.root_host,
            gateway=gateway,
            platform_routes=current.gateway.platform_routes,
            has_publisher=has_publisher(self._tree, publisher),
            listeners=self.tenantgateways.get(gateway),
            routes={
                RouteId(key.namespace, key.name, kind): each for kind, store in by_kind for key, each in store.items()
            },
            backends=dict(self.services.items()),
            ingress_hosts=frozenset().union(*hosts),
        )

    def _routes(self, kind: RouteKind) -> ProjectionStore[PublishedRoute]:
        return ProjectionStore(project=partial(facts.route, kind=kind), on_change=self._changed)

    def _on_change(self) -> None:
        for callback in self._callbacks:
            callback()

    def _changed(self, key: Key, before: object, after: object) -> None:
        self._on_change()

    def _ingress_changed(self, key: Key, before: PublishedIngress | None, after: PublishedIngress | None) -> None:
        if self.publisher in {each.class_name for each in (before, after) if each is not None}:
            self._on_change()

    def _gateway_changed(self, key: Key, before: object, after: object) -> None:
        if key.namespace == self.publisher:
            self._on_change()


def _listeners(tenantgateway: Object) -> Mapping[str, PublishedListener] | None:
    return facts.listeners(tenantgateway) if tenantgateway["metadata"]["name"] == TENANTGATEWAY_NAME else None
