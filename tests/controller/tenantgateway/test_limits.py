"""Limits of Gateway API and certificates: listeners, DNS names and lengths of names."""

from __future__ import annotations

from hashlib import sha256
from itertools import count

import pytest

from controller.tenantgateway.listeners import MAX_DNS_NAMES, MAX_LISTENERS
from controller.tenantgateway.model import TenantGateway
from tests.controller.tenantgateway.gateway_builders import (
    EVERY_MODE,
    existing_gateway,
    gateway,
    hostnames,
    inheriting,
    omitted,
    planned,
    route,
    with_services,
)


def many(number: int, namespace: str = "tenant-foo", prefix: str = "app") -> list[str]:
    return [f"{prefix}{index:03}.foo.example.com" for index in range(number)]


def test_the_hostname_beyond_sixty_four_listeners_is_omitted() -> None:
    """R-122 as issue 3 changes it, FACT-7, GW-4, ATTACK-13."""
    full = planned(gateway(), route("tenant-foo", "app", *many(63)))
    assert len(full.listeners) == MAX_LISTENERS
    assert full.omitted == ()

    plan = planned(gateway(), route("tenant-foo", "app", *many(64)))
    assert len(plan.listeners) == MAX_LISTENERS
    assert omitted(plan) == {"app063.foo.example.com": "ListenersTruncated"}
    assert len(plan.certificates) == 63
    assert "app063.foo.example.com" in plan.omitted[0].message


def test_a_full_gateway_keeps_the_hostnames_that_it_serves() -> None:
    """Neither a smaller name nor a platform route displaces a served hostname; the Gateway does not change."""
    served = planned(gateway(), route("tenant-foo", "app", *many(63, prefix="m")))
    current = existing_gateway(gateway(), served)
    plan = planned(
        gateway(),
        route("tenant-foo", "app", *many(63, prefix="m")),
        route("cozy-a", "early", "a.foo.example.com"),
        current=current,
    )
    assert plan.listeners == served.listeners
    assert omitted(plan) == {"a.foo.example.com": "ListenersTruncated"}


def test_a_hostname_takes_a_listener_that_becomes_free() -> None:
    current = existing_gateway(gateway(), planned(gateway(), route("tenant-foo", "app", *many(63))))
    plan = planned(gateway(), route("tenant-foo", "app", *many(64)[1:]), current=current)
    assert omitted(plan) == {}
    assert "app063.foo.example.com" in hostnames(plan)


def test_platform_routes_get_free_listeners_first() -> None:
    plan = planned(gateway(), route("tenant-foo", "app", *many(70)), route("cozy-z", "z", "z.foo.example.com"))
    assert "z.foo.example.com" in hostnames(plan)


def test_a_namespace_with_a_thousand_hostnames_does_not_crowd_out_others() -> None:
    """ATTACK-13."""
    plan = planned(gateway(), route("tenant-a", "greedy", *many(1000)), route("tenant-b", "z", "z.foo.example.com"))
    assert "z.foo.example.com" in hostnames(plan)


def test_all_routes_of_an_omitted_hostname_are_named() -> None:
    routes = [route("tenant-foo", "main", *many(64)), route("tenant-foo", "canary", *many(64))]
    plan = planned(gateway(), *routes)
    assert [each.route for each in plan.omitted] == [routes[1].id, routes[0].id]


@pytest.mark.parametrize("tenantgateway", EVERY_MODE)
def test_passthrough_services_beyond_the_limit_are_omitted(tenantgateway: TenantGateway) -> None:
    services = [f"s{index:03}" for index in range(70)]
    plan = planned(with_services(tenantgateway, *services))
    assert len(plan.listeners) == MAX_LISTENERS
    assert set(omitted(plan).values()) == {"ListenersTruncated"}
    assert len(plan.omitted) == 70 - len(hostnames(plan, "TLS"))


def test_the_child_beyond_a_hundred_dns_names_is_omitted() -> None:
    """GW-18: no authority would sign a certificate with more names, so that none would be renewed."""
    tenantgateway = gateway(cert_mode="dns01")
    children = inheriting(*many(50, prefix="c"))
    plan = planned(tenantgateway, inheriting=children)
    assert len(plan.certificates[0].dns_names) == MAX_DNS_NAMES
    assert omitted(plan) == {"c049.foo.example.com": "CertificateFull"}
    assert "*.c049.foo.example.com" not in hostnames(plan)
    assert plan.omitted[0].namespace == "tenant-c049"


def test_a_full_certificate_keeps_its_current_children() -> None:
    tenantgateway = gateway(cert_mode="dns01")
    before = planned(tenantgateway, inheriting=inheriting(*many(49, prefix="m")))
    plan = planned(
        tenantgateway,
        inheriting=(*inheriting(*many(49, prefix="m")), *inheriting("a.foo.example.com")),
        current=existing_gateway(tenantgateway, before),
    )
    assert plan.certificates == before.certificates
    assert omitted(plan) == {"a.foo.example.com": "CertificateFull"}


def test_children_beyond_sixty_four_listeners_are_omitted() -> None:
    """With a Secret of the operator only the limit of listeners applies."""
    plan = planned(
        gateway(cert_mode="existingSecret", wildcard_secret="ours"), inheriting=inheriting(*many(62, prefix="c"))
    )
    assert len(plan.listeners) == MAX_LISTENERS
    assert omitted(plan) == {"c061.foo.example.com": "ListenersTruncated"}


def test_two_hostnames_with_the_same_listener_name_are_not_both_served() -> None:
    """32 bits of a hash may collide: the hostname that is served already stays."""
    first, second = _same_slug()
    served = planned(gateway(), route("tenant-foo", "app", second))
    plan = planned(gateway(), route("tenant-foo", "app", first, second), current=existing_gateway(gateway(), served))
    assert plan.listeners == served.listeners
    assert omitted(plan) == {first: "HostnameConflict"}


def _same_slug() -> tuple[str, str]:
    seen: dict[bytes, str] = {}
    for number in count():
        hostname = f"a.n{number:06}.foo.example.com"
        digest = sha256(hostname.encode()).digest()[:4]
        if digest in seen:
            return seen[digest], hostname
        seen[digest] = hostname
    raise AssertionError


def test_a_hostname_whose_certificate_name_is_too_long_is_omitted() -> None:
    tenantgateway = gateway(name="t" * 230)
    plan = planned(tenantgateway, route("tenant-foo", "app", f"{'a' * 40}.foo.example.com", "b.foo.example.com"))
    assert hostnames(plan) == ["b.foo.example.com"]
    assert set(omitted(plan).values()) == {"UnsupportedValue"}
    assert omitted(planned(gateway(name="t" * 250, cert_mode="dns01"))) == {"foo.example.com": "SecretMissing"}


def test_a_hostname_of_more_than_64_characters_is_served() -> None:
    """It is too long for a common name, which our certificates do not have."""
    hostname = f"{'a' * 60}.{'b' * 60}.foo.example.com"
    plan = planned(gateway(), route("tenant-foo", "app", hostname))
    assert plan.certificates[0].dns_names == (hostname,)
