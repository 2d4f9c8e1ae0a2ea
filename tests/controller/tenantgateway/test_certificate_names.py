"""A certificate's wildcard stands for one label, a listener's for many: what is served has to be certified by name."""

from __future__ import annotations

import pytest

from controller.tenantgateway.model import TenantGateway
from tests.controller.tenantgateway.gateway_builders import gateway, inheriting, planned, route

DNS01 = gateway(apex="example.org", cert_mode="dns01")
HTTP01 = gateway(apex="example.org")


def certifies(name: str, hostname: str) -> bool:
    """RFC 6125, 6.4.3: `*` is the whole of the first label, and of no other."""
    first, _, domain = hostname.partition(".")
    return name == hostname or (name == f"*.{domain}" and first != "*")


@pytest.mark.parametrize(
    ("children", "hostname", "certified"),
    [
        pytest.param((), "example.org", True, id="the apex"),
        pytest.param((), "harbor.example.org", True, id="an application of the owner"),
        pytest.param((), "harbor.alice.example.org", False, id="R-180 two labels below"),
        pytest.param(("alice.example.org",), "harbor.alice.example.org", True, id="an application of a child"),
        pytest.param(
            ("alice.example.org",), "harbor.bob.alice.example.org", False, id="of a grandchild with a Gateway"
        ),
        pytest.param(
            ("alice.example.org", "bob.alice.example.org"), "harbor.bob.alice.example.org", True, id="R-176 grandchild"
        ),
        pytest.param(("alice.example.org",), "harbor.evilalice.example.org", False, id="a name that only ends so"),
    ],
)
def test_a_wildcard_certificate_is_good_for_what_its_names_reach(
    children: tuple[str, ...], hostname: str, certified: bool
) -> None:
    """R-159, R-174, R-176, R-180."""
    [certificate] = planned(DNS01, inheriting=inheriting(*children)).certificates
    assert any(certifies(name, hostname) for name in certificate.dns_names) is certified


@pytest.mark.parametrize("tenantgateway", [pytest.param(HTTP01, id="http01"), pytest.param(DNS01, id="dns01")])
def test_no_listener_offers_a_certificate_that_does_not_name_its_hostname(tenantgateway: TenantGateway) -> None:
    """R-112, R-114, R-115, R-151, with more children than one certificate holds (GW-18)."""
    applications = [route("tenant-foo", f"r{n}", f"h{n}.example.org", f"x.c{n}.example.org") for n in range(70)]
    made = planned(
        tenantgateway, *applications, inheriting=inheriting(*(f"c{number}.example.org" for number in range(70)))
    )
    names = {each.name: each.dns_names for each in made.certificates}
    offered = [each for each in made.listeners if each.protocol == "HTTPS"]
    assert len(offered) > 40
    assert all(each.hostname in names[each.certificate] for each in offered)
