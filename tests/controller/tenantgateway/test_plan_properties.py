"""What holds of the plan of any TenantGateway, whatever its heirs and routes ask for."""

from __future__ import annotations

import re
from dataclasses import replace
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from controller.runtime.apply import drop_nulls, merge_patch
from controller.tenantgateway.hostname_ownership import claims
from controller.tenantgateway.listeners import MAX_DNS_NAMES, MAX_LISTENERS
from controller.tenantgateway.model import InheritingNamespace, ParentRef, Plan, Route, RouteKind, TenantGateway
from controller.tenantgateway.render.certificates import render_certificates
from controller.tenantgateway.render.gateway import render_gateway
from tests.controller.tenantgateway.gateway_builders import admitted, as_made, gateway, planned, route

APEX = "foo.example.com"
# of Gateway API
LISTENER_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
HOSTNAME = re.compile(rf"(\*\.)?{LISTENER_NAME.pattern}")

few_labels = st.sampled_from(["a", "b", "api", "harbor", "A", "xn--bcher-kva"])
odd_labels = st.sampled_from(["", "*", "a_b", "-a", "a-", "a" * 64, "a" * 63, "é", "1", " ", "\x00"])
labels = st.one_of(few_labels, few_labels, few_labels, odd_labels)
domains = st.sampled_from(
    [APEX, APEX, APEX, f"alice.{APEX}", "customer1.example", "evilfoo.example.com", "", "10.0.0.1"]
)
names = st.builds(lambda left, domain: ".".join([*left, domain]).strip("."), st.lists(labels, max_size=3), domains)
numbered = st.integers(0, 120).map(lambda number: f"n{number}.{APEX}")
hostnames = st.one_of(names, numbered)

namespaces = st.sampled_from(["cozy-a", "cozy-cert-manager", "default", "tenant-foo", "tenant-foo-alice", "tenant-z"])
parents = st.lists(
    st.builds(ParentRef, st.sampled_from(["", "http", "https", "tls-api"]), st.sampled_from([None, 80, 443])),
    min_size=1,
    max_size=2,
).map(tuple)
kinds: st.SearchStrategy[RouteKind] = st.sampled_from(["HTTPRoute", "HTTPRoute", "TLSRoute"])


@st.composite
def some_routes(draw: st.DrawFn) -> tuple[Route, ...]:
    ids = draw(st.sets(st.tuples(namespaces, st.sampled_from("abcd"), kinds), max_size=8))
    return tuple(
        route(namespace, name, *draw(st.lists(hostnames, max_size=16)), kind=kind, parents=draw(parents))
        for namespace, name, kind in sorted(ids)
    )


some_inheriting = st.lists(st.builds(InheritingNamespace, namespaces, hostnames), max_size=70).map(tuple)
some_gateways = st.builds(
    gateway,
    apex=st.sampled_from([APEX, APEX, APEX, "Foo.Example.Com", "", "*", f"{'a' * 60}." * 4 + "example.com"]),
    name=st.sampled_from(["cozystack", "cozystack", "t" * 200, "t" * 253]),
    cert_mode=st.sampled_from(["http01", "dns01", "existingSecret"]),
    wildcard_secret=st.sampled_from(["", "ours"]),
    passthrough=st.one_of(
        st.just(("api", "vm-exportproxy", "cdi-uploadproxy")),
        st.lists(labels, max_size=4).map(tuple),
        st.integers(55, 70).map(lambda number: tuple(f"s{index}" for index in range(number))),
    ),
)
many_examples = settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow], deadline=None)


def everything(made: Plan) -> tuple[object, ...]:
    """A plan but for what it says about one bad thing."""
    return made.listeners, made.certificates, made.ownership, made.plaintext


@many_examples
@given(some_gateways, some_inheriting, some_routes())
def test_the_gateway_is_one_that_gateway_api_admits(
    tenantgateway: TenantGateway, inheriting: tuple[InheritingNamespace, ...], routes: tuple[Route, ...]
) -> None:
    """FACT-2, FACT-4 to FACT-7, GW-4, GW-5, R-117, R-124."""
    made = planned(tenantgateway, *routes, inheriting=inheriting)
    apex = tenantgateway.apex.lower()
    assert 1 <= len(made.listeners) <= MAX_LISTENERS
    assert len({each.name for each in made.listeners}) == len(made.listeners)
    assert len({(each.port, each.protocol, each.hostname) for each in made.listeners}) == len(made.listeners)
    for each in made.listeners:
        assert LISTENER_NAME.fullmatch(each.name)
        assert len(each.name) <= 253
        if each.port == 443:
            assert HOSTNAME.fullmatch(each.hostname)
            assert len(each.hostname) <= 253
            assert each.hostname == apex or each.hostname.endswith(f".{apex}")
        assert (each.protocol == "HTTPS") == bool(each.certificate)
        assert tenantgateway.cert_mode != "http01" or "*" not in each.hostname


@many_examples
@given(some_gateways, some_inheriting, some_routes())
def test_every_certificate_can_be_signed_and_is_used(
    tenantgateway: TenantGateway, inheriting: tuple[InheritingNamespace, ...], routes: tuple[Route, ...]
) -> None:
    """GW-18, R-143, R-178."""
    made = planned(tenantgateway, *routes, inheriting=inheriting)
    assert {each.name for each in made.certificates} == (
        {each.certificate for each in made.listeners if each.certificate}
        if tenantgateway.cert_mode != "existingSecret"
        else set()
    )
    for each in made.certificates:
        assert len(each.name) <= 253
        assert 1 <= len(each.dns_names) <= MAX_DNS_NAMES
        assert len(set(each.dns_names)) == len(each.dns_names)
        assert all(HOSTNAME.fullmatch(name) and len(name) <= 253 for name in each.dns_names)


@many_examples
@given(some_gateways, some_inheriting, some_routes(), st.randoms(use_true_random=False))
def test_the_order_of_things_does_not_matter(
    tenantgateway: TenantGateway, inheriting: tuple[InheritingNamespace, ...], routes: tuple[Route, ...], random: Random
) -> None:
    """R-201."""
    shuffled_inheriting, shuffled_routes = list(inheriting), list(routes)
    random.shuffle(shuffled_inheriting)
    random.shuffle(shuffled_routes)
    services = list(tenantgateway.passthrough)
    random.shuffle(services)
    other = planned(
        replace(tenantgateway, passthrough=tuple(services)), *shuffled_routes, inheriting=tuple(shuffled_inheriting)
    )
    assert other == planned(tenantgateway, *routes, inheriting=inheriting)


@many_examples
@given(some_gateways, some_inheriting, some_routes())
def test_what_is_made_of_a_gateway_that_is_so_made_changes_nothing(
    tenantgateway: TenantGateway, inheriting: tuple[InheritingNamespace, ...], routes: tuple[Route, ...]
) -> None:
    """R-102."""
    current = as_made(tenantgateway, planned(tenantgateway, *routes, inheriting=inheriting))
    again = planned(tenantgateway, *routes, inheriting=inheriting, current=current)
    assert merge_patch(current, render_gateway(tenantgateway, again)) == {}


BAD = st.sampled_from(
    [
        "app.customer1.example",
        "evilfoo.example.com",
        "bad_name.foo.example.com",
        f"{'a' * 64}.{APEX}",
        "*",
        f"-a.{APEX}",
    ]
)


@many_examples
@given(some_gateways.filter(lambda each: each.apex == APEX), some_inheriting, some_routes(), BAD)
def test_a_bad_hostname_changes_nothing_of_the_others(
    tenantgateway: TenantGateway, inheriting: tuple[InheritingNamespace, ...], routes: tuple[Route, ...], bad: str
) -> None:
    """FACT-2, FACT-4, GW-5: a route of the best rank, which would win whatever it could."""
    first = route("cozy-0", "bad", bad)
    before, after = (
        planned(tenantgateway, *routes, inheriting=inheriting),
        planned(tenantgateway, *routes, first, inheriting=inheriting),
    )
    assert everything(after) == everything(before)
    assert [each.hostname for each in after.omitted if each.route == first.id] == [bad]
    assert [each for each in after.omitted if each.route != first.id] == list(before.omitted)


@many_examples
@given(
    some_gateways.filter(lambda each: each.apex == APEX),
    some_inheriting,
    some_routes(),
    BAD.filter(lambda bad: bad != "*"),
)
def test_a_bad_heir_changes_nothing_of_the_others(
    tenantgateway: TenantGateway, inheriting: tuple[InheritingNamespace, ...], routes: tuple[Route, ...], bad: str
) -> None:
    """PEER-22, GW-18."""
    before = planned(tenantgateway, *routes, inheriting=inheriting)
    assert everything(
        planned(tenantgateway, *routes, inheriting=(*inheriting, InheritingNamespace("tenant-bad", bad)))
    ) == everything(before)


@many_examples
@given(some_gateways, some_inheriting, some_routes(), numbered)
def test_one_more_route_takes_no_listener_that_is_there(
    tenantgateway: TenantGateway, inheriting: tuple[InheritingNamespace, ...], routes: tuple[Route, ...], hostname: str
) -> None:
    """GW-4: what works stays."""
    before = planned(tenantgateway, *routes, inheriting=inheriting)
    more = route("cozy-0", "more", hostname)
    after = planned(tenantgateway, *routes, more, inheriting=inheriting, current=as_made(tenantgateway, before))
    assert {each.name for each in before.listeners} <= {each.name for each in after.listeners}


@many_examples
@given(some_gateways, some_routes())
def test_every_hostname_that_is_claimed_is_owned_refused_or_left_out(
    tenantgateway: TenantGateway, routes: tuple[Route, ...]
) -> None:
    """R-204: nothing is dropped without a word."""
    made = planned(tenantgateway, *routes)
    omitted = {(each.route, each.hostname) for each in made.omitted}
    for each in filter(claims, routes):
        refused = {refusal.hostname for refusal in made.ownership.conflicts.get(each.id, ())}
        for hostname in {name.lower().removesuffix(".") for name in each.hostnames}:
            owner = made.ownership.owners.get(hostname)
            owned = owner is not None and owner.namespace == each.id.namespace
            assert owned or hostname in refused or (each.id, hostname) in omitted
    assert all(each.message and each.reason for each in made.omitted)


@settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(some_gateways, some_inheriting, some_routes())
def test_the_schemas_take_whatever_is_rendered(
    tenantgateway: TenantGateway, inheriting: tuple[InheritingNamespace, ...], routes: tuple[Route, ...]
) -> None:
    made = planned(tenantgateway, *routes, inheriting=inheriting)
    admitted(
        "gateway-api/gateway.networking.k8s.io_gateways.yaml",
        drop_nulls(render_gateway(tenantgateway, made)),
        api_version="gateway.networking.k8s.io/v1",
        kind="Gateway",
    )
    for each in render_certificates(tenantgateway, made):
        admitted(
            "cert-manager/cert-manager.io_certificates.yaml",
            each,
            api_version="cert-manager.io/v1",
            kind="Certificate",
        )


@pytest.mark.parametrize("mode", ["http01", "dns01", "existingSecret"])
def test_the_empty_apex_is_survived(mode: str) -> None:
    """FACT-9."""
    assert [each.name for each in planned(gateway(apex="", cert_mode=mode)).listeners] == ["http"]
