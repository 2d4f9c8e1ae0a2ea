"""Routes of kinds that the asker may not list, or that the cluster serves in an old version only."""

from __future__ import annotations

import json
from typing import Any

import pytest

from apiserver.meta.resource import Key, Object
from registry.cluster.interface import ClusterResource, NotServed
from registry.tenantgateway.types import TENANTGATEWAYS
from tests.registry.explain.explain_world import (
    ALICE,
    Everything,
    ExplainWorld,
    Stored,
    condition,
    route,
    tenantgateway,
)
from tests.registry.explain.route_kinds import GRPCROUTES, HTTPROUTES, TLSROUTES

_TENANTS: dict[Key, dict[str, Any]] = {Key("tenant-root", "root"): {}, ALICE: {"gateway": True}}
_API, _SHOP = "api.alice.example.org", "shop.alice.example.org"


def _gateway() -> Stored:
    listeners: list[Object] = [{"name": "tls-api", "hostname": _API, "ready": True}]
    found = tenantgateway("tenant-alice", listeners, condition("Ready"))
    found["spec"]["tlsPassthroughServices"] = ["api"]
    return TENANTGATEWAYS, found


def _route(kind: ClusterResource, host: str) -> Stored:
    return kind, route("api", "tenant-alice", host, conditions=[condition("Accepted", reason="Accepted")])


async def _ask(world: ExplainWorld, host: str) -> Object:
    answer: Object = json.loads(await world.explain(f"host/{host}"))
    return answer


@pytest.mark.parametrize(("kind", "host"), [(TLSROUTES, _API), (GRPCROUTES, _SHOP), (HTTPROUTES, _SHOP)])
async def test_a_route_of_a_kind_that_the_user_may_not_list_is_not_missing(kind: ClusterResource, host: str) -> None:
    denied = Everything(denied=[kind.plural])
    answer = await _ask(ExplainWorld(_TENANTS, [_gateway(), _route(kind, host)], authorizer=denied), host)
    assert answer["verdict"] == "Unknown"
    remedies = [each["remedy"] for each in answer["facts"] if "create a" in each.get("remedy", "")]
    assert all(each.endswith(", unless a route that you may not see has it") for each in remedies)
    if kind is not GRPCROUTES:
        assert remedies == []
        assert f"ask for the right to list {kind.plural} in tenant-alice," in answer["summary"]


@pytest.mark.parametrize("version", ["v1", "v1alpha3", "v1alpha2"])
async def test_a_tlsroute_of_the_version_that_is_served_counts(version: str) -> None:
    kind = ClusterResource(TLSROUTES.group, version, TLSROUTES.plural, TLSROUTES.kind)

    async def serve(verb: str, resource: ClusterResource, key: Key) -> None:
        if resource.plural == kind.plural and resource.version != version:
            raise NotServed

    world = ExplainWorld(_TENANTS, [_gateway(), _route(kind, _API)], before=serve)
    answer = await _ask(world, _API)
    assert (answer["verdict"], answer["summary"]) == ("True", f"{_API} is served, by TLSRoute tenant-alice/api")
