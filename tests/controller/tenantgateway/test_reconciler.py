"""What the TenantGateway controller makes of what it finds, and that it leaves the rest alone."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from apiserver.meta.resource import Key, Object
from controller.tenantgateway.status_writer import events_for_conditions
from registry.cluster.interface import NAMESPACES, ClusterResource
from registry.tenantgateway.types import TENANTGATEWAYS
from tests.controller.tenantgateway.gateway_world import (
    CERTIFICATES,
    GATEWAYS,
    HTTPROUTES,
    ISSUERS,
    OURS,
    TLSROUTES,
    World,
    in_world,
    pass_through,
    refusal,
)

HARBOR = "cozystack-harbor-760d5a8a-tls"
DNS01: dict[str, Any] = {"certMode": "dns01", "dns01": {"provider": "cloudflare"}, "issuerName": "letsencrypt-prod"}


def test_everything_is_made_from_a_tenantgateway_and_owned_by_it() -> None:
    """R-097, R-103, R-106, R-107, R-109, R-128, R-137, R-141, R-143, R-151, R-156, R-157, R-185, R-186."""

    async def main(world: World) -> None:
        world.ask(attachedNamespaces=["cozy-harbor"])
        world.namespace("cozy-harbor")
        async with world.running():
            world.route("cozy-harbor", "harbor", "harbor.foo.example.com")
        owner = world.get(TENANTGATEWAYS, "tenant-foo", "cozystack")["metadata"]["uid"]
        made = {
            (GATEWAYS, "cozystack"),
            (ISSUERS, "cozystack-gateway"),
            (CERTIFICATES, HARBOR),
            (HTTPROUTES, "cozystack-http-redirect"),
        }
        for res, name in made:
            [reference] = world.get(res, "tenant-foo", name)["metadata"]["ownerReferences"]
            assert (reference["kind"], reference["uid"], reference["controller"]) == ("TenantGateway", owner, True)
        written = {(each.resource.plural, each.key.name) for each in world.cluster.writes}
        elsewhere = {("tenantgateways", "cozystack"), ("namespaces", "cozy-harbor")}
        assert written == {(res.plural, name) for res, name in made} | elsewhere
        assert world.listeners() == ["harbor.foo.example.com"]

    in_world(main)


def test_a_second_process_finds_nothing_to_write() -> None:
    """R-102, R-197, GW-20: also where the first one has told losers, attached namespaces and left things out."""

    async def main(world: World) -> None:
        world.ask(attachedNamespaces=["cozy-harbor", "missing"], tlsPassthroughServices=["api"])
        world.ask("tenant-bar", apex="bar.example.com", attachedNamespaces=["cozy-harbor"], **DNS01)
        world.namespace("cozy-harbor")
        world.namespace("tenant-kid", gateway="tenant-bar", host="kid.bar.example.com")
        world.route("cozy-harbor", "harbor", "harbor.foo.example.com")
        world.route("tenant-foo", "shadow", "harbor.foo.example.com", "*.foo.example.com", "x.elsewhere.example")
        world.route("tenant-bar", "tls", "api.foo.example.com", res=TLSROUTES)
        await pass_through(world)
        assert world.cluster.writes
        world.cluster.clear_writes()
        for _ in range(3):
            await pass_through(world)
        assert world.cluster.writes == []

    in_world(main)


def test_what_was_written_is_not_written_again_before_it_is_seen() -> None:
    """Every object is created once, and no write meets a version that our own write has outdated."""

    async def main(world: World) -> None:
        world.ask()
        async with world.running():
            for number in range(20):
                world.route("cozy-harbor", f"r{number}", f"h{number}.foo.example.com")
        created = Counter((res, name) for verb, res, name in world.calls if verb == "create")
        assert len(created) == 23
        assert set(created.values()) == {1}

    in_world(main)


def test_a_route_that_goes_takes_its_listener_and_certificate_along() -> None:
    """R-099, R-101."""

    async def main(world: World) -> None:
        world.ask()
        async with world.running():
            world.route("far-away", "harbor", "harbor.foo.example.com")
            await world.settle()
            assert world.listeners() == ["harbor.foo.example.com"]
            assert await world.names(CERTIFICATES) == [HARBOR]
            await world.cluster.delete(HTTPROUTES, "far-away", "harbor")
        assert world.listeners() == []
        assert await world.names(CERTIFICATES) == []

    in_world(main)


@pytest.mark.parametrize(
    "parent",
    [
        pytest.param({"to": "tenant-foo/other"}, id="another name"),
        pytest.param({"to": "tenant-bar/cozystack"}, id="another namespace"),
        pytest.param({"kind": "Service", "group": ""}, id="another kind"),
        pytest.param({"kind": "ListenerSet"}, id="a ListenerSet"),
    ],
)
def test_a_route_to_something_else_feeds_no_listener(parent: dict[str, Any]) -> None:
    """R-100."""

    async def main(world: World) -> None:
        world.ask()
        world.route("far-away", "harbor", "harbor.foo.example.com", **parent)
        await pass_through(world)
        assert world.listeners() == []
        assert world.verdicts("far-away", "harbor") == {}

    in_world(main)


def test_a_child_namespace_is_picked_up_when_its_labels_come_and_go() -> None:
    """R-104, R-105, R-174, R-175, R-177, R-179, PEER-12, GW-1."""

    async def main(world: World) -> None:
        world.ask(**DNS01)
        wildcard = ["foo.example.com", "*.foo.example.com"]
        async with world.running():
            assert _names(world) == wildcard
            world.namespace("tenant-kid", gateway="tenant-foo", host="kid.foo.example.com")
            await world.settle()
            assert _names(world) == [*wildcard, "kid.foo.example.com", "*.kid.foo.example.com"]
            label = "namespace.cozystack.io/gateway"
            await world.edit(NAMESPACES, "", "tenant-kid", {"metadata": {"labels": {label: "tenant-kid"}}})
            await world.settle()
            assert _names(world) == wildcard
            await world.edit(NAMESPACES, "", "tenant-kid", {"metadata": {"labels": {label: "tenant-foo"}}})
            await world.settle()
            assert "*.kid.foo.example.com" in world.listeners()
            await world.cluster.delete(NAMESPACES, "", "tenant-kid")
        assert _names(world) == wildcard
        assert "*.kid.foo.example.com" not in world.listeners()

    in_world(main)


def _names(world: World) -> list[str]:
    found: list[str] = world.get(CERTIFICATES, "tenant-foo", "cozystack-gateway-tls")["spec"]["dnsNames"]
    return found


def test_a_switch_of_mode_takes_away_what_the_other_mode_left_and_only_what_is_ours() -> None:
    """R-154, R-158, R-182, R-184."""

    async def main(world: World) -> None:
        world.ask()
        world.route("tenant-foo", "harbor", "harbor.foo.example.com", sectionName="https")
        theirs: Object = {"metadata": {"namespace": "tenant-foo", "name": "cozystack-old-00000000-tls"}}
        world.cluster.add(CERTIFICATES, theirs)
        async with world.running():
            assert await world.names(CERTIFICATES) == [HARBOR, "cozystack-old-00000000-tls"]
            await world.respec(**DNS01)
            await world.settle()
            assert await world.names(CERTIFICATES) == ["cozystack-gateway-tls", "cozystack-old-00000000-tls"]
            await world.respec(certMode="existingSecret", dns01=None, wildcardSecretRef={"name": "bought"})
            await world.settle()
            assert await world.names(CERTIFICATES) == ["cozystack-old-00000000-tls"]
            assert await world.names(ISSUERS) == []
            await world.respec(certMode="http01", wildcardSecretRef=None)
        assert await world.names(CERTIFICATES) == [HARBOR, "cozystack-old-00000000-tls"]
        assert await world.names(ISSUERS) == ["cozystack-gateway"]
        assert await world.names(HTTPROUTES) == ["cozystack-http-redirect", "harbor"]

    in_world(main)


def test_a_certificate_that_the_gateway_still_names_stays() -> None:
    async def main(world: World) -> None:
        world.ask()
        world.route("tenant-foo", "harbor", "harbor.foo.example.com", sectionName="https")
        async with world.running():
            world.broken["patch", "gateways", "cozystack"] = refusal()
            await world.respec(**DNS01)
            await world.settle()
            assert await world.names(CERTIFICATES) == ["cozystack-gateway-tls", HARBOR]
            world.broken.clear()
            await world.respec(gatewayClassName="other")
        assert await world.names(CERTIFICATES) == ["cozystack-gateway-tls"]

    in_world(main)


def test_one_refusal_stops_nothing_else_and_is_named() -> None:
    """R-223, GW-4: all steps after the one that fails are taken."""

    async def main(world: World) -> None:
        world.ask()
        world.route("cozy-a", "one", "one.foo.example.com")
        world.route("cozy-b", "two", "one.foo.example.com", "two.foo.example.com")
        world.broken["create", "gateways", "cozystack"] = refusal()
        await pass_through(world)
        assert len(await world.names(CERTIFICATES)) == 2
        assert await world.names(ISSUERS) == ["cozystack-gateway"]
        assert await world.names(HTTPROUTES) == ["cozystack-http-redirect"]
        assert world.verdicts("cozy-b", "two")["tenant-foo"][1] == "HostnameConflict"
        assert world.ready() == ("False", "ReconcileError", "gateway tenant-foo/cozystack: denied by a policy")

    in_world(main)


def test_routes_whose_status_cannot_be_written_are_named_and_tried_again() -> None:
    """GW-15."""

    async def main(world: World) -> None:
        world.ask()
        world.route("cozy-a", "winner", "one.foo.example.com")
        for loser in ("x", "y", "z"):
            world.route("tenant-foo", loser, "one.foo.example.com")
        world.broken["patch", "httproutes", "y"] = refusal(500, "no space")
        async with world.running():
            assert world.verdicts("tenant-foo", "y") == {}
            assert {*world.verdicts("tenant-foo", "x"), *world.verdicts("tenant-foo", "z")} == {"tenant-foo"}
            message = "status of httproute tenant-foo/y: no space"
            assert world.ready() == ("False", "ReconcileError", message)
            world.broken.clear()
        assert world.verdicts("tenant-foo", "y")["tenant-foo"][1] == "HostnameConflict"
        assert world.ready()[1] == "GatewayNotAccepted"

    in_world(main)


def test_a_route_that_another_controller_changes_meanwhile_keeps_that_controllers_word() -> None:
    """R-203: the write is for the version that was read; what is refused for that is made anew."""

    async def main(world: World) -> None:
        world.ask()
        world.route("cozy-a", "winner", "one.foo.example.com")
        world.route("tenant-foo", "loser", "one.foo.example.com")
        parent = {"namespace": "tenant-foo", "name": "cozystack"}
        cilium = {"parentRef": parent, "controllerName": "io.cilium/gateway-controller", "conditions": [{"type": "X"}]}
        raced: list[str] = []
        counting = world.cluster.before
        assert counting is not None

        async def race(verb: str, res: ClusterResource, key: Key) -> None:
            await counting(verb, res, key)
            if (verb, key.name) == ("patch", "loser") and not raced:
                raced.append(key.name)
                await world.edit(HTTPROUTES, *key, {"status": {"parents": [cilium]}}, "status")

        world.cluster.before = race
        await pass_through(world)
        assert raced
        held = world.get(HTTPROUTES, "tenant-foo", "loser")["status"]["parents"]
        assert held[0] == cilium
        assert [each["controllerName"] for each in held[1:]] == [OURS]

    in_world(main)


def test_what_a_route_was_told_goes_with_the_reason_for_it() -> None:
    """R-206, GW-15: the parentRef, or the TenantGateway, is gone, before this process began or while it runs."""

    async def main(world: World) -> None:
        world.ask()
        world.ask("tenant-bar", apex="bar.example.com")
        world.route("cozy-a", "winner", "one.foo.example.com")
        for name in ("moves", "stays", "left"):
            world.route("tenant-foo", name, "one.foo.example.com")
        async with world.running():
            assert world.verdicts("tenant-foo", "moves")["tenant-foo"][0] == "False"
            elsewhere = {"parentRefs": [{"namespace": "tenant-bar", "name": "cozystack"}]}
            await world.edit(HTTPROUTES, "tenant-foo", "moves", {"spec": elsewhere})
            await world.edit(HTTPROUTES, "tenant-foo", "left", {"spec": {"parentRefs": None}})
            await world.edit(HTTPROUTES, "tenant-foo", "stays", {"spec": {"hostnames": ["mine.foo.example.com"]}})
        assert world.verdicts("tenant-foo", "moves").keys() == {"tenant-bar"}
        assert world.verdicts("tenant-foo", "left") == {}
        assert world.verdicts("tenant-foo", "stays")["tenant-foo"][:2] == ("True", "Accepted")
        await world.cluster.delete(TENANTGATEWAYS, "tenant-foo", "cozystack")
        await world.cluster.delete(TENANTGATEWAYS, "tenant-bar", "cozystack")
        await pass_through(world)
        for name in ("moves", "stays", "left"):
            assert world.verdicts("tenant-foo", name) == {}

    in_world(main)


def test_a_tenantgateway_that_is_gone_or_going_is_no_error() -> None:
    """R-098."""

    async def main(world: World) -> None:
        world.ask()
        async with world.running():
            await world.edit(TENANTGATEWAYS, "tenant-foo", "cozystack", {"metadata": {"finalizers": ["a/test"]}})
            await world.cluster.delete(TENANTGATEWAYS, "tenant-foo", "cozystack")
            await world.settle()
            for res, name in ((GATEWAYS, "cozystack"), (ISSUERS, "cozystack-gateway")):
                await world.cluster.delete(res, "tenant-foo", name)
            await world.settle()
            assert await world.names(GATEWAYS) == []
            assert await world.names(ISSUERS) == []
            world.cluster.clear_writes()
            await world.edit(TENANTGATEWAYS, "tenant-foo", "cozystack", {"metadata": {"finalizers": None}})
        assert [each.resource.plural for each in world.cluster.writes] == ["tenantgateways"]

    in_world(main)


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        pytest.param({"certMode": "magic"}, "spec.certMode", id="an unknown mode"),
        pytest.param({"attachedNamespaces": {"a": 1}}, "spec.attachedNamespaces", id="no list"),
        pytest.param({"certMode": "dns01", "dns01": {"provider": "linode"}}, "spec.dns01.provider", id="a provider"),
        pytest.param({"apex": ""}, "spec.apex", id="an empty apex"),
        pytest.param({"apex": 7}, "spec.apex", id="an apex that is no text"),
    ],
)
def test_what_cannot_be_read_is_said_and_stops_nobody_else(spec: dict[str, Any], says: str) -> None:
    """R-173: an older CustomResourceDefinition lets it pass; what was made before stays as it was."""

    async def main(world: World) -> None:
        world.ask()
        world.ask("tenant-bar", apex="bar.example.com")
        async with world.running():
            before = world.get(GATEWAYS, "tenant-foo", "cozystack")
            await world.respec(**spec)
        status, reason, message = world.ready()
        assert (status, reason) == ("False", "ReconcileError")
        assert says in message
        assert world.get(GATEWAYS, "tenant-foo", "cozystack") == before
        assert world.ready("tenant-bar")[1] == "GatewayNotAccepted"

    in_world(main)


def test_in_which_case_an_apex_is_written_makes_no_difference() -> None:
    """FACT-5."""

    async def main(world: World) -> None:
        world.ask(apex="Foo.Example.COM")
        world.route("tenant-foo", "harbor", "harbor.foo.example.com", sectionName="https")
        await pass_through(world)
        assert world.listeners() == ["harbor.foo.example.com"]
        assert world.ready()[1] == "GatewayNotAccepted"

    in_world(main)


def test_an_issuer_that_nobody_knows_is_not_written_and_no_certificate_waits_for_it() -> None:
    """R-147, as the issue has it: the settings may name more than the two of Let's Encrypt."""

    async def main(world: World) -> None:
        world.ask(issuerName="my-custom-ca")
        world.route("cozy-a", "one", "one.foo.example.com")
        async with world.running():
            assert await world.names(ISSUERS) == []
            assert await world.names(CERTIFICATES) == []
            status, reason, message = world.ready()
            assert (status, reason) == ("False", "ReconcileError")
            assert "letsencrypt-prod, letsencrypt-stage" in message
            servers = {"my-custom-ca": {"server": "https://acme.internal/directory", "email": "ops@example.com"}}
            world.settings.replace(
                type(world.settings.current).model_validate({"publishing": {"certificates": {"acmeServers": servers}}})
            )
        acme = world.get(ISSUERS, "tenant-foo", "cozystack-gateway")["spec"]["acme"]
        assert (acme["server"], acme["email"]) == ("https://acme.internal/directory", "ops@example.com")
        assert len(await world.names(CERTIFICATES)) == 1

    in_world(main)


def test_a_setting_for_all_gateways_reaches_them_at_once() -> None:
    """PEER-01."""

    async def main(world: World) -> None:
        world.ask(tlsPassthroughServices=["api"])
        async with world.running():
            assert _kinds(world) == {"http": ["HTTPRoute"], "tls-api": ["TLSRoute"]}
            changed = {"gateway": {"port443Kinds": "shared"}}
            world.settings.replace(type(world.settings.current).model_validate(changed))
        assert _kinds(world) == {"http": ["HTTPRoute"], "tls-api": ["HTTPRoute", "TLSRoute"]}

    in_world(main)


def _kinds(world: World) -> dict[str, list[str]]:
    found = world.get(GATEWAYS, "tenant-foo", "cozystack")["spec"]["listeners"]
    return {each["name"]: [kind["kind"] for kind in each["allowedRoutes"]["kinds"]] for each in found}


def test_progress_of_what_is_waited_for_is_no_news() -> None:
    def ready(reason: str, message: str, status: str = "False") -> list[Object]:
        return [{"type": "Ready", "status": status, "reason": reason, "message": message}]

    waiting, refused = ready("ListenersNotReady", "a, b"), ready("ReconcileError", "one")
    assert list(events_for_conditions(waiting, ready("ListenersNotReady", "a"))) == []
    assert list(events_for_conditions(refused, refused)) == []
    [other] = events_for_conditions(refused, ready("ReconcileError", "two"))
    assert (other.type, other.note) == ("Warning", "two")
    [done] = events_for_conditions(waiting, ready("Reconciled", "as wanted", "True"))
    assert (done.type, done.reason) == ("Normal", "Reconciled")
    lost = [{"type": "AttachedElsewhere", "status": "True", "reason": "OtherGateway", "message": "x"}]
    assert [each.type for each in events_for_conditions(None, lost)] == ["Normal"]


def test_what_people_want_to_see_is_told_in_events() -> None:
    async def main(world: World) -> None:
        world.ask()
        world.route("cozy-a", "winner", "one.foo.example.com")
        world.route("tenant-foo", "loser", "one.foo.example.com", sectionName="https")
        world.broken["create", "issuers", "cozystack-gateway"] = refusal()
        await pass_through(world)
        assert set(world.told.events) == {
            ("TenantGateway", "cozystack", "Warning", "ReconcileError"),
            ("HTTPRoute", "loser", "Warning", "HostnameConflict"),
        }

    in_world(main)
