"""Hostnames beyond those that fit on the Gateway go to ListenerSets, and stay where they are."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from apiserver.meta.resource import Object
from controller.tenantgateway.listeners import MAX_LISTENERS
from controller.tenantgateway.listenersets.existing_sets import NO_SETS, ExistingSets, may_grow
from controller.tenantgateway.model import ParentRef, Plan, Route
from tests.controller.tenantgateway.gateway_builders import (
    existing_gateway,
    gateway,
    hostnames,
    inheriting,
    omitted,
    planned,
    route,
    with_services,
)
from tests.controller.tenantgateway.listenersets.listener_set_builders import existing_sets, hostnames_by_set

GATEWAY = gateway()
APEX = "foo.example.com"
NUMBERS = 20
"""The sets that the routes of these tests refer to, beside the Gateway."""
PARENTS = (ParentRef(port=443), *(ParentRef(listener_set=f"cozystack-{number}") for number in range(1, NUMBERS + 1)))


def many(first: int, last: int) -> list[str]:
    return [f"app{index:04}.{APEX}" for index in range(first, last)]


def routed(*found: str) -> Route:
    return route("tenant-foo", "app", *found, parents=PARENTS)


def plan_of(found: list[str], before: Plan | None = None, sets: ExistingSets | None = None) -> Plan:
    current = existing_gateway(GATEWAY, before) if before is not None else None
    return planned(GATEWAY, routed(*found), current=current, sets=sets or existing_sets(GATEWAY, before))


def places(plan: Plan) -> dict[str, str]:
    own = dict.fromkeys(hostnames(plan), "")
    return own | {hostname: name for name, found in hostnames_by_set(plan).items() for hostname in found}


@pytest.mark.parametrize("attended", [True, False], ids=["a set that is served", "a set that nobody looks at"])
def test_only_hostnames_that_are_not_served_move_to_the_gateway_when_it_has_room(attended: bool) -> None:
    """A GatewayClass may name ListenerSet though its controller ignores the sets."""
    before = plan_of(many(0, 66))
    stranded = hostnames_by_set(before)["cozystack-1"]
    remaining = [each for each in many(0, 66) if each not in hostnames(before)[:1]]
    after = plan_of(remaining, before, existing_sets(GATEWAY, before, attended=attended))
    assert set(places(after)) == set(remaining)
    assert {each for each in stranded if not places(after)[each]} == (set() if attended else set(stranded[:1]))
    kept = {each: place for each, place in places(after).items() if each not in stranded}
    assert set(kept.values()) == {""}, "nothing leaves the Gateway"
    again = plan_of(remaining, after, existing_sets(GATEWAY, after, attended=attended))
    assert places(again) == places(after)


def test_a_thousand_hostnames_all_have_a_listener_and_a_certificate() -> None:
    plan = plan_of(many(0, 1000))
    assert len(plan.listeners) == MAX_LISTENERS
    assert [len(each.listeners) for each in plan.sets] == [64] * 14 + [41]
    assert [each.name for each in plan.sets[:2]] == ["cozystack-1", "cozystack-2"]
    assert set(places(plan)) == set(many(0, 1000))
    assert {name for each in plan.certificates for name in each.dns_names} == set(many(0, 1000))
    assert plan.omitted == ()


def test_the_next_pass_plans_the_same() -> None:
    plan = plan_of(many(0, 1000))
    assert plan_of(many(0, 1000), plan) == plan


def test_a_new_hostname_changes_one_object() -> None:
    """It takes the first room: on the Gateway, in the first set with room, or in a new set."""
    plan = plan_of(many(0, 200))
    grown = plan_of(["a.foo.example.com", *many(0, 200)], plan)
    assert grown.listeners == plan.listeners
    assert [each.name for each, old in zip(grown.sets, plan.sets, strict=True) if each != old] == ["cozystack-3"]
    full = plan_of(many(0, 63 + 64))
    more = plan_of(many(0, 63 + 65), full)
    assert more.sets[:1] == full.sets
    assert hostnames_by_set(more)["cozystack-2"] == many(127, 128)


def test_what_is_served_never_moves() -> None:
    """The layout keeps its promises through additions and removals in any order."""
    random, present = Random(7), set(many(0, 150))
    plan = plan_of(sorted(present))
    for _ in range(60):
        before = places(plan)
        present -= set(random.sample(sorted(present), random.randrange(min(40, len(present)))))
        present |= {f"app{random.randrange(400):04}.{APEX}" for _ in range(random.randrange(60))}
        plan = plan_of(sorted(present), plan)
        now = places(plan)
        assert now.keys() == present
        assert {host: before[host] for host in present & before.keys()} == {
            host: now[host] for host in present & before.keys()
        }
        assert all(len(each.listeners) <= MAX_LISTENERS for each in plan.sets)


def test_a_set_that_empties_is_removed_and_room_is_filled_from_the_front() -> None:
    plan = plan_of(many(0, 63 + 64 + 2))
    assert list(hostnames_by_set(plan)) == ["cozystack-1", "cozystack-2"]
    less = plan_of([*many(0, 63), *many(127, 129)], plan)
    assert hostnames_by_set(less) == {"cozystack-2": many(127, 129)}
    # the set that has just lost its last hostname, and is not deleted yet, or one of its number
    again = plan_of([*many(0, 63), *many(127, 129), "z.foo.example.com"], less)
    assert hostnames_by_set(again) == {"cozystack-2": [*many(127, 129), "z.foo.example.com"]}


def test_the_number_of_a_set_of_another_owner_is_left_out() -> None:
    sets = ExistingSets(is_taken=lambda number: number in (1, 3), may_grow=True)
    plan = plan_of(many(0, 63 + 65), sets=sets)
    assert list(hostnames_by_set(plan)) == ["cozystack-2", "cozystack-4"]


def test_passthrough_listeners_are_on_the_gateway() -> None:
    served = plan_of(many(0, 100))
    tenantgateway = with_services(GATEWAY, "api")
    plan = planned(
        tenantgateway,
        routed(*many(0, 100)),
        current=existing_gateway(GATEWAY, served),
        sets=existing_sets(GATEWAY, served),
    )
    assert "tls-api" in [each.name for each in plan.listeners]
    assert set(places(plan)) == set(many(0, 100))


def test_without_listener_sets_hostnames_beyond_64_listeners_are_left_out() -> None:
    plan = planned(GATEWAY, routed(*many(0, 64)), sets=NO_SETS)
    assert (plan.sets, omitted(plan)) == ((), {f"app0063.{APEX}": "ListenersTruncated"})


def test_support_that_ends_takes_down_nothing_and_adds_nothing() -> None:
    """The status of a GatewayClass can be empty for a while."""
    plan = plan_of(many(0, 70))
    now = plan_of(many(0, 71), plan, existing_sets(GATEWAY, plan, may_grow=False))
    assert now.sets == plan.sets
    assert omitted(now) == {f"app0070.{APEX}": "ListenersTruncated"}


def test_wildcards_of_children_go_to_sets_too() -> None:
    """But not with a Secret of another namespace, whose grant for the Gateway says nothing about its sets."""
    shared = gateway(cert_mode="existingSecret", wildcard_secret="ours")
    children = inheriting(*(f"c{index:02}.{APEX}" for index in range(70)))
    plan = planned(shared, inheriting=children, sets=existing_sets(shared))
    assert [len(each.listeners) for each in plan.sets] == [9]
    assert plan.omitted == ()
    foreign = replace(shared, wildcard_secret_namespace="vault")
    assert planned(foreign, inheriting=children, sets=existing_sets(shared)).sets == ()


ON_SET, ON_GATEWAY = many(63, 64)[0], many(0, 1)[0]


@pytest.mark.parametrize(
    ("parents", "expected"),
    [
        pytest.param((ParentRef(), ParentRef(listener_set="cozystack-1")), [], id="both are named"),
        pytest.param((ParentRef(port=443),), [ON_SET], id="the Gateway alone"),
        pytest.param((ParentRef(listener_set="cozystack-1"),), [ON_GATEWAY], id="the set alone"),
        pytest.param((ParentRef(), ParentRef(listener_set="cozystack-2")), [ON_SET], id="another set"),
        pytest.param(
            (ParentRef(section="http"), ParentRef(listener_set="cozystack-1")),
            [ON_GATEWAY],
            id="port 80 of the Gateway",
        ),
    ],
)
def test_a_route_is_told_to_name_the_object_with_the_listener(
    parents: tuple[ParentRef, ...], expected: list[str]
) -> None:
    """Routes attach to what they name: the listeners of a ListenerSet are not those of its Gateway (GEP-1713)."""
    before = plan_of(many(0, 64))
    asking = route("tenant-foo", "asking", ON_GATEWAY, ON_SET, parents=parents)
    plan = planned(
        GATEWAY,
        routed(*many(0, 64)),
        asking,
        current=existing_gateway(GATEWAY, before),
        sets=existing_sets(GATEWAY, before),
    )
    told = [each for each in plan.omitted if each.reason == "NoMatchingParent"]
    assert [each.hostname for each in told] == expected
    assert all(each.route == asking.id for each in told)
    if expected == [ON_SET]:
        assert "add a parentRef with kind ListenerSet, namespace tenant-foo and name cozystack-1" in told[0].message


@pytest.mark.parametrize(
    ("features", "expected"),
    [
        pytest.param([{"name": "HTTPRoute"}, {"name": "ListenerSet"}], True, id="named"),
        pytest.param(["ListenerSet"], True, id="named by an older version"),
        pytest.param([{"name": "HTTPRoute"}], False, id="not named"),
        pytest.param([], False, id="none"),
        pytest.param(None, False, id="no status yet"),
        pytest.param("ListenerSet", False, id="malformed"),
    ],
)
def test_the_class_says_whether_listener_sets_are_supported(features: object, expected: bool) -> None:
    class_: Object = {"metadata": {"name": "cilium"}, "status": {"supportedFeatures": features}}
    assert may_grow("auto", class_) is expected
    assert may_grow("always", class_)
    assert not may_grow("never", class_)
    assert not may_grow("auto", None)
