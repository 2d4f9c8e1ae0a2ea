"""The remedies of routes that a Gateway refuses, from the messages that the controller writes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from apiserver.meta.resource import Key, Object
from controller.tenantgateway.delegation.edges import EdgeEnds, judge_edge
from controller.tenantgateway.delegation.judge import NO_SUCH_KIND
from controller.tenantgateway.delegation.matches import EVERYTHING
from controller.tenantgateway.delegation.model import DelegationRule, Participant
from controller.tenantgateway.delegation.roots import reject_root
from controller.tenantgateway.hostname_validation import HostnameRejection, check_claim
from controller.tenantgateway.model import ParentRef, RouteId, RouteNamespace
from controller.tenantgateway.route_admission import reject_kind, reject_parent
from controller.tenantgateway.route_status import orphan
from registry.cluster.interface import ClusterResource
from registry.explain.reasons import rule_of
from registry.explain.reasons_of_gateways import REASONS_OF_GATEWAYS
from registry.explain.variants_of_gateways import VARIANTS_OF_GATEWAYS
from registry.tenantgateway.types import GROUP
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


def _reject_root(
    *hostnames: str, namespace: str = "tenant-foo", name: str = "cozystack", exists: bool = True
) -> HostnameRejection | None:
    root = Participant(id=RouteId(namespace, "db", "TLSRoute"), uid="1", hostnames=hostnames)
    found = gateway(namespace, name) if exists else None
    return reject_root(root, Key(namespace, name), found, RouteNamespace(namespace, host="foo.example.com"))


def _edge(*, names: bool = True, permitted: bool = True) -> HostnameRejection:
    """The verdict of a parent, as a vertex hears it: of a lack of consent, too, as an orphan."""
    parent, target = RouteId("a", "www", "HTTPRoute"), RouteId("b", "web", "HTTPRoute")
    rules = (DelegationRule((EVERYTHING,), (target,) if names else ()),)
    vertex = Participant(id=target, uid="2", parents=(parent,))
    ends = EdgeEnds(parent, target, Participant(id=parent, uid="1", rules=rules), vertex)
    edge = judge_edge(ends, permitted=permitted, winner=lambda delegator, match: None)
    return HostnameRejection("Orphaned", edge.message)


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
        pytest.param(
            _reject_root(name="cozystak", exists=False),
            "correct the parentRef, or have the parent created",
            id="a TenantGateway of another name",
        ),
        pytest.param(
            _reject_root(exists=False),
            "set spec.gateway: true on the tenant of that namespace, or correct the parentRef",
            id="a tenant without a TenantGateway",
        ),
        pytest.param(
            _reject_root(), "list the hostnames in spec.hostnames of the route", id="a root without hostnames"
        ),
        pytest.param(
            _reject_root("db.foo.example.com"),
            "ask a platform administrator to add the name to gateway.tlsPassthroughServices of the platform settings",
            id="a TLSRoute",
        ),
        pytest.param(
            _reject_root("db.foo.example.com", namespace="edge"),
            "list the name in spec.tlsPassthroughServices of the TenantGateway",
            id="a TLSRoute on a TenantGateway of no tenant",
        ),
        pytest.param(
            NO_SUCH_KIND, "set group: gateway.cozystack.io in the parentRef", id="a TenantGateway of the wrong group"
        ),
        pytest.param(
            _edge(permitted=False), "have the ReferenceGrant created that the message names", id="no ReferenceGrant"
        ),
        pytest.param(
            _edge(names=False),
            "let a rule of the parent name the route in its backendRefs, or correct the parentRef",
            id="a parent that does not delegate",
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


@pytest.mark.parametrize("namespace", ["tenant-alice", "tenant-alice-dev"])
async def test_a_route_is_told_the_tenantgateway_of_its_tenant(namespace: str) -> None:
    rejection = reject_root(
        Participant(id=RouteId(namespace, "shop", "HTTPRoute"), uid="1"),
        Key("tenant-alice", "cozystak"),
        None,
        RouteNamespace(namespace),
    )
    assert rejection is not None
    parent = {"group": GROUP, "kind": "TenantGateway", "namespace": "tenant-alice", "name": "cozystak"}
    told = _told(namespace, parent, condition("Accepted", "False", *rejection))
    answer = json.loads(await ExplainWorld(_TENANTS, [told]).explain(f"route/{namespace}/shop"))
    assert answer["summary"] == (
        "there is no TenantGateway tenant-alice/cozystak: the TenantGateway of a tenant is called cozystack; "
        "name TenantGateway tenant-alice/cozystack in parentRefs"
    )


async def test_the_tenantgateway_of_a_hidden_tenant_is_not_named() -> None:
    parent = {"group": GROUP, "kind": "TenantGateway", "namespace": "tenant-alice", "name": "cozystak"}
    message = "there is no TenantGateway tenant-alice/cozystak: the TenantGateway of a tenant is called cozystack"
    world = ExplainWorld(
        _TENANTS,
        [_told("tenant-alice-dev", parent, condition("Accepted", "False", "Orphaned", message))],
        authorizer=InNamespaces({"tenant-alice-dev"}, {("tenants", "tenant-root", "alice")}),
    )
    answer = json.loads(await world.explain("route/tenant-alice-dev/shop"))
    assert answer["summary"] == f"{message}; correct the parentRef, or have the parent created"
