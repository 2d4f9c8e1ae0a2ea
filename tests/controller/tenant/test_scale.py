"""A subtree of a thousand Tenants converges at once, in order, and with one write per object."""

from __future__ import annotations

from collections import Counter

import pytest

from controller.tenant.isolation.chart_policies import CLUSTERWIDE_POLICIES
from controller.tenant.isolation.policy_kinds import CILIUM_POLICIES
from registry.cluster.interface import HELMRELEASES, NAMESPACES, NETWORKPOLICIES, SECRETS, ClusterResource
from tests.controller.tenant.isolation.isolated_world import NAMES, NETWORKS, Cluster
from tests.controller.tenant.tenant_world import World
from tests.fake_cluster import FakeCluster
from tests.virtual_time import run_virtual, virtual

pytestmark = pytest.mark.timeout(300)
CHILDREN, GRANDCHILDREN = 10, 99
SUBTREE = CHILDREN * (1 + GRANDCHILDREN)


async def grow(world: World) -> None:
    """tenant-alpha with a subtree of a thousand less ten."""
    await world.create("alpha")
    for number in range(CHILDREN):
        await world.create(f"c{number}", "tenant-alpha")
        for each in range(GRANDCHILDREN):
            await world.create(f"g{each}", f"tenant-alpha-c{number}")
    await world.settle()


@pytest.mark.parametrize(
    ("kind", "missing"),
    [
        pytest.param(CILIUM_POLICIES, [], id="Cilium"),
        pytest.param(NETWORKPOLICIES, [CILIUM_POLICIES, CLUSTERWIDE_POLICIES], id="plain Kubernetes"),
    ],
)
@virtual
async def test_a_thousand_new_tenants_cost_one_write_per_object(
    kind: ClusterResource, missing: list[ClusterResource]
) -> None:
    """Their network policies included; only HelmReleases have a status as well."""
    world = World(settings=NETWORKS)
    Cluster(world, *missing)
    async with world.running():
        await world.settle()
        world.cluster.clear_writes()
        await grow(world)
        writes = [write for write in world.cluster.writes if write.resource != HELMRELEASES]
    assert {write.verb for write in writes} == {"create"}
    assert set(Counter((write.resource.plural, write.key) for write in writes).values()) == {1}
    policies = Counter(write.key.namespace for write in writes if write.resource == kind)
    assert len(policies) == 1 + SUBTREE
    assert set(policies.values()) == {len(NAMES)}
    assert world.conditions("g98", "tenant-alpha-c9")["Ready"] == ("True", "Reconciled")


@pytest.fixture(scope="module")
def grown() -> FakeCluster:
    """A cluster in which the thousand have converged; a test copies it."""

    async def converge() -> FakeCluster:
        world = World()
        async with world.running():
            await grow(world)
        return world.cluster

    return run_virtual(converge)


@virtual
async def test_a_start_beside_a_thousand_that_have_converged_writes_nothing(grown: FakeCluster) -> None:
    world = World(grown.copy())
    async with world.running():
        pass
    assert world.cluster.writes == []


@virtual
async def test_a_change_of_a_domain_costs_a_subtree_of_a_thousand_one_write_per_object(grown: FakeCluster) -> None:
    """R-062."""
    world = World(grown.copy())
    async with world.running():
        await world.change("alpha", host="new.example")
        world.cluster.clear_writes()
        # a second suffices without polling: everything follows from events
        await world.settle(1.0)
        writes = list(world.cluster.writes)
    assert world.labels("tenant-alpha-c9-g98")["namespace.cozystack.io/host"] == "g98.c9.new.example"
    assert world.values("tenant-alpha-c9-g98")["_namespace"]["host"] == "g98.c9.new.example"
    per_object = Counter((write.resource.plural, write.key) for write in writes)
    assert set(per_object.values()) == {1}
    kinds = Counter(write.resource for write in writes)
    assert kinds == dict.fromkeys((NAMESPACES, HELMRELEASES, SECRETS), 1 + SUBTREE)
    order = {write.key.name: place for place, write in enumerate(writes) if write.resource == NAMESPACES}
    parents = [order[name] for name in order if name.count("-") == 2]
    assert order["tenant-alpha"] == min(order.values())
    assert max(parents) < order["tenant-alpha-c9-g98"]


@virtual
async def test_a_new_gateway_costs_a_thousand_heirs_one_write_per_object(grown: FakeCluster) -> None:
    world = World(grown.copy())
    async with world.running():
        world.cluster.clear_writes()
        await world.change("alpha", gateway=True)
        await world.settle(1.0)
        per_object = Counter((write.resource.plural, write.key) for write in world.cluster.writes[1:])
    assert set(per_object.values()) == {1}
    assert world.labels("tenant-alpha-c9-g98")["namespace.cozystack.io/gateway"] == "tenant-alpha"


@virtual
async def test_a_subtree_of_a_thousand_is_deleted_in_order(grown: FakeCluster) -> None:
    world = World(grown.copy())
    async with world.running():
        world.cluster.clear_writes()
        await world.delete("alpha", cascade=True)
        await world.settle()
        deleted = [write.key.name for write in world.cluster.writes if write.verb == "delete"]
    assert [tenant.key.name for tenant in world.tree] == ["root"]
    namespaces = [name for name in deleted if name.startswith("tenant-alpha")]
    assert namespaces[-1] == "tenant-alpha"
    place = {name: number for number, name in enumerate(namespaces)}
    for number in range(CHILDREN):
        assert place[f"tenant-alpha-c{number}"] > max(
            place[f"tenant-alpha-c{number}-g{each}"] for each in range(GRANDCHILDREN)
        )
