"""The TLS passthrough listeners, and the TLSRoutes that they are for."""

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
def test_a_passthrough_listener_a_service(tenantgateway: TenantGateway) -> None:
    """R-118, R-119, R-120: whether anything attaches to it or not."""
    made = planned(with_services(tenantgateway, "api", "vm-exportproxy", "cdi-uploadproxy"))
    assert [(each.name, each.hostname) for each in made.listeners if each.protocol == "TLS"] == [
        ("tls-api", "api.foo.example.com"),
        ("tls-cdi-uploadproxy", "cdi-uploadproxy.foo.example.com"),
        ("tls-vm-exportproxy", "vm-exportproxy.foo.example.com"),
    ]


def test_a_bad_passthrough_service_is_left_out_and_the_others_stay() -> None:
    made = planned(gateway(passthrough=("api", "API", "a_b", "*", "")))
    assert [each.name for each in made.listeners] == ["http", "tls-api"]
    assert sorted(omitted(made)) == ["*.foo.example.com", ".foo.example.com", "a_b.foo.example.com"]


@pytest.mark.parametrize("tenantgateway", EVERY_MODE)
@pytest.mark.parametrize(
    "hostname",
    [
        pytest.param("api.foo.example.com", id="PEER-08: that a passthrough listener serves"),
        pytest.param("x.foo.example.com", id="that none serves"),
    ],
)
def test_the_hostname_of_a_tlsroute_makes_no_https(tenantgateway: TenantGateway, hostname: str) -> None:
    """CHOICE-2, PEER-08, GW-2."""
    tenantgateway = with_services(tenantgateway, "api")
    tls = route("default", "kubernetes-api", hostname, kind="TLSRoute", parents=(ParentRef(section="tls-api"),))
    made, without = planned(tenantgateway, tls), planned(tenantgateway)
    assert (made.listeners, made.certificates, made.omitted) == (without.listeners, without.certificates, ())
    assert str(made.ownership.owners[hostname]) == "default/kubernetes-api"


def test_an_httproute_that_shares_the_hostname_of_a_tlsroute_in_its_namespace_is_served() -> None:
    made = planned(
        gateway(), route("tenant-a", "a", HARBOR, kind="TLSRoute"), route("tenant-a", "b", HARBOR, kind="HTTPRoute")
    )
    assert hostnames(made) == [HARBOR]


def test_a_hostname_that_an_httproute_lost_to_a_tlsroute_is_not_served() -> None:
    """R-208: there is nobody whom HTTPS would serve."""
    tls = route("cozy-x", "tls", HARBOR, kind="TLSRoute")
    made = planned(gateway(), tls, route("tenant-foo", "app", HARBOR))
    assert [each.name for each in made.listeners] == ["http"]
    assert made.certificates == ()


@pytest.mark.parametrize("tenantgateway", EVERY_MODE)
@pytest.mark.parametrize(
    "claim",
    [
        pytest.param("api.foo.example.com", id="the same hostname"),
        pytest.param("*.foo.example.com", id="a wildcard that covers it"),
    ],
)
def test_nobody_takes_the_hostname_of_a_passthrough_listener(tenantgateway: TenantGateway, claim: str) -> None:
    tenantgateway = with_services(tenantgateway, "api")
    tls = route("default", "kubernetes-api", "api.foo.example.com", kind="TLSRoute")
    made = planned(tenantgateway, tls, route("cozy-a", "foreign", claim))
    assert made.ownership.owners["api.foo.example.com"] == tls.id
    assert tls.id not in made.ownership.conflicts
    assert "api.foo.example.com" not in hostnames(made)
    assert hostnames(made, "TLS") == ["api.foo.example.com"]


@pytest.mark.parametrize("tenantgateway", EVERY_MODE)
def test_an_httproute_on_a_passthrough_hostname_is_told_so(tenantgateway: TenantGateway) -> None:
    made = planned(with_services(tenantgateway, "api"), route("tenant-foo", "app", "api.foo.example.com"))
    assert omitted(made) == {"api.foo.example.com": "HostnameConflict"}
    assert "passthrough" in made.omitted[0].message


@pytest.mark.parametrize("tenantgateway", EVERY_MODE)
def test_a_wildcard_of_a_tlsroute_is_left_out(tenantgateway: TenantGateway) -> None:
    tls = route("cozy-a", "tls", "*.foo.example.com", kind="TLSRoute")
    made = planned(tenantgateway, tls, route("tenant-a", "app", HARBOR))
    assert omitted(made) == {"*.foo.example.com": "UnsupportedValue"}
    assert made.ownership.conflicts == {}
