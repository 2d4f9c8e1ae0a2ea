"""Nobody gets access to a new namespace before its quota is in effect, where a quota controller runs."""

from __future__ import annotations

from datetime import timedelta

import pytest

from apiserver.meta.resource import Object
from controller.tenant.rbac_step import ROLES
from registry.cluster.interface import RESOURCEQUOTAS, ROLEBINDINGS
from tests.controller.tenant.quota.quota_controller import QuotaController
from tests.controller.tenant.tenant_world import NOW, World
from tests.virtual_time import virtual

ALPHA, BETA = "tenant-alpha", "tenant-beta"
WAITS = {"AccessReady": ("Unknown", "WaitsForQuota"), "QuotaReady": ("Unknown", "Pending")}
READY = {"AccessReady": ("True", "Reconciled"), "QuotaReady": ("True", "Reconciled")}
UNLIMITED = {"AccessReady": ("True", "Reconciled"), "QuotaReady": ("False", "NoQuotaController")}


def parts(world: World, name: str) -> dict[str, tuple[str, str]]:
    return {type_: found for type_, found in world.conditions(name).items() if type_ in WAITS}


def bound(world: World, namespace: str) -> list[str]:
    return [role for role in ROLES if world.cluster.peek(ROLEBINDINGS, namespace, role) is not None]


@virtual
async def test_people_are_bound_once_the_quota_is_in_effect() -> None:
    world = World(enforces_quotas=True)
    async with world.running():
        await world.create("alpha", resourceQuotas={"pods": 1})
        await world.settle()
        assert (bound(world, ALPHA), parts(world, "alpha")) == ([], WAITS)
        await QuotaController(world).sync()
        await world.settle()
        assert (bound(world, ALPHA), parts(world, "alpha")) == ([*ROLES], READY)
    assert world.conditions("alpha")["Ready"][0] == "True"


@virtual
async def test_a_tenant_without_quotas_does_not_wait() -> None:
    world = World(enforces_quotas=True)
    async with world.running():
        await world.create("alpha")
    assert bound(world, ALPHA) == [*ROLES]
    assert world.conditions("alpha")["AccessReady"] == ("True", "Reconciled")


@virtual
async def test_a_child_in_a_pool_waits_for_its_part() -> None:
    world, child = World(enforces_quotas=True), "tenant-alpha-child"
    async with world.running():
        quotas = QuotaController(world)
        await world.create("alpha", resourceQuotas={"pods": 1})
        await world.settle()
        await quotas.sync()
        await world.create("child", ALPHA)
        await world.settle(300)
        assert bound(world, child) == [], "a quota controller that was seen once is waited for without end"
        await quotas.sync(child)
        await world.settle()
        assert bound(world, child) == [*ROLES]


@virtual
async def test_every_limit_has_to_be_in_effect() -> None:
    world = World(enforces_quotas=True)
    async with world.running():
        await world.create("alpha", resourceQuotas={"pods": 1, "secrets": 1})
        await world.settle()
        await put_into_effect(world, {"pods": "1"})
        await world.settle()
        assert bound(world, ALPHA) == []
        await put_into_effect(world, {"pods": "1", "secrets": "1"})
        await world.settle()
        assert bound(world, ALPHA) == [*ROLES]


async def put_into_effect(world: World, hard: Object) -> None:
    await world.edit(RESOURCEQUOTAS, ALPHA, "tenant-pool", {"status": {"hard": hard}})


@virtual
async def test_without_a_quota_controller_people_are_bound_after_a_minute_and_told() -> None:
    world = World(enforces_quotas=True)
    async with world.running():
        await world.create("alpha", resourceQuotas={"pods": 1})
        await world.settle(50)
        assert (bound(world, ALPHA), parts(world, "alpha")) == ([], WAITS)
        await world.settle(20)
        assert (bound(world, ALPHA), parts(world, "alpha")) == ([*ROLES], UNLIMITED)
        world.cluster.clear_writes()
        await world.reconcile_all()
        assert world.writes() == []
    restarted = World(world.cluster, enforces_quotas=True)
    async with restarted.running():
        assert parts(restarted, "alpha") == UNLIMITED, "a new leader does not wait anew"
        await QuotaController(restarted).sync()
        await restarted.settle()
        assert parts(restarted, "alpha") == READY


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"pods": 2}, id="another amount"),
        pytest.param({"secrets": 1}, id="another key"),
        pytest.param({"pods": None}, id="no quota"),
    ],
)
@virtual
async def test_a_changed_quota_takes_no_access_away(change: Object) -> None:
    world = World(enforces_quotas=True)
    async with world.running():
        await world.create("alpha", resourceQuotas={"pods": 1})
        await world.create("beta")
        await world.settle()
        await QuotaController(world).sync()
        await world.settle()
        for name in ("alpha", "beta"):
            await world.change(name, resourceQuotas=change)
        await world.settle(300)
        assert (bound(world, ALPHA), bound(world, BETA)) == ([*ROLES], [*ROLES])
        assert world.conditions("alpha")["AccessReady"] == ("True", "Reconciled")
    assert not [each for each in world.writes(ROLEBINDINGS) if each[0] == "delete"]


@virtual
async def test_a_new_leader_goes_on_waiting_where_the_former_one_stopped() -> None:
    world = World(enforces_quotas=True)
    async with world.running():
        await world.create("alpha", resourceQuotas={"pods": 1})
        await world.settle(20)
        assert bound(world, ALPHA) == []
    restarted = World(world.cluster, enforces_quotas=True)
    restarted.now = NOW + timedelta(seconds=50)
    async with restarted.running():
        assert (bound(restarted, ALPHA), parts(restarted, "alpha")) == ([*ROLES], UNLIMITED)


@virtual
async def test_a_clock_that_is_ahead_does_not_give_access_early() -> None:
    world = World(enforces_quotas=True)
    world.now = NOW + timedelta(hours=1)
    async with world.running():
        await world.create("alpha", resourceQuotas={"pods": 1})
        await world.settle(20)
        await world.reconcile_all()
        assert (bound(world, ALPHA), parts(world, "alpha")) == ([], WAITS)


@virtual
async def test_a_restart_does_not_forget_that_there_is_a_quota_controller() -> None:
    """Also if no quota is left in which it can be seen."""
    world = World(enforces_quotas=True)
    async with world.running():
        await world.create("alpha", resourceQuotas={"pods": 1})
        await world.settle()
        await QuotaController(world).sync()
        await world.settle()
        await world.change("alpha", resourceQuotas={"pods": None})
    assert world.cluster.peek_all(RESOURCEQUOTAS) == []
    restarted = World(world.cluster, enforces_quotas=True)
    restarted.cluster.clear_writes()
    async with restarted.running():
        assert restarted.writes() == []
        await restarted.create("beta", resourceQuotas={"pods": 1})
        await restarted.settle(300)
        assert (bound(restarted, BETA), parts(restarted, "beta")) == ([], WAITS)
        await QuotaController(restarted).sync()
        await restarted.settle()
        assert bound(restarted, BETA) == [*ROLES]


@virtual
async def test_a_lost_binding_of_people_who_have_access_is_restored_at_once() -> None:
    world, child = World(enforces_quotas=True), "tenant-alpha-child"
    async with world.running():
        await world.create("alpha", resourceQuotas={"pods": 1})
        await world.create("child", ALPHA)
        await world.settle(100)
        assert bound(world, child) == [*ROLES]
    await world.cluster.delete(ROLEBINDINGS, child, ROLES[1])
    restarted = World(world.cluster, enforces_quotas=True)
    async with restarted.running():
        assert bound(restarted, child) == [*ROLES]


@virtual
async def test_a_binding_of_somebody_else_is_no_access_that_was_given() -> None:
    world = World(enforces_quotas=True)
    async with world.running():
        await world.create("alpha", resourceQuotas={"pods": 1})
        await world.settle(20)
        world.cluster.add(ROLEBINDINGS, {"metadata": {"name": ROLES[1], "namespace": ALPHA}, "roleRef": {}})
        await world.settle(20)
        assert bound(world, ALPHA) == [ROLES[1]]
