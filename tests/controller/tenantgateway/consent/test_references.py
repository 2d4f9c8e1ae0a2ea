"""The objects that a route refers to."""

from __future__ import annotations

from typing import Any

import pytest

from apiserver.meta.resource import Object
from controller.tenantgateway.consent.references import Reference, references, slim_route


def route(*rules: Any, name: str = "app") -> Object:
    return {"metadata": {"namespace": "guest", "name": name}, "spec": {"hostnames": ["a.example"], "rules": [*rules]}}


def service(namespace: str, name: str) -> Reference:
    return Reference("", "Service", namespace, name)


WEB = {"name": "web", "namespace": "shop"}
MIRROR = {"type": "RequestMirror", "requestMirror": {"backendRef": WEB}}
AUTH = {"type": "ExternalAuth", "externalAuth": {"protocol": "GRPC", "backendRef": WEB}}
EXTENSION = {"type": "ExtensionRef", "extensionRef": {"group": "x.example", "kind": "Rule", "name": "web"}}


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        pytest.param({"backendRefs": [{"name": "web"}]}, [service("guest", "web")], id="R-376: its own namespace"),
        pytest.param({"backendRefs": [WEB]}, [service("shop", "web")], id="another namespace"),
        pytest.param({"backendRefs": [WEB, {**WEB, "port": 81}]}, [service("shop", "web")], id="each once"),
        pytest.param(
            {"backendRefs": [{**WEB, "group": "gateway.networking.k8s.io", "kind": "HTTPRoute"}]},
            [Reference("gateway.networking.k8s.io", "HTTPRoute", "shop", "web")],
            id="another kind",
        ),
        pytest.param({"filters": [MIRROR]}, [service("shop", "web")], id="a mirror of a rule"),
        pytest.param({"filters": [AUTH]}, [service("shop", "web")], id="an authorization server"),
        pytest.param(
            {"backendRefs": [{"name": "own", "filters": [MIRROR]}]},
            [service("guest", "own"), service("shop", "web")],
            id="a mirror of a backend",
        ),
        pytest.param({"filters": [EXTENSION]}, [], id="an extension has no namespace"),
        pytest.param({"backendRefs": [{"namespace": "shop"}, "web", None], "filters": {"a": 1}}, [], id="malformed"),
        pytest.param({}, [], id="none"),
    ],
)
def test_the_rules_of_a_route_refer_to_objects(rule: Any, expected: list[Reference]) -> None:
    assert references(route(rule)) == expected


@pytest.mark.parametrize(
    ("rules", "stored"),
    [
        pytest.param([{"backendRefs": [{"name": "web", "port": 80}]}], [], id="none to other namespaces"),
        pytest.param(
            [{"matches": [{}], "backendRefs": [{**WEB, "port": 80}]}, {"backendRefs": [{"name": "own"}]}],
            [service("guest", "own"), service("shop", "web")],
            id="some",
        ),
    ],
)
def test_the_store_keeps_references_only_if_one_leaves_the_namespace(rules: Any, stored: list[Reference]) -> None:
    """The stored object refers to the same objects."""
    obj = route(*rules)
    slim = slim_route(obj)
    assert references(slim) == stored
    assert "matches" not in str(slim)
    assert slim_route(slim) == slim
    assert obj == route(*rules)
