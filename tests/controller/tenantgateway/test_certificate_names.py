"""Certificates cover the served hostnames: a wildcard covers one label in a certificate, but many in a listener."""

from __future__ import annotations

import pytest

from controller.tenantgateway.model import TenantGateway
from tests.controller.tenantgateway.gateway_builders import gateway, inheriting, planned, route

DNS01 = gateway(apex="example.org", cert_mode="dns01")
HTTP01 = gateway(apex="example.org")


def covers(name: str, hostname: str) -> bool:
    """True if a DNS name covers a hostname (RFC 6125, 6.4.3): `*` stands for exactly the first label."""
    first, _, domain = hostname.partition(".")
    return name == hostname or (name == f"*.{domain}" and first != "*")


@pytest.mark.parametrize(
    ("children", "hostname", "covered"),
    [
        pytest.param((), "example.org", True, id="the apex"),
        pytest.param((), "harbor.example.org", True, id="an application of the owner"),
        pytest.param((), "harbor.alice.example.org", False, id="R-180 two labels below"),
        pytest.param(("alice.example.org",), "harbor.alice.example.org", True, id="an application of a child"),
        pytest.param(
            ("alice.example.org",),
            "harbor.bob.alice.example.org",
            False,
            id="an application of a grandchild with its own Gateway",
        ),
        pytest.param(
            ("alice.example.org", "bob.alice.example.org"),
            "harbor.bob.alice.example.org",
            True,
            id="R-176 an application of a grandchild",
        ),
        pytest.param(("alice.example.org",), "harbor.evilalice.example.org", False, id="a domain with the same suffix"),
    ],
)
def test_a_wildcard_certificate_covers_one_label_below_its_names(
    children: tuple[str, ...], hostname: str, covered: bool
) -> None:
    """R-159, R-174, R-176, R-180."""
    [certificate] = planned(DNS01, inheriting=inheriting(*children)).certificates
    assert any(covers(name, hostname) for name in certificate.dns_names) is covered


@pytest.mark.parametrize("tenantgateway", [pytest.param(HTTP01, id="http01"), pytest.param(DNS01, id="dns01")])
def test_every_listener_has_a_certificate_that_names_its_hostname(tenantgateway: TenantGateway) -> None:
    """R-112, R-114, R-115, R-151, R-357, even with more children than one certificate holds (GW-18)."""
    applications = [route("tenant-foo", f"r{n}", f"h{n}.example.org", f"x.c{n}.example.org") for n in range(70)]
    plan = planned(
        tenantgateway, *applications, inheriting=inheriting(*(f"c{number}.example.org" for number in range(70)))
    )
    names = {each.name: each.dns_names for each in plan.certificates}
    https = [each for each in plan.listeners if each.protocol == "HTTPS"]
    assert len(https) > 40
    assert all(each.hostname in names[each.certificate] for each in https)
