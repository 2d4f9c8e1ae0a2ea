"""Rejections in the status of routes are written, retried and removed."""

from __future__ import annotations

from apiserver.meta.resource import Key
from registry.cluster.interface import NAMESPACES, ClusterResource
from registry.names import GATEWAY_LABEL, HOST_LABEL
from registry.tenantgateway.types import TENANTGATEWAYS
from tests.controller.tenantgateway.gateway_world import (
    CERTIFICATES,
    GATEWAYS,
    HTTPROUTES,
    OURS,
    World,
    api_error,
    run_in_world,
    run_until_settled,
)


def test_routes_whose_status_cannot_be_written_are_reported_and_retried() -> None:
    """GW-15."""

    async def main(world: World) -> None:
        world.add_tenantgateway()
        world.route("cozy-a", "winner", "one.foo.example.com")
        for loser in ("x", "y", "z"):
            world.route("tenant-foo", loser, "one.foo.example.com")
        world.failing_calls["patch", "httproutes", "y"] = api_error(500, "no space")
        async with world.running():
            assert world.accepted_conditions("tenant-foo", "y") == {}
            assert {*world.accepted_conditions("tenant-foo", "x"), *world.accepted_conditions("tenant-foo", "z")} == {
                "tenant-foo"
            }
            message = "status of HTTPRoute tenant-foo/y: no space"
            assert world.ready() == ("False", "ReconcileError", message)
            world.failing_calls.clear()
        assert world.accepted_conditions("tenant-foo", "y")["tenant-foo"][1] == "HostnameConflict"
        assert world.ready()[1] == "GatewayNotAccepted"

    run_in_world(main)


def test_a_status_entry_that_another_controller_writes_concurrently_is_kept() -> None:
    """R-203: a write is conditional on the version that was read, and a conflict is retried."""

    async def main(world: World) -> None:
        world.add_tenantgateway()
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
        await run_until_settled(world)
        assert raced
        parents = world.get(HTTPROUTES, "tenant-foo", "loser")["status"]["parents"]
        assert parents[0] == cilium
        assert [each["controllerName"] for each in parents[1:]] == [OURS]

    run_in_world(main)


def test_a_rejection_changes_with_its_cause() -> None:
    """R-206, R-347, GW-15: if the parentRef or TenantGateway is removed, while the process runs or before it starts,
    the route is an orphan that knows its last parent."""

    async def main(world: World) -> None:
        world.add_tenantgateway()
        world.add_tenantgateway("tenant-bar", apex="bar.example.com")
        world.route("cozy-a", "winner", "one.foo.example.com")
        for name in ("moves", "stays", "left"):
            world.route("tenant-foo", name, "one.foo.example.com")
        async with world.running():
            assert world.accepted_conditions("tenant-foo", "moves")["tenant-foo"][0] == "False"
            elsewhere = {"parentRefs": [{"namespace": "tenant-bar", "name": "cozystack"}]}
            await world.edit(HTTPROUTES, "tenant-foo", "moves", {"spec": elsewhere})
            await world.edit(HTTPROUTES, "tenant-foo", "left", {"spec": {"parentRefs": None}})
            await world.edit(HTTPROUTES, "tenant-foo", "stays", {"spec": {"hostnames": ["mine.foo.example.com"]}})
        assert _reasons(world, "moves") == {"tenant-bar": "NotAllowedByListeners"}
        assert _reasons(world, "left") == {"tenant-foo": "Orphaned"}
        assert _reasons(world, "stays") == {"tenant-foo": "Accepted"}
        await world.cluster.delete(TENANTGATEWAYS, "tenant-foo", "cozystack")
        await world.cluster.delete(TENANTGATEWAYS, "tenant-bar", "cozystack")
        await run_until_settled(world)
        assert _reasons(world, "moves") == {"tenant-bar": "Orphaned"}
        assert _reasons(world, "left") == _reasons(world, "stays") == {"tenant-foo": "Orphaned"}
        world.add_tenantgateway()
        await run_until_settled(world)
        assert _reasons(world, "stays") == {"tenant-foo": "Accepted"}

    run_in_world(main)


def test_a_route_that_arrives_before_its_namespace_is_judged_when_the_namespace_does() -> None:
    """Both can be applied together, and the watches of two kinds have no common order."""

    async def main(world: World) -> None:
        world.add_tenantgateway()
        refs = [{"namespace": "tenant-foo", "name": "cozystack"}]
        spec = {"parentRefs": refs, "hostnames": ["one.foo.example.com"]}
        world.cluster.add(HTTPROUTES, {"metadata": {"namespace": "late", "name": "shop"}, "spec": spec})
        async with world.running():
            assert world.accepted_conditions("late", "shop") == {}
            world.namespace("late")
            await world.settle()
            assert _reasons(world, "shop", "late") == {"tenant-foo": "NotAllowedByListeners"}

    run_in_world(main)


def test_a_route_of_a_namespace_that_is_not_admitted_has_no_effect_and_is_told_so() -> None:
    """R-346: no listener, no Certificate, no conflict for the rightful owner, and not a word of it in
    the status of the TenantGateway."""

    async def main(world: World) -> None:
        world.add_tenantgateway("tenant-root", apex="example.org")
        world.namespace("tenant-alice", gateway="tenant-root", host="alice.example.org")
        world.namespace("aaa")
        world.route("aaa", "steal", "harbor.alice.example.org", "junk1.example.org", to="tenant-root/cozystack")
        world.route("tenant-alice", "harbor", "harbor.alice.example.org", to="tenant-root/cozystack")
        await run_until_settled(world)
        assert world.listeners("tenant-root") == ["harbor.alice.example.org"]
        assert len(await world.names(CERTIFICATES, "tenant-root")) == 1
        assert world.accepted_conditions("tenant-alice", "harbor") == {}
        assert world.conditions("tenant-root").keys() == {"Ready"}
        status, reason, message = world.accepted_conditions("aaa", "steal")["tenant-root"]
        assert (status, reason) == ("False", "NotAllowedByListeners")
        assert message == (
            "Gateway tenant-root/cozystack does not admit routes of namespace aaa: "
            "its label namespace.cozystack.io/gateway is missing"
        )

    run_in_world(main)


def test_a_child_that_has_a_gateway_of_its_own_claims_nothing_on_that_of_its_parent() -> None:
    async def main(world: World) -> None:
        world.add_tenantgateway("tenant-root", apex="example.org")
        world.add_tenantgateway("tenant-alice", apex="alice.example.org")
        world.namespace("tenant-alice", gateway="tenant-alice", host="alice.example.org")
        world.namespace("tenant-bob", gateway="tenant-root", host="bob.example.org")
        names = [f"h{number}.alice.example.org" for number in range(70)]
        for number, hostname in enumerate(names):
            world.route("tenant-alice", f"r{number}", hostname, to="tenant-root/cozystack")
        world.route("tenant-bob", "shop", "shop.bob.example.org", to="tenant-root/cozystack")
        await run_until_settled(world)
        assert world.listeners("tenant-root") == ["shop.bob.example.org"]
        assert _reasons(world, "r9", "tenant-alice") == {"tenant-root": "NotAllowedByListeners"}
        message = world.accepted_conditions("tenant-alice", "r9")["tenant-root"][2]
        assert message.endswith("attach to a Gateway of namespace tenant-alice, which its label "
                                "namespace.cozystack.io/gateway names")  # fmt: skip

    run_in_world(main)


def test_a_host_that_moves_to_another_tenant_takes_its_hostnames_with_it() -> None:
    """The state now decides, not that at the time of the write: the former owner's route keeps nothing."""

    async def main(world: World) -> None:
        world.add_tenantgateway("tenant-root", apex="example.org")
        world.namespace("tenant-alice", gateway="tenant-root", host="shop.example.org")
        world.namespace("tenant-zed", gateway="tenant-root", host="zed.example.org")
        world.route("tenant-alice", "old", "www.shop.example.org", to="tenant-root/cozystack")
        world.route("tenant-zed", "new", "www.shop.example.org", to="tenant-root/cozystack")
        async with world.running():
            assert _reasons(world, "new", "tenant-zed") == {"tenant-root": "NoMatchingListenerHostname"}
            assert _reasons(world, "old", "tenant-alice") == {}
            for name, host in (("tenant-alice", "alice.example.org"), ("tenant-zed", "shop.example.org")):
                await world.edit(NAMESPACES, "", name, {"metadata": {"labels": {HOST_LABEL: host}}})
        assert _reasons(world, "new", "tenant-zed") == {"tenant-root": "Accepted"}
        status, reason, message = world.accepted_conditions("tenant-alice", "old")["tenant-root"]
        assert (status, reason) == ("False", "NoMatchingListenerHostname")
        assert message == (
            '"www.shop.example.org" is not of this namespace: the host of namespace tenant-alice is '
            '"alice.example.org"; choose alice.example.org or a name below it'
        )
        assert world.listeners("tenant-root") == ["www.shop.example.org"]

    run_in_world(main)


def test_a_foreign_gateway_ends_the_status_of_an_orphan() -> None:
    """Another controller's Gateway is not ours to judge."""

    async def main(world: World) -> None:
        world.route("tenant-foo", "web", "one.foo.example.com")
        async with world.running():
            assert _reasons(world, "web") == {"tenant-foo": "Orphaned"}
            world.cluster.add(GATEWAYS, {"metadata": {"namespace": "tenant-foo", "name": "cozystack"}, "spec": {}})
            await world.settle()
            assert _reasons(world, "web") == {}
            await world.cluster.delete(GATEWAYS, "tenant-foo", "cozystack")
        assert _reasons(world, "web") == {"tenant-foo": "Orphaned"}

    run_in_world(main)


def test_a_label_costs_the_routes_of_its_namespace_only() -> None:
    """GW-19: the routes of other namespaces that nothing admits are neither planned nor written again."""

    async def main(world: World) -> None:
        world.add_tenantgateway()
        for number in range(50):
            world.namespace(f"n{number}")
            world.route(f"n{number}", "web", f"n{number}.foo.example.com")
        async with world.running():
            world.calls.clear()
            labels = {"metadata": {"labels": {GATEWAY_LABEL: "tenant-foo"}}}
            await world.edit(NAMESPACES, "", "n7", labels)
            await world.settle()
            assert sorted(call for call in world.calls if call[1] != "namespaces") == [
                ("create", "certificates", "cozystack-n7-224f4376-tls"),
                ("patch", "gateways", "cozystack"),
                ("patch", "httproutes", "web"),
                ("patch", "tenantgateways", "cozystack"),
            ]

    run_in_world(main)


def _reasons(world: World, name: str, namespace: str = "tenant-foo") -> dict[str, str]:
    """The reasons of our Accepted conditions by the namespace of the Gateway."""
    return {gateway: reason for gateway, (_, reason, _) in world.accepted_conditions(namespace, name).items()}
