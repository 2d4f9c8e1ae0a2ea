"""Objects that change between a read and a write are not reported as errors."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

from apiserver.meta.errors import Expired, StatusError
from apiserver.meta.resource import Key
from registry.cluster.interface import ClusterResource, WatchEvent
from registry.tenantgateway.types import TENANTGATEWAYS
from tests.controller.tenantgateway.gateway_world import (
    CERTIFICATES,
    GATEWAYS,
    HTTPROUTES,
    OURS,
    World,
    run_in_world,
    run_until_settled,
)
from tests.fake_cluster import FakeCluster
from tests.late_answers import ClusterWithLateAnswers

TERMINATING = StatusError(
    403,
    "Forbidden",
    'gateways.gateway.networking.k8s.io "cozystack" is forbidden: unable to create new content in namespace '
    "tenant-foo because it is being terminated",
    details={"causes": [{"reason": "NamespaceTerminating", "message": "namespace tenant-foo is being terminated"}]},
)


def _reconcile_errors(world: World) -> list[str]:
    return [name for kind, name, _, reason in world.recorder.events if reason == "ReconcileError"]


def test_an_object_deleted_before_a_write_is_recreated_without_an_error() -> None:
    async def main(world: World) -> None:
        world.add_tenantgateway()
        await run_until_settled(world)
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
        assert _reconcile_errors(world) == []

    run_in_world(main)


def test_an_edit_that_is_observed_before_the_answer_to_our_status_write_is_not_forgotten() -> None:
    cluster, edited = ClusterWithLateAnswers(), list[Key]()

    async def main(world: World) -> None:
        async def edit(verb: str, res: ClusterResource, key: Key) -> None:
            if (verb, res) == ("patch", TENANTGATEWAYS) and not edited:
                edited.append(key)
                await world.edit_spec(apex="bar.example.com")
                await world.settle()

        cluster.before_answer = edit
        world.add_tenantgateway()
        await run_until_settled(world)
        found = world.get(TENANTGATEWAYS, "tenant-foo", "cozystack")
        assert found["status"]["observedGeneration"] == found["metadata"]["generation"] == 2

    run_in_world(main, cluster=cluster)
    assert edited


@dataclass(repr=False)
class _ExpiringCluster(FakeCluster):
    """The watch of HTTPRoutes gets a 410 right behind the next change after `expires` is set, and is slow from then
    on."""

    expires: bool = False
    _expired: bool = False

    async def watch(self, res: ClusterResource, namespace: str = "", **options: Any) -> AsyncIterator[WatchEvent]:
        if self._expired and res == HTTPROUTES:
            await asyncio.sleep(0.2)
        async for event in super().watch(res, namespace, **options):
            yield event
            if self.expires and (res, event.type) == (HTTPROUTES, "MODIFIED"):
                self.expires, self._expired = False, True
                raise Expired("too old resource version")


def test_a_foreign_change_counts_more_than_our_own_write_while_routes_are_listed_again() -> None:
    """Another controller drops our entry of a route's status, within the seconds in which our write is remembered."""
    cluster = _ExpiringCluster()

    async def main(world: World) -> None:
        world.add_tenantgateway()
        world.namespace("tenant-bar", gateway="tenant-bar", host="bar.example.com")
        async with world.running():
            world.route("tenant-bar", "evil", "evil.foo.example.com")
            await world.settle()
            assert controllers_of(world) == [OURS]
            cluster.expires = True
            theirs = [{"parentRef": {"name": "x"}, "controllerName": "other/controller", "conditions": []}]
            status = {"status": {"parents": theirs}}
            await world.edit(HTTPROUTES, "tenant-bar", "evil", status, subresource="status")
            await world.settle()
        assert sorted(controllers_of(world)) == sorted([OURS, "other/controller"])

    def controllers_of(world: World) -> list[str]:
        found = world.get(HTTPROUTES, "tenant-bar", "evil")
        return [each["controllerName"] for each in found["status"]["parents"]]

    run_in_world(main, cluster=cluster)
    assert not cluster.expires


def test_a_write_to_a_terminating_namespace_is_not_retried() -> None:
    async def main(world: World) -> None:
        world.add_tenantgateway()
        await run_until_settled(world)
        world.failing_calls["create", "gateways", "cozystack"] = TERMINATING
        world.calls.clear()
        async with world.running():
            await world.cluster.delete(GATEWAYS, "tenant-foo", "cozystack")
        assert world.calls.count(("create", "gateways", "cozystack")) == 1
        assert _reconcile_errors(world) == []

    run_in_world(main)


def test_another_error_beside_a_terminating_namespace_is_retried() -> None:
    async def main(world: World) -> None:
        world.add_tenantgateway()
        world.failing_calls["create", "gateways", "cozystack"] = TERMINATING
        world.failing_calls["create", "issuers", "cozystack-gateway"] = StatusError(503, "ServiceUnavailable", "away")
        async with world.running():
            pass
        assert world.calls.count(("create", "issuers", "cozystack-gateway")) > 1

    run_in_world(main)


def test_a_terminating_namespace_is_not_reported_as_an_error() -> None:
    async def main(world: World) -> None:
        world.add_tenantgateway()
        world.failing_calls["create", "gateways", "cozystack"] = TERMINATING
        async with world.running():
            await world.cluster.delete(TENANTGATEWAYS, "tenant-foo", "cozystack")
        assert _reconcile_errors(world) == []
        assert await world.names(CERTIFICATES) == []

    run_in_world(main)
