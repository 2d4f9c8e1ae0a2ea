"""Names and contents of flat routes."""

from __future__ import annotations

import re

import pytest

from apiserver.meta.resource import Key
from controller.tenantgateway.delegation.flat_routes import flat_name, parse_flat_route, render_flat_route, vertex_label
from controller.tenantgateway.delegation.model import FlatRoute, Participant
from controller.tenantgateway.model import RouteId
from tests.controller.golden_files import assert_golden
from tests.controller.tenantgateway.delegation.delegation_world import matching, serving
from tests.controller.tenantgateway.gateway_builders import assert_admitted
from tests.controller.tenantgateway.test_render import HTTPROUTE_CRD

WWW = RouteId("tenant-root", "www", "HTTPRoute")
FINANCE = RouteId("tenant-finance", "finance", "HTTPRoute")
API_VERSION = "gateway.networking.k8s.io/v1"
MIRROR = {"type": "RequestMirror", "requestMirror": {"backendRef": {"name": "copy", "port": 80}, "percent": 10}}
RULES = [
    {**serving("/finance"), "name": "web", "filters": [MIRROR], "timeouts": {"request": "10s"}},
    {
        "matches": matching("/finance/reports"),
        "backendRefs": [{"name": "reports", "port": 8080, "weight": 1, "filters": [MIRROR]}],
    },
]


def root(*served: object) -> Participant:
    return Participant(
        id=WWW,
        uid="uid-of-www",
        hostnames=("a.example.org", "www.example.org"),
        gateways=(Key("tenant-root", "cozystack"),),
        served=[dict(each) for each in served if isinstance(each, dict)],
    )


def finance() -> Participant:
    return Participant(id=FINANCE, uid="uid-of-finance", parents=(WWW,), served=RULES)


def test_a_rule_with_several_services_keeps_them_all_in_its_order_and_with_their_weights() -> None:
    """R-351, R-355: rules and backends are neither sorted nor merged; Gateway API orders the matches."""
    weighted = [{"name": name, "port": 80, "weight": weight} for name, weight in (("web", 9), ("canary", 1))]
    rules = [{"matches": matching("/finance"), "backendRefs": weighted}, serving("/finance/reports")]
    vertex = Participant(id=FINANCE, uid="uid-of-finance", parents=(WWW,), served=rules)
    spec = render_flat_route(FlatRoute(root(), vertex), api_version=API_VERSION)["spec"]
    assert [each["matches"] for each in spec["rules"]] == [each["matches"] for each in rules]
    assert spec["rules"][0]["backendRefs"] == [{**each, "namespace": FINANCE.namespace} for each in weighted]


@pytest.mark.parametrize(
    ("name", "flat"),
    [
        pytest.param("flat-route-of-vertex", FlatRoute(root(), finance()), id="of a vertex"),
        pytest.param(
            "flat-route-of-root", FlatRoute(root(serving("/")), root(serving("/", service="home"))), id="of a root"
        ),
    ],
)
def test_a_flat_route_is_as_in_the_golden_file(name: str, flat: FlatRoute) -> None:
    """R-356, R-358: hostnames and Gateway are those of the root, and so are listener and certificate."""
    rendered = render_flat_route(flat, api_version=API_VERSION)
    assert_golden(f"tenantgateway/{name}", rendered)
    assert_admitted(HTTPROUTE_CRD, rendered, api_version=API_VERSION, kind="HTTPRoute")


def test_a_flat_route_names_the_objects_with_the_listeners() -> None:
    """The Gateway on port 443 only, because port 80 redirects; ListenerSets by their names (GEP-1713)."""
    rendered = render_flat_route(
        FlatRoute(root(), finance()), api_version=API_VERSION, places_of=lambda gateway, hostnames: ("", "cozystack-2")
    )
    parent = {"group": "gateway.networking.k8s.io", "namespace": "tenant-root"}
    assert rendered["spec"]["parentRefs"] == [
        {**parent, "kind": "Gateway", "name": "cozystack", "port": 443},
        {**parent, "kind": "ListenerSet", "name": "cozystack-2"},
    ]
    assert_admitted(HTTPROUTE_CRD, rendered, api_version=API_VERSION, kind="HTTPRoute")


def test_a_flat_route_is_known_again() -> None:
    rendered = render_flat_route(FlatRoute(root(), finance()), api_version=API_VERSION)
    found = parse_flat_route(rendered, "HTTPRoute")
    assert found is not None
    assert (found.root, found.root_uid, found.vertex) == (WWW, "uid-of-www", vertex_label(FINANCE))
    rendered["metadata"]["ownerReferences"] = []
    assert parse_flat_route(rendered, "HTTPRoute") is None


def test_names_tell_the_root_and_the_vertex_apart() -> None:
    other = RouteId("tenant-finance", "other", "HTTPRoute")
    assert re.fullmatch(r"www-[0-9a-f]{8}", flat_name(WWW, FINANCE))
    assert re.fullmatch(r"www-own-[0-9a-f]{8}", flat_name(WWW, WWW))
    assert len({flat_name(WWW, each) for each in (FINANCE, other, WWW)}) == 3


@pytest.mark.parametrize("length", [240, 244, 245, 249, 253])
def test_long_names_are_cut_and_stay_different(length: int) -> None:
    roots = [RouteId("tenant-root", f"{'a' * (length - 2)}.{end}", "HTTPRoute") for end in "bc"]
    names = [flat_name(each, content) for each in roots for content in (FINANCE, each)]
    assert max(map(len, names)) <= 253
    assert len(set(names)) == 4
    assert all(re.fullmatch(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*", each) for each in names)
