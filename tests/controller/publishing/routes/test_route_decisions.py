"""Decisions on routes that are missing, needed, no longer needed, or owned by others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from apiserver.meta.resource import Object
from controller.publishing.routes.decision import Moment, RouteDecision, decide
from controller.publishing.routes.marks import RouteOwner, route_owner
from controller.publishing.services import SERVICES
from tests.controller.publishing.routes.test_rendered_platform_routes import EVERYTHING

MANAGED_BY, ROUTE = "app.kubernetes.io/managed-by", "apps.cozystack.io/platform-route"
SINCE = "apps.cozystack.io/unneeded-since"
NOON, NOW = "2026-01-01T12:00:00Z", 1_767_268_800.0
MOMENT = Moment(NOW, 600.0)
OURS = {MANAGED_BY: "tenant-controller", ROUTE: "api"}
OFFERED = {MANAGED_BY: "Helm", ROUTE: "api"}
ADOPTED = {**OFFERED, "helm.toolkit.fluxcd.io/name": "cozystack-api"}
INGRESS = ("api.example.org",)


def route(labels: Mapping[str, str], **annotations: str) -> Object:
    metadata = {"namespace": "default", "name": "kubernetes-api", "labels": labels, "annotations": annotations}
    return {"kind": "TLSRoute", "metadata": metadata}


def unneeded(since: str) -> Object:
    return route(OURS, **{SINCE: since})


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        pytest.param(OURS, RouteOwner.OURS, id="ours"),
        pytest.param(OFFERED, RouteOwner.OFFERED, id="offered to Helm"),
        pytest.param(ADOPTED, RouteOwner.HELM, id="adopted by Flux"),
        pytest.param({MANAGED_BY: "Helm"}, RouteOwner.HELM, id="made by Helm"),
        pytest.param({MANAGED_BY: "tenant-controller"}, RouteOwner.OTHER, id="without our label"),
        pytest.param({ROUTE: "api"}, RouteOwner.OTHER, id="with our label alone"),
        pytest.param({}, RouteOwner.OTHER, id="of a user"),
    ],
)
def test_the_owner_of_a_route(labels: Mapping[str, str], expected: RouteOwner) -> None:
    assert route_owner(route(labels)) is expected


@pytest.mark.parametrize("labels", [ADOPTED, {MANAGED_BY: "Helm"}, {}])
@pytest.mark.parametrize("changes", [{}, {"enabled": False}, {"exposed": ()}, {"platform_routes": False}])
def test_a_route_of_others_is_never_touched(labels: Mapping[str, str], changes: Mapping[str, Any]) -> None:
    assert decide(SERVICES["api"], replace(EVERYTHING, **changes), route(labels), MOMENT) == RouteDecision()


@pytest.mark.parametrize("current", [None, route(OURS), unneeded(NOON)])
def test_without_a_publishing_tenant_a_needed_route_is_left_as_it_is(current: Object | None) -> None:
    """It would lose its Gateway if the setting has a typing error."""
    assert decide(SERVICES["api"], replace(EVERYTHING, has_publisher=False), current, MOMENT) == RouteDecision()


@pytest.mark.parametrize("current", [None, route(OURS), route(OFFERED), unneeded(NOON)])
def test_a_needed_route_is_written_with_our_marks_alone(current: Object | None) -> None:
    decision = decide(SERVICES["api"], EVERYTHING, current, MOMENT)
    assert decision.desired is not None
    assert decision.desired["metadata"]["labels"] == OURS
    assert set(decision.desired["metadata"]["annotations"].values()) == {None}
    assert (decision.delete, decision.again) == (False, None)


DELETED = RouteDecision(delete=True)


@pytest.mark.parametrize(
    ("changes", "current", "expected"),
    [
        pytest.param({"exposed": ()}, route(OURS), DELETED, id="no longer listed: nobody is to reach it"),
        pytest.param({"enabled": False, "exposed": ()}, route(OURS), DELETED, id="nor without the flag"),
        pytest.param({"enabled": False, "ingress_hosts": INGRESS}, route(OURS), DELETED, id="there is an Ingress"),
        pytest.param(
            {"enabled": False, "ingress_hosts": INGRESS, "platform_routes": False},
            route(OFFERED),
            DELETED,
            id="offered in vain, and an Ingress",
        ),
        pytest.param({"enabled": False}, unneeded("2026-01-01T11:50:00Z"), DELETED, id="no Ingress for ten minutes"),
        pytest.param({"backends": {}}, unneeded("2026-01-01T11:50:00Z"), DELETED, id="no Service for ten minutes"),
        pytest.param(
            {"platform_routes": False}, unneeded("2026-01-01T11:50:00Z"), DELETED, id="no chart for ten minutes"
        ),
        pytest.param({"exposed": ()}, None, RouteDecision(), id="there is none"),
    ],
)
def test_when_an_unneeded_route_is_deleted(
    changes: Mapping[str, Any], current: Object | None, expected: RouteDecision
) -> None:
    assert decide(SERVICES["api"], replace(EVERYTHING, **changes), current, MOMENT) == expected


@pytest.mark.parametrize(
    ("changes", "current", "left"),
    [
        pytest.param({"enabled": False}, route(OURS), 600.0, id="the flag is turned off"),
        pytest.param({"enabled": False}, unneeded("2026-01-01T11:51:00Z"), 60.0, id="nine minutes later"),
        pytest.param({"enabled": False}, unneeded("tomorrow"), 600.0, id="a time that nobody can read"),
        pytest.param({"backends": {}}, route(OURS), 600.0, id="its Service is gone"),
        pytest.param(
            {"ingress_hosts": INGRESS, "platform_routes": False}, route(OURS), 600.0, id="the setting is turned off"
        ),
    ],
)
def test_how_long_an_unneeded_route_stays(changes: Mapping[str, Any], current: Object, left: float) -> None:
    decision = decide(SERVICES["api"], replace(EVERYTHING, **changes), current, MOMENT)
    assert (decision.delete, decision.again) == (False, left)
    assert decision.desired is not None
    assert "spec" not in decision.desired
    marked = decision.desired["metadata"].get("annotations", {}).get(SINCE)
    assert marked == (NOON if left == 600.0 else None)


def test_a_route_is_offered_to_the_chart_that_renders_it_next() -> None:
    """Helm adopts an object that has the marks of its release (the flag is on, the setting is off)."""
    found = decide(SERVICES["api"], replace(EVERYTHING, platform_routes=False), route(OURS), MOMENT).desired
    assert found is not None
    assert found["metadata"]["labels"] == {MANAGED_BY: "Helm"}
    assert found["metadata"]["annotations"] == {
        "meta.helm.sh/release-name": "cozystack-api",
        "meta.helm.sh/release-namespace": "cozy-system",
        SINCE: NOON,
    }
