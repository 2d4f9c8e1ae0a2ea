"""The publishing guard names each of the platform's services that nothing publishes (seed 000)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.support.clusters.cluster import ROOT, E2eCluster, tenants_path
from tests.e2e.support.clusters.control_plane import Binaries
from tests.e2e.support.gateways import MERGE, Gateways
from tests.e2e.support.platform_package import (
    PACKAGE,
    package_events,
    patch,
    readyz_line,
    root_condition,
    serve_packages,
)
from tests.e2e.support.platform_services import PlatformCharts, accept_route

PACKAGE_OBJECT = {
    "apiVersion": "cozystack.io/v1alpha1",
    "kind": "Package",
    "metadata": {"name": PACKAGE},
    "spec": {
        "components": {
            "platform": {
                "values": {
                    "publishing": {"host": "example.org", "exposedServices": ["dashboard", "api", "nosuch"]},
                    "gateway": {"enabled": True, "attachedNamespaces": ["cozy-dashboard", "default"]},
                }
            }
        }
    },
}


@pytest.fixture
def platform(own_cluster: E2eCluster, control_plane_files: tuple[Binaries, Path]) -> E2eCluster:
    serve_packages(own_cluster, control_plane_files[1])
    own_cluster.client().request("POST", "/apis/cozystack.io/v1alpha1/packages", PACKAGE_OBJECT).expect(201)
    return own_cluster


def publishing(cluster: E2eCluster) -> tuple[str, str, str]:
    """Status, reason and message of PublishingReady on the root Tenant."""
    found = root_condition(cluster, "PublishingReady") or {}
    return found.get("status", ""), found.get("reason", ""), found.get("message", "")


def metrics(cluster: E2eCluster) -> set[str]:
    text = cluster.direct_client().get("/metrics").content.decode()
    return {each for each in text.splitlines() if each.startswith("platform_service_served{")}


def wait_for(cluster: E2eCluster, message: str) -> None:
    cluster.wait_until(f"PublishingReady says {message}", lambda: publishing(cluster)[2] == message)


def expose(cluster: E2eCluster, *services: str, enabled: bool = True) -> None:
    patch(cluster, {"publishing": {"exposedServices": list(services)}, "gateway": {"enabled": enabled}})


@pytest.mark.timeout(900)
def test_each_service_that_nothing_publishes_is_named(platform: E2eCluster) -> None:
    """The flag without a Gateway is named, not Ready; so is what is missing on the way, and after a rollback
    (R-297)."""
    cluster = platform
    missing = "Gateway tenant-root/cozystack"
    wait_for(cluster, f"dashboard: GatewayMissing ({missing}); api: GatewayMissing ({missing}); nosuch: Unknown")
    assert publishing(cluster)[:2] == ("False", "NotServed")
    assert readyz_line(cluster, "publishing") == "[+]publishing ok: not served: dashboard, api, nosuch"
    assert readyz_line(cluster, "publishing", cluster.direct_client("nobody")) == "[+]publishing ok"
    assert 'platform_service_served{service="dashboard"} 0.0' in metrics(cluster)
    cluster.wait_until("an Event is about the Package", lambda: package_events(cluster, "NotServed"))

    _publish(cluster)
    wait_for(cluster, "served: dashboard, api")
    assert publishing(cluster)[:2] == ("True", "Served")
    assert readyz_line(cluster, "publishing") == "[+]publishing ok"
    assert metrics(cluster) == {f'platform_service_served{{service="{each}"}} 1.0' for each in ("dashboard", "api")}
    cluster.wait_until("an Event says so", lambda: package_events(cluster, "Served"))

    Gateways(cluster).delete("httproutes", "cozy-dashboard", "dashboard")
    wait_for(cluster, "dashboard: RouteMissing (HTTPRoute cozy-dashboard/dashboard)")

    # the seed's rollback: the flag is off, and Ingresses have to be back
    expose(cluster, "dashboard", "api", enabled=False)
    of_class = "IngressMissing (Ingress of class tenant-root for {}.example.org)"
    wait_for(cluster, "; ".join(f"{each}: {of_class.format(each)}" for each in ("dashboard", "api")))
    for service in ("dashboard", "api"):
        PlatformCharts(cluster).create_ingress(service)
    wait_for(cluster, "served: dashboard, api")


def _publish(cluster: E2eCluster) -> None:
    """Acts as the charts, Cilium and cert-manager do for two services."""
    gateways, client = Gateways(cluster), cluster.client()
    expose(cluster, "dashboard", "api")
    for service in ("dashboard", "api"):
        PlatformCharts(cluster).install(service)
    root = {"spec": {"gateway": True}}
    client.request("PATCH", tenants_path(ROOT, "root"), root, content_type=MERGE).expect(200)
    gateways.create_route("cozy-dashboard", "dashboard", "dashboard.example.org", to=ROOT)
    gateways.create_route(
        "default", "kubernetes-api", "api.example.org", to=ROOT, plural="tlsroutes", sectionName="tls-api"
    )
    gateways.wait_until(
        "both have listeners", lambda: gateways.has_listeners(ROOT, "dashboard.example.org", "api.example.org")
    )
    gateways.mark_gateway_programmed(ROOT)
    gateways.mark_certificates_ready(ROOT)
    wait_for(cluster, "; ".join(_not_accepted()))
    for service in ("dashboard", "api"):
        accept_route(gateways, service)


def _not_accepted() -> list[str]:
    routes = {"dashboard": "HTTPRoute cozy-dashboard/dashboard", "api": "TLSRoute default/kubernetes-api"}
    return [f"{name}: NotAccepted ({route}: no controller has accepted it yet)" for name, route in routes.items()]
