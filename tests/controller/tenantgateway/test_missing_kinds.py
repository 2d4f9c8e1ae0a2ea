"""Clusters that do not serve all kinds, and the cost of a change."""

from __future__ import annotations

import pytest

from apiserver.meta.resource import Key
from registry.cluster.interface import ClusterResource
from tests.controller.tenantgateway.gateway_world import (
    CERT_MANAGER,
    CERTIFICATES,
    GATEWAY_API,
    GATEWAYS,
    HTTPROUTES,
    ISSUERS,
    World,
    run_in_world,
    run_until_settled,
)


@pytest.mark.parametrize(
    ("group", "kinds"),
    [
        pytest.param(GATEWAY_API, ["Gateway", "HTTPRoute"], id="Gateway API"),
        pytest.param(CERT_MANAGER, ["Issuer", "Certificate"], id="cert-manager"),
    ],
)
def test_a_missing_kind_is_reported_and_used_as_soon_as_it_is_served(group: str, kinds: list[str]) -> None:
    async def main(world: World) -> None:
        world.add_tenantgateway()
        world.route("cozy-harbor", "harbor", "harbor.foo.example.com")
        world.unserved_groups.add(group)
        async with world.running():
            status, reason, message = world.ready()
            assert (status, reason) == ("False", "ReconcileError")
            for kind in kinds:
                assert f"no CustomResourceDefinition of {kind} ({kind.lower()}s.{group})" in message
            created = await world.names(GATEWAYS) if group == CERT_MANAGER else await world.names(ISSUERS)
            assert bool(created) == (group == CERT_MANAGER)
            world.unserved_groups.clear()
        assert world.ready()[1] == "GatewayNotAccepted"
        assert world.listeners() == ["harbor.foo.example.com"]
        assert len(await world.names(CERTIFICATES)) == 1

    run_in_world(main)


def test_existing_secret_works_without_cert_manager() -> None:
    async def main(world: World) -> None:
        world.add_tenantgateway(certMode="existingSecret", wildcardSecretRef={"name": "bought"})
        world.unserved_groups.add(CERT_MANAGER)
        await run_until_settled(world)
        assert world.ready()[1] == "GatewayNotAccepted"

    run_in_world(main)


def test_listeners_are_not_removed_before_all_routes_are_listed() -> None:
    """At the start no routes are known, and the cluster may be slow to list them."""

    async def main(world: World) -> None:
        world.add_tenantgateway()
        world.route("cozy-harbor", "harbor", "harbor.foo.example.com")
        await run_until_settled(world)
        world.cluster.clear_writes()
        counting = world.cluster.before
        assert counting is not None
        delayed: list[str] = []

        async def slow(verb: str, res: ClusterResource, key: Key) -> None:
            await counting(verb, res, key)
            if res == HTTPROUTES and verb == "watch" and not delayed:
                delayed.append(verb)
                await world.settle()
                assert world.cluster.writes == []

        world.cluster.before = slow
        await run_until_settled(world)
        await world.settle()
        assert delayed
        assert world.cluster.writes == []

    run_in_world(main)


def test_a_change_reconciles_only_its_own_tenantgateway() -> None:
    """GW-19: only one of 40 TenantGateways with 5 routes each is reconciled."""

    async def main(world: World) -> None:
        for number in range(40):
            world.add_tenantgateway(f"tenant-t{number}", apex=f"t{number}.example")
            world.namespace(f"tenant-t{number}", gateway=f"tenant-t{number}", host=f"t{number}.example")
            for route in range(5):
                owner = f"tenant-t{number}/cozystack"
                world.route(f"tenant-t{number}", f"r{route}", f"r{route}.t{number}.example", to=owner, port=443)
        async with world.running():
            world.calls.clear()
            world.route("tenant-t7", "new", "new.t7.example", to="tenant-t7/cozystack", port=443)
            await world.settle()
            # one Gateway, one Certificate, and the status
            assert [(verb, res) for verb, res, _ in world.calls] == [
                ("patch", "gateways"),
                ("create", "certificates"),
                ("patch", "tenantgateways"),
            ]
            world.calls.clear()
            world.namespace("unrelated", host="t7.example")
            world.route("tenant-t9", "elsewhere", "x.example", to="istio-system/public")
            await world.settle()
            assert world.calls == []

    run_in_world(main)
