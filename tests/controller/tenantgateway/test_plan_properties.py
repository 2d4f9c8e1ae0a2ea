"""Properties of the plan of any TenantGateway, with any inheriting namespaces and routes."""

from __future__ import annotations

import re
from dataclasses import replace
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from controller.runtime.apply import create_merge_patch, drop_nulls
from controller.tenantgateway.hostname_ownership import claims
from controller.tenantgateway.listeners import MAX_DNS_NAMES, MAX_LISTENERS
from controller.tenantgateway.model import InheritingNamespace, ParentRef, Plan, Route, RouteKind, TenantGateway
from controller.tenantgateway.render.certificates import render_certificates
from controller.tenantgateway.render.gateway import render_gateway
from tests.controller.tenantgateway.gateway_builders import assert_admitted, existing_gateway, gateway, planned, route

APEX = "foo.example.com"
# patterns of Gateway API
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
def any_routes(draw: st.DrawFn) -> tuple[Route, ...]:
    ids = draw(st.sets(st.tuples(namespaces, st.sampled_from("abcd"), kinds), max_size=8))
    return tuple(
        route(namespace, name, *draw(st.lists(hostnames, max_size=16)), kind=kind, parents=draw(parents))
        for namespace, name, kind in sorted(ids)
    )


any_inheriting = st.lists(st.builds(InheritingNamespace, namespaces, hostnames), max_size=70).map(tuple)
any_tenantgateways = st.builds(
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


def without_omitted(plan: Plan) -> tuple[object, ...]:
    """The plan except for its omitted hostnames."""
    return plan.listeners, plan.certificates, plan.ownership, plan.plaintext


@many_examples
@given(any_tenantgateways, any_inheriting, any_routes())
def test_every_planned_gateway_is_valid_for_gateway_api(
    tenantgateway: TenantGateway, inheriting: tuple[InheritingNamespace, ...], routes: tuple[Route, ...]
) -> None:
    """FACT-2, FACT-4 to FACT-7, GW-4, GW-5, R-117, R-124."""
    plan = planned(tenantgateway, *routes, inheriting=inheriting)
    apex = tenantgateway.apex.lower()
    assert 1 <= len(plan.listeners) <= MAX_LISTENERS
    assert len({each.name for each in plan.listeners}) == len(plan.listeners)
    assert len({(each.port, each.protocol, each.hostname) for each in plan.listeners}) == len(plan.listeners)
    for each in plan.listeners:
        assert LISTENER_NAME.fullmatch(each.name)
        assert len(each.name) <= 253
        if each.port == 443:
            assert HOSTNAME.fullmatch(each.hostname)
            assert len(each.hostname) <= 253
            assert each.hostname == apex or each.hostname.endswith(f".{apex}")
        assert (each.protocol == "HTTPS") == bool(each.certificate)
        assert tenantgateway.cert_mode != "http01" or "*" not in each.hostname


@many_examples
@given(any_tenantgateways, any_inheriting, any_routes())
def test_every_certificate_can_be_signed_and_is_used(
    tenantgateway: TenantGateway, inheriting: tuple[InheritingNamespace, ...], routes: tuple[Route, ...]
) -> None:
    """GW-18, R-143, R-178."""
    plan = planned(tenantgateway, *routes, inheriting=inheriting)
    assert {each.name for each in plan.certificates} == (
        {each.certificate for each in plan.listeners if each.certificate}
        if tenantgateway.cert_mode != "existingSecret"
        else set()
    )
    for each in plan.certificates:
        assert len(each.name) <= 253
        assert 1 <= len(each.dns_names) <= MAX_DNS_NAMES
        assert len(set(each.dns_names)) == len(each.dns_names)
        assert all(HOSTNAME.fullmatch(name) and len(name) <= 253 for name in each.dns_names)


@many_examples
@given(any_tenantgateways, any_inheriting, any_routes(), st.randoms(use_true_random=False))
def test_the_plan_does_not_depend_on_the_order_of_its_input(
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
@given(any_tenantgateways, any_inheriting, any_routes())
def test_planning_a_gateway_again_changes_nothing(
    tenantgateway: TenantGateway, inheriting: tuple[InheritingNamespace, ...], routes: tuple[Route, ...]
) -> None:
    """R-102."""
    current = existing_gateway(tenantgateway, planned(tenantgateway, *routes, inheriting=inheriting))
    again = planned(tenantgateway, *routes, inheriting=inheriting, current=current)
    assert create_merge_patch(current, render_gateway(tenantgateway, again)) == {}


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
@given(any_tenantgateways.filter(lambda each: each.apex == APEX), any_inheriting, any_routes(), BAD)
def test_an_invalid_hostname_changes_nothing_else(
    tenantgateway: TenantGateway, inheriting: tuple[InheritingNamespace, ...], routes: tuple[Route, ...], bad: str
) -> None:
    """FACT-2, FACT-4, GW-5: even on a route of the highest rank."""
    first = route("cozy-0", "bad", bad)
    before, after = (
        planned(tenantgateway, *routes, inheriting=inheriting),
        planned(tenantgateway, *routes, first, inheriting=inheriting),
    )
    assert without_omitted(after) == without_omitted(before)
    assert [each.hostname for each in after.omitted if each.route == first.id] == [bad]
    assert [each for each in after.omitted if each.route != first.id] == list(before.omitted)


@many_examples
@given(
    any_tenantgateways.filter(lambda each: each.apex == APEX),
    any_inheriting,
    any_routes(),
    BAD.filter(lambda bad: bad != "*"),
)
def test_an_invalid_inheriting_namespace_changes_nothing_else(
    tenantgateway: TenantGateway, inheriting: tuple[InheritingNamespace, ...], routes: tuple[Route, ...], bad: str
) -> None:
    """PEER-22, GW-18."""
    before = planned(tenantgateway, *routes, inheriting=inheriting)
    assert without_omitted(
        planned(tenantgateway, *routes, inheriting=(*inheriting, InheritingNamespace("tenant-bad", bad)))
    ) == without_omitted(before)


@many_examples
@given(any_tenantgateways, any_inheriting, any_routes(), numbered)
def test_a_new_route_removes_no_existing_listener(
    tenantgateway: TenantGateway, inheriting: tuple[InheritingNamespace, ...], routes: tuple[Route, ...], hostname: str
) -> None:
    """GW-4: existing listeners are kept."""
    before = planned(tenantgateway, *routes, inheriting=inheriting)
    more = route("cozy-0", "more", hostname)
    after = planned(
        tenantgateway, *routes, more, inheriting=inheriting, current=existing_gateway(tenantgateway, before)
    )
    assert {each.name for each in before.listeners} <= {each.name for each in after.listeners}


@many_examples
@given(any_tenantgateways, any_routes())
def test_every_claimed_hostname_is_owned_lost_or_omitted(
    tenantgateway: TenantGateway, routes: tuple[Route, ...]
) -> None:
    """R-204: no hostname is dropped without a message."""
    plan = planned(tenantgateway, *routes)
    omitted = {(each.route, each.hostname) for each in plan.omitted}
    for each in filter(claims, routes):
        refused = {refusal.hostname for refusal in plan.ownership.conflicts.get(each.id, ())}
        for hostname in {name.lower().removesuffix(".") for name in each.hostnames}:
            owner = plan.ownership.owners.get(hostname)
            owned = owner is not None and owner.namespace == each.id.namespace
            assert owned or hostname in refused or (each.id, hostname) in omitted
    assert all(each.message and each.reason for each in plan.omitted)


@settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(any_tenantgateways, any_inheriting, any_routes())
def test_every_rendered_object_is_valid_by_its_schema(
    tenantgateway: TenantGateway, inheriting: tuple[InheritingNamespace, ...], routes: tuple[Route, ...]
) -> None:
    plan = planned(tenantgateway, *routes, inheriting=inheriting)
    assert_admitted(
        "gateway-api/gateway.networking.k8s.io_gateways.yaml",
        drop_nulls(render_gateway(tenantgateway, plan)),
        api_version="gateway.networking.k8s.io/v1",
        kind="Gateway",
    )
    for each in render_certificates(tenantgateway, plan):
        assert_admitted(
            "cert-manager/cert-manager.io_certificates.yaml",
            each,
            api_version="cert-manager.io/v1",
            kind="Certificate",
        )


@pytest.mark.parametrize("mode", ["http01", "dns01", "existingSecret"])
def test_an_empty_apex_leaves_only_the_http_listener(mode: str) -> None:
    """FACT-9."""
    assert [each.name for each in planned(gateway(apex="", cert_mode=mode)).listeners] == ["http"]
