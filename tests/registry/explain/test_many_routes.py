"""Answers stay small, and cost little, where there are many routes; what they have not looked at they say."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import pytest

from apiserver.meta.errors import TooManyRequests
from apiserver.meta.resource import Key, Object
from apiserver.request.context import User
from registry.cluster.interface import ClusterResource
from registry.explain.chains.route import route_name
from registry.explain.known_routes import known_route
from registry.explain.reading_slots import ReadingSlots
from registry.tenantgateway.types import TENANTGATEWAYS
from tests.registry.explain.explain_world import ALICE, EVE, ExplainWorld, Stored, condition, route, tenantgateway
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


_REFUSED = condition("Accepted", "False", "HostnameConflict", f'"{_SHOP}" belongs to another route')


def _attached(count: int, *listeners: Object) -> Stored:
    found = tenantgateway("tenant-alice", listeners, condition("Ready"))
    found["spec"]["attachedNamespaces"] = [f"cozy-{number:02}" for number in range(count)]
    return TENANTGATEWAYS, found


def _others(namespace: str, count: int, host: str = "other.example.org") -> list[Stored]:
    return [(HTTPROUTES, route(f"r{number:04}", namespace, host)) for number in range(count)]


class _Lists:
    """The namespaces in which routes are listed."""

    def __init__(self) -> None:
        self.places: list[str] = []

    async def __call__(self, verb: str, resource: ClusterResource, key: Key) -> None:
        if verb == "list" and resource.plural.endswith("routes"):
            self.places.append(key.namespace)


async def _ask(objects: Sequence[Stored], lists: _Lists | None = None, host: str = _SHOP) -> Object:
    answer: Object = json.loads(await ExplainWorld(_TENANTS, objects, before=lists).explain(f"host/{host}"))
    return answer


@pytest.mark.parametrize(("count", "verdict"), [(500, "False"), (501, "Unknown")])
async def test_routes_of_a_namespace_that_were_not_looked_at_are_said(count: int, verdict: str) -> None:
    answer = await _ask(_others("tenant-alice", count))
    assert answer["verdict"] == verdict
    said = "routes in tenant-alice were not all looked at" in [each.get("value") for each in answer["facts"]]
    assert said == (verdict == "Unknown")


async def test_one_question_looks_at_no_more_routes_than_others_can_wait_for() -> None:
    places = [f"cozy-{number:02}" for number in range(10)]
    lists = _Lists()
    answer = await _ask([_attached(10), *(each for place in places for each in _others(place, 300))], lists)
    assert answer["verdict"] == "Unknown"
    # 300 of each of six, and 200 of the seventh
    assert set(lists.places) == {"tenant-alice", *places[:7]}
    [fact] = [each for each in answer["facts"] if "not all looked at" in each.get("value", "")]
    assert fact["value"] == "routes in cozy-06, cozy-07, cozy-08 or 1 more namespaces were not all looked at"
    assert fact["remedy"].endswith(": kubectl get httproutes,grpcroutes -n cozy-06")


async def test_a_refused_route_does_not_decide_while_others_were_not_looked_at() -> None:
    listener = {"name": "https-shop-1", "hostname": _SHOP, "ready": True}
    refused = [_route(number, 1, _REFUSED) for number in range(100)]
    winner = route("winner", "cozy-00", _SHOP, conditions=[_ACCEPTED])
    lists = _Lists()
    answer = await _ask([_attached(1, listener), *refused, (HTTPROUTES, winner)], lists)
    assert "cozy-00" not in lists.places
    assert answer["verdict"] == "Unknown"
    assert answer["summary"].startswith(
        f"no route that was looked at serves {_SHOP}, and those in cozy-00 were not all"
    )
    fewer = await _ask([_attached(1, listener), *refused[1:], (HTTPROUTES, winner)])
    assert (fewer["verdict"], fewer["summary"]) == ("True", f"{_SHOP} is served, by HTTPRoute cozy-00/winner")


async def test_a_hostname_that_a_route_serves_is_served_whatever_was_not_looked_at() -> None:
    listener = {"name": "https-shop-1", "hostname": _SHOP, "ready": True}
    answer = await _ask([_attached(30, listener), _route(0, 1, _ACCEPTED)])
    assert (answer["verdict"], answer["summary"]) == ("True", f"{_SHOP} is served, by HTTPRoute tenant-alice/r000")
    [fact] = [each for each in answer["facts"] if "not all looked at" in each.get("value", "")]
    assert fact["status"] == "True"
    assert "8 more namespaces" in fact["value"]


async def test_no_route_is_listed_for_a_hostname_that_the_tenant_does_not_have() -> None:
    lists = _Lists()
    assert (await _ask([_attached(10)], lists, host="shop.example.com"))["verdict"] == "False"
    assert lists.places == []


def _annotated(routes: Sequence[Stored], size: int) -> Sequence[Stored]:
    for _, each in routes:
        each["metadata"]["annotations"] = {"x": "x" * size}
    return routes


async def test_an_answer_keeps_nothing_of_routes_but_what_it_tells() -> None:
    """200 routes with 250 KB of annotations each took 200 MB."""
    [asked] = _annotated([_route(0, 1, _ACCEPTED)], 250_000)
    kept = known_route(*asked)
    assert len(json.dumps(kept)) < 1_000
    assert route_name(kept) == "HTTPRoute tenant-alice/r000"
    few = [_route(number, 1, _ACCEPTED) for number in range(3)]
    answer = await _ask(few)
    assert await _ask(_annotated(few, 250_000)) == answer


async def test_a_message_of_a_controller_is_cut_where_it_is_long() -> None:
    listener = {"name": "https-shop-1", "hostname": _SHOP, "ready": True}
    refused = condition("Accepted", "False", "Refused", "x" * 30_000)
    answer = await _ask([_attached(0, listener), _route(0, 1, refused)])
    [message] = [each["message"] for each in answer["facts"] if each.get("reason") == "Refused"]
    assert message == "x" * 1_000 + "…"


async def test_an_answer_looks_at_no_more_bytes_of_routes_than_other_requests_can_wait_for() -> None:
    lists = _Lists()
    many = _annotated(_others("tenant-alice", 70), 1_000_000)
    answer = await _ask([_attached(1), *many, *_others("cozy-00", 1, _SHOP)], lists)
    assert answer["verdict"] == "Unknown"
    assert set(lists.places) == {"tenant-alice"}
    assert "routes in tenant-alice or cozy-00 were not all looked at" in [each.get("value") for each in answer["facts"]]


async def test_an_answer_keeps_no_more_of_routes_than_fits_in_memory() -> None:
    refused = condition("Accepted", "False", "Refused", "x" * 1_000)
    many = [_route(number, 1, *[refused] * 64) for number in range(20)]
    answer = await _ask(many)
    assert "routes in tenant-alice were not all looked at" in [each.get("value") for each in answer["facts"]]
    assert (
        len({each["object"].get("name") for each in answer["facts"]} & {f"r{number:03}" for number in range(20)}) > 10
    )


def _slow_world() -> tuple[ExplainWorld, asyncio.Event, asyncio.Event]:
    """Two questions read routes at a time, one of a user. The first event is set when one does, and it goes on after
    the second."""
    reading, go_on = asyncio.Event(), asyncio.Event()

    async def wait(verb: str, resource: ClusterResource, key: Key) -> None:
        if verb == "list":
            reading.set()
            await go_on.wait()

    slots = ReadingSlots(total=2, per_user=1, seconds=0.01)
    world = ExplainWorld(_TENANTS, [_route(0, 1, _ACCEPTED)], before=wait, slots=slots)
    return world, reading, go_on


@pytest.mark.parametrize("about", [f"host/{_SHOP}", "who-can-see"])
async def test_only_a_few_questions_read_routes_or_bindings_at_a_time(about: str) -> None:
    """A question of another user still finds a place."""
    world, reading, go_on = _slow_world()
    first = asyncio.create_task(world.explain(about))
    await reading.wait()
    with pytest.raises(TooManyRequests) as refused:
        await world.explain(about)
    assert (refused.value.code, refused.value.details) == (429, {"retryAfterSeconds": 1})
    assert await world.explain("tenant")
    reading.clear()
    other = asyncio.create_task(world.explain(about, user=User(name="bob", groups=EVE.groups)))
    await reading.wait()
    with pytest.raises(TooManyRequests):
        await world.explain(about, user=User(name="carol", groups=EVE.groups))
    go_on.set()
    assert await first == await other
    assert await world.explain(about) == await first


async def test_service_accounts_of_a_tenant_have_the_places_of_one_user() -> None:
    """A tenant can make any number of them."""
    world, reading, go_on = _slow_world()
    accounts = [User(f"system:serviceaccount:tenant-alice:{number}", groups=EVE.groups) for number in range(2)]
    about = f"host/{_SHOP}"
    first = asyncio.create_task(world.explain(about, user=accounts[0]))
    await reading.wait()
    with pytest.raises(TooManyRequests):
        async with asyncio.timeout(10):
            await world.explain(about, user=accounts[1])
    other = asyncio.create_task(world.explain(about, user=User("bob", groups=EVE.groups)))
    go_on.set()
    assert await first == await other


async def test_a_question_waits_for_its_place() -> None:
    slots, order = ReadingSlots(total=1, per_user=1, seconds=60), list[str]()

    async def ask(user: str) -> None:
        async with slots.held(user):
            order.append(user)
            await asyncio.sleep(0)

    await asyncio.gather(*map(ask, ("eve", "eve", "bob")))
    assert order == ["eve", "eve", "bob"]


async def test_a_place_goes_to_those_who_have_fewest() -> None:
    """Two people who ask hundreds of questions leave a place to others."""
    slots, order = ReadingSlots(total=2, per_user=1, seconds=60), list[str]()
    go_on = asyncio.Event()

    async def ask(user: str) -> None:
        async with slots.held(user):
            order.append(user)
            await go_on.wait()

    questions = [asyncio.create_task(ask(user)) for user in ("eve", "mallory", *["eve", "mallory"] * 10)]
    await asyncio.sleep(0)
    questions.append(asyncio.create_task(ask("bob")))
    await asyncio.sleep(0)
    go_on.set()
    await asyncio.gather(*questions)
    # after those who have waited longer without a place
    assert order.index("bob") <= 4


async def test_a_question_that_is_given_up_gives_its_place_to_the_next() -> None:
    slots = ReadingSlots(total=1, per_user=1, seconds=60)

    async def ask(asked: asyncio.Event, go_on: asyncio.Event) -> None:
        async with slots.held("eve"):
            asked.set()
            await go_on.wait()

    events = [(asyncio.Event(), asyncio.Event()) for _ in range(3)]
    first, second, third = [asyncio.create_task(ask(*each)) for each in events]
    await events[0][0].wait()
    await asyncio.sleep(0)
    # it is given the place, and its client disconnects before it knows
    events[0][1].set()
    await asyncio.sleep(0)
    second.cancel()
    await asyncio.gather(first, second, return_exceptions=True)
    assert second.cancelled()
    assert not events[1][0].is_set()
    async with asyncio.timeout(10):
        await events[2][0].wait()
    events[2][1].set()
    await third
    async with slots.held("eve"):
        pass
