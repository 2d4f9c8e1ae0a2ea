"""ListenerSets of a TenantGateway in a cluster: written, reported and removed."""

from __future__ import annotations

from typing import Any

import pytest

from apiserver.meta.errors import StatusError
from apiserver.meta.resource import Key, Object
from controller.platform.settings import PlatformSettings
from controller.tenantgateway.model import Plan
from controller.tenantgateway.render.gateway import render_gateway
from controller.tenantgateway.render.listenerset import render_listener_sets
from registry.cluster.interface import ClusterResource
from registry.tenantgateway.types import TENANTGATEWAYS
from tests.controller.golden_files import assert_golden
from tests.controller.tenantgateway.gateway_builders import assert_admitted, gateway, planned, route
from tests.controller.tenantgateway.gateway_world import (
    CERTIFICATES,
    GATEWAY_API,
    GATEWAYS,
    HTTPROUTES,
    OURS,
    World,
    run_in_world,
)
from tests.controller.tenantgateway.listenersets.listener_set_builders import existing_sets

SETS = ClusterResource(GATEWAY_API, "v1", "listenersets", "ListenerSet")
CLASSES = ClusterResource(GATEWAY_API, "v1", "gatewayclasses", "GatewayClass", namespaced=False)
APEX = "foo.example.com"


def settings(**more: Any) -> PlatformSettings:
    return PlatformSettings.model_validate({"gateway": {"attachedNamespaces": [], **more}})


def add_class(world: World, *features: str) -> None:
    status = {"supportedFeatures": [{"name": each} for each in features]}
    world.cluster.add(CLASSES, {"metadata": {"name": "cilium"}, "spec": {"controllerName": "x"}, "status": status})


def add_routes(world: World, first: int, last: int, *, sets: int = 0) -> None:
    """Adds routes with 16 hostnames each, which refer to the Gateway and to the first sets."""
    refs = [{"namespace": "tenant-foo", "name": "cozystack", "port": 443}]
    refs += [
        {"namespace": "tenant-foo", "name": f"cozystack-{each}", "kind": "ListenerSet"} for each in range(1, sets + 1)
    ]
    if world.cluster.peek_all(HTTPROUTES) == []:
        world.namespace("tenant-foo", gateway="tenant-foo", host=APEX)
    for start in range(first, last, 16):
        hostnames = [f"app{each:04}.{APEX}" for each in range(start, min(start + 16, last))]
        metadata = {"namespace": "tenant-foo", "name": f"r{start:04}"}
        world.cluster.add(HTTPROUTES, {"metadata": metadata, "spec": {"parentRefs": refs, "hostnames": hostnames}})


async def mark_programmed(world: World, res: ClusterResource, name: str) -> None:
    """Writes the status of a data plane."""
    obj = world.get(res, "tenant-foo", name)
    generation = obj["metadata"].get("generation", 1)
    conditions = [
        {"type": each, "status": "True", "reason": each, "message": "", "observedGeneration": generation}
        for each in ("Accepted", "Programmed")
    ]
    listeners = [{"name": each["name"], "conditions": conditions} for each in obj["spec"]["listeners"]]
    status = {"status": {"conditions": conditions, "listeners": listeners}}
    await world.edit(res, "tenant-foo", name, status, subresource="status")


async def mark_certificates_ready(world: World) -> None:
    for name in await world.names(CERTIFICATES):
        ready = {"type": "Ready", "status": "True", "reason": "Ready", "message": ""}
        await world.edit(CERTIFICATES, "tenant-foo", name, {"status": {"conditions": [ready]}}, subresource="status")


def status_of(world: World) -> Object:
    found: Object = world.get(TENANTGATEWAYS, "tenant-foo", "cozystack")["status"]
    return found


def test_a_thousand_hostnames_are_served() -> None:
    """All have a listener and a Certificate. As long as a set is not programmed, its hostnames are reported as not
    served. A restart, or a second replica, writes nothing."""

    async def main(world: World) -> None:
        world.add_tenantgateway()
        add_class(world, "HTTPRoute", "ListenerSet")
        add_routes(world, 0, 1000, sets=15)
        async with world.running():
            assert await world.names(SETS) == sorted(f"cozystack-{each}" for each in range(1, 16))
            assert len(await world.names(CERTIFICATES)) == 1000
            gateway = world.get(GATEWAYS, "tenant-foo", "cozystack")
            assert gateway["spec"]["allowedListeners"] == {"namespaces": {"from": "Same"}}
            (owner,) = world.get(SETS, "tenant-foo", "cozystack-7")["metadata"]["ownerReferences"]
            assert (owner["kind"], owner["name"], owner["controller"]) == ("TenantGateway", "cozystack", True)
            await mark_programmed(world, GATEWAYS, "cozystack")
            for number in range(1, 15):
                await mark_programmed(world, SETS, f"cozystack-{number}")
            await mark_certificates_ready(world)
            await world.settle()
            status, reason, message = world.ready()
            assert (status, reason) == ("False", "ListenersNotReady")
            assert "listenerset cozystack-15: " in message
            assert (status_of(world)["listenersTotal"], status_of(world)["listenersReady"]) == (1001, 960)
            waiting = [each for each in status_of(world)["listeners"] if not each["ready"]]
            assert {each["listenerSet"] for each in waiting} == {"cozystack-15"}
            await mark_programmed(world, SETS, "cozystack-15")
            await world.settle()
            assert world.ready()[:2] == ("True", "Reconciled")
            assert status_of(world)["listenersReady"] == 1001
            assert all(each["ready"] for each in status_of(world)["listeners"])
        world.cluster.clear_writes()
        async with world.running(), world.running():
            pass
        assert world.cluster.writes == []

    run_in_world(main)


def test_one_new_hostname_changes_one_object() -> None:
    async def main(world: World) -> None:
        world.add_tenantgateway()
        add_class(world, "ListenerSet")
        add_routes(world, 0, 63 + 64 + 5, sets=2)
        async with world.running():
            assert await world.names(SETS) == ["cozystack-1", "cozystack-2"]
            world.cluster.clear_writes()
            add_routes(world, 700, 701, sets=2)
            await world.settle()
            written = [(each.verb, each.resource.plural, each.subresource) for each in world.cluster.writes]
            assert written == [
                ("patch", "listenersets", ""),
                ("create", "certificates", ""),
                ("patch", "tenantgateways", "status"),
            ]
            # what was served stays where it is, and the set that empties is deleted with its Certificates
            for name in await world.names(SETS):
                await mark_programmed(world, SETS, name)
            before = world.get(SETS, "tenant-foo", "cozystack-2")
            last = [each["hostname"] for each in before["spec"]["listeners"]]
            for start in range(0, 132, 16):
                name = f"r{start:04}"
                kept = [each for each in world.get(HTTPROUTES, "tenant-foo", name)["spec"]["hostnames"] if each in last]
                await world.edit(HTTPROUTES, "tenant-foo", name, {"spec": {"hostnames": kept or [f"x{start}.{APEX}"]}})
            await world.settle()
            assert await world.names(SETS) == ["cozystack-2"]
            assert world.get(SETS, "tenant-foo", "cozystack-2")["spec"] == before["spec"]

    run_in_world(main)


@pytest.mark.parametrize(
    ("mode", "features", "expected"),
    [
        pytest.param("auto", ["HTTPRoute"], False, id="the class does not support them"),
        pytest.param("auto", ["ListenerSet"], True, id="the class supports them"),
        pytest.param("always", [], True, id="the settings say so"),
        pytest.param("never", ["ListenerSet"], False, id="the settings forbid it"),
    ],
)
def test_listener_sets_are_used_only_where_something_implements_them(
    mode: str, features: list[str], expected: bool
) -> None:
    """A kind that is served may be implemented by nobody: then the report about 64 listeners stays."""

    async def main(world: World) -> None:
        world.settings.replace(settings(listenerSets=mode))
        world.add_tenantgateway()
        add_class(world, *features)
        add_routes(world, 0, 70, sets=1)
        async with world.running():
            assert await world.names(SETS) == (["cozystack-1"] if expected else [])
            assert ("ListenersTruncated" in world.conditions()) is not expected
            assert len(await world.names(CERTIFICATES)) == (70 if expected else 63)
            allowed = world.get(GATEWAYS, "tenant-foo", "cozystack")["spec"].get("allowedListeners")
            assert bool(allowed) is expected

    run_in_world(main)


@pytest.mark.parametrize(
    ("mode", "features", "advised"),
    [
        pytest.param("never", ["ListenerSet"], True, id="the settings forbid what the class supports"),
        pytest.param("never", ["HTTPRoute"], False, id="the class does not support them"),
        pytest.param("auto", ["HTTPRoute"], False, id="they are used as soon as the class supports them"),
    ],
)
def test_what_does_not_fit_names_the_setting_where_it_would_help(mode: str, features: list[str], advised: bool) -> None:
    """In the TenantGateway's condition and in the status of the route."""

    async def main(world: World) -> None:
        world.settings.replace(settings(listenerSets=mode))
        world.add_tenantgateway()
        add_class(world, *features)
        add_routes(world, 0, 70)
        async with world.running():
            _, _, message = world.conditions()["ListenersTruncated"]
            _, reason, told = world.accepted_conditions("tenant-foo", "r0064")["tenant-foo"]
            assert reason == "ListenersTruncated"
            for each in (message, told):
                assert ("set gateway.listenerSets of the settings to auto" in each) is advised
                assert "give a tenant a gateway of its own" in each

    run_in_world(main)


def test_the_support_of_the_class_may_come_and_go() -> None:
    """A served hostname stays; only the settings take it down."""

    async def main(world: World) -> None:
        world.add_tenantgateway()
        add_class(world)
        add_routes(world, 0, 70, sets=1)
        async with world.running():
            assert "ListenersTruncated" in world.conditions()
            for features, truncated in ((["ListenerSet"], False), ([], False)):
                status = {"status": {"supportedFeatures": [{"name": each} for each in features]}}
                await world.edit(CLASSES, "", "cilium", status, subresource="status")
                await world.settle()
                assert ("ListenersTruncated" in world.conditions()) is truncated
                assert await world.names(SETS) == ["cozystack-1"]
            world.settings.replace(settings(listenerSets="never"))
            await world.settle()
            assert await world.names(SETS) == []
            assert len(await world.names(CERTIFICATES)) == 63
            assert "listenersTotal" not in status_of(world)

    run_in_world(main)


def test_the_listener_set_of_another_owner_is_left_alone() -> None:
    async def main(world: World) -> None:
        world.add_tenantgateway()
        add_class(world, "ListenerSet")
        listeners = [{"name": "x", "port": 443, "protocol": "HTTPS", "hostname": f"x.{APEX}"}]
        metadata = {"namespace": "tenant-foo", "name": "cozystack-1"}
        world.cluster.add(SETS, {"metadata": metadata, "spec": {"parentRef": {"name": "mine"}, "listeners": listeners}})
        before = world.get(SETS, "tenant-foo", "cozystack-1")
        add_routes(world, 0, 70, sets=2)
        async with world.running():
            assert await world.names(SETS) == ["cozystack-1", "cozystack-2"]
            assert world.get(SETS, "tenant-foo", "cozystack-1") == before
            assert world.ready()[1] == "GatewayNotAccepted"

    run_in_world(main)


def test_certificates_of_listener_sets_stay_as_long_as_the_sets_cannot_be_listed() -> None:
    """During an upgrade, or after a mistake, the ClusterRole may lack the right."""

    async def main(world: World) -> None:
        world.add_tenantgateway()
        add_class(world, "ListenerSet")
        add_routes(world, 0, 70, sets=1)
        async with world.running():
            assert len(await world.names(CERTIFICATES)) == 70
        counting = world.cluster.before
        assert counting is not None

        async def refusing(verb: str, res: ClusterResource, key: Key) -> None:
            await counting(verb, res, key)
            if res.plural == "listenersets":
                raise StatusError(403, "Forbidden", "may not list listenersets")

        world.cluster.before = refusing
        async with world.running():
            assert len(await world.names(CERTIFICATES)) == 70
            assert "ListenersTruncated" in world.conditions()

    run_in_world(main)


def test_a_route_names_the_set_with_its_hostname() -> None:
    """It is told which one, and accepted once it does; the parentRef to the set alone counts as a claim, too."""

    async def main(world: World) -> None:
        world.add_tenantgateway()
        add_class(world, "ListenerSet")
        add_routes(world, 0, 63)
        world.route("tenant-foo", "late", f"late.{APEX}", port=443)
        async with world.running():
            assert world.accepted_conditions("tenant-foo", "late")["tenant-foo"][:2] == ("False", "NoMatchingParent")
            refs = [{"kind": "ListenerSet", "namespace": "tenant-foo", "name": "cozystack-1"}]
            await world.edit(HTTPROUTES, "tenant-foo", "late", {"spec": {"parentRefs": refs}})
            await world.settle()
            (listener,) = world.get(SETS, "tenant-foo", "cozystack-1")["spec"]["listeners"]
            assert listener["hostname"] == f"late.{APEX}"
            entries = world.get(HTTPROUTES, "tenant-foo", "late")["status"].get("parents") or []
            assert [each for each in entries if each["controllerName"] == OURS] == []
            assert "HostnamesLeftOut" not in world.conditions()

    run_in_world(main)


def test_a_route_to_a_listener_set_of_others_is_told_nothing() -> None:
    async def main(world: World) -> None:
        world.namespace("tenant-foo", gateway="tenant-foo", host=APEX)
        world.route("tenant-foo", "mine", f"mine.{APEX}", to="tenant-foo/own-1", kind="ListenerSet")
        async with world.running():
            pass
        assert "status" not in world.get(HTTPROUTES, "tenant-foo", "mine")

    run_in_world(main)


def sixty_five() -> Plan:
    tenantgateway = gateway()
    hostnames = [f"app{each:02}.{APEX}" for each in range(64)]
    return planned(tenantgateway, route("tenant-foo", "app", *hostnames), sets=existing_sets(tenantgateway))


def test_the_rendered_listener_set() -> None:
    """It equals the golden file and is valid by Gateway API's schema; the Gateway admits sets of its own namespace."""
    (rendered,) = render_listener_sets(gateway(), sixty_five())
    assert_golden("tenantgateway/listenerset", rendered)
    file = "gateway-api/gateway.networking.k8s.io_listenersets.yaml"
    assert_admitted(file, rendered, api_version=f"{GATEWAY_API}/v1", kind="ListenerSet")
    with_sets = render_gateway(gateway(), sixty_five())
    assert with_sets["spec"]["allowedListeners"] == {"namespaces": {"from": "Same", "selector": None}}
    file = "gateway-api/gateway.networking.k8s.io_gateways.yaml"
    assert_admitted(file, with_sets, api_version=f"{GATEWAY_API}/v1", kind="Gateway")
    assert "allowedListeners" not in render_gateway(gateway(), planned(gateway()))["spec"]
