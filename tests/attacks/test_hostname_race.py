"""ATTACK-10: to have a hostname by being early, late, born again, or somewhere else.

The order is R-200's: the platform's namespaces, then the smallest namespace and name. Age and clocks decide nothing, so
there is nothing to race for. Who may claim what at all is ATTACK-09; the rest of the order is in
tests/e2e/gateways/test_rules.py.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

from tests.e2e.support.gateways import DNS01, GATEWAY_API, LABEL, Gateways, Object, path
from tests.e2e.support.processes import WaitTimeout, wait_until

APEX = "foo.example.com"
WANTED = f"harbor.{APEX}"


@pytest.fixture
def foo(gateways: Gateways) -> str:
    return gateways.create_namespace("m-foo")


def create_attached_namespace(gateways: Gateways, owner: str, prefix: str) -> str:
    """A namespace that publishes through the owner's Gateway."""
    return gateways.create_namespace(prefix, labels={LABEL: owner})


def claim(gateways: Gateways, namespace: str, *hostnames: str, to: str, name: str = "harbor") -> None:
    gateways.create_route(namespace, name, *(hostnames or (WANTED,)), to=to, port=443)


def lost_to(gateways: Gateways, namespace: str, winner: str, name: str = "harbor") -> bool:
    return f"HTTPRoute {winner}" in gateways.conflict_message(namespace, name)


def wait_until_processed(gateways: Gateways, foo: str) -> None:
    """A late hostname that is served tells that everything before it has been looked at."""
    name = f"late{len(gateways.listener_hostnames(foo))}"
    claim(gateways, foo, f"{name}.{APEX}", to=foo, name=name)
    gateways.wait_until("it is served", lambda: f"{name}.{APEX}" in gateways.listener_hostnames(foo))


@pytest.mark.parametrize("mode", [pytest.param({}, id="http01"), pytest.param(DNS01, id="dns01")])
def test_the_age_of_a_route_does_not_decide(gateways: Gateways, foo: str, mode: Object) -> None:
    first, second = (
        create_attached_namespace(gateways, foo, "a-team"),
        create_attached_namespace(gateways, foo, "b-team"),
    )
    gateways.create_tenantgateway(foo, APEX, **mode)
    claim(gateways, second, to=foo)
    gateways.wait_until("it is there", lambda: gateways.listener_hostnames(foo))
    assert gateways.conflict_message(second, "harbor") == ""
    claim(gateways, first, to=foo)
    gateways.wait_until("the order decides", partial(lost_to, gateways, second, f"{first}/harbor"))
    assert gateways.conflict_message(first, "harbor") == ""
    # a claim that is made anew, older by its own account, is the claim that it was
    for namespace in (second, first, second):
        gateways.delete("httproutes", namespace, "harbor")
        spec = {"parentRefs": [{"namespace": foo, "name": "cozystack", "port": 443}], "hostnames": [WANTED]}
        metadata = {"name": "harbor", "creationTimestamp": "1970-01-01T00:00:00Z", "generation": 99}
        body = {"apiVersion": GATEWAY_API, "kind": "HTTPRoute", "metadata": metadata, "spec": spec}
        gateways.client.request("POST", path("httproutes", namespace), body).expect(201)
        gateways.wait_until("the same order", partial(lost_to, gateways, second, f"{first}/harbor"))
        gateways.wait_until("the same winner", lambda: gateways.conflict_message(first, "harbor") == "")


def test_concurrent_claims_have_the_same_winner(gateways: Gateways, foo: str) -> None:
    """In the same second, from ten connections."""
    gateways.create_tenantgateway(foo, APEX)
    spaces = sorted(create_attached_namespace(gateways, foo, prefix) for prefix in ("q", "c", "x", "h", "b"))
    names = ("zeta", "alpha")
    with ThreadPoolExecutor(10) as pool:
        made = [pool.submit(claim, gateways, space, to=foo, name=name) for name in names for space in reversed(spaces)]
        for each in made:
            each.result()
    winner, others = spaces[0], spaces[1:]
    for space in others:
        for name in names:
            gateways.wait_until(f"{space}/{name} has lost", partial(lost_to, gateways, space, f"{winner}/alpha", name))
    # routes of one namespace share
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
        # a real host's CRD takes one spelling only
        assert answer.status in (201, 422), answer.body
        if answer.status == 201:
            gateways.wait_until("it loses", partial(lost_to, gateways, second, f"{first}/harbor", f"w{number}"))
    assert gateways.conflict_message(first, "harbor") == ""
    # and the other way round: a name below a wildcard that is somebody's
    gateways.patch("httproutes", first, "harbor", {"spec": {"hostnames": [f"*.{APEX}"]}})
    claim(gateways, second, f"deep.down.{APEX}", to=foo, name="below")
    gateways.wait_until("it loses as well", partial(lost_to, gateways, second, f"{first}/harbor", "below"))


def test_the_loser_has_no_listener_and_no_certificate(gateways: Gateways, foo: str) -> None:
    """Until it is released: then the next in order has it, and nobody else."""
    first, second, third = (
        create_attached_namespace(gateways, foo, prefix) for prefix in ("a-team", "b-team", "c-team")
    )
    gateways.create_tenantgateway(foo, APEX)
    for namespace in (third, second):
        claim(gateways, namespace, to=foo)
        claim(gateways, namespace, f"{namespace}.{APEX}", to=foo, name="own")
    gateways.wait_until("one has lost", partial(lost_to, gateways, third, f"{second}/harbor"))
    claim(gateways, first, to=foo)
    gateways.wait_until("two have", partial(lost_to, gateways, second, f"{first}/harbor"))
    owned = [f"{namespace}.{APEX}" for namespace in (second, third)]
    assert gateways.listener_hostnames(foo) == sorted([WANTED, *owned])
    assert len(gateways.names("certificates", foo)) == 3
    # what is theirs is not touched by what is not
    assert [gateways.conflict_message(namespace, "own") for namespace in (second, third)] == ["", ""]
    gateways.delete("httproutes", first, "harbor")
    gateways.wait_until("the next has it", lambda: gateways.conflict_message(second, "harbor") == "")
    gateways.wait_until("and the one behind does not", partial(lost_to, gateways, third, f"{second}/harbor"))
    for namespace in (second, third):
        gateways.delete("httproutes", namespace, "harbor")
    gateways.wait_until("nobody has it", lambda: gateways.listener_hostnames(foo) == sorted(owned))


def test_repeated_writes_of_the_loser_change_nothing(gateways: Gateways, foo: str) -> None:
    """However often the loser writes, nobody is told anything new and the Gateway is not written again."""
    first, second = (
        create_attached_namespace(gateways, foo, "a-team"),
        create_attached_namespace(gateways, foo, "b-team"),
    )
    gateways.create_tenantgateway(foo, APEX)
    for namespace in (first, second):
        claim(gateways, namespace, to=foo)
    gateways.wait_until("it is decided", partial(lost_to, gateways, second, f"{first}/harbor"))
    wait_until_processed(gateways, foo)
    conditions = _route_conditions(gateways, second)
    generation = gateways.get("gateways", foo)["metadata"]["resourceVersion"]
    for number in range(20):
        gateways.patch("httproutes", second, "harbor", {"metadata": {"labels": {"try": str(number)}}})
    with pytest.raises(WaitTimeout):
        wait_until("it wins, if only once", lambda: not gateways.conflict_message(second, "harbor"), seconds=1.0)
    assert _route_conditions(gateways, second) == conditions
    assert gateways.parent_statuses(first, "harbor") == []
    assert gateways.get("gateways", foo)["metadata"]["resourceVersion"] == generation


def _route_conditions(gateways: Gateways, namespace: str) -> list[Object]:
    return [condition for entry in gateways.parent_statuses(namespace, "harbor") for condition in entry["conditions"]]


def test_claims_at_another_gateway_do_not_interfere(gateways: Gateways, foo: str) -> None:
    """A claim there takes nothing here, and wins nothing."""
    bar = gateways.create_namespace("a-bar")
    first = create_attached_namespace(gateways, bar, "a-team")
    for namespace in (foo, bar):
        gateways.create_tenantgateway(namespace, APEX)
    claim(gateways, foo, to=foo)
    claim(gateways, first, to=bar)
    for namespace in (foo, bar):
        gateways.wait_until("it has its own", partial(_serves, gateways, namespace))
    wait_until_processed(gateways, foo)
    assert gateways.conflict_message(foo, "harbor") == gateways.conflict_message(first, "harbor") == ""
    # to claim at both, by one route, loses here what is smaller there
    refs = [{"namespace": to, "name": "cozystack", "port": 443} for to in (foo, bar)]
    gateways.create("httproutes", foo, "z-both", {"parentRefs": refs, "hostnames": [WANTED]})
    gateways.wait_until("it loses there", partial(lost_to, gateways, foo, f"{first}/harbor", "z-both"))
    lost = [each["parentRef"]["namespace"] for each in gateways.parent_statuses(foo, "z-both") if _is_rejected(each)]
    assert lost == [bar]


def _serves(gateways: Gateways, namespace: str) -> bool:
    return WANTED in gateways.listener_hostnames(namespace)


def _is_rejected(entry: Object) -> bool:
    return any((each["type"], each["status"]) == ("Accepted", "False") for each in entry["conditions"])
