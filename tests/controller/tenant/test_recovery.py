"""Tenants converge after rejected writes, outages of the cluster, and the death of a process."""

from __future__ import annotations

import asyncio

import pytest

from apiserver.meta import errors
from apiserver.meta.resource import GroupResource, Key
from registry.cluster.interface import HELMRELEASES, NAMESPACES, SECRETS, ClusterResource
from tests.controller.tenant.tenant_world import World
from tests.fake_cluster import FakeCluster
from tests.late_answers import ClusterWithLateAnswers
from tests.virtual_time import virtual

REFUSED_ALPHA = ("alpha", "Warning", "Refused")


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
async def test_a_foreign_change_that_is_observed_before_the_answer_to_our_write_is_undone() -> None:
    cluster, changed = ClusterWithLateAnswers(), list[Key]()
    world = World(cluster)

    async def change(verb: str, res: ClusterResource, key: Key) -> None:
        if (verb, res, key.namespace) == ("create", SECRETS, "tenant-alpha") and not changed:
            changed.append(key)
            await world.edit(SECRETS, *key, {"data": {"values.yaml": "dGhlaXJz"}})
            await world.settle()

    cluster.before_answer = change
    async with world.running():
        await world.create("alpha")
        await world.settle()
    [key] = changed
    assert world.content(SECRETS, *key)["data"]["values.yaml"] != "dGhlaXJz"


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
        ready = next(each for each in world.tenant("alpha")["status"]["conditions"] if each["type"] == "Ready")
        assert ready["message"].startswith("the cluster rejected the namespace: ")
        assert ready["message"].endswith("not for you; apply the manifests again, or change the policy")
        assert world.conditions("bob")["Ready"] == ("True", "Reconciled")
        rejects = False
        await world.settle(2000)
    assert world.conditions("alpha")["Ready"] == ("True", "Reconciled")


@virtual
async def test_a_rejected_change_of_the_tenant_itself_is_an_event() -> None:
    """No condition can tell, as it is stored in the same object."""
    cluster = FakeCluster()
    rejects = True

    async def before(verb: str, res: ClusterResource, key: Key) -> None:
        if rejects and verb in ("patch", "update") and res == HELMRELEASES:
            raise errors.RequestEntityTooLarge("limit is 3145728")

    cluster.before = before
    world = World(cluster)
    async with world.running():
        await world.create("alpha")
        await world.settle()
        told = [note for name, kind, reason, note in world.events.all if (name, kind, reason) == REFUSED_ALPHA]
        assert told
        expected = (
            "the cluster rejected the change of the HelmRelease: Request entity too large: limit is 3145728; "
            "remove annotations, labels or values of the tenant"
        )
        assert set(told) == {expected}
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
