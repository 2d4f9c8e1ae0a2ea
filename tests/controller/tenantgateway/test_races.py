"""What changes between the look and the write is no fault of anybody, and is not told as one."""

from __future__ import annotations

from apiserver.meta.errors import StatusError
from apiserver.meta.resource import Key
from registry.cluster.interface import ClusterResource
from registry.tenantgateway.types import TENANTGATEWAYS
from tests.controller.tenantgateway.gateway_world import CERTIFICATES, GATEWAYS, World, in_world, pass_through

TERMINATING = StatusError(
    403,
    "Forbidden",
    'gateways.gateway.networking.k8s.io "cozystack" is forbidden: unable to create new content in namespace '
    "tenant-foo because it is being terminated",
    details={"causes": [{"reason": "NamespaceTerminating", "message": "namespace tenant-foo is being terminated"}]},
)


def _faults_told(world: World) -> list[str]:
    return [name for kind, name, _, reason in world.told.events if reason == "ReconcileError"]


def test_an_object_that_goes_before_it_is_written_to_is_made_anew_without_a_word() -> None:
    async def main(world: World) -> None:
        world.ask()
        await pass_through(world)
        counting, gone = world.cluster.before, list[str]()
        assert counting is not None

        async def racing(verb: str, res: ClusterResource, key: Key) -> None:
            await counting(verb, res, key)
            if (verb, res) == ("patch", GATEWAYS) and not gone:
                gone.append(key.name)
                await world.cluster.delete(GATEWAYS, key.namespace, key.name)

        world.cluster.before = racing
        async with world.running():
            world.route("cozy-harbor", "harbor", "harbor.foo.example.com")
        assert gone == ["cozystack"]
        assert world.listeners() == ["harbor.foo.example.com"]
        assert _faults_told(world) == []

    in_world(main)


def test_what_is_refused_as_its_namespace_is_going_is_not_tried_again() -> None:
    async def main(world: World) -> None:
        world.ask()
        await pass_through(world)
        world.broken["create", "gateways", "cozystack"] = TERMINATING
        world.calls.clear()
        async with world.running():
            await world.cluster.delete(GATEWAYS, "tenant-foo", "cozystack")
        assert world.calls.count(("create", "gateways", "cozystack")) == 1
        assert _faults_told(world) == []

    in_world(main)


def test_another_refusal_beside_that_of_a_going_namespace_is_tried_again() -> None:
    async def main(world: World) -> None:
        world.ask()
        world.broken["create", "gateways", "cozystack"] = TERMINATING
        world.broken["create", "issuers", "cozystack-gateway"] = StatusError(503, "ServiceUnavailable", "away")
        async with world.running():
            pass
        assert world.calls.count(("create", "issuers", "cozystack-gateway")) > 1

    in_world(main)


def test_a_namespace_that_is_going_is_no_fault_of_its_tenantgateway() -> None:
    async def main(world: World) -> None:
        world.ask()
        world.broken["create", "gateways", "cozystack"] = TERMINATING
        async with world.running():
            await world.cluster.delete(TENANTGATEWAYS, "tenant-foo", "cozystack")
        assert _faults_told(world) == []
        assert await world.names(CERTIFICATES) == []

    in_world(main)
