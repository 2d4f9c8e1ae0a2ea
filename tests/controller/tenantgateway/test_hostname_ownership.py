"""Exactly one of the routes that claim a hostname owns it."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.tenantgateway.hostname_ownership import resolve_ownership
from controller.tenantgateway.model import HostnameConflict, ParentRef, Route, RouteId
from tests.controller.tenantgateway.gateway_builders import route

HARBOR = "harbor.foo.example.com"


def owner_of(hostname: str, *routes: Route) -> str:
    return str(resolve_ownership(routes).owners[hostname])


def losers(*routes: Route) -> dict[str, list[str]]:
    """Hostnames by the route that loses them."""
    return {str(loser): [each.hostname for each in lost] for loser, lost in resolve_ownership(routes).conflicts.items()}


@pytest.mark.parametrize(
    ("routes", "winner"),
    [
        pytest.param(
            [route("cozy-harbor", "harbor", HARBOR), route("tenant-foo", "shadow", HARBOR)],
            "cozy-harbor/harbor",
            id="R-199: a platform namespace wins over a tenant's",
        ),
        pytest.param(
            [route("a-tenant", "first", HARBOR), route("cozy-z", "z", HARBOR)],
            "cozy-z/z",
            id="R-199, GW-8: regardless of names and age",
        ),
        pytest.param(
            [route("tenant-a", "z", HARBOR), route("tenant-b", "a", HARBOR)],
            "tenant-a/z",
            id="R-200: the namespace is compared before the name",
        ),
        pytest.param(
            [route("cozy-a", "x", HARBOR), route("cozy-b", "a", HARBOR)],
            "cozy-a/x",
            id="R-200: also among platform namespaces",
        ),
        pytest.param(
            [route("tenant-foo", "x", HARBOR), route("tenant-foo-bar", "x", HARBOR)],
            "tenant-foo/x",
            id="CHOICE-11: pairs are compared, not joined text, in which a dash sorts before a slash",
        ),
        pytest.param(
            [route("cozyharbor", "a", HARBOR), route("cozy-harbor", "b", HARBOR)],
            "cozy-harbor/b",
            id="cozyharbor is not a platform namespace",
        ),
    ],
)
def test_the_platform_and_then_the_smallest_name_wins_a_hostname(routes: list[Route], winner: str) -> None:
    """R-199 to R-201."""
    assert owner_of(HARBOR, *routes) == winner
    assert owner_of(HARBOR, *reversed(routes)) == winner


def test_a_conflict_names_hostname_and_winner() -> None:
    """R-204, PEER-06, GW-16."""
    won, lost = route("cozy-harbor", "harbor", HARBOR), route("tenant-foo", "shadow", HARBOR)
    assert resolve_ownership([lost, won]).conflicts == {lost.id: (HostnameConflict(HARBOR, won.id, HARBOR),)}


def test_routes_of_one_namespace_share_a_hostname() -> None:
    """R-207."""
    assert losers(route("cozy-harbor", "main", HARBOR), route("cozy-harbor", "canary", HARBOR)) == {}


def test_tlsroutes_claim_hostnames_like_httproutes() -> None:
    """R-208."""
    tls = route("tenant-foo", "tls", HARBOR, kind="TLSRoute")
    ownership = resolve_ownership([tls, route("cozy-x", "http", HARBOR)])
    assert list(ownership.conflicts) == [tls.id]
    assert ownership.owners[HARBOR] == RouteId("cozy-x", "http", "HTTPRoute")


def test_a_losing_route_keeps_its_other_hostnames() -> None:
    """R-206: another hostname resolves the conflict."""
    ownership = resolve_ownership([route("cozy-a", "a", HARBOR), route("tenant-b", "b", HARBOR, "b.foo.example.com")])
    assert str(ownership.owners["b.foo.example.com"]) == "tenant-b/b"


@pytest.mark.parametrize(
    ("winning", "losing", "overlap"),
    [
        pytest.param("*.example.com", "a.example.com", True, id="GW-9: a wildcard covers a hostname below it"),
        pytest.param("a.example.com", "*.example.com", True, id="GW-9: a hostname blocks a wildcard above it"),
        pytest.param("*.example.com", "a.b.example.com", True, id="at any depth"),
        pytest.param("*.example.com", "*.b.example.com", True, id="a wildcard covers a wildcard below it"),
        pytest.param("*.b.example.com", "*.example.com", True, id="a wildcard blocks a wildcard above it"),
        pytest.param("*.example.com", "example.com", False, id="a wildcard does not cover the domain itself"),
        pytest.param("*.example.com", "a.evilexample.com", False, id="a domain with the same suffix"),
        pytest.param("*.a.example.com", "*.b.example.com", False, id="siblings"),
        pytest.param("a.example.com", "b.a.example.com", False, id="a hostname covers no other"),
        pytest.param("A.Example.Com", "a.example.com.", True, id="FACT-5, ATTACK-08: spellings are normalized"),
    ],
)
def test_wildcards_and_exact_hostnames_overlap(winning: str, losing: str, overlap: bool) -> None:
    found = losers(route("cozy-a", "a", winning), route("tenant-b", "b", losing))
    assert found == ({"tenant-b/b": [losing.lower().removesuffix(".")]} if overlap else {})


def test_an_overlap_names_the_hostname_of_the_winner() -> None:
    ownership = resolve_ownership([route("cozy-b", "all", "*.example.com"), route("tenant-c", "c", "c.example.com")])
    (api_errors,) = ownership.conflicts.values()
    assert [each.winning_hostname for each in api_errors] == ["*.example.com"]


def test_a_refused_claim_blocks_no_other_claim() -> None:
    """A third route may use a hostname that only the losing wildcard would have covered."""
    first = route("tenant-a", "a", "a.example.com")
    wildcard = route("tenant-b", "b", "*.example.com")
    third = route("tenant-c", "c", "c.example.com")
    assert losers(third, wildcard, first) == {"tenant-b/b": ["*.example.com"]}


@pytest.mark.parametrize(
    ("parents", "claims"),
    [
        pytest.param((ParentRef(section="http"),), False, id="FACT-3, GW-10: section http, as ACME solvers use"),
        pytest.param((ParentRef(port=80),), False, id="on port 80"),
        pytest.param((ParentRef(section="http"), ParentRef(port=80)), False, id="on both"),
        pytest.param((ParentRef(section="http"), ParentRef(section="https")), True, id="on http and https"),
        pytest.param((ParentRef(),), True, id="no section and no port"),
        pytest.param((ParentRef(port=443),), True, id="on port 443"),
    ],
)
def test_a_route_on_port_80_alone_claims_nothing(parents: tuple[ParentRef, ...], claims: bool) -> None:
    """FACT-3, CHOICE-7, R-285: otherwise an application would lose its hostname during a renewal."""
    solver = route("cozy-cert-manager", "cm-acme-http-solver-x", HARBOR, parents=parents)
    assert owner_of(HARBOR, route("tenant-b", "app", HARBOR), solver) == str(solver.id if claims else "tenant-b/app")


def test_a_route_without_hostnames_claims_none() -> None:
    """R-187."""
    ownership = resolve_ownership([route("tenant-a", "all"), route("tenant-b", "b", HARBOR)])
    assert ownership.conflicts == {}
    assert list(ownership.owners) == [HARBOR]


NAMESPACES = st.sampled_from(["cozy-a", "cozy-b", "tenant-a", "tenant-a-b", "tenant-b"])
HOSTNAMES = st.sampled_from(
    ["example.com", "*.example.com", "a.example.com", "*.a.example.com", "b.a.example.com", "c.example.com"]
)


@st.composite
def routes_of_a_gateway(draw: st.DrawFn) -> list[Route]:
    ids = draw(st.sets(st.tuples(NAMESPACES, st.sampled_from("abc")), max_size=8))
    return [route(namespace, name, *draw(st.sets(HOSTNAMES, max_size=3))) for namespace, name in sorted(ids)]


@given(routes_of_a_gateway(), st.randoms(use_true_random=False))
def test_ownership_does_not_depend_on_the_order_of_routes(routes: list[Route], random: Random) -> None:
    """R-201."""
    shuffled = list(routes)
    random.shuffle(shuffled)
    assert resolve_ownership(shuffled) == resolve_ownership(routes)


@given(routes_of_a_gateway())
def test_every_claim_is_granted_or_loses_to_the_owner(routes: list[Route]) -> None:
    ownership = resolve_ownership(routes)
    for each in routes:
        refused = {conflict.hostname: conflict for conflict in ownership.conflicts.get(each.id, ())}
        for hostname in each.hostnames:
            if hostname in refused:
                assert ownership.owners[refused[hostname].winning_hostname] == refused[hostname].winner
                assert refused[hostname].winner.namespace != each.id.namespace
            else:
                assert ownership.owners[hostname].namespace == each.id.namespace
