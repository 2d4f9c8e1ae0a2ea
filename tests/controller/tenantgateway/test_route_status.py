"""Entries of this controller in the status of routes."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import pytest

from apiserver.meta.resource import Object
from controller.tenantgateway.hostname_validation import HostnameRejection
from controller.tenantgateway.model import ParentRefVerdict, Route
from controller.tenantgateway.route_status import (
    MAX_PARENTS,
    accept,
    orphan,
    reject,
    rejections_by_route,
    route_parents,
)
from tests.controller.tenantgateway.gateway_builders import LATER, NOW, assert_admitted, gateway, planned, route

HARBOR = "harbor.foo.example.com"
OURS = "gateway.cozystack.io/tenantgateway-controller"
CILIUM = "io.cilium/gateway-controller"
PARENT = {"name": "cozystack", "namespace": "tenant-foo"}
OTHER = {"name": "cozystack", "namespace": "tenant-root"}
LOST = HostnameRejection("HostnameConflict", "lost")


def entry(parent: Object, controller: str = OURS, **conditions: str) -> Object:
    return {
        "parentRef": parent,
        "controllerName": controller,
        "conditions": [
            {"type": type_, "status": status, "reason": "X", "message": "", "lastTransitionTime": NOW}
            for type_, status in conditions.items()
        ],
    }


def route_object(*parents: Object, entries: Sequence[Object] = (), generation: int = 4) -> Object:
    return {
        "metadata": {"name": "harbor", "namespace": "tenant-foo", "generation": generation},
        "spec": {"parentRefs": list(parents or (PARENT,)), "hostnames": [HARBOR]},
        "status": {"parents": list(entries)},
    }


def parents_of(
    obj: Object, *verdicts: ParentRefVerdict, is_undecided: Sequence[Object] = (), now: str = NOW
) -> list[Object] | None:
    before = copy.deepcopy(obj)
    parents = route_parents(obj, verdicts, is_undecided=lambda parent: parent in is_undecided, now=now)
    assert obj == before
    return parents


def written(obj: Object, *verdicts: ParentRefVerdict, **options: Any) -> Object:
    """The route after the write."""
    parents = parents_of(obj, *verdicts, **options)
    assert parents is not None
    return {**obj, "status": {"parents": parents}}


def test_the_losing_route_is_rejected_with_hostname_and_winner() -> None:
    """R-202, R-204, R-319, PEER-06, GW-16."""
    won, lost = route("cozy-harbor", "harbor", HARBOR), route("tenant-foo", "shadow", HARBOR)
    found = rejections_by_route(planned(gateway(), won, lost))
    assert list(found) == [lost.id]
    (parent,) = written(route_object(), reject(PARENT, found[lost.id]))["status"]["parents"]
    assert parent["controllerName"] == OURS
    assert parent["parentRef"] == PARENT
    accepted = {each["type"]: each for each in parent["conditions"]}["Accepted"]
    assert (accepted["status"], accepted["reason"]) == ("False", "HostnameConflict")
    assert accepted["message"] == f'"{HARBOR}" belongs to HTTPRoute cozy-harbor/harbor'


@pytest.mark.parametrize(
    ("winner", "message"),
    [
        pytest.param(route("tenant-bar", "shop", HARBOR), f'"{HARBOR}" belongs to HTTPRoute tenant-bar/shop',
                     id="another tenant"),
        pytest.param(route("tenant-bar", "all", "*.foo.example.com"),
                     f'"{HARBOR}" overlaps "*.foo.example.com", which belongs to HTTPRoute tenant-bar/all',
                     id="an overlap"),
        pytest.param(route("tenant-apex", "own", HARBOR), f'"{HARBOR}" belongs to HTTPRoute tenant-apex/own',
                     id="the tenant that has the gateway"),
        pytest.param(route("cozy-harbor", "all", "*.foo.example.com"),
                     f'"{HARBOR}" overlaps "*.foo.example.com", which belongs to HTTPRoute cozy-harbor/all',
                     id="the platform"),
    ],
)  # fmt: skip
def test_the_loser_hears_who_won_and_of_nobody_else(winner: Route, message: str) -> None:
    """R-204: also of another tenant. Other losers to the same winner, and uncontested hostnames, stay unnamed
    (ATTACK-15)."""
    lost = route("tenant-foo", "shadow", HARBOR)
    others = [route("tenant-other", "shadow", HARBOR), route("tenant-other", "own", "own.other.example.com")]
    found = rejections_by_route(planned(gateway(cert_mode="dns01"), winner, lost, *others))
    assert found[lost.id].message == message


def test_the_message_of_an_overlap_names_both_hostnames() -> None:
    tenantgateway = gateway(cert_mode="dns01")
    lost = route("tenant-foo", "app", HARBOR)
    found = rejections_by_route(planned(tenantgateway, route("cozy-a", "all", "*.foo.example.com"), lost))
    assert found[lost.id].message == f'"{HARBOR}" overlaps "*.foo.example.com", which belongs to HTTPRoute cozy-a/all'


@pytest.mark.parametrize(
    ("hostnames", "reason"),
    [
        pytest.param(("*.foo.example.com",), "UnsupportedValue", id="FACT-4: a wildcard in HTTP-01"),
        pytest.param(("x.customer1.example",), "NoMatchingListenerHostname", id="FACT-2: outside the apex"),
        pytest.param(("*.foo.example.com", HARBOR), "HostnameConflict", id="a conflict takes precedence"),
    ],
)
def test_an_omitted_hostname_is_reported_on_its_route(hostnames: tuple[str, ...], reason: str) -> None:
    """A valid hostname on the same route does not change that."""
    bad = route("tenant-foo", "bad", "fine.foo.example.com", *hostnames)
    found = rejections_by_route(planned(gateway(), route("cozy-harbor", "harbor", HARBOR), bad))
    assert found[bad.id].reason == reason
    assert all(hostname in found[bad.id].message for hostname in hostnames)
    assert "fine.foo" not in found[bad.id].message


def test_a_truncated_hostname_is_reported_on_its_route() -> None:
    app = route("tenant-foo", "app", *(f"a{index:02}.foo.example.com" for index in range(64)))
    found = rejections_by_route(planned(gateway(), app))
    assert found[app.id].reason == "ListenersTruncated"
    assert "a63.foo.example.com" in found[app.id].message


def test_a_status_entry_is_valid_for_gateway_api() -> None:
    """GW-15: with the generation of the route, and nothing about references, which the data plane judges."""
    obj = written(route_object(), reject(PARENT, LOST))
    for each in obj["status"]["parents"][0]["conditions"]:
        assert (each["observedGeneration"], each["lastTransitionTime"]) == (4, NOW)
    assert [(each["type"], each["status"]) for each in obj["status"]["parents"][0]["conditions"]] == [
        ("Accepted", "False")
    ]
    assert_admitted(
        "gateway-api/gateway.networking.k8s.io_httproutes.yaml",
        obj,
        api_version="gateway.networking.k8s.io/v1",
        kind="HTTPRoute",
    )


def test_a_second_pass_changes_nothing() -> None:
    """R-102: also if the cluster has filled in defaults of the parentRef."""
    obj = written(route_object(), reject(PARENT, LOST))
    assert parents_of(obj, reject(PARENT, LOST), now=LATER) is None
    filled = {"group": "gateway.networking.k8s.io", "kind": "Gateway"}
    for parents in (obj["status"]["parents"], [{"parentRef": each} for each in obj["spec"]["parentRefs"]]):
        parents[0]["parentRef"] = {**parents[0]["parentRef"], **filled}
    assert parents_of(obj, reject(PARENT, LOST), now=LATER) is None


def test_an_accepted_route_without_an_entry_gets_none() -> None:
    """Nothing is written to the many routes without problems, nor to those of ACME solvers (R-285)."""
    assert parents_of(route_object(), accept(PARENT)) is None


def test_a_route_without_a_status_is_not_changed() -> None:
    obj = route_object()
    del obj["status"]
    assert parents_of(obj, accept(PARENT)) is None


def test_a_rejected_route_that_wins_later_is_accepted() -> None:
    """R-206, R-219: the time of the transition is kept afterwards."""
    lost = written(route_object(), reject(PARENT, LOST))
    won = written({**lost, "metadata": {**lost["metadata"], "generation": 5}}, accept(PARENT), now=LATER)
    (accepted,) = won["status"]["parents"][0]["conditions"]
    assert (accepted["status"], accepted["reason"], accepted["lastTransitionTime"]) == ("True", "Accepted", LATER)
    assert accepted["observedGeneration"] == 5
    assert parents_of(won, accept(PARENT), now=LATER) is None


@pytest.mark.parametrize("rejection", [pytest.param(LOST, id="rejected"), pytest.param(None, id="accepted")])
def test_entries_of_other_controllers_are_not_changed(rejection: HostnameRejection | None) -> None:
    """R-203."""
    cilium = {**entry(PARENT, CILIUM, Accepted="True", **{"x.io/odd": "Unknown"}), "futureField": [1]}
    existing = [entry(OTHER, CILIUM, Accepted="False"), entry(PARENT, Accepted="Unknown"), cilium]
    verdict = accept(PARENT) if rejection is None else reject(PARENT, rejection)
    parents = parents_of(route_object(entries=existing), verdict)
    assert parents is not None
    assert (parents[0], parents[2]) == (existing[0], existing[2])
    assert len(parents) == 3


@pytest.mark.parametrize(
    ("parents", "undecided", "stays"),
    [
        pytest.param((PARENT,), (OTHER,), False, id="the route no longer refers to that gateway"),
        pytest.param((PARENT, OTHER), (), False, id="that gateway has no TenantGateway"),
        pytest.param((PARENT, OTHER), (OTHER,), True, id="a verdict is to come"),
    ],
)
def test_stale_entries_of_ours_are_removed(
    parents: tuple[Object, ...], undecided: tuple[Object, ...], stays: bool
) -> None:
    """GW-15."""
    other = entry(OTHER, Accepted="False")
    found = parents_of(route_object(*parents, entries=[other]), reject(PARENT, LOST), is_undecided=undecided)
    assert found is not None
    assert (other in found) is stays


def test_a_route_that_left_every_gateway_loses_our_entries() -> None:
    cilium = entry(PARENT, CILIUM, Accepted="True")
    obj = route_object({"name": "elsewhere"}, entries=[entry(PARENT, Accepted="False"), cilium])
    assert parents_of(obj) == [cilium]


def test_duplicate_entries_of_ours_are_merged() -> None:
    doubled = [entry(PARENT, Accepted="False"), entry(PARENT, Accepted="True")]
    assert len(parents_of(route_object(entries=doubled), reject(PARENT, LOST)) or ()) == 1


def test_each_parentref_has_its_own_entry() -> None:
    """One that is accepted needs none."""
    sections = [{**PARENT, "sectionName": name} for name in ("https-a", "https-b", "http")]
    verdicts = [*(reject(each, LOST) for each in sections[:2]), accept(sections[2])]
    parents = parents_of(route_object(*sections), *verdicts) or []
    assert [each["parentRef"] for each in parents] == sections[:2]


def test_a_parentref_without_a_namespace_refers_to_that_of_the_route() -> None:
    obj = route_object({"name": "cozystack"}, entries=[entry(PARENT, Accepted="False")])
    assert len(written(obj, reject({"name": "cozystack"}, LOST))["status"]["parents"]) == 1


def test_entries_of_ours_beyond_the_limit_are_dropped() -> None:
    """Otherwise the cluster would reject the whole status."""
    existing = [entry({"name": f"g{index}"}, CILIUM, Accepted="True") for index in range(MAX_PARENTS)]
    assert parents_of(route_object(entries=existing), reject(PARENT, LOST)) is None
    assert len(parents_of(route_object(entries=existing[:-1]), reject(PARENT, LOST)) or ()) == MAX_PARENTS


def test_an_orphan_keeps_its_parent() -> None:
    """R-346, R-347: with the last transition time, and one entry however often it is judged."""
    obj = written(route_object(entries=[entry(PARENT, Accepted="False")]), orphan(PARENT, "tenant-a"), now=LATER)
    (parent,) = obj["status"]["parents"]
    assert parent["parentRef"] == PARENT
    (accepted,) = parent["conditions"]
    assert (accepted["status"], accepted["reason"], accepted["lastTransitionTime"]) == ("False", "Orphaned", NOW)
    assert accepted["message"].startswith("there is no Gateway tenant-foo/cozystack: ")
    assert parents_of(obj, orphan(PARENT, "tenant-a"), now=LATER) is None


def test_an_orphan_of_another_name_is_told_what_the_gateway_of_a_tenant_is_called() -> None:
    """A tenant whose spec.gateway is set already would look in vain for what is missing."""
    message = orphan({**PARENT, "name": "gateway"}, "tenant-a").message
    assert message == "there is no Gateway tenant-foo/gateway: the Gateway of a tenant is called cozystack"


def test_the_last_parent_of_a_route_without_parents_is_kept() -> None:
    obj = route_object(entries=[entry(PARENT, Accepted="True")])
    obj["spec"]["parentRefs"] = []
    (parent,) = written(obj, orphan(PARENT, "tenant-a", detached=True))["status"]["parents"]
    assert parent["parentRef"] == PARENT
    assert parent["conditions"][0]["reason"] == "Orphaned"
    assert "last attached to Gateway tenant-foo/cozystack" in parent["conditions"][0]["message"]
