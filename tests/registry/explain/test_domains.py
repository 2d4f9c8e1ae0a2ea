"""The domain that a hostname is in, by the statuses that the asker may read, also where several tenants have one."""

from __future__ import annotations

import json
from typing import Any

import pytest

from apiserver.meta.resource import Key, Object
from tests.registry.explain.explain_world import (
    ALICE,
    Everything,
    ExplainWorld,
    InNamespaces,
    Recorded,
    Stored,
    condition,
    route,
)
from tests.registry.explain.route_kinds import HTTPROUTES

_ROOT, _DEV = Key("tenant-root", "root"), Key("tenant-alice", "dev")
_TENANTS: dict[Key, dict[str, Any]] = {_ROOT: {}, ALICE: {"gateway": True}, _DEV: {}}
_INNER = "x.dev.alice.example.org"
_OF_ALICE = InNamespaces({"tenant-alice"}, {("tenants", "tenant-root", "alice")})
_SHARED = "shared.test"
_ONE, _TWO = Key("tenant-root", "one"), Key("tenant-root", "two")
_BOTH: dict[Key, dict[str, Any]] = {_ROOT: {}, ALICE: {}, _ONE: {"host": _SHARED}, _TWO: {"host": _SHARED}}
_AGES = {_ONE: "2026-01-01T00:00:00Z", _TWO: "2026-02-01T00:00:00Z"}


async def _ask(host: str, world: ExplainWorld, of: Key = ALICE) -> Object:
    answer: Object = json.loads(await world.explain(f"host/{host}", of))
    return answer


async def test_a_domain_that_a_hidden_ancestor_has_just_lost_is_the_one_that_statuses_tell() -> None:
    """The root, which eve may not get, has another domain now; the statuses of her tenants tell the former one."""
    moved = ExplainWorld({**_TENANTS, _ROOT: {"host": "example.com"}}, authorizer=_OF_ALICE, told=_TENANTS)
    before = ExplainWorld(_TENANTS, authorizer=_OF_ALICE, told=_TENANTS)
    assert await moved.explain(f"host/{_INNER}") == await before.explain(f"host/{_INNER}")
    assert "belongs to tenant tenant-alice/dev" in (await _ask(_INNER, moved))["summary"]


async def test_a_domain_that_no_status_tells_yet_is_nobodys() -> None:
    world = ExplainWorld({**_TENANTS, _ONE: {"host": _SHARED}}, told=_TENANTS)
    assert "belongs to tenant" not in (await _ask(f"x.{_SHARED}", world))["summary"]


@pytest.mark.parametrize(("seen", "owner"), [((_ONE, _TWO), _ONE), ((_ONE,), _ONE), ((_TWO,), _TWO)])
async def test_a_domain_of_several_tenants_is_that_of_the_oldest_that_the_asker_may_see(
    seen: tuple[Key, ...], owner: Key
) -> None:
    rights = InNamespaces({"tenant-alice"}, {("tenants", *each) for each in (ALICE, *seen)})
    answer = await _ask(f"x.{_SHARED}", ExplainWorld(_BOTH, authorizer=rights, created=_AGES))
    assert f"belongs to tenant {owner.namespace}/{owner.name}" in answer["summary"]
    # a hidden one changes nothing
    alone = {each: spec for each, spec in _BOTH.items() if each in (_ROOT, ALICE, *seen)}
    assert answer == await _ask(f"x.{_SHARED}", ExplainWorld(alone, authorizer=rights, created=_AGES))


async def test_routes_of_each_tenant_with_the_domain_are_looked_at() -> None:
    """Of the older one, and of the younger one, on the Gateway that they share."""
    host = "dup.alice.example.org"
    tenants: dict[Key, dict[str, Any]] = {
        **_TENANTS,
        Key("tenant-alice", "one"): {"host": host},
        Key("tenant-alice", "two"): {"host": host},
        Key("tenant-alice-one", "x"): {},
    }
    accepted = condition("Accepted", reason="Accepted")
    for place in ("tenant-alice-one", "tenant-alice-two"):
        stored: Stored = (HTTPROUTES, route("shop", place, f"x.{host}", conditions=[accepted]))
        answer = await _ask(f"x.{host}", ExplainWorld(tenants, [stored]), Key("tenant-alice-one", "x"))
        assert place in [each["object"].get("namespace") for each in answer["facts"] if "HTTPRoute" in str(each)]


async def test_one_of_many_hidden_tenants_with_the_domain_that_is_visible_is_found() -> None:
    hidden = {Key("tenant-root", f"h{number}"): {"host": _SHARED} for number in range(50)}
    rights = InNamespaces({"tenant-alice"}, {("tenants", *ALICE), ("tenants", *_TWO)})
    recorded = Recorded(rights)
    world = ExplainWorld({**_BOTH, **hidden}, authorizer=recorded, created=_AGES)
    assert "belongs to tenant tenant-root/two" in (await _ask(f"x.{_SHARED}", world))["summary"]
    alone = Recorded(rights)
    await _ask(f"x.{_SHARED}", ExplainWorld(_BOTH, authorizer=alone, created=_AGES))
    assert len(recorded.reviews) == len(alone.reviews)


async def test_more_tenants_around_a_hostname_than_are_looked_at_leave_the_absence_of_a_route_unknown() -> None:
    host = "dup.alice.example.org"
    many = {Key("tenant-alice", f"d{number}"): {"host": host} for number in range(30)}
    recorded = Recorded(Everything())
    answer = await _ask(f"x.{host}", ExplainWorld({**_TENANTS, **many}, authorizer=recorded), Key("tenant-alice", "d0"))
    assert answer["verdict"] == "Unknown"
    assert len([each for each in recorded.reviews if each.resource == "tenants"]) < 40


async def test_a_namespace_of_several_tenants_is_told_by_those_that_the_asker_may_see() -> None:
    """HelmReleases that nobody admitted: tenant-root/alice-dev and tenant-alice/dev have one workload namespace."""
    hidden = Key("tenant-root", "alice-dev")
    answers = []
    for tenants in (_TENANTS, {**_TENANTS, hidden: {}}):
        ages = {_DEV: "2026-02-01T00:00:00Z", hidden: "2026-01-01T00:00:00Z"}
        world = ExplainWorld(tenants, authorizer=_OF_ALICE, created=ages)
        answers.append(await world.explain("namespace/tenant-alice-dev"))
    assert answers[0] == answers[1]
    assert b"tenant-alice/dev" in answers[0]


async def test_what_lists_show_is_asked_for_whether_or_not_a_hidden_tenant_has_the_domain() -> None:
    """Where reviews decide about lists, an answer takes seconds, which the asker sees."""
    counts = []
    for tenants in (_TENANTS, {**_TENANTS, _ONE: {"host": _SHARED}}):
        world = ExplainWorld(tenants, authorizer=_OF_ALICE)
        await world.explain(f"host/x.{_SHARED}")
        counts.append(len(world.asked))
    assert counts == [1, 1]
