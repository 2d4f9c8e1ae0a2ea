"""The remedies of routes that a Gateway refuses, from the messages that the controller writes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from apiserver.meta.resource import Key, Object
from controller.tenantgateway.hostname_validation import HostnameRejection, check_claim
from controller.tenantgateway.model import ParentRef, RouteNamespace
from controller.tenantgateway.route_admission import reject_kind, reject_parent
from controller.tenantgateway.route_status import orphan
from registry.cluster.interface import ClusterResource
from registry.explain.reasons import rule_of
from registry.explain.reasons_of_gateways import REASONS_OF_GATEWAYS, VARIANTS_OF_GATEWAYS
from tests.controller.tenantgateway.gateway_builders import gateway
from tests.registry.explain.explain_world import ALICE, ExplainWorld, InNamespaces, condition, route
from tests.registry.explain.route_kinds import GRPCROUTES, HTTPROUTES

_TENANTS: dict[Key, dict[str, Any]] = {
    Key("tenant-root", "root"): {},
    ALICE: {"gateway": True},
    Key("tenant-alice", "dev"): {},
    Key("tenant-root", "bob"): {},
}
_HOST = "shop.alice.example.org"
_NAME_IT = "name Gateway tenant-alice/cozystack in parentRefs"


def _reject_parent(namespace: RouteNamespace, **parent: Any) -> HostnameRejection | None:
    return reject_parent(gateway(), ParentRef(**parent), "HTTPRoute", (), namespace)


@pytest.mark.parametrize(
    ("rejection", "remedy"),
    [
        pytest.param(
            reject_kind("GRPCRoute", "Gateway a/b", grpc_routes=False),
            "ask a platform administrator to set gateway.grpcRoutes: true in the platform settings",
            id="a GRPCRoute",
        ),
        pytest.param(
            _reject_parent(RouteNamespace("tenant-foo-a", gateway="tenant-foo"), port=80),
            "name port 443 in the parentRef",
            id="port 80",
        ),
        pytest.param(
            _reject_parent(RouteNamespace("tenant-foo-a", gateway="tenant-b")),
            "name the Gateway that serves the namespace in the parentRef",
            id="another Gateway",
        ),
        pytest.param(
            check_claim("api.foo", "HTTPRoute", apex="foo", mode="http01", passthrough=["api.foo"]),
            "attach a TLSRoute with this hostname instead, or use another hostname",
            id="a passthrough listener",
        ),
    ],
)
def test_a_rejection_has_the_remedy_of_its_cause(rejection: HostnameRejection | None, remedy: str) -> None:
    assert rejection is not None
    assert rule_of(*rejection).remedy == remedy


def test_the_switch_for_grpcroutes_is_described_with_its_rule() -> None:
    rejection = reject_kind("GRPCRoute", "Gateway a/b", grpc_routes=False)
    assert rejection is not None
    rule = rule_of(*rejection)
    assert "gateway.grpcRoutes" in rule.text
    assert rule.link == "settings.md"


def test_a_conflict_is_decided_by_names_and_not_by_time() -> None:
    """docs/gateways.md, "Contested hostnames"."""
    rule = rule_of("HostnameConflict", '"a.b" belongs to HTTPRoute tenant-a/b')
    assert "first" not in rule.text
    assert "cozy-*" in rule.text
    assert "smallest namespace and name" in rule.text


@pytest.mark.parametrize("key", VARIANTS_OF_GATEWAYS)
def test_a_variant_is_of_a_reason_with_a_rule(key: tuple[str, str]) -> None:
    rule = VARIANTS_OF_GATEWAYS[key]
    assert key[0] in REASONS_OF_GATEWAYS
    assert rule.text.endswith(".")
    assert rule.remedy
    assert not rule.remedy.endswith(".")


def _told(namespace: str, parent: Object, verdict: Object | None, kind: ClusterResource = HTTPROUTES) -> Any:
    obj = route("shop", namespace, _HOST)
    obj["spec"]["parentRefs"] = [parent]
    if verdict is not None:
        obj["status"]["parents"] = [{"parentRef": parent, "controllerName": "c", "conditions": [verdict]}]
    return kind, obj


_GATEWAY = {"name": "gateway"}
_ORPHANED = condition("Accepted", "False", "Orphaned", orphan(_GATEWAY, "tenant-alice").message)
_FOREIGN = condition("Accepted", "False", "NotAllowedByListeners", "Gateway x/y does not admit routes of namespace z")


@pytest.mark.parametrize(
    ("namespace", "parent", "verdict", "remedy"),
    [
        ("tenant-alice", _GATEWAY, _ORPHANED, _NAME_IT),
        ("tenant-alice-dev", {**_GATEWAY, "namespace": "tenant-alice"}, _ORPHANED, _NAME_IT),
        ("tenant-alice", _GATEWAY, None, _NAME_IT),
        ("tenant-alice-dev", {"name": "cozystack"}, _FOREIGN, _NAME_IT),
        # it is the one that serves the tenant
        ("tenant-alice", {"name": "cozystack"}, _ORPHANED, "correct the parentRef, or have the parent created"),
        # nobody's Gateway serves the tenant
        ("tenant-bob", _GATEWAY, _ORPHANED, "correct the parentRef, or have the parent created"),
    ],
)
async def test_a_route_is_told_the_gateway_of_its_tenant(
    namespace: str, parent: Object, verdict: Object | None, remedy: str
) -> None:
    world = ExplainWorld(_TENANTS, [_told(namespace, parent, verdict)])
    answer = json.loads(await world.explain(f"route/{namespace}/shop"))
    assert answer["summary"].endswith(f"; {remedy}")


async def test_an_entry_without_conditions_is_no_report() -> None:
    kind, obj = _told("tenant-alice", {"name": "cozystack"}, None)
    obj["status"]["parents"] = [{"parentRef": {"name": "cozystack"}, "controllerName": "c", "conditions": []}]
    answer = json.loads(await ExplainWorld(_TENANTS, [(kind, obj)]).explain("route/tenant-alice/shop"))
    assert answer["verdict"] == "Unknown"
    assert answer["summary"].startswith("no controller has reported on Gateway tenant-alice/cozystack")


async def test_the_gateway_of_a_hidden_tenant_is_not_named() -> None:
    world = ExplainWorld(
        _TENANTS,
        [_told("tenant-alice-dev", _GATEWAY, _ORPHANED)],
        authorizer=InNamespaces({"tenant-alice-dev"}, {("tenants", "tenant-root", "alice")}),
    )
    answer = json.loads(await world.explain("route/tenant-alice-dev/shop"))
    assert _NAME_IT not in json.dumps(answer)


async def test_a_grpcroute_keeps_the_remedy_of_its_switch() -> None:
    rejection = reject_kind("GRPCRoute", "Gateway tenant-alice/gateway", grpc_routes=False)
    assert rejection is not None
    told = _told("tenant-alice", _GATEWAY, condition("Accepted", "False", *rejection), GRPCROUTES)
    answer = json.loads(await ExplainWorld(_TENANTS, [told]).explain("route/tenant-alice/shop"))
    assert answer["summary"].endswith(
        "ask a platform administrator to set gateway.grpcRoutes: true in the platform settings"
    )
