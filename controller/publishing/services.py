"""The platform's services that the charts publish, each by a route of its own (seed 000)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from apiserver.meta.resource import Key
from controller.tenantgateway.model import RouteId, RouteKind


@dataclass(frozen=True, slots=True, kw_only=True)
class PlatformService:
    """`route` attaches to the publishing tenant's Gateway and forwards to `port` of Service `backend` in the same
    namespace, or to the port with the name `port_name`. If `listed` is true, exposedServices decides whether the
    service is published; the others are as soon as they are installed. `release` is the Helm release of the chart that
    has the route."""

    name: str
    namespace: str
    route: str
    backend: str
    port: int
    release: Key
    port_name: str = ""
    kind: RouteKind = "HTTPRoute"
    listed: bool = False

    @property
    def route_id(self) -> RouteId:
        return RouteId(self.namespace, self.route, self.kind)

    def hostname(self, host: str) -> str:
        return f"{self.name}.{host}"


def _https(
    name: str,
    namespace: str,
    backend: str,
    port: int,
    *,
    release: str = "",
    listed: bool = False,
    port_name: str = "",
) -> PlatformService:
    """TLS ends at the Gateway. The release has the name of the service by default."""
    return PlatformService(
        name=name,
        namespace=namespace,
        route=name,
        backend=backend,
        port=port,
        release=Key(namespace, release or name),
        listed=listed,
        port_name=port_name,
    )


def _passthrough(name: str, namespace: str, route: str, backend: str, release: Key) -> PlatformService:
    """TLS ends at the service."""
    return PlatformService(
        name=name,
        namespace=namespace,
        route=route,
        backend=backend,
        port=443,
        release=release,
        kind="TLSRoute",
        listed=True,
    )


SERVICES: Mapping[str, PlatformService] = {
    each.name: each
    for each in (
        _https("dashboard", "cozy-dashboard", "incloud-web-gatekeeper", 8000, listed=True),
        # 80 in the seed and 8080 in the charts (C-18): the name is the same
        _https("keycloak", "cozy-keycloak", "keycloak-http", 8080, port_name="http"),
        _https("grafana", "cozy-monitoring", "grafana-service", 3000, release="monitoring"),
        _https("alerta", "cozy-monitoring", "alerta", 80, release="monitoring"),
        _passthrough("api", "default", "kubernetes-api", "kubernetes", Key("cozy-system", "cozystack-api")),
        _passthrough(
            "vm-exportproxy", "cozy-kubevirt", "vm-exportproxy", "vm-exportproxy", Key("cozy-kubevirt", "kubevirt")
        ),
        _passthrough(
            "cdi-uploadproxy",
            "cozy-kubevirt-cdi",
            "cdi-uploadproxy",
            "cdi-uploadproxy",
            Key("cozy-kubevirt-cdi", "kubevirt-cdi"),
        ),
    )
}
