"""Tenants with a Gateway of their own, and heirs: the TenantGateway, and the label that names the owner."""

from __future__ import annotations

from registry.cluster.interface import RESOURCEQUOTAS
from registry.tenantgateway.types import TENANTGATEWAYS
from tests.controller.tenant.tenant_world import PlatformOfTests, World
from tests.virtual_time import virtual

LABEL = "namespace.cozystack.io/"


@virtual
async def test_gateways_are_inherited_and_only_owners_have_a_tenantgateway() -> None:
    """The tenants of seed 000.

    R-066, R-067, R-068, R-069, R-070, R-071, R-072, R-073, R-074, R-082, R-083, R-084, R-085, R-086.
    """
    world = World(inside=True)
    async with world.running():
        await world.create("alice")
        await world.create("acme", host="customer1.example", gateway=True)
        await world.create("bob", gateway=True)
        await world.create("plain", host="customer2.example", gateway=False)
        await world.settle()
        assert [name for name in _WITH if world.cluster.peek(TENANTGATEWAYS, name, "cozystack")] == [
            "tenant-acme",
            "tenant-bob",
        ]
        apexes = [world.content(TENANTGATEWAYS, name, "cozystack")["spec"]["apex"] for name in _WITH[1:3]]
        assert apexes == ["customer1.example", "bob.example.org"]
        assert "gateway" not in world.services("tenant-alice")
        await world.create("kid", "tenant-acme")
        await world.settle()
        assert world.services("tenant-acme-kid")["gateway"] == "tenant-acme"
        assert world.values("tenant-acme-kid")["_namespace"]["gateway"] == "tenant-acme"
        await world.change("root", gateway=True)
        await world.settle()
        owners = [world.services(name)["gateway"] for name in _WITH]
        assert owners == ["tenant-root", "tenant-acme", "tenant-bob", "tenant-root"]
        await world.change("acme", gateway=False)
        await world.settle()
        assert [world.services(name)["gateway"] for name in ("tenant-acme", "tenant-acme-kid")] == [
            "tenant-root",
            "tenant-root",
        ]
        assert world.cluster.peek(TENANTGATEWAYS, "tenant-acme", "cozystack") is None
        await world.change("root", gateway=None)
    assert ["gateway" in world.services(name) for name in _WITH] == [False, False, True, False]
    kinds = {plural for _, plural, _ in world.writes()}
    assert kinds.isdisjoint({"gateways", "issuers", "certificates", "httproutes"}), "R-096"


_WITH = ("tenant-alice", "tenant-acme", "tenant-bob", "tenant-plain")


@virtual
async def test_a_tenantgateway_follows_the_settings_and_the_host() -> None:
    """R-088, R-089: the class, as all of the spec, is the platform's."""
    world = World(inside=True)
    async with world.running():
        await world.create("alpha", gateway=True)
        await world.settle()
        world.platform.gateway_class = "other"
        await world.again()
        assert world.content(TENANTGATEWAYS, "tenant-alpha", "cozystack")["spec"]["gatewayClassName"] == "other"
        await world.change("alpha", host="new.example")
    spec = world.content(TENANTGATEWAYS, "tenant-alpha", "cozystack")["spec"]
    assert spec == world.platform.tenantgateway("new.example")


@virtual
async def test_an_owner_without_a_domain_has_no_tenantgateway_and_is_told_why() -> None:
    """R-316: and it has one as soon as there is a domain."""
    world = World(inside=True)
    world.tree.change_root_host("")
    async with world.running():
        await world.create("alpha", gateway=True)
        await world.settle()
        assert world.cluster.peek(TENANTGATEWAYS, "tenant-alpha", "cozystack") is None
        assert world.conditions("alpha")["TenantGatewayMissing"] == ("True", "NoApex")
        [message] = [
            each["message"]
            for each in world.tenant("alpha")["status"]["conditions"]
            if each["type"] == "TenantGatewayMissing"
        ]
        assert message == "no Gateway without a domain: neither the tenant nor an ancestor has one"
        await world.change("alpha", host="alpha.example")
    assert world.content(TENANTGATEWAYS, "tenant-alpha", "cozystack")["spec"]["apex"] == "alpha.example"
    assert "TenantGatewayMissing" not in world.conditions("alpha")


@virtual
async def test_a_host_that_no_label_holds_has_no_tenantgateway_and_a_condition() -> None:
    """FACT-6: an ancestor's change brought it about."""
    world = World(inside=True)
    long = "b" * 30
    async with world.running():
        await world.create("alpha")
        await world.create(long, "tenant-alpha", gateway=True)
        await world.settle()
        assert world.content(TENANTGATEWAYS, f"tenant-alpha-{long}", "cozystack")
        await world.change("alpha", host=f"{'a' * 40}.example")
        await world.settle()
        conditions = world.conditions(long, "tenant-alpha")
        assert conditions["TenantGatewayMissing"] == ("True", "HostTooLongForLabel")
        assert world.cluster.peek(TENANTGATEWAYS, f"tenant-alpha-{long}", "cozystack") is None
        await world.change("alpha", host="a.example")
    assert world.content(TENANTGATEWAYS, f"tenant-alpha-{long}", "cozystack")
    assert "TenantGatewayMissing" not in world.conditions(long, "tenant-alpha")


@virtual
async def test_a_host_without_tenantgateways_is_a_condition_and_the_rest_is_written() -> None:
    world = World(inside=True, platform=PlatformOfTests(served=False))
    async with world.running():
        await world.create("alpha", gateway=True, resourceQuotas={"cpu": "1"})
    assert world.conditions("alpha")["TenantGatewayMissing"] == ("True", "NotServed")
    assert world.content(RESOURCEQUOTAS, "tenant-alpha", "tenant-quota")


@virtual
async def test_a_kind_that_the_host_comes_to_have_is_picked_up() -> None:
    world = World(inside=True, platform=PlatformOfTests(served=False))
    async with world.running():
        await world.create("alpha", gateway=True)
        await world.create("aside")
        await world.settle()
        world.platform.served = True
        for handler in world.handlers:
            handler.set_cluster_error(None)
        await world.settle()
    assert world.content(TENANTGATEWAYS, "tenant-alpha", "cozystack")
    assert "TenantGatewayMissing" not in world.conditions("alpha")


@virtual
async def test_what_somebody_else_made_in_the_name_of_a_tenantgateway_is_not_deleted() -> None:
    world = World(inside=True)
    async with world.running():
        await world.create("alpha")
        await world.settle()
        theirs = {"metadata": {"name": "cozystack", "namespace": "tenant-alpha"}, "spec": {"apex": "x.example"}}
        world.cluster.add(TENANTGATEWAYS, theirs)
    assert world.content(TENANTGATEWAYS, "tenant-alpha", "cozystack")["spec"] == {"apex": "x.example"}


@virtual
async def test_the_gateway_parts_label_is_left_alone_until_the_tree_gives_an_owner() -> None:
    world = World(inside=True)
    async with world.running():
        await world.create("alpha")
        await world.settle()
        attach = {
            "labels": {f"{LABEL}gateway": "tenant-bob"},
            "annotations": {"cozystack.io/gateway-attached-by": "tenant-bob/cozystack"},
        }
        await world.edit_namespace("tenant-alpha", attach)
        await world.settle()
        ours = world.writer.writes
        await world.again()
        assert world.writer.writes == ours
        assert world.services("tenant-alpha")["gateway"] == "tenant-bob"
        await world.change("alpha", gateway=True)
        await world.settle()
        metadata = world.namespace("tenant-alpha")["metadata"]
        assert metadata["labels"][f"{LABEL}gateway"] == "tenant-alpha"
        assert "cozystack.io/gateway-attached-by" not in metadata["annotations"]
        await world.change("alpha", gateway=None)
    assert "gateway" not in world.services("tenant-alpha")
