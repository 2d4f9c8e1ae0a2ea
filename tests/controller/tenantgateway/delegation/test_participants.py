"""Routes as roots and vertices, and what a vertex may not have."""

from __future__ import annotations

from typing import Any

import pytest

from apiserver.meta.resource import Key, Object
from controller.tenantgateway.delegation.model import Participant
from controller.tenantgateway.delegation.participants import participant
from controller.tenantgateway.model import RouteId
from registry.tenantgateway.types import GROUP
from tests.controller.tenantgateway.delegation.delegation_world import delegating, matching, parent_refs, serving

TENANTGATEWAY = {"group": GROUP, "kind": "TenantGateway", "name": "cozystack"}
FINANCE = RouteId("tenant-finance", "finance", "HTTPRoute")


def route(*rules: Object, parents: list[Object], hostnames: tuple[str, ...] = (), **metadata: Any) -> Object:
    spec = {"parentRefs": parents, "hostnames": list(hostnames), "rules": list(rules)}
    return {"metadata": {"namespace": "tenant-a", "name": "r", "uid": "u", **metadata}, "spec": spec}


def vertex(*rules: Object, **fields: Any) -> Participant:
    found = participant(route(*rules, parents=parent_refs("tenant-root/www"), **fields), "HTTPRoute")
    assert found is not None
    return found


def test_a_root_names_a_tenantgateway_and_a_vertex_a_route() -> None:
    """R-344."""
    root = participant(
        route(delegating("/finance", str(FINANCE)), parents=[TENANTGATEWAY], hostnames=("A.example.org",)), "HTTPRoute"
    )
    assert root is not None
    assert (root.hostnames, root.gateways, root.parents) == (("a.example.org",), (Key("tenant-a", "cozystack"),), ())
    assert (root.targets, root.served, root.problem) == ((FINANCE,), [], "")
    found = vertex(serving("/finance"))
    assert (found.parents, found.gateways) == ((RouteId("tenant-root", "www", "HTTPRoute"),), ())
    assert (found.served, found.vertex_problem) == ([serving("/finance")], "")


@pytest.mark.parametrize(
    "obj",
    [
        pytest.param(route(parents=[{"name": "cozystack"}]), id="a Gateway"),
        pytest.param(route(parents=[]), id="nothing"),
        pytest.param(route(parents=[{"group": "", "kind": "Service", "name": "web"}]), id="a Service"),
        pytest.param(route(parents=[{"kind": "GRPCRoute", "name": "www"}]), id="a route of another kind"),
        pytest.param(route(parents=[{"group": "example.org", "kind": "HTTPRoute", "name": "www"}]), id="another group"),
        pytest.param(route(parents=[{**TENANTGATEWAY, "group": "example.org"}]), id="a TenantGateway of another group"),
        pytest.param(route(parents=[{"kind": "HTTPRoute"}]), id="no name"),
        pytest.param(route(parents=[TENANTGATEWAY], deletionTimestamp="2026-01-01T00:00:00Z"), id="being deleted"),
    ],
)
def test_routes_to_others_take_no_part(obj: Object) -> None:
    assert participant(obj, "HTTPRoute") is None


@pytest.mark.parametrize(
    ("rule", "problem"),
    [
        pytest.param({**delegating("/a", "x/y"), "filters": [{"type": "CORS"}]}, "rule 1 delegates", id="filters"),
        pytest.param({**delegating("/a", "x/y"), "timeouts": {"request": "1s"}}, "rule 1 delegates", id="timeouts"),
        pytest.param(
            {"backendRefs": [*delegating("/a", "x/y")["backendRefs"], {"name": "web", "port": 80}]},
            "rule 1 delegates",
            id="a Service beside",
        ),
        pytest.param(
            {**delegating("/a", "x/y"), "matches": [{"path": {"type": "RegularExpression", "value": "/a"}}]},
            "rule 1 delegates a path that is neither",
            id="a regular expression",
        ),
    ],
)
def test_a_rule_that_delegates_does_nothing_else(rule: Object, problem: str) -> None:
    """R-352."""
    found = participant(route(rule, parents=[TENANTGATEWAY], hostnames=("a.example.org",)), "HTTPRoute")
    assert found is not None
    assert found.problem.startswith(problem)


MIRROR = {"type": "RequestMirror", "requestMirror": {"backendRef": {"name": "copy", "port": 80}}}
ELSEWHERE = {"type": "RequestMirror", "requestMirror": {"backendRef": {"name": "copy", "namespace": "x", "port": 80}}}
EXTENSION = {"type": "ExtensionRef", "extensionRef": {"group": "example.org", "kind": "Auth", "name": "a"}}
AUTH = {"type": "ExternalAuth", "externalAuth": {"backendRef": {"name": "auth", "port": 80}}}
HEADER = {"type": "RequestHeaderModifier", "requestHeaderModifier": {"remove": ["x"]}}


@pytest.mark.parametrize(
    ("rule", "problem"),
    [
        pytest.param(serving("/a"), "", id="a Service of its own"),
        pytest.param({**serving("/a"), "filters": [MIRROR, HEADER]}, "", id="a mirror of its own"),
        pytest.param({**serving("/a"), "timeouts": {"request": "1s"}, "retry": {"attempts": 1}}, "", id="settings"),
        pytest.param(
            {"backendRefs": [{"name": "web", "namespace": "tenant-b", "port": 80}]},
            "Service tenant-b/web: a delegated route refers to Services of its own namespace only",
            id="a Service elsewhere",
        ),
        pytest.param(
            {"backendRefs": [{"group": "example.org", "kind": "Bucket", "name": "b"}]},
            "Bucket tenant-a/b: a delegated route refers to Services of its own namespace only",
            id="another kind",
        ),
        pytest.param({**serving("/a"), "filters": [ELSEWHERE]}, "Service x/copy: a delegated", id="a mirror elsewhere"),
        pytest.param({**serving("/a"), "filters": [EXTENSION]}, "the filter extensionRef", id="an extension"),
        pytest.param({**serving("/a"), "filters": [AUTH]}, "the filter externalAuth", id="external authorization"),
        pytest.param(
            {"backendRefs": [{"name": "web", "port": 80, "filters": [EXTENSION]}]},
            "the filter extensionRef",
            id="an extension of a backend",
        ),
        pytest.param({**serving("/a"), "policyRef": {"name": "x"}}, "the field policyRef", id="a field to come"),
        pytest.param(
            {"backendRefs": [{"name": "web", "port": 80, "tls": {}}]},
            "the field tls",
            id="a field of a backend to come",
        ),
        pytest.param(
            {**serving("/a"), "matches": [{"path": {"type": "RegularExpression", "value": "/a"}}]},
            "rule 1 matches a path that is neither Exact nor PathPrefix",
            id="a regular expression",
        ),
        pytest.param({**serving("/a"), "matches": matching("/a/../b")}, "or unclear", id="an unclear path"),
    ],
)
def test_a_vertex_names_nothing_outside_of_its_namespace(rule: Object, problem: str) -> None:
    """R-354, R-378: its rules are copied to the namespace of its root, whose consents must not count for it."""
    found = vertex(rule).vertex_problem
    assert problem in found
    assert bool(problem) == bool(found)


def test_a_vertex_has_no_hostnames() -> None:
    """R-344."""
    assert vertex(serving("/a"), hostnames=("a.example.org",)).vertex_problem == "a delegated route has no hostnames"


def test_a_target_without_a_namespace_is_in_that_of_the_route() -> None:
    """R-353."""
    backend = {"group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "name": "next"}
    found = vertex({"matches": matching("/a"), "backendRefs": [backend]})
    assert found.targets == (RouteId("tenant-a", "next", "HTTPRoute"),)
