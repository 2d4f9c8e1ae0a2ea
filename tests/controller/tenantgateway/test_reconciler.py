"""The TenantGateway controller as a whole: objects that it creates, changes, deletes and leaves alone."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from apiserver.meta.resource import Object
from registry.cluster.interface import NAMESPACES
from registry.tenantgateway.types import TENANTGATEWAYS
from tests.controller.tenantgateway.gateway_world import (
    CERTIFICATES,
    GATEWAYS,
    HTTPROUTES,
    ISSUERS,
    TLSROUTES,
    World,
    api_error,
    run_in_world,
    run_until_settled,
)

HARBOR = "cozystack-harbor-760d5a8a-tls"
DNS01: dict[str, Any] = {"certMode": "dns01", "dns01": {"provider": "cloudflare"}, "issuerName": "letsencrypt-prod"}


def test_all_objects_are_created_and_owned_by_the_tenantgateway() -> None:
    """R-097, R-103, R-106, R-107, R-109, R-128, R-137, R-141, R-143, R-151, R-156, R-157, R-185, R-186."""

    async def main(world: World) -> None:
        world.add_tenantgateway(attachedNamespaces=["cozy-harbor"])
        world.namespace("cozy-harbor")
        async with world.running():
            world.route("cozy-harbor", "harbor", "harbor.foo.example.com")
        owner = world.get(TENANTGATEWAYS, "tenant-foo", "cozystack")["metadata"]["uid"]
        created = {
            (GATEWAYS, "cozystack"),
            (ISSUERS, "cozystack-gateway"),
            (CERTIFICATES, HARBOR),
            (HTTPROUTES, "cozystack-http-redirect"),
        }
        for res, name in created:
            [reference] = world.get(res, "tenant-foo", name)["metadata"]["ownerReferences"]
            assert (reference["kind"], reference["uid"], reference["controller"]) == ("TenantGateway", owner, True)
        written = {(each.resource.plural, each.key.name) for each in world.cluster.writes}
        elsewhere = {("tenantgateways", "cozystack"), ("namespaces", "cozy-harbor")}
        assert written == {(res.plural, name) for res, name in created} | elsewhere
        assert world.listeners() == ["harbor.foo.example.com"]

    run_in_world(main)


def test_a_second_process_writes_nothing() -> None:
    """R-102, R-197, GW-20: even with rejected routes, attached namespaces and omitted hostnames."""

    async def main(world: World) -> None:
        world.add_tenantgateway(attachedNamespaces=["cozy-harbor", "missing"], tlsPassthroughServices=["api"])
        world.add_tenantgateway("tenant-bar", apex="bar.example.com", attachedNamespaces=["cozy-harbor"], **DNS01)
        world.namespace("cozy-harbor")
        world.namespace("tenant-kid", gateway="tenant-bar", host="kid.bar.example.com")
        world.route("cozy-harbor", "harbor", "harbor.foo.example.com")
        world.route("tenant-foo", "shadow", "harbor.foo.example.com", "*.foo.example.com", "x.elsewhere.example")
        world.route("tenant-bar", "tls", "api.foo.example.com", res=TLSROUTES)
        await run_until_settled(world)
        assert world.cluster.writes
        world.cluster.clear_writes()
        for _ in range(3):
            await run_until_settled(world)
        assert world.cluster.writes == []

    run_in_world(main)


def test_an_object_is_not_written_again_before_its_event_arrives() -> None:
    """Every object is created once, and no write conflicts with our own earlier write."""

    async def main(world: World) -> None:
        world.add_tenantgateway()
        async with world.running():
            for number in range(20):
                world.route("cozy-harbor", f"r{number}", f"h{number}.foo.example.com")
        created = Counter((res, name) for verb, res, name in world.calls if verb == "create")
        assert len(created) == 23
        assert set(created.values()) == {1}

    run_in_world(main)


def test_a_deleted_route_loses_its_listener_and_certificate() -> None:
    """R-099, R-101."""

    async def main(world: World) -> None:
        world.add_tenantgateway()
        async with world.running():
            world.route("far-away", "harbor", "harbor.foo.example.com")
            await world.settle()
            assert world.listeners() == ["harbor.foo.example.com"]
            assert await world.names(CERTIFICATES) == [HARBOR]
            await world.cluster.delete(HTTPROUTES, "far-away", "harbor")
        assert world.listeners() == []
        assert await world.names(CERTIFICATES) == []

    run_in_world(main)


@pytest.mark.parametrize(
    ("parent", "reasons"),
    [
        pytest.param({"to": "tenant-foo/other"}, ["Orphaned"], id="another name"),
        pytest.param({"to": "tenant-bar/cozystack"}, ["Orphaned"], id="another namespace"),
        pytest.param({"to": "istio-system/public"}, [], id="another namespace that is not a tenant's"),
        pytest.param({"kind": "Service", "group": ""}, [], id="another kind"),
        pytest.param({"kind": "ListenerSet"}, [], id="a ListenerSet"),
    ],
)
def test_a_route_to_another_parent_adds_no_listener(parent: dict[str, Any], reasons: list[str]) -> None:
    """R-100, R-362."""

    async def main(world: World) -> None:
        world.add_tenantgateway()
        world.route("far-away", "harbor", "harbor.foo.example.com", **parent)
        await run_until_settled(world)
        assert world.listeners() == []
        found = world.accepted_conditions("far-away", "harbor").values()
        assert [reason for _, reason, _ in found] == reasons

    run_in_world(main)


def test_certificate_names_follow_the_labels_of_child_namespaces() -> None:
    """R-104, R-105, R-174, R-175, R-177, R-179, PEER-12, GW-1."""

    async def main(world: World) -> None:
        world.add_tenantgateway(**DNS01)
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

    run_in_world(main)


def _names(world: World) -> list[str]:
    found: list[str] = world.get(CERTIFICATES, "tenant-foo", "cozystack-gateway-tls")["spec"]["dnsNames"]
    return found


def test_a_change_of_mode_deletes_the_objects_of_the_former_mode_that_are_ours() -> None:
    """R-154, R-158, R-182, R-184."""

    async def main(world: World) -> None:
        world.add_tenantgateway()
        world.route("tenant-foo", "harbor", "harbor.foo.example.com", port=443)
        theirs: Object = {"metadata": {"namespace": "tenant-foo", "name": "cozystack-old-00000000-tls"}}
        world.cluster.add(CERTIFICATES, theirs)
        async with world.running():
            assert await world.names(CERTIFICATES) == [HARBOR, "cozystack-old-00000000-tls"]
            await world.edit_spec(**DNS01)
            await world.settle()
            assert await world.names(CERTIFICATES) == ["cozystack-gateway-tls", "cozystack-old-00000000-tls"]
            await world.edit_spec(certMode="existingSecret", dns01=None, wildcardSecretRef={"name": "bought"})
            await world.settle()
            assert await world.names(CERTIFICATES) == ["cozystack-old-00000000-tls"]
            assert await world.names(ISSUERS) == []
            await world.edit_spec(certMode="http01", wildcardSecretRef=None)
        assert await world.names(CERTIFICATES) == [HARBOR, "cozystack-old-00000000-tls"]
        assert await world.names(ISSUERS) == ["cozystack-gateway"]
        assert await world.names(HTTPROUTES) == ["cozystack-http-redirect", "harbor"]

    run_in_world(main)


def test_a_certificate_that_the_gateway_still_references_is_not_deleted() -> None:
    async def main(world: World) -> None:
        world.add_tenantgateway()
        world.route("tenant-foo", "harbor", "harbor.foo.example.com", port=443)
        async with world.running():
            world.failing_calls["patch", "gateways", "cozystack"] = api_error()
            await world.edit_spec(**DNS01)
            await world.settle()
            assert await world.names(CERTIFICATES) == ["cozystack-gateway-tls", HARBOR]
            world.failing_calls.clear()
            await world.edit_spec(gatewayClassName="other")
        assert await world.names(CERTIFICATES) == ["cozystack-gateway-tls"]

    run_in_world(main)


def test_a_rejected_write_is_reported_and_stops_nothing_else() -> None:
    """R-223, GW-4: the steps after the failing one are still executed."""

    async def main(world: World) -> None:
        world.add_tenantgateway()
        world.route("cozy-a", "one", "one.foo.example.com")
        world.route("cozy-b", "two", "one.foo.example.com", "two.foo.example.com")
        world.failing_calls["create", "gateways", "cozystack"] = api_error()
        await run_until_settled(world)
        assert len(await world.names(CERTIFICATES)) == 2
        assert await world.names(ISSUERS) == ["cozystack-gateway"]
        assert await world.names(HTTPROUTES) == ["cozystack-http-redirect"]
        assert world.accepted_conditions("cozy-b", "two")["tenant-foo"][1] == "HostnameConflict"
        assert world.ready() == ("False", "ReconcileError", "gateway tenant-foo/cozystack: denied by a policy")

    run_in_world(main)


def test_deleting_a_tenantgateway_causes_no_errors_and_no_writes() -> None:
    """R-098."""

    async def main(world: World) -> None:
        world.add_tenantgateway()
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

    run_in_world(main)


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        pytest.param({"certMode": "magic"}, "spec.certMode", id="an unknown mode"),
        pytest.param({"attachedNamespaces": {"a": 1}}, "spec.attachedNamespaces", id="not a list"),
        pytest.param(
            {"certMode": "dns01", "dns01": {"provider": "linode"}}, "spec.dns01.provider", id="an unknown provider"
        ),
        pytest.param({"apex": ""}, "spec.apex", id="an empty apex"),
        pytest.param({"apex": 7}, "spec.apex", id="a number as apex"),
    ],
)
def test_an_invalid_spec_is_reported_and_affects_no_other_tenantgateway(spec: dict[str, Any], field: str) -> None:
    """R-173: an older CustomResourceDefinition may admit it; existing objects are not changed."""

    async def main(world: World) -> None:
        world.add_tenantgateway()
        world.add_tenantgateway("tenant-bar", apex="bar.example.com")
        async with world.running():
            before = world.get(GATEWAYS, "tenant-foo", "cozystack")
            await world.edit_spec(**spec)
        status, reason, message = world.ready()
        assert (status, reason) == ("False", "ReconcileError")
        assert field in message
        assert world.get(GATEWAYS, "tenant-foo", "cozystack") == before
        assert world.ready("tenant-bar")[1] == "GatewayNotAccepted"

    run_in_world(main)


def test_the_apex_is_case_insensitive() -> None:
    """FACT-5."""

    async def main(world: World) -> None:
        world.add_tenantgateway(apex="Foo.Example.COM")
        world.route("tenant-foo", "harbor", "harbor.foo.example.com", port=443)
        await run_until_settled(world)
        assert world.listeners() == ["harbor.foo.example.com"]
        assert world.ready()[1] == "GatewayNotAccepted"

    run_in_world(main)


def test_an_unknown_issuer_name_is_reported_and_nothing_is_issued() -> None:
    """R-147 as the issue changes it: the settings may define issuers besides those of Let's Encrypt."""

    async def main(world: World) -> None:
        world.add_tenantgateway(issuerName="my-custom-ca")
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

    run_in_world(main)


def test_a_changed_setting_is_applied_to_all_gateways() -> None:
    """PEER-01."""

    async def main(world: World) -> None:
        world.add_tenantgateway(tlsPassthroughServices=["api"])
        async with world.running():
            assert _kinds(world) == {"http": ["HTTPRoute"], "tls-api": ["TLSRoute"]}
            changed = {"gateway": {"port443Kinds": "shared"}}
            world.settings.replace(type(world.settings.current).model_validate(changed))
        assert _kinds(world) == {"http": ["HTTPRoute"], "tls-api": ["HTTPRoute", "TLSRoute"]}

    run_in_world(main)


def _kinds(world: World) -> dict[str, list[str]]:
    found = world.get(GATEWAYS, "tenant-foo", "cozystack")["spec"]["listeners"]
    return {each["name"]: [kind["kind"] for kind in each["allowedRoutes"]["kinds"]] for each in found}
