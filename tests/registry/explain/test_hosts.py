"""Hostnames: who serves them, and the nearest change for one that nobody serves."""

from __future__ import annotations

import json
from typing import Any

import pytest

from apiserver.authorization.authorizer import AccessAttributes, Decision
from apiserver.meta.resource import Key, Object
from registry.explain.read import GATEWAYS
from registry.tenantgateway.types import TENANTGATEWAYS
from tests.registry.explain.explain_world import (
    ALICE,
    Everything,
    ExplainWorld,
    InNamespaces,
    Stored,
    condition,
    metadata,
    route,
    tenantgateway,
)
from tests.registry.explain.route_kinds import HTTPROUTES, TLSROUTES

_ROOT, _DEV = Key("tenant-root", "root"), Key("tenant-alice", "dev")
_TENANTS: dict[Key, dict[str, Any]] = {_ROOT: {}, ALICE: {"gateway": True}, _DEV: {}}
_SHOP, _INNER = "shop.alice.example.org", "x.dev.alice.example.org"
_ACCEPTED = condition("Accepted", reason="Accepted")
_READY = condition("Ready", message="ready")
# eve may get everything in her namespace, and her own tenant
_OF_ALICE = InNamespaces({"tenant-alice"}, {("tenants", "tenant-root", "alice")})
_OF_DEV = InNamespaces({"tenant-alice-dev"}, {("tenants", "tenant-alice", "dev")})


def _listener(host: str, **fields: object) -> Object:
    name = f"https-{host.partition('.')[0]}-12345678"
    return {"name": name, "hostname": host, "ready": True, "certificateName": f"{name}-tls", **fields}


def _gateway(*listeners: Object, **spec: object) -> Stored:
    found = tenantgateway("tenant-alice", listeners, _READY)
    found["spec"] |= spec
    return TENANTGATEWAYS, found


def _route(name: str, namespace: str, host: str, told: Object = _ACCEPTED) -> Stored:
    return HTTPROUTES, route(name, namespace, host, conditions=[told])


async def _ask(host: str, world: ExplainWorld, of: Key = ALICE) -> Object:
    answer: Object = json.loads(await world.explain(f"host/{host}", of))
    return answer


_CLASH = _route("clash", "tenant-alice", _INNER)
_LOST = condition("Accepted", "False", "HostnameConflict", f'"{_INNER}" belongs to HTTPRoute tenant-alice/clash')


@pytest.mark.parametrize(
    "own", [(), (_route("own", "tenant-alice-dev", _INNER, _LOST),)], ids=["alone", "and a route of the tenant lost"]
)
async def test_a_hostname_that_the_route_of_an_ancestor_has_is_served(own: tuple[Stored, ...]) -> None:
    answer = await _ask(_INNER, ExplainWorld(_TENANTS, [_gateway(_listener(_INNER)), _CLASH, *own]), _DEV)
    assert (answer["verdict"], answer["summary"]) == ("True", f"{_INNER} is served, by HTTPRoute tenant-alice/clash")
    assert "create an HTTPRoute" not in json.dumps(answer)


async def test_a_route_that_lost_is_explained_where_the_winner_is_hidden() -> None:
    world = ExplainWorld(
        _TENANTS, [_gateway(), _CLASH, _route("own", "tenant-alice-dev", _INNER, _LOST)], authorizer=_OF_DEV
    )
    answer = await _ask(_INNER, world, _DEV)
    assert answer["verdict"] == "False"
    assert answer["summary"].startswith(f'"{_INNER}" belongs to HTTPRoute tenant-alice/clash; use another hostname')


async def test_a_route_that_may_be_hidden_is_not_known_to_be_missing() -> None:
    answer = await _ask(_INNER, ExplainWorld(_TENANTS, [_gateway(), _CLASH], authorizer=_OF_DEV), _DEV)
    assert answer["verdict"] == "Unknown"
    assert answer["summary"].startswith(f"no route that you may see has the hostname {_INNER}; create an HTTPRoute")
    assert answer["summary"].endswith(", unless a route that you may not see has it")
    complete = await _ask(_INNER, ExplainWorld(_TENANTS, [_gateway()]), _DEV)
    assert complete["verdict"] == "False"
    assert complete["summary"].startswith(f"no route in tenant-alice-dev or tenant-alice has the hostname {_INNER};")


async def test_a_listener_without_a_visible_route_is_no_reason_to_create_one() -> None:
    world = ExplainWorld(_TENANTS, [_gateway(_listener(_SHOP))], authorizer=Everything(denied=["httproutes"]))
    answer = await _ask(_SHOP, world)
    assert answer["verdict"] == "Unknown"
    assert answer["summary"] == (
        f"no route that you may see has the hostname {_SHOP}, and the Gateway has a listener for it; "
        "ask those who administer the Gateway which route it is, unless one was just deleted"
    )
    assert "create an" not in json.dumps(answer)
    # a wildcard listener says nothing about routes
    wildcard = _gateway({"name": "https", "hostname": "*.alice.example.org", "ready": True}, certMode="dns01")
    assert "create an HTTPRoute" in json.dumps(await _ask(_SHOP, ExplainWorld(_TENANTS, [wildcard])))


async def test_a_route_on_the_gateway_of_an_ancestor_is_no_concern_of_a_tenant_with_its_own() -> None:
    other = route("other", "tenant-root", _SHOP, conditions=[_ACCEPTED])
    other["spec"]["parentRefs"] = [{"name": "cozystack", "namespace": "tenant-root"}]
    world = ExplainWorld({**_TENANTS, _ROOT: {"gateway": True}}, [_gateway(), (HTTPROUTES, other)])
    assert (await _ask(_SHOP, world))["verdict"] == "False"


def _not_ready(*hosts: str, more: str = "", reason: str = "ListenersNotReady") -> Object:
    listed = ", ".join(f"{each} (CertificateNotReady)" for each in hosts)
    message = f'the Gateway of "tenant-alice": listeners not ready: {listed}{more}; ask those who administer it'
    return condition("GatewayReady", "False", reason, message)


@pytest.mark.parametrize(
    ("told", "verdict", "reason"),
    [
        pytest.param(_not_ready(_SHOP), "False", "CertificateNotReady", id="names the hostname"),
        pytest.param(_not_ready("*.alice.example.org"), "False", "CertificateNotReady", id="names a wildcard"),
        pytest.param(_not_ready("w" + _SHOP), "True", None, id="names another one"),
        pytest.param(_not_ready("a.b", more=" and 3 more"), "Unknown", None, id="names some of them"),
        pytest.param(condition("GatewayReady"), "True", None, id="all are ready"),
        pytest.param(None, "Unknown", None, id="there is none"),
        pytest.param(
            condition("GatewayReady", "False", "GatewayNotAccepted", "Invalid"),
            "False",
            "GatewayNotAccepted",
            id="the Gateway is refused",
        ),
    ],
)
async def test_the_condition_of_the_tenant_tells_what_its_people_may_not_list(
    told: Object | None, verdict: str, reason: str | None
) -> None:
    gateway = {
        "metadata": metadata("cozystack", "tenant-alice"),
        "spec": {"listeners": [{"name": "https-shop-12345678", "protocol": "HTTPS", "hostname": _SHOP}]},
        "status": {"listeners": [{"name": "https-shop-12345678", "conditions": [condition("Programmed")]}]},
    }
    world = ExplainWorld(
        _TENANTS,
        [(GATEWAYS, gateway), _route("shop", "tenant-alice", _SHOP)],
        conditions={ALICE: [condition("Ready"), *([told] if told else [])]},
        authorizer=Everything(denied=["tenantgateways", "certificates"]),
    )
    answer = await _ask(_SHOP, world)
    assert answer["verdict"] == verdict
    reasons = [each.get("reason") for each in answer["facts"] if each["status"] == "False"]
    assert reasons == ([reason] if reason else [])
    if verdict == "Unknown":
        assert "you may not see" in answer["summary"]


_PASSTHROUGH = _gateway(
    {"name": "tls-api", "hostname": "api.alice.example.org", "ready": True}, tlsPassthroughServices=["api"]
)
_API = "api.alice.example.org"


async def test_a_hostname_of_a_passthrough_listener_is_for_a_tlsroute() -> None:
    answer = await _ask(_API, ExplainWorld(_TENANTS, [_PASSTHROUGH]))
    assert "create a TLSRoute with this hostname in tenant-alice" in answer["summary"]
    assert "HTTPRoute" not in json.dumps(answer)
    seen_by_people = {
        "metadata": metadata("cozystack", "tenant-alice"),
        "spec": {"listeners": [{"name": "tls-api", "protocol": "TLS", "hostname": _API}]},
    }
    people = ExplainWorld(_TENANTS, [(GATEWAYS, seen_by_people)], authorizer=Everything(denied=["tenantgateways"]))
    assert "create a TLSRoute" in json.dumps(await _ask(_API, people))
    refused = ExplainWorld(_TENANTS, [_PASSTHROUGH], authorizer=_MayNotCreate("tlsroutes"))
    assert "the right to create tlsroutes in tenant-alice" in json.dumps(await _ask(_API, refused))


class _MayNotCreate(Everything):
    """Allows everything but to create objects of one resource."""

    def __init__(self, plural: str) -> None:
        super().__init__()
        self._plural = plural

    async def authorize(self, attributes: AccessAttributes) -> Decision:
        return Decision(allowed=(attributes.verb, attributes.resource) != ("create", self._plural))


async def test_a_conflict_with_a_passthrough_listener_names_no_route() -> None:
    told = condition(
        "Accepted",
        "False",
        "HostnameConflict",
        f'"{_API}" belongs to a TLS passthrough listener of this gateway: attach a TLSRoute',
    )
    answer = await _ask(_API, ExplainWorld(_TENANTS, [_PASSTHROUGH, _route("api", "tenant-alice", _API, told)]))
    [fact] = [each for each in answer["facts"] if each.get("reason") == "HostnameConflict"]
    assert fact["remedy"] == "attach a TLSRoute with this hostname instead, or use another hostname"
    tls = TLSROUTES, route("api", "tenant-alice", _API, conditions=[_ACCEPTED])
    both = ExplainWorld(_TENANTS, [_PASSTHROUGH, _route("api", "tenant-alice", _API, told), tls])
    assert (await _ask(_API, both))["summary"] == f"{_API} is served, by TLSRoute tenant-alice/api"


async def test_a_hint_to_create_a_route_names_its_gateway() -> None:
    answer = await _ask(_INNER, ExplainWorld(_TENANTS, [_gateway()]), _DEV)
    assert answer["summary"].endswith(
        "create an HTTPRoute with this hostname in tenant-alice-dev, whose parentRefs name Gateway "
        "tenant-alice/cozystack"
    )


@pytest.mark.parametrize(
    ("of", "may", "remedy"),
    [
        (_ROOT, True, "set spec.host of the tenant that should have the name"),
        (_ROOT, False, "ask a platform administrator to set spec.host of the tenant that should have the name"),
        (ALICE, True, "set spec.host"),
    ],
)
async def test_a_foreign_hostname_is_not_for_the_root_to_have(of: Key, may: bool, remedy: str) -> None:
    world = ExplainWorld(_TENANTS, may_set_host=may)
    assert (await _ask("shop.example.com", world, of))["summary"].endswith(f", or {remedy}")


async def test_the_class_of_a_gateway_that_nobody_accepts_is_named() -> None:
    refused = condition("Ready", "False", "GatewayNotAccepted", "gateway tenant-alice/cozystack: Pending: Waiting")
    found = tenantgateway("tenant-alice", [], refused)
    found["spec"]["gatewayClassName"] = "cilium"
    remedy = (
        "ask a platform administrator to install the controller of GatewayClass cilium, or to name another class in "
        "gateway.gatewayClassName of the platform settings"
    )
    world = ExplainWorld(_TENANTS, [(TENANTGATEWAYS, found)], conditions={ALICE: [refused]})
    assert (await _ask(_SHOP, world))["summary"].endswith(f"; {remedy}")
    assert json.loads(await world.explain("tenant"))["summary"].endswith(f"; {remedy}")
    hidden = ExplainWorld(_TENANTS, [(TENANTGATEWAYS, found)], conditions={ALICE: [refused]}, authorizer=_OF_DEV)
    assert "controller of its GatewayClass" in json.loads(await hidden.explain("tenant"))["summary"]
