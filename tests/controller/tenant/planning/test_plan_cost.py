"""The processor time of a plan is that of the tenants that it looks at, however many share their pools."""

from __future__ import annotations

import time
from typing import Any

import pytest

from apiserver.meta.resource import Key
from tests.controller.tenant.tenant_world import World
from tests.cpu_time import LeastRatio
from tests.virtual_time import virtual

_MANY, _FEW = 600, 110
_QUOTAS = {f"count/k{number}.example.org": "5" for number in range(60)}


async def _seconds_of_plan(world: World) -> float:
    metadata = {"name": "alice", "namespace": "tenant-root"}
    spec: dict[str, Any] = {"resourceQuotas": _QUOTAS}
    tenant = {"apiVersion": "apps.cozystack.io/v1alpha1", "kind": "Tenant", "metadata": metadata, "spec": spec}
    started = time.thread_time()
    found = await world.planner.plan(Key("tenant-root", "alice"), tenant, lambda each: True)
    elapsed = time.thread_time() - started
    assert found.truncated
    assert sum(each.resource.kind == "ResourceQuota" for each in found.changes) > 100
    return elapsed


async def _world(mode: str, members: int) -> World:
    world = World(settings={"quotas": {"pool": mode}})
    async with world.running():
        await world.create("alice")
        for number in range(members):
            await world.create(f"t{number}", "tenant-alice")
        await world.settle()
    return world


@pytest.mark.parametrize("mode", ["shared", "strict"])
@virtual
async def test_a_plan_among_many_members_of_a_pool_costs_little_more_than_among_few(mode: str) -> None:
    many, few = await _world(mode, _MANY), await _world(mode, _FEW)
    ratio = LeastRatio(below=2)
    while ratio.is_undecided:
        ratio.add(baseline=await _seconds_of_plan(few), work=await _seconds_of_plan(many))
    assert ratio.value < 2
