"""Each of the platform's services has one verdict: served, or the first reason why it is not (R-297)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from apiserver.meta.resource import Key
from controller.publishing.facts import Parent, PublishedListener, PublishedRoute, ServicePorts
from controller.publishing.routes.marks import RouteOwner
from controller.publishing.services import SERVICES
from controller.publishing.step import publishing_finding
from controller.publishing.verdicts import PublishingFacts, PublishingVerdict, verdicts
from controller.tenantgateway.model import RouteId

GATEWAY = Key("tenant-root", "cozystack")
ACCEPTED = Parent(accepted=True)
DASHBOARD = RouteId("cozy-dashboard", "dashboard", "HTTPRoute")
DASHBOARD_BACKEND = Key("cozy-dashboard", "incloud-web-gatekeeper")
API = RouteId("default", "kubernetes-api", "TLSRoute")
KEYCLOAK = Key("cozy-keycloak", "keycloak-http")


def route(*hostnames: str, parents: Mapping[Key, Parent] | None = None) -> PublishedRoute:
    return PublishedRoute(frozenset(hostnames), {GATEWAY: ACCEPTED} if parents is None else parents)


def backend(*ports: int, **names: int) -> ServicePorts:
    return ServicePorts(frozenset(ports), names)


SERVED = PublishingFacts(
    enabled=True,
    exposed=("dashboard",),
    host="example.org",
    gateway=GATEWAY,
    listeners={
        "https-dashboard-dfe8b0e4": PublishedListener("dashboard.example.org", True),
        "tls-api": PublishedListener("api.example.org", True),
    },
    routes={DASHBOARD: route("dashboard.example.org"), API: route("api.example.org")},
    backends={DASHBOARD_BACKEND: backend(8000), Key("default", "kubernetes"): backend(443)},
)


def dashboard(found: Any) -> Mapping[str, Any]:
    return {"routes": {DASHBOARD: found}}


def listener(found: PublishedListener) -> Mapping[str, Any]:
    return {"listeners": {"a": found}}


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        pytest.param({}, "", id="served"),
        pytest.param({"exposed": ("api",)}, "", id="served through"),
        pytest.param({"listeners": None}, "GatewayMissing (Gateway tenant-root/cozystack)", id="R-297"),
        pytest.param({"routes": {}}, "RouteMissing (HTTPRoute cozy-dashboard/dashboard)", id="no route"),
        pytest.param(
            dashboard(route("dashboard.example.net")),
            "RouteMissing (HTTPRoute cozy-dashboard/dashboard has no hostname dashboard.example.org)",
            id="another hostname",
        ),
        pytest.param(
            dashboard(route("dashboard.example.org", parents={Key("tenant-alice", "cozystack"): ACCEPTED})),
            "RouteMissing (HTTPRoute cozy-dashboard/dashboard does not refer to Gateway tenant-root/cozystack)",
            id="another parent",
        ),
        pytest.param(
            dashboard(route("dashboard.example.org", parents={GATEWAY: Parent()})),
            "NotAccepted (HTTPRoute cozy-dashboard/dashboard: no controller has accepted it yet)",
            id="no status",
        ),
        pytest.param(
            dashboard(route("dashboard.example.org", parents={GATEWAY: Parent(problem="Accepted is False: X")})),
            "NotAccepted (HTTPRoute cozy-dashboard/dashboard: Accepted is False: X)",
            id="not accepted",
        ),
        pytest.param(
            dashboard(route("dashboard.example.org", parents={GATEWAY: Parent(accepted=True, conflict=True)})),
            "HostnameConflict (HTTPRoute cozy-dashboard/dashboard)",
            id="another route has the hostname",
        ),
        pytest.param({"listeners": {}}, "ListenerNotReady (no listener for dashboard.example.org)", id="no listener"),
        pytest.param(
            listener(PublishedListener("dashboard.example.org", False, "Pending")),
            "ListenerNotReady (dashboard.example.org: Pending)",
            id="a listener that is not programmed",
        ),
        pytest.param(
            listener(PublishedListener("dashboard.example.org", False, "CertificateNotReady")),
            "CertificateNotReady (dashboard.example.org)",
            id="no certificate yet",
        ),
        pytest.param(listener(PublishedListener("*.example.org", True)), "", id="the wildcard of DNS-01"),
        pytest.param(
            {"backends": {}}, "BackendMissing (Service cozy-dashboard/incloud-web-gatekeeper)", id="no Service"
        ),
        pytest.param(
            {"backends": {DASHBOARD_BACKEND: backend(80)}},
            "BackendMissing (Service cozy-dashboard/incloud-web-gatekeeper has no port 8000)",
            id="no such port",
        ),
        pytest.param({"exposed": ("nosuch",)}, "Unknown", id="a name that nobody knows"),
        pytest.param(
            {"enabled": False},
            "IngressMissing (Ingress of class tenant-root for dashboard.example.org)",
            id="off, and no Ingress",
        ),
        pytest.param(
            {"enabled": False, "ingress_hosts": ("dashboard.example.org",), "listeners": None},
            "",
            id="off, and an Ingress",
        ),
    ],
)
def test_the_first_reason_is_named(changes: Mapping[str, Any], expected: str) -> None:
    [verdict] = verdicts(replace(SERVED, **changes))
    assert verdict.served == (not expected)
    if expected:
        assert str(verdict) == f"{verdict.service}: {expected}"


@pytest.mark.parametrize(
    ("exposed", "backends", "expected"),
    [
        pytest.param((), {}, [], id="nothing is asked for"),
        pytest.param(("api", "api"), {}, ["api"], id="a service has one verdict"),
        pytest.param((), {KEYCLOAK: backend(80)}, ["keycloak"], id="those of the flag, once they are installed"),
        pytest.param((), {DASHBOARD_BACKEND: backend(8000)}, [], id="those of the list are not, unless listed"),
        pytest.param(("keycloak",), {}, ["keycloak"], id="listed before it is installed"),
    ],
)
def test_services_with_a_verdict(exposed: Any, backends: Any, expected: list[str]) -> None:
    assert [each.service for each in verdicts(replace(SERVED, exposed=exposed, backends=backends))] == expected


@pytest.mark.parametrize(
    ("found", "served"),
    [
        pytest.param(backend(8080), True, id="the charts' port"),
        pytest.param(backend(80, http=80), True, id="the seed's port, by its name (C-18)"),
        pytest.param(backend(443, https=443), False, id="another port"),
    ],
)
def test_the_port_of_keycloak_has_two_numbers(found: ServicePorts, served: bool) -> None:
    facts = replace(
        SERVED,
        exposed=("keycloak",),
        backends={KEYCLOAK: found},
        routes={RouteId("cozy-keycloak", "keycloak", "HTTPRoute"): route("keycloak.example.org")},
        listeners={"https": PublishedListener("*.example.org", True)},
    )
    assert [each.served for each in verdicts(facts)] == [served]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        pytest.param({}, "api: RouteMissing (TLSRoute default/kubernetes-api)", id="not rendered yet"),
        pytest.param({"backends": {}}, "api: BackendMissing (Service default/kubernetes)", id="rendered by nobody"),
        pytest.param(
            {"backends": {}, "platform_routes": False},
            "api: RouteMissing (TLSRoute default/kubernetes-api)",
            id="rendered by a chart",
        ),
    ],
)
def test_a_route_that_is_not_rendered_has_a_service_that_is_missing(changes: Mapping[str, Any], expected: str) -> None:
    facts = replace(SERVED, exposed=("api",), routes={}, platform_routes=True)
    assert [str(each) for each in verdicts(replace(facts, **changes))] == [expected]


def test_a_route_of_a_chart_in_the_place_of_ours_is_named() -> None:
    charts = replace(route("dashboard.example.org"), owner=RouteOwner.HELM)
    facts = replace(SERVED, routes={DASHBOARD: charts}, platform_routes=True)
    found = publishing_finding(verdicts(facts))
    assert found is not None
    left = "not ours, and left as they are: HTTPRoute cozy-dashboard/dashboard of Helm"
    assert (found.status, found.message) == ("True", f"served: dashboard; {left}")
    others = publishing_finding(verdicts(replace(facts, platform_routes=False)))
    assert others is not None
    assert others.message == "served: dashboard"


def test_the_table_has_the_services_of_the_seed() -> None:
    assert {each.name for each in SERVICES.values() if each.listed} == {
        "dashboard",
        "api",
        "vm-exportproxy",
        "cdi-uploadproxy",
    }
    assert {each.name for each in SERVICES.values() if not each.listed} == {"keycloak", "grafana", "alerta"}


def test_the_condition_names_all_that_are_not_served() -> None:
    found = publishing_finding(
        [
            PublishingVerdict(service="a"),
            PublishingVerdict(service="b", reason="Unknown"),
            PublishingVerdict(service="c", reason="X", subject="y"),
        ]
    )
    assert found is not None
    assert (found.status, found.reason, found.message) == ("False", "NotServed", "b: Unknown; c: X (y)")
    assert publishing_finding([]) is None
