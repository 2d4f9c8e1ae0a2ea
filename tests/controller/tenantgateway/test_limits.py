"""What does not fit: more listeners, names and characters than Gateway API and certificates hold."""

from __future__ import annotations

from hashlib import sha256
from itertools import count

import pytest

from controller.tenantgateway.listeners import MAX_DNS_NAMES, MAX_LISTENERS
from controller.tenantgateway.model import TenantGateway
from tests.controller.tenantgateway.gateway_builders import (
    EVERY_MODE,
    as_made,
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


def test_sixty_four_listeners_fit_and_the_next_is_left_out_by_name() -> None:
    """R-122 as issue 3 has it, FACT-7, GW-4, ATTACK-13."""
    full = planned(gateway(), route("tenant-foo", "app", *many(63)))
    assert len(full.listeners) == MAX_LISTENERS
    assert full.omitted == ()

    made = planned(gateway(), route("tenant-foo", "app", *many(64)))
    assert len(made.listeners) == MAX_LISTENERS
    assert omitted(made) == {"app063.foo.example.com": "ListenersTruncated"}
    assert len(made.certificates) == 63
    assert "app063.foo.example.com" in made.omitted[0].message


def test_a_full_gateway_keeps_what_it_serves() -> None:
    """An early name, and even the platform, come after what works; the Gateway does not change at all."""
    served = planned(gateway(), route("tenant-foo", "app", *many(63, prefix="m")))
    current = as_made(gateway(), served)
    made = planned(
        gateway(),
        route("tenant-foo", "app", *many(63, prefix="m")),
        route("cozy-a", "early", "a.foo.example.com"),
        current=current,
    )
    assert made.listeners == served.listeners
    assert omitted(made) == {"a.foo.example.com": "ListenersTruncated"}


def test_a_place_that_becomes_free_is_taken() -> None:
    current = as_made(gateway(), planned(gateway(), route("tenant-foo", "app", *many(63))))
    made = planned(gateway(), route("tenant-foo", "app", *many(64)[1:]), current=current)
    assert omitted(made) == {}
    assert "app063.foo.example.com" in hostnames(made)


def test_the_platform_has_the_first_of_the_places_that_are_free() -> None:
    made = planned(gateway(), route("tenant-foo", "app", *many(70)), route("cozy-z", "z", "z.foo.example.com"))
    assert "z.foo.example.com" in hostnames(made)


def test_a_thousand_hostnames_of_one_keep_nobody_else_out() -> None:
    """ATTACK-13."""
    made = planned(gateway(), route("tenant-a", "greedy", *many(1000)), route("tenant-b", "z", "z.foo.example.com"))
    assert "z.foo.example.com" in hostnames(made)


def test_every_route_of_a_hostname_that_is_left_out_is_named() -> None:
    routes = [route("tenant-foo", "main", *many(64)), route("tenant-foo", "canary", *many(64))]
    made = planned(gateway(), *routes)
    assert [each.route for each in made.omitted] == [routes[1].id, routes[0].id]


@pytest.mark.parametrize("tenantgateway", EVERY_MODE)
def test_more_passthrough_services_than_listeners_leave_out_the_rest(tenantgateway: TenantGateway) -> None:
    services = [f"s{index:03}" for index in range(70)]
    made = planned(with_services(tenantgateway, *services))
    assert len(made.listeners) == MAX_LISTENERS
    assert set(omitted(made).values()) == {"ListenersTruncated"}
    assert len(made.omitted) == 70 - len(hostnames(made, "TLS"))


def test_a_certificate_holds_a_hundred_names_and_the_next_child_is_left_out() -> None:
    """GW-18: no certificate authority would sign it, and none of the names would be renewed."""
    tenantgateway = gateway(cert_mode="dns01")
    children = inheriting(*many(50, prefix="c"))
    made = planned(tenantgateway, inheriting=children)
    assert len(made.certificates[0].dns_names) == MAX_DNS_NAMES
    assert omitted(made) == {"c049.foo.example.com": "CertificateFull"}
    assert "*.c049.foo.example.com" not in hostnames(made)
    assert made.omitted[0].namespace == "tenant-c049"


def test_a_full_certificate_keeps_its_children() -> None:
    tenantgateway = gateway(cert_mode="dns01")
    before = planned(tenantgateway, inheriting=inheriting(*many(49, prefix="m")))
    made = planned(
        tenantgateway,
        inheriting=(*inheriting(*many(49, prefix="m")), *inheriting("a.foo.example.com")),
        current=as_made(tenantgateway, before),
    )
    assert made.certificates == before.certificates
    assert omitted(made) == {"a.foo.example.com": "CertificateFull"}


def test_children_beyond_sixty_four_listeners_are_left_out() -> None:
    """With a Secret of the operator's only the listeners count."""
    made = planned(
        gateway(cert_mode="existingSecret", wildcard_secret="ours"), inheriting=inheriting(*many(62, prefix="c"))
    )
    assert len(made.listeners) == MAX_LISTENERS
    assert omitted(made) == {"c061.foo.example.com": "ListenersTruncated"}


def test_two_hostnames_of_one_listener_name_do_not_stop_the_gateway() -> None:
    """32 bits of a hash are soon found twice: the one that is served stays."""
    first, second = _same_slug()
    served = planned(gateway(), route("tenant-foo", "app", second))
    made = planned(gateway(), route("tenant-foo", "app", first, second), current=as_made(gateway(), served))
    assert made.listeners == served.listeners
    assert omitted(made) == {first: "HostnameConflict"}


def _same_slug() -> tuple[str, str]:
    seen: dict[bytes, str] = {}
    for number in count():
        hostname = f"a.n{number:06}.foo.example.com"
        digest = sha256(hostname.encode()).digest()[:4]
        if digest in seen:
            return seen[digest], hostname
        seen[digest] = hostname
    raise AssertionError


def test_a_name_that_is_too_long_for_a_certificate_is_left_out() -> None:
    tenantgateway = gateway(name="t" * 230)
    made = planned(tenantgateway, route("tenant-foo", "app", f"{'a' * 40}.foo.example.com", "b.foo.example.com"))
    assert hostnames(made) == ["b.foo.example.com"]
    assert set(omitted(made).values()) == {"UnsupportedValue"}
    assert omitted(planned(gateway(name="t" * 250, cert_mode="dns01"))) == {"foo.example.com": "SecretMissing"}


def test_a_hostname_of_more_than_64_characters_is_served() -> None:
    """A certificate's common name could not hold it; there is none."""
    hostname = f"{'a' * 60}.{'b' * 60}.foo.example.com"
    made = planned(gateway(), route("tenant-foo", "app", hostname))
    assert made.certificates[0].dns_names == (hostname,)
