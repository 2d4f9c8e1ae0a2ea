"""The values that Tenants inherit reach every descendant in a Secret of its Namespace."""

from __future__ import annotations

from controller.platform.chart_values import cluster_values
from registry.cluster.interface import SECRETS
from tests.controller.tenant.tenant_world import World
from tests.virtual_time import virtual


@virtual
async def test_a_parents_scheduling_class_wins() -> None:
    world = World()
    async with world.running():
        await world.create("alpha")
        await world.create("beta", "tenant-alpha", schedulingClass="mine")
        await world.settle()
        label = "scheduler.cozystack.io/scheduling-class"
        assert world.labels("tenant-alpha-beta")[label] == "mine"
        await world.change("alpha", schedulingClass="theirs")
        await world.settle()
        assert world.labels("tenant-alpha-beta")[label] == "theirs"
        assert world.values("tenant-alpha-beta")["_namespace"]["schedulingClass"] == "theirs"
        await world.change("alpha", schedulingClass="not a label")
    assert label not in world.labels("tenant-alpha-beta")
    assert world.conditions("beta", "tenant-alpha")["SchedulingClassInvalid"] == ("True", "NotALabel")


@virtual
async def test_unknown_keys_of_the_roots_secret_reach_every_descendant_with_one_write_each() -> None:
    world = World()
    async with world.running():
        await world.create("alpha")
        await world.create("beta", "tenant-alpha")
        await world.create("aside")
        await world.settle()
        world.cluster.clear_writes()
        text = "X2NsdXN0ZXI6IHtidW5kbGU6IGlzcC1mdWxsfQo="  # _cluster: {bundle: isp-full}
        await world.edit(SECRETS, "tenant-root", "cozystack-values", {"data": {"values.yaml": text}})
        await world.settle()
        for namespace in ("tenant-root", "tenant-alpha", "tenant-alpha-beta", "tenant-aside"):
            assert world.values(namespace)["_cluster"]["bundle"] == "isp-full"
            assert world.values(namespace)["_cluster"]["solver"] == "http01"
        # the edit itself, the root's own values, and the three descendants
        assert world.count_writes() == {("patch", "secrets"): 5}
        world.cluster.clear_writes()
        world.configure(publishing={"certificates": {"solver": "dns01"}})
        await world.settle()
    assert world.values("tenant-alpha-beta")["_cluster"] == {
        "bundle": "isp-full",
        **cluster_values(world.settings.current, "example.org"),
    }
    assert world.values("tenant-alpha-beta")["_cluster"]["solver"] == "dns01"
    assert world.count_writes() == {("patch", "secrets"): 4}


@virtual
async def test_charts_keep_the_publishing_tenant_until_the_settings_name_a_tenant() -> None:
    """A typing error that is found at a start, when the settings of before are not known, takes no service off."""
    world = World()
    async with world.running():
        await world.create("alpha")
        await world.settle()
        world.configure(publishing={"ingressName": "tenant-beta", "ingressNameAdmin": "tenant-alpha"})
        await world.settle()
        for namespace in ("tenant-root", "tenant-alpha"):
            assert world.values(namespace)["_cluster"]["expose-ingress"] == "tenant-root"
            assert world.values(namespace)["_cluster"]["expose-ingress-admin"] == "tenant-alpha"
        await world.create("beta")
        await world.settle()
        for namespace in ("tenant-root", "tenant-alpha", "tenant-beta"):
            assert world.values(namespace)["_cluster"]["expose-ingress"] == "tenant-beta"


@virtual
async def test_a_first_installation_names_the_publishing_tenant_before_it_exists() -> None:
    world = World()
    world.configure(publishing={"ingressName": "tenant-beta"})
    async with world.running():
        await world.settle()
        assert world.values("tenant-root")["_cluster"]["expose-ingress"] == "tenant-beta"


@virtual
async def test_a_malformed_secret_of_the_root_is_not_overwritten_and_a_condition_says_so() -> None:
    world = World()
    async with world.running():
        await world.create("alpha")
        await world.settle()
        good = world.values("tenant-alpha")
        await world.edit(SECRETS, "tenant-root", "cozystack-values", {"data": {"values.yaml": "Ww=="}})
        await world.settle()
        assert world.conditions("root")["ValuesReady"] == ("False", "Malformed")
        assert world.conditions("alpha")["ValuesReady"] == ("False", "Malformed")
        assert world.values("tenant-alpha") == good
        await world.edit(SECRETS, "tenant-root", "cozystack-values", {"data": {"values.yaml": None}})
    assert "ValuesReady" not in world.conditions("root")
    assert "ValuesReady" not in world.conditions("alpha")


@virtual
async def test_an_immutable_secret_is_replaced() -> None:
    world = World()
    async with world.running():
        await world.create("alpha")
        await world.settle()
        await world.edit(SECRETS, "tenant-alpha", "cozystack-values", {"immutable": True, "data": {"values.yaml": ""}})
    assert world.values("tenant-alpha")["_namespace"]["host"] == "alpha.example.org"
    assert "immutable" not in world.content(SECRETS, "tenant-alpha", "cozystack-values")
