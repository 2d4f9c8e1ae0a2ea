"""A process that becomes the leader before it can list all kinds."""

from __future__ import annotations

import asyncio

import pytest

from apiserver.meta.errors import StatusError
from apiserver.meta.resource import Key
from registry.cluster.interface import ClusterResource
from registry.tenantgateway.types import TENANTGATEWAYS
from tests.controller.tenantgateway.gateway_world import (
    CERTIFICATES,
    GATEWAYS,
    HTTPROUTES,
    World,
    api_error,
    run_in_world,
    run_until_settled,
)

# Together longer than the process waits for kinds that come with CustomResourceDefinitions of ours.
_SETTLE_ROUNDS = 2


@pytest.mark.parametrize(
    "error",
    [
        pytest.param(api_error(403, "may not list tenantgateways"), id="forbidden by outdated RBAC"),
        pytest.param(
            StatusError(404, "NotFound", "the server could not find the requested resource"), id="CRD missing"
        ),
        pytest.param(StatusError(500, "InternalError", "conversion webhook failed"), id="failing conversion"),
    ],
)
def test_labels_and_route_statuses_stay_until_tenantgateways_are_listed(error: StatusError) -> None:
    """GW-14: labels that no TenantGateway wants are removed, which would be all of them as long as none is known."""

    async def main(world: World) -> None:
        world.add_tenantgateway(attachedNamespaces=["cozy-harbor"])
        world.namespace("cozy-harbor")
        world.route("cozy-harbor", "harbor", "harbor.foo.example.com")
        world.route("tenant-foo", "loser", "harbor.foo.example.com", port=443)
        await run_until_settled(world)
        before = world.accepted_conditions("tenant-foo", "loser")
        assert before["tenant-foo"][1] == "HostnameConflict"
        world.cluster.clear_writes()
        counting, failing = world.cluster.before, True
        assert counting is not None

        async def refusing(verb: str, res: ClusterResource, key: Key) -> None:
            await counting(verb, res, key)
            if failing and res.plural == "tenantgateways" and verb in ("list", "watch"):
                raise error

        world.cluster.before = refusing
        async with world.running():
            for _ in range(_SETTLE_ROUNDS):
                await world.settle()
            assert world.label_and_annotation("cozy-harbor") == ("tenant-foo", "tenant-foo")
            assert world.accepted_conditions("tenant-foo", "loser") == before
            failing = False
            world.route("cozy-harbor", "late", "late.foo.example.com")
            for _ in range(_SETTLE_ROUNDS):
                await world.settle()
            assert "late.foo.example.com" in world.listeners()
        touched = {each.resource.plural for each in world.cluster.writes}
        assert touched == {"gateways", "certificates", "tenantgateways"}

    run_in_world(main)


@pytest.mark.parametrize(
    ("plural", "created"),
    [
        pytest.param("certificates", True, id="certificates"),
        pytest.param("issuers", True, id="issuers"),
        # without these, the owners of hostnames are unknown
        pytest.param("tlsroutes", False, id="tlsroutes"),
        pytest.param("httproutes", False, id="httproutes"),
        pytest.param("gateways", False, id="gateways"),
    ],
)
@pytest.mark.parametrize(
    "verbs", [pytest.param(("list", "watch"), id="list and watch"), pytest.param(("watch",), id="watch only")]
)
def test_a_kind_that_cannot_be_listed_is_reported_and_stops_nothing_else(
    plural: str, created: bool, verbs: tuple[str, ...]
) -> None:
    """With outdated RBAC or a failing conversion, objects that do not depend on the kind are still created."""

    async def main(world: World) -> None:
        world.add_tenantgateway()
        world.route("cozy-harbor", "harbor", "harbor.foo.example.com")
        counting, refused, lists = world.cluster.before, True, 0
        assert counting is not None

        async def refusing(verb: str, res: ClusterResource, key: Key) -> None:
            nonlocal lists
            await counting(verb, res, key)
            if not refused or res.plural != plural:
                return
            lists += verb == "list"
            # discovery of the kind uses a list, too
            if verb in verbs or (verb == "list" and lists > 1):
                raise api_error(403, f"may not list {plural}")

        world.cluster.before = refusing
        async with world.running():
            await world.settle()
            status, reason, message = world.ready()
            assert (status, reason) == ("False", "ReconcileError")
            assert f"{plural}." in message
            assert " cannot be listed and watched: " in message
            assert f"may not list {plural}" in message
            assert (world.cluster.peek(GATEWAYS, "tenant-foo", "cozystack") is not None) == created
            refused = False
            for _ in range(_SETTLE_ROUNDS):
                await world.settle()
            assert world.ready()[1] == "GatewayNotAccepted"
            assert world.listeners() == ["harbor.foo.example.com"]
            assert len(await world.names(CERTIFICATES)) == 1

    run_in_world(main)


def test_a_replica_that_leads_again_judges_no_route_by_the_plans_of_its_first_term() -> None:
    """Many TenantGateways are ahead in the queue: routes are looked at before theirs is planned."""
    owners = [f"tenant-z{number:02}" for number in range(60)]
    hostname, reasons = "shop.z59.example.com", list[str]()

    async def main(world: World) -> None:
        for number, owner in enumerate(owners):
            world.add_tenantgateway(owner, apex=f"z{number:02}.example.com")
        async with world.running() as controllers:
            world.route("tenant-y1", "old", hostname, to=f"{owners[-1]}/cozystack")
            await asyncio.sleep(1)
            world.route("tenant-y2", "new", hostname, to=f"{owners[-1]}/cozystack")
            await world.settle()
            assert world.accepted_conditions("tenant-y2", "new")[owners[-1]][1] == "HostnameConflict"
            world.term.cancel()
            await asyncio.wait([world.term])
            for owner in owners[:-1]:
                await world.edit(TENANTGATEWAYS, owner, "cozystack", {"metadata": {"annotations": {"a": "b"}}})
            await world.cluster.delete(HTTPROUTES, "tenant-y1", "old")
            # another replica leads meanwhile
            await run_until_settled(World(world.cluster))
            assert world.accepted_conditions("tenant-y2", "new")[owners[-1]][1] == "Accepted"
            world.cluster.before = note
            second = asyncio.create_task(controllers.run())
            await world.settle()
            second.cancel()
            await asyncio.wait([second])

    async def note(verb: str, res: ClusterResource, key: Key) -> None:
        if verb == "patch" and key.name == "new":
            reasons.append(res.plural)

    run_in_world(main)
    assert reasons == []
