"""ATTACK-10: taking over a hostname by creating the route earlier, later, again or elsewhere.

R-200 defines the order: namespaces of the platform win, then the smallest namespace and name. Age and clocks do not
count. ATTACK-09 tests which hostnames may be claimed, tests/e2e/gateways/test_rules.py the rest of the order.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

from tests.e2e.support.clusters.processes import WaitTimeout, wait_until
from tests.e2e.support.gateways import DNS01, GATEWAY_API, LABEL, Gateways, Object, path

APEX = "foo.example.com"
WANTED = f"harbor.{APEX}"


@pytest.fixture
def foo(gateways: Gateways) -> str:
    return gateways.create_owner()


def create_attached_namespace(gateways: Gateways, owner: str, prefix: str) -> str:
    """Creates a namespace that is attached to the owner's Gateway."""
    return gateways.create_namespace(prefix, labels={LABEL: owner})


def claim(gateways: Gateways, namespace: str, *hostnames: str, to: str, name: str = "harbor") -> None:
    gateways.create_route(namespace, name, *(hostnames or (WANTED,)), to=to, port=443)


def lost_to(gateways: Gateways, namespace: str, winner: str, name: str = "harbor") -> bool:
    """The loser's condition names the winner, whose own names nobody (R-204)."""
    message = gateways.conflict_message(namespace, name)
    return f"belongs to HTTPRoute {winner}" in message and not gateways.conflict_message(*winner.split("/"))


def wait_until_processed(gateways: Gateways, foo: str) -> None:
    """Creates one more route and waits for its listener: the controller has seen all earlier changes by then."""
    name = f"late{len(gateways.listener_hostnames(foo))}"
    claim(gateways, foo, f"{name}.{APEX}", to=foo, name=name)
    gateways.wait_until("the later route has a listener", lambda: f"{name}.{APEX}" in gateways.listener_hostnames(foo))


@pytest.mark.parametrize("mode", [pytest.param({}, id="http01"), pytest.param(DNS01, id="dns01")])
def test_the_age_of_a_route_does_not_decide(gateways: Gateways, foo: str, mode: Object) -> None:
    first, second = (
        create_attached_namespace(gateways, foo, "a-team"),
        create_attached_namespace(gateways, foo, "b-team"),
    )
    gateways.create_tenantgateway(foo, APEX, **mode)
    claim(gateways, second, to=foo)
    gateways.wait_until("the hostname has a listener", lambda: gateways.listener_hostnames(foo))
    assert gateways.conflict_message(second, "harbor") == ""
    claim(gateways, first, to=foo)
    gateways.wait_until("the second namespace loses", partial(lost_to, gateways, second, f"{first}/harbor"))
    assert gateways.conflict_message(first, "harbor") == ""
    # recreating a route, or claiming an old creationTimestamp, changes nothing
    for namespace in (second, first, second):
        gateways.delete("httproutes", namespace, "harbor")
        spec = {"parentRefs": [{"namespace": foo, "name": "cozystack", "port": 443}], "hostnames": [WANTED]}
        metadata = {"name": "harbor", "creationTimestamp": "1970-01-01T00:00:00Z", "generation": 99}
        body = {"apiVersion": GATEWAY_API, "kind": "HTTPRoute", "metadata": metadata, "spec": spec}
        gateways.client.request("POST", path("httproutes", namespace), body).expect(201)
        gateways.wait_until("the second namespace still loses", partial(lost_to, gateways, second, f"{first}/harbor"))
        gateways.wait_until("the first namespace still wins", lambda: gateways.conflict_message(first, "harbor") == "")


def test_concurrent_claims_have_the_same_winner(gateways: Gateways, foo: str) -> None:
    """The routes are created within a second, over ten connections."""
    gateways.create_tenantgateway(foo, APEX)
    namespaces = sorted(create_attached_namespace(gateways, foo, prefix) for prefix in ("q", "c", "x", "h", "b"))
    names = ("zeta", "alpha")
    with ThreadPoolExecutor(10) as pool:
        pending = [
            pool.submit(claim, gateways, namespace, to=foo, name=name)
            for name in names
            for namespace in reversed(namespaces)
        ]
        for each in pending:
            each.result()
    winner, others = namespaces[0], namespaces[1:]
    for namespace in others:
        for name in names:
            loses = partial(lost_to, gateways, namespace, f"{winner}/alpha", name)
            gateways.wait_until(f"{namespace}/{name} loses", loses)
    # routes of one namespace share a hostname
    assert [gateways.conflict_message(winner, name) for name in names] == ["", ""]


def test_a_wildcard_cannot_take_over_a_hostname(gateways: Gateways, foo: str) -> None:
    first, second = (
        create_attached_namespace(gateways, foo, "a-team"),
        create_attached_namespace(gateways, foo, "b-team"),
    )
    gateways.create_tenantgateway(foo, APEX, **DNS01)
    claim(gateways, first, to=foo)
    for number, hostname in enumerate((f"*.{APEX}", f"*.{APEX}.", WANTED.upper(), f"{WANTED}.")):
        spec = {"parentRefs": [{"namespace": foo, "name": "cozystack", "port": 443}], "hostnames": [hostname]}
        body = {"apiVersion": GATEWAY_API, "kind": "HTTPRoute", "metadata": {"name": f"w{number}"}, "spec": spec}
        answer = gateways.client.request("POST", path("httproutes", second), body)
        # the CRD of a real cluster accepts the canonical spelling only
        assert answer.status in (201, 422), answer.body
        if answer.status == 201:
            gateways.wait_until(
                "the wildcard loses", partial(lost_to, gateways, second, f"{first}/harbor", f"w{number}")
            )
    assert gateways.conflict_message(first, "harbor") == ""
    # and the other way round: a hostname below a foreign wildcard
    gateways.patch("httproutes", first, "harbor", {"spec": {"hostnames": [f"*.{APEX}"]}})
    claim(gateways, second, f"deep.down.{APEX}", to=foo, name="below")
    gateways.wait_until("the hostname loses", partial(lost_to, gateways, second, f"{first}/harbor", "below"))


def test_the_loser_has_no_listener_and_no_certificate(gateways: Gateways, foo: str) -> None:
    """The next one in the order gets the hostname only when the winner releases it."""
    first, second, third = (
        create_attached_namespace(gateways, foo, prefix) for prefix in ("a-team", "b-team", "c-team")
    )
    gateways.create_tenantgateway(foo, APEX)
    for namespace in (third, second):
        claim(gateways, namespace, to=foo)
        claim(gateways, namespace, f"{namespace}.{APEX}", to=foo, name="own")
    gateways.wait_until("the third loses to the second", partial(lost_to, gateways, third, f"{second}/harbor"))
    claim(gateways, first, to=foo)
    gateways.wait_until("the second loses to the first", partial(lost_to, gateways, second, f"{first}/harbor"))
    owned = [f"{namespace}.{APEX}" for namespace in (second, third)]
    expected = sorted([WANTED, *owned])
    gateways.wait_until("each hostname has one listener", lambda: gateways.listener_hostnames(foo) == expected)
    gateways.wait_until("each hostname has one certificate", lambda: len(gateways.names("certificates", foo)) == 3)
    # their other routes are not affected
    assert [gateways.conflict_message(namespace, "own") for namespace in (second, third)] == ["", ""]
    gateways.delete("httproutes", first, "harbor")
    gateways.wait_until("the second wins", lambda: gateways.conflict_message(second, "harbor") == "")
    gateways.wait_until("the third loses to the second again", partial(lost_to, gateways, third, f"{second}/harbor"))
    for namespace in (second, third):
        gateways.delete("httproutes", namespace, "harbor")
    gateways.wait_until("the hostname has no listener", lambda: gateways.listener_hostnames(foo) == sorted(owned))


def test_repeated_writes_of_the_loser_change_nothing(gateways: Gateways, foo: str) -> None:
    """However often the loser writes, no condition changes and the Gateway is not written again."""
    first, second = (
        create_attached_namespace(gateways, foo, "a-team"),
        create_attached_namespace(gateways, foo, "b-team"),
    )
    gateways.create_tenantgateway(foo, APEX)
    for namespace in (first, second):
        claim(gateways, namespace, to=foo)
    gateways.wait_until("the second namespace loses", partial(lost_to, gateways, second, f"{first}/harbor"))
    wait_until_processed(gateways, foo)
    conditions = _route_conditions(gateways, second)
    generation = gateways.get("gateways", foo)["metadata"]["resourceVersion"]
    for number in range(20):
        gateways.patch("httproutes", second, "harbor", {"metadata": {"labels": {"try": str(number)}}})
    with pytest.raises(WaitTimeout):
        wait_until("the loser wins for a moment", lambda: not gateways.conflict_message(second, "harbor"), seconds=1.0)
    assert _route_conditions(gateways, second) == conditions
    assert gateways.parent_statuses(first, "harbor") == []
    assert gateways.get("gateways", foo)["metadata"]["resourceVersion"] == generation


def _route_conditions(gateways: Gateways, namespace: str) -> list[Object]:
    return [condition for entry in gateways.parent_statuses(namespace, "harbor") for condition in entry["conditions"]]


def test_claims_at_another_gateway_do_not_interfere(gateways: Gateways, foo: str) -> None:
    """A claim at one Gateway neither takes a hostname from another Gateway nor wins one there."""
    bar = gateways.create_owner("tenant-bar")
    first = create_attached_namespace(gateways, bar, "a-team")
    for namespace in (foo, bar):
        gateways.create_tenantgateway(namespace, APEX)
    claim(gateways, foo, to=foo)
    claim(gateways, first, to=bar)
    for namespace in (foo, bar):
        gateways.wait_until("each Gateway serves the hostname", partial(_serves, gateways, namespace))
    wait_until_processed(gateways, foo)
    assert gateways.conflict_message(foo, "harbor") == gateways.conflict_message(first, "harbor") == ""
    # one route that claims at both Gateways loses only where the other route is smaller: its namespace is admitted by
    # its own Gateway as the owner's, and by the other because of its label
    gateways.patch_labels(foo, {LABEL: bar})
    refs = [{"namespace": to, "name": "cozystack", "port": 443} for to in (foo, bar)]
    gateways.create("httproutes", foo, "z-both", {"parentRefs": refs, "hostnames": [WANTED]})
    gateways.wait_until("it loses at the second Gateway", partial(lost_to, gateways, foo, f"{first}/harbor", "z-both"))
    lost = [each["parentRef"]["namespace"] for each in gateways.parent_statuses(foo, "z-both") if _is_rejected(each)]
    assert lost == [bar]


def _serves(gateways: Gateways, namespace: str) -> bool:
    return WANTED in gateways.listener_hostnames(namespace)


def _is_rejected(entry: Object) -> bool:
    return any((each["type"], each["status"]) == ("Accepted", "False") for each in entry["conditions"])
