"""Answers stay small where many routes have a hostname."""

from __future__ import annotations

import json
from typing import Any

from apiserver.meta.resource import Key
from tests.registry.explain.explain_world import ALICE, ExplainWorld, Stored, condition, route
from tests.registry.explain.route_kinds import HTTPROUTES

_TENANTS: dict[Key, dict[str, Any]] = {Key("tenant-root", "root"): {}, ALICE: {"gateway": True}}
_SHOP = "shop.alice.example.org"
_ACCEPTED = condition("Accepted", reason="Accepted")


def _route(number: int, parents: int, *told: dict[str, Any]) -> Stored:
    found = route(f"r{number:03}", "tenant-alice", _SHOP, conditions=told)
    (named,) = found["spec"]["parentRefs"]
    other = {"name": "other", "namespace": "elsewhere"}
    found["spec"]["parentRefs"] = [*({**other, "sectionName": f"s{each}"} for each in range(1, parents)), named]
    return HTTPROUTES, found


async def test_an_answer_tells_of_the_routes_that_serve_and_counts_the_others() -> None:
    many = [*(_route(number, 1) for number in range(99)), _route(99, 1, _ACCEPTED)]
    answer = json.loads(await ExplainWorld(_TENANTS, many).explain(f"host/{_SHOP}"))
    assert "by HTTPRoute tenant-alice/r099" in answer["summary"] or "certificate" in answer["summary"]
    names = {each["object"]["name"] for each in answer["facts"] if each["object"].get("kind") == "HTTPRoute"}
    assert len(names) == 20
    assert "r099" in names
    assert "80 more routes with the hostname are left out" in [each.get("value") for each in answer["facts"]]


async def test_an_answer_about_a_hostname_tells_of_the_parents_that_are_its_gateway() -> None:
    answer = json.loads(await ExplainWorld(_TENANTS, [_route(0, 32, _ACCEPTED)]).explain(f"host/{_SHOP}"))
    values = [each.get("value") or "" for each in answer["facts"] if each["object"].get("kind") == "HTTPRoute"]
    assert len(values) == 1 + 8 + 1
    assert any("Gateway tenant-alice/cozystack" in each for each in values)
    assert "24 more are left out" in values
    whole = json.loads(await ExplainWorld(_TENANTS, [_route(0, 32, _ACCEPTED)]).explain("route/tenant-alice/r000"))
    assert len(whole["facts"]) == 1 + 32
