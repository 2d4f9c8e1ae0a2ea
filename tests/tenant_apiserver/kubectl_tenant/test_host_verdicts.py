"""`kubectl tenant hosts` and `explain host` have one verdict, from the same function."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from apiserver.meta.resource import Key, Object
from registry.tenantgateway.types import TENANTGATEWAYS
from tenant_apiserver.kubectl_tenant.hosts import HostSources, host_rows
from tenant_apiserver.kubectl_tenant.lists import Listed
from tests.registry.explain.explain_world import ALICE, Everything, ExplainWorld, condition, route, tenantgateway
from tests.registry.explain.route_kinds import HTTPROUTES

_TENANTS: dict[Key, dict[str, Any]] = {Key("tenant-root", "root"): {}, ALICE: {"gateway": True}}
_NOW = datetime(2026, 1, 1, tzinfo=UTC)
_HOST = "shop.alice.example.org"
_LISTENER: Object = {"name": "https-shop", "hostname": _HOST, "ready": True, "certificateName": "shop-tls"}
_LATE = {**_LISTENER, "ready": False, "reason": "CertificateNotReady"}
_ACCEPTED = condition("Accepted", reason="Accepted")
_LOST = condition("Accepted", "False", "HostnameConflict", "lost")
_NOT_READY = condition(
    "GatewayReady",
    "False",
    "ListenersNotReady",
    f'the Gateway of "a": listeners not ready: {_HOST} (CertificateNotReady); ask',
)


def _route(*conditions: Object, parents: bool = True) -> Object:
    found = {"kind": "HTTPRoute", **route("shop", "tenant-alice", _HOST, conditions=conditions)}
    if not parents:
        found["spec"]["parentRefs"] = []
    return found


@pytest.mark.parametrize("readable", [True, False], ids=["an administrator", "a person of the tenant"])
@pytest.mark.parametrize(
    ("told", "listener", "conditions", "verdict", "reason"),
    [
        pytest.param(_route(_ACCEPTED), _LISTENER, [condition("GatewayReady")], "True", "", id="served"),
        pytest.param(_route(_ACCEPTED), _LATE, [_NOT_READY], "False", "CertificateNotReady", id="no certificate"),
        pytest.param(_route(_LOST), _LISTENER, [condition("GatewayReady")], "False", "HostnameConflict", id="lost"),
        pytest.param(
            _route(parents=False),
            _LISTENER,
            [condition("GatewayReady")],
            "False",
            "the route names no Gateway",
            id="no parentRef",
        ),
        pytest.param(
            _route(),
            _LISTENER,
            [condition("GatewayReady")],
            "Unknown",
            "no controller has reported on Gateway tenant-alice/cozystack",
            id="not reported",
        ),
    ],
)
async def test_a_row_has_the_verdict_of_explain(
    told: Object, listener: Object, conditions: list[Object], verdict: str, reason: str, readable: bool
) -> None:
    gateway = tenantgateway("tenant-alice", [listener], condition("Ready"))
    world = ExplainWorld(
        _TENANTS,
        [(HTTPROUTES, told), (TENANTGATEWAYS, gateway)],
        conditions={ALICE: [condition("Ready"), *conditions]},
        authorizer=Everything(denied=[] if readable else ["tenantgateways", "certificates", "gateways"]),
    )
    hidden = Listed(namespaces=frozenset())
    sources = HostSources(
        tenants=world.tenants_with_status(),
        routes=[told],
        tenantgateways=Listed(items=[gateway]) if readable else hidden,
        gateways=Listed() if readable else hidden,
        certificates=Listed() if readable else hidden,
    )
    [row] = host_rows(sources, _NOW)
    answer = json.loads(await world.explain(f"host/{_HOST}"))
    assert row.served == answer["verdict"] == verdict
    assert row.reason == reason
