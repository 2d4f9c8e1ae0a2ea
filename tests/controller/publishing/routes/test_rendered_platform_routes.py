"""The per-service table of seed 000 as routes: golden files, and the gate of each (R-274 to R-284, R-289, R-290)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from apiserver.meta.resource import Key
from controller.publishing.facts import ServicePorts
from controller.publishing.routes.render import render_routes
from controller.publishing.services import SERVICES
from controller.publishing.verdicts import PublishingFacts
from controller.tenantgateway.names import listener_name
from controller.tenantgateway.parse import routes_by_gateway
from tests.controller.golden_files import assert_golden
from tests.controller.tenantgateway.gateway_builders import gateway, planned

LISTED = tuple(each.name for each in SERVICES.values() if each.listed)
EVERYTHING = PublishingFacts(
    enabled=True,
    exposed=LISTED,
    host="example.org",
    gateway=Key("tenant-root", "cozystack"),
    platform_routes=True,
    backends={
        Key(each.namespace, each.backend): ServicePorts(frozenset({each.port}), {}) for each in SERVICES.values()
    },
)


def names(facts: PublishingFacts) -> list[str]:
    return [service.name for service, _ in render_routes(facts)]


def test_the_seven_routes_are_those_of_the_table() -> None:
    """R-274 to R-277, R-282 to R-284."""
    assert_golden("platform_routes/enabled", [route for _, route in render_routes(EVERYTHING)])


@pytest.mark.parametrize("closed", [{"enabled": False}, {"platform_routes": False}])
def test_with_the_flag_or_the_setting_off_nothing_is_rendered(closed: Mapping[str, Any]) -> None:
    """Never both, a route and an Ingress: without the flag the Ingresses are the charts' (R-289, R-290, R-302)."""
    assert_golden("platform_routes/disabled", [route for _, route in render_routes(replace(EVERYTHING, **closed))])


@pytest.mark.parametrize("name", LISTED)
def test_a_service_of_the_list_has_a_route_only_if_it_is_listed(name: str) -> None:
    """R-274, R-282 to R-284."""
    others = tuple(each for each in LISTED if each != name)
    assert names(replace(EVERYTHING, exposed=others)) == [each for each in SERVICES if each != name]


@pytest.mark.parametrize("name", ["keycloak", "grafana", "alerta"])
def test_the_other_services_have_a_route_listed_or_not(name: str) -> None:
    """R-275 to R-277, CHOICE-1."""
    assert name in names(EVERYTHING)
    assert name in names(replace(EVERYTHING, exposed=(name,)))


@pytest.mark.parametrize("name", SERVICES)
def test_a_route_whose_service_is_missing_is_not_rendered(name: str) -> None:
    service = SERVICES[name]
    installed = {key: each for key, each in EVERYTHING.backends.items() if key.name != service.backend}
    assert names(replace(EVERYTHING, backends=installed)) == [each for each in SERVICES if each != name]


@pytest.mark.parametrize(
    ("ports", "expected"),
    [
        pytest.param(ServicePorts(frozenset({80}), {"http": 80}), 80, id="the seed's"),
        pytest.param(ServicePorts(frozenset({8080, 9000}), {"http": 8080, "metrics": 9000}), 8080, id="the charts'"),
        pytest.param(ServicePorts(frozenset({8443}), {"https": 8443}), 8080, id="none of that name"),
    ],
)
def test_the_port_of_keycloak_is_the_one_named_http(ports: ServicePorts, expected: int) -> None:
    """R-275, PEER-18: the seed and the charts differ."""
    facts = replace(EVERYTHING, exposed=(), backends={Key("cozy-keycloak", "keycloak-http"): ports})
    [(_, route)] = render_routes(facts)
    assert route["spec"]["rules"][0]["backendRefs"][0]["port"] == expected


def test_publisher_and_host_are_those_of_the_settings() -> None:
    facts = replace(EVERYTHING, exposed=("api",), host="cloud.example.net", gateway=Key("tenant-alpha", "cozystack"))
    routes = {service.name: route for service, route in render_routes(facts)}
    assert {each["spec"]["parentRefs"][0]["namespace"] for each in routes.values()} == {"tenant-alpha"}
    assert routes["api"]["spec"]["hostnames"] == ["api.cloud.example.net"]


def planned_listeners(**mode: Any) -> set[str]:
    """The listeners that the root's Gateway gets for the rendered routes, apart from those of port 80."""
    owner = gateway("tenant-root", apex="example.org", passthrough=("api", "vm-exportproxy", "cdi-uploadproxy"), **mode)
    routes = [routes_by_gateway(rendered, service.kind)[owner.key] for service, rendered in render_routes(EVERYTHING)]
    plan = planned(owner, *routes)
    assert plan.omitted == ()
    return {each.name for each in plan.listeners if each.port != 80}


def test_services_have_their_own_listener_in_http01_and_share_https_in_dns01() -> None:
    """R-280: the hostname decides, since the routes name no section. R-282 to R-284: those with passthrough do, and
    their listeners are there in both modes."""
    sections = {
        service.name: rendered["spec"]["parentRefs"][0].get("sectionName")
        for service, rendered in render_routes(EVERYTHING)
    }
    of_passthrough = {"tls-api", "tls-vm-exportproxy", "tls-cdi-uploadproxy"}
    assert {each for each in sections.values() if each} == of_passthrough
    assert [name for name, section in sections.items() if not section] == ["dashboard", "keycloak", "grafana", "alerta"]
    of_http01 = {
        "https-dashboard-dfe8b0e4",
        *(listener_name(f"{name}.example.org") for name in ("keycloak", "grafana", "alerta")),
    }
    assert planned_listeners() == of_http01 | of_passthrough
    assert planned_listeners(cert_mode="dns01") == {"https", "https-apex"} | of_passthrough
