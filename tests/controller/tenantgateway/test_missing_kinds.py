"""A host without some of the kinds, and what a change costs."""

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
    in_world,
    pass_through,
)


@pytest.mark.parametrize(
    ("group", "kinds"),
    [
        pytest.param(GATEWAY_API, ["Gateway", "HTTPRoute"], id="Gateway API"),
        pytest.param(CERT_MANAGER, ["Issuer", "Certificate"], id="cert-manager"),
    ],
)
def test_a_missing_kind_is_named_and_picked_up_when_it_comes(group: str, kinds: list[str]) -> None:
    async def main(world: World) -> None:
        world.ask()
        world.route("cozy-harbor", "harbor", "harbor.foo.example.com")
        world.absent.add(group)
        async with world.running():
            status, reason, message = world.ready()
            assert (status, reason) == ("False", "ReconcileError")
            for kind in kinds:
                assert f"no CustomResourceDefinition of {kind} ({kind.lower()}s.{group})" in message
            made = await world.names(GATEWAYS) if group == CERT_MANAGER else await world.names(ISSUERS)
            assert bool(made) == (group == CERT_MANAGER)
            world.absent.clear()
        assert world.ready()[1] == "GatewayNotAccepted"
        assert world.listeners() == ["harbor.foo.example.com"]
        assert len(await world.names(CERTIFICATES)) == 1

    in_world(main)


def test_a_bought_certificate_needs_no_cert_manager() -> None:
    async def main(world: World) -> None:
        world.ask(certMode="existingSecret", wildcardSecretRef={"name": "bought"})
        world.absent.add(CERT_MANAGER)
        await pass_through(world)
        assert world.ready()[1] == "GatewayNotAccepted"

    in_world(main)


def test_listeners_are_not_taken_away_before_all_routes_are_known() -> None:
    """A process that starts knows no routes for a moment, and the host may be slow to tell."""

    async def main(world: World) -> None:
        world.ask()
        world.route("cozy-harbor", "harbor", "harbor.foo.example.com")
        await pass_through(world)
        world.cluster.clear_writes()
        counting = world.cluster.before
        assert counting is not None
        late: list[str] = []

        async def slow(verb: str, res: ClusterResource, key: Key) -> None:
            await counting(verb, res, key)
            if res == HTTPROUTES and verb == "watch" and not late:
                late.append(verb)
                await world.settle()
                assert world.cluster.writes == []

        world.cluster.before = slow
        await pass_through(world)
        await world.settle()
        assert late
        assert world.cluster.writes == []

    in_world(main)


def test_a_change_leads_to_its_own_tenantgateway_alone() -> None:
    """GW-19: of 40 TenantGatewayIndex with 5 routes each, one is looked at."""

    async def main(world: World) -> None:
        for number in range(40):
            world.ask(f"tenant-t{number}", apex=f"t{number}.example")
            for route in range(5):
                owner = f"tenant-t{number}/cozystack"
                world.route(f"tenant-t{number}", f"r{route}", f"r{route}.t{number}.example", to=owner, port=443)
        async with world.running():
            world.calls.clear()
            world.route("tenant-t7", "new", "new.t7.example", to="tenant-t7/cozystack", port=443)
            await world.settle()
            # one Gateway, one Certificate, and what the status says of them
            assert [(verb, res) for verb, res, _ in world.calls] == [
                ("patch", "gateways"),
                ("create", "certificates"),
                ("patch", "tenantgateways"),
            ]
            world.calls.clear()
            world.namespace("unrelated", host="t7.example")
            world.route("tenant-t9", "elsewhere", "x.example", to="tenant-none/cozystack")
            await world.settle()
            assert world.calls == []

    in_world(main)
