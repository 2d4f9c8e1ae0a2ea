"""The guard reads objects that others write, and may have written wrong."""

from __future__ import annotations

from typing import Any

import pytest

from apiserver.meta.resource import Key, Object
from controller.publishing import facts
from controller.publishing.facts import Parent, PublishedIngress, PublishedListener, ServicePorts
from controller.tenantgateway.names import CONTROLLER_NAME

GATEWAY = Key("tenant-root", "cozystack")
PARENT = {"namespace": "tenant-root", "name": "cozystack"}


def conditions(accepted: str = "True", resolved: str = "True", generation: int = 2) -> list[Object]:
    return [
        {"type": type_, "status": status, "reason": "Because", "observedGeneration": generation}
        for type_, status in (("Accepted", accepted), ("ResolvedRefs", resolved))
    ]


def entry(found: Any, controller: str = "io.cilium/gateway-controller", parent: Object | None = None) -> Object:
    return {"parentRef": parent or PARENT, "controllerName": controller, "conditions": found}


def dashboard(*entries: Object, name: str = "dashboard") -> Object:
    return {
        "metadata": {"namespace": "cozy-dashboard", "name": name, "generation": 2},
        "spec": {"hostnames": ["Dashboard.example.org"], "parentRefs": [PARENT]},
        "status": {"parents": list(entries)},
    }


CONFLICT = [{"type": "Accepted", "status": "False", "reason": "HostnameConflict"}]


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        pytest.param([], Parent(), id="no status"),
        pytest.param([entry(conditions())], Parent(accepted=True), id="accepted"),
        pytest.param(
            [entry(conditions(resolved="False"))], Parent(problem="ResolvedRefs is False: Because"), id="no backend"
        ),
        pytest.param([entry(conditions(generation=1))], Parent(problem="Accepted is not decided yet"), id="stale"),
        pytest.param([entry("x")], Parent(problem="Accepted is not decided yet"), id="malformed"),
        pytest.param(
            [entry(conditions(), parent={"namespace": "tenant-alice", "name": "cozystack"})],
            Parent(),
            id="another Gateway",
        ),
        pytest.param(
            [entry(conditions()), entry(CONFLICT, CONTROLLER_NAME)],
            Parent(accepted=True, conflict=True),
            id="our entry",
        ),
    ],
)
def test_the_state_of_a_route_at_the_gateway(entries: list[Object], expected: Parent) -> None:
    found = facts.route(dashboard(*entries), "HTTPRoute")
    assert found is not None
    assert found.hostnames == {"dashboard.example.org"}
    assert found.parents == {GATEWAY: expected}


def test_other_routes_and_services_are_not_kept() -> None:
    assert facts.route(dashboard(name="other"), "HTTPRoute") is None
    assert facts.backend({"metadata": {"namespace": "cozy-dashboard", "name": "other"}}) is None


def test_the_ports_of_a_backend() -> None:
    metadata = {"namespace": "cozy-keycloak", "name": "keycloak-http"}
    spec = {"ports": [{"port": 8080, "name": "http"}, {"port": "x"}]}
    assert facts.backend({"metadata": metadata, "spec": spec}) == ServicePorts(frozenset({8080}), {"http": 8080})


@pytest.mark.parametrize(
    ("spec", "annotations", "expected"),
    [
        pytest.param(
            {"ingressClassName": "tenant-root", "rules": [{"host": "a"}, {"http": {}}]},
            {},
            PublishedIngress("tenant-root", frozenset({"a"})),
            id="the field",
        ),
        pytest.param(
            {"rules": [{"host": "a"}]},
            {"kubernetes.io/ingress.class": "tenant-root"},
            PublishedIngress("tenant-root", frozenset({"a"})),
            id="the annotation",
        ),
        pytest.param({"rules": [{"host": "a"}]}, {}, None, id="no class"),
        pytest.param({"ingressClassName": "tenant-root"}, {}, None, id="no hosts"),
    ],
)
def test_the_class_and_the_hosts_of_an_ingress(spec: Object, annotations: Object, expected: Any) -> None:
    assert facts.ingress({"metadata": {"annotations": annotations}, "spec": spec}) == expected


def test_the_listeners_of_a_tenantgateway() -> None:
    status = {
        "listeners": [{"name": "https", "hostname": "*.a", "ready": True}, "x", {"name": "b", "reason": "Pending"}]
    }
    assert facts.listeners({"status": status}) == {
        "https": PublishedListener("*.a", True),
        "b": PublishedListener("", False, "Pending"),
    }
