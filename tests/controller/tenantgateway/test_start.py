"""A process that comes to lead before the host has told which TenantGatewayIndex there are."""

from __future__ import annotations

import pytest

from apiserver.meta.errors import StatusError
from apiserver.meta.resource import Key
from registry.cluster.interface import ClusterResource
from tests.controller.tenantgateway.gateway_world import CERTIFICATES, GATEWAYS, World, in_world, pass_through, refusal

# Longer than the process waits for a kind that comes by a CustomResourceDefinition of ours.
_PATIENCE_PASSES = 2


@pytest.mark.parametrize(
    "error",
    [
        pytest.param(refusal(403, "may not list tenantgateways"), id="RBAC is behind"),
        pytest.param(StatusError(404, "NotFound", "the server could not find the requested resource"), id="no CRD"),
        pytest.param(StatusError(500, "InternalError", "conversion webhook failed"), id="no conversion"),
    ],
)
def test_labels_and_verdicts_stay_until_it_is_known_which_tenantgateways_there_are(error: StatusError) -> None:
    """GW-14: what no TenantGateway asks for is taken away, and to one that knows none yet that would be everything."""

    async def main(world: World) -> None:
        world.ask(attachedNamespaces=["cozy-harbor"])
        world.namespace("cozy-harbor")
        world.route("cozy-harbor", "harbor", "harbor.foo.example.com")
        world.route("tenant-foo", "loser", "harbor.foo.example.com", port=443)
        await pass_through(world)
        told = world.verdicts("tenant-foo", "loser")
        assert told["tenant-foo"][1] == "HostnameConflict"
        world.cluster.clear_writes()
        counting, away = world.cluster.before, True
        assert counting is not None

        async def refusing(verb: str, res: ClusterResource, key: Key) -> None:
            await counting(verb, res, key)
            if away and res.plural == "tenantgateways" and verb in ("list", "watch"):
                raise error

        world.cluster.before = refusing
        async with world.running():
            for _ in range(_PATIENCE_PASSES):
                await world.settle()
            assert world.mark("cozy-harbor") == ("tenant-foo", "tenant-foo")
            assert world.verdicts("tenant-foo", "loser") == told
            away = False
            world.route("cozy-harbor", "late", "late.foo.example.com")
            for _ in range(_PATIENCE_PASSES):
                await world.settle()
            assert "late.foo.example.com" in world.listeners()
        touched = {each.resource.plural for each in world.cluster.writes}
        assert touched == {"gateways", "certificates", "tenantgateways"}

    in_world(main)


@pytest.mark.parametrize(
    ("plural", "made"),
    [
        pytest.param("certificates", True, id="certificates"),
        pytest.param("issuers", True, id="issuers"),
        # whose hostnames are is not known without them
        pytest.param("tlsroutes", False, id="tlsroutes"),
        pytest.param("httproutes", False, id="httproutes"),
        pytest.param("gateways", False, id="gateways"),
    ],
)
@pytest.mark.parametrize("verbs", [pytest.param(("list", "watch"), id="asked"), pytest.param(("watch",), id="found")])
def test_a_kind_that_the_host_does_not_show_is_named_and_stops_nothing_else(
    plural: str, made: bool, verbs: tuple[str, ...]
) -> None:
    """An upgrade whose RBAC is behind, or a conversion that fails: what does not need the kind is made all the same."""

    async def main(world: World) -> None:
        world.ask()
        world.route("cozy-harbor", "harbor", "harbor.foo.example.com")
        counting, refused, lists = world.cluster.before, True, 0
        assert counting is not None

        async def refusing(verb: str, res: ClusterResource, key: Key) -> None:
            nonlocal lists
            await counting(verb, res, key)
            if not refused or res.plural != plural:
                return
            lists += verb == "list"
            # whether the kind is served is asked with a list, too
            if verb in verbs or (verb == "list" and lists > 1):
                raise refusal(403, f"may not list {plural}")

        world.cluster.before = refusing
        async with world.running():
            await world.settle()
            status, reason, message = world.ready()
            assert (status, reason) == ("False", "ReconcileError")
            assert f"{plural}." in message
            assert " cannot be listed and watched: " in message
            assert f"may not list {plural}" in message
            assert (world.cluster.peek(GATEWAYS, "tenant-foo", "cozystack") is not None) == made
            refused = False
            for _ in range(_PATIENCE_PASSES):
                await world.settle()
            assert world.ready()[1] == "GatewayNotAccepted"
            assert world.listeners() == ["harbor.foo.example.com"]
            assert len(await world.names(CERTIFICATES)) == 1

    in_world(main)
