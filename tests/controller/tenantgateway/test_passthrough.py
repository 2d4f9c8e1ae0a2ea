"""TLS passthrough listeners and the TLSRoutes that attach to them."""

from __future__ import annotations

import pytest

from controller.tenantgateway.model import ParentRef, TenantGateway
from tests.controller.tenantgateway.gateway_builders import (
    EVERY_MODE,
    gateway,
    hostnames,
    omitted,
    planned,
    route,
    with_services,
)

HARBOR = "harbor.foo.example.com"


@pytest.mark.parametrize("tenantgateway", EVERY_MODE)
def test_each_passthrough_service_has_a_listener(tenantgateway: TenantGateway) -> None:
    """R-118, R-119, R-120: whether a route attaches to it or not."""
    plan = planned(with_services(tenantgateway, "api", "vm-exportproxy", "cdi-uploadproxy"))
    assert [(each.name, each.hostname) for each in plan.listeners if each.protocol == "TLS"] == [
        ("tls-api", "api.foo.example.com"),
        ("tls-cdi-uploadproxy", "cdi-uploadproxy.foo.example.com"),
        ("tls-vm-exportproxy", "vm-exportproxy.foo.example.com"),
    ]


def test_an_invalid_passthrough_service_is_omitted_and_the_others_stay() -> None:
    plan = planned(gateway(passthrough=("api", "API", "a_b", "*", "")))
    assert [each.name for each in plan.listeners] == ["http", "tls-api"]
    assert sorted(omitted(plan)) == ["*.foo.example.com", ".foo.example.com", "a_b.foo.example.com"]


@pytest.mark.parametrize("tenantgateway", EVERY_MODE)
@pytest.mark.parametrize(
    "hostname",
    [
        pytest.param("api.foo.example.com", id="PEER-08: of a passthrough listener"),
        pytest.param("x.foo.example.com", id="of no passthrough listener"),
    ],
)
def test_the_hostname_of_a_tlsroute_adds_no_https_listener(tenantgateway: TenantGateway, hostname: str) -> None:
    """CHOICE-2, PEER-08, GW-2."""
    tenantgateway = with_services(tenantgateway, "api")
    tls = route("default", "kubernetes-api", hostname, kind="TLSRoute", parents=(ParentRef(section="tls-api"),))
    plan, without = planned(tenantgateway, tls), planned(tenantgateway)
    assert (plan.listeners, plan.certificates, plan.omitted) == (without.listeners, without.certificates, ())
    assert str(plan.ownership.owners[hostname]) == "default/kubernetes-api"


def test_an_httproute_that_shares_the_hostname_of_a_tlsroute_in_its_namespace_is_served() -> None:
    plan = planned(
        gateway(), route("tenant-a", "a", HARBOR, kind="TLSRoute"), route("tenant-a", "b", HARBOR, kind="HTTPRoute")
    )
    assert hostnames(plan) == [HARBOR]


def test_a_hostname_that_a_tlsroute_wins_from_an_httproute_is_not_served() -> None:
    """R-208: HTTPS would have no route to serve."""
    tls = route("cozy-x", "tls", HARBOR, kind="TLSRoute")
    plan = planned(gateway(), tls, route("tenant-foo", "app", HARBOR))
    assert [each.name for each in plan.listeners] == ["http"]
    assert plan.certificates == ()


@pytest.mark.parametrize("tenantgateway", EVERY_MODE)
@pytest.mark.parametrize(
    "claim",
    [
        pytest.param("api.foo.example.com", id="the same hostname"),
        pytest.param("*.foo.example.com", id="a wildcard that covers it"),
    ],
)
def test_the_hostname_of_a_passthrough_listener_cannot_be_taken(tenantgateway: TenantGateway, claim: str) -> None:
    tenantgateway = with_services(tenantgateway, "api")
    tls = route("default", "kubernetes-api", "api.foo.example.com", kind="TLSRoute")
    plan = planned(tenantgateway, tls, route("cozy-a", "foreign", claim))
    assert plan.ownership.owners["api.foo.example.com"] == tls.id
    assert tls.id not in plan.ownership.conflicts
    assert "api.foo.example.com" not in hostnames(plan)
    assert hostnames(plan, "TLS") == ["api.foo.example.com"]


@pytest.mark.parametrize("tenantgateway", EVERY_MODE)
def test_an_httproute_with_a_passthrough_hostname_is_rejected(tenantgateway: TenantGateway) -> None:
    plan = planned(with_services(tenantgateway, "api"), route("tenant-foo", "app", "api.foo.example.com"))
    assert omitted(plan) == {"api.foo.example.com": "HostnameConflict"}
    assert "passthrough" in plan.omitted[0].message


@pytest.mark.parametrize("tenantgateway", EVERY_MODE)
def test_a_wildcard_of_a_tlsroute_is_omitted(tenantgateway: TenantGateway) -> None:
    tls = route("cozy-a", "tls", "*.foo.example.com", kind="TLSRoute")
    plan = planned(tenantgateway, tls, route("tenant-a", "app", HARBOR))
    assert omitted(plan) == {"*.foo.example.com": "UnsupportedValue"}
    assert plan.ownership.conflicts == {}
