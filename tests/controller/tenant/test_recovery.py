"""Tenants converge after rejected writes, outages of the cluster, and the death of a process."""

from __future__ import annotations

import asyncio

import pytest

from apiserver.meta import errors
from apiserver.meta.resource import GroupResource, Key
from registry.cluster.interface import NAMESPACES, ClusterResource
from tests.controller.tenant.tenant_world import World
from tests.fakes import FakeCluster
from tests.virtual_time import virtual


@virtual
async def test_a_deletion_while_no_controller_runs_is_finished_by_the_next() -> None:
    world = World()
    async with world.running():
        await world.create("alpha")
    await world.delete("alpha")
    async with World(world.cluster).running():
        pass
    assert world.cluster.peek(NAMESPACES, "", "tenant-alpha") is None


@virtual
async def test_a_rejected_write_is_a_condition_and_is_retried() -> None:
    """R-259."""
    cluster = FakeCluster()
    rejects = True

    async def before(verb: str, res: ClusterResource, key: Key) -> None:
        if rejects and verb == "create" and res == NAMESPACES and key.name == "tenant-alpha":
            raise errors.Forbidden(GroupResource("", "namespaces"), key.name, "not for you")

    cluster.before = before
    world = World(cluster)
    async with world.running():
        await world.create("alpha")
        await world.create("bob")
        await world.settle()
        assert world.conditions("alpha")["NamespaceReady"] == ("False", "Refused")
        assert world.conditions("bob")["Ready"] == ("True", "Reconciled")
        rejects = False
        await world.settle(2000)
    assert world.conditions("alpha")["Ready"] == ("True", "Reconciled")


@virtual
async def test_everything_converges_when_an_outage_of_the_cluster_is_over() -> None:
    world = World()
    async with world.running():
        await world.create("alpha")
        world.cluster.unreachable = True
        await world.settle(300)
        world.cluster.unreachable = False
        await world.settle(2000)
        await world.create("beta", "tenant-alpha")
    assert world.conditions("beta", "tenant-alpha")["Ready"] == ("True", "Reconciled")


@pytest.mark.parametrize("nth", [1, 2, 3, 5, 8, 13])
@virtual
async def test_a_new_process_finishes_the_work_of_one_that_died_at_the_nth_write(nth: int) -> None:
    cluster = FakeCluster()
    world = World(cluster)
    written = 0

    async def before(verb: str, res: ClusterResource, key: Key) -> None:
        nonlocal written
        if verb in ("create", "patch", "delete"):
            written += 1
            if written > nth:
                await asyncio.Event().wait()

    async with world.running():
        for name in ("alpha", "bob"):
            await world.create(name)
        await world.create("beta", "tenant-alpha")
        await world.delete("bob")
        cluster.before = before
    cluster.before = None
    async with World(cluster).running():
        pass
    assert world.cluster.peek(NAMESPACES, "", "tenant-bob") is None
    assert world.labels("tenant-alpha-beta")["namespace.cozystack.io/host"] == "beta.alpha.example.org"
    assert world.conditions("beta", "tenant-alpha")["Ready"] == ("True", "Reconciled")
