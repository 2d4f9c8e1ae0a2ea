"""Tenants with a Gateway of their own, and tenants that inherit one: the TenantGateway, and the label of the owner."""

from __future__ import annotations

from apiserver.meta.errors import StatusError
from apiserver.meta.resource import Key
from controller.platform.chart_values import tenantgateway_spec
from registry.cluster.interface import RESOURCEQUOTAS, ClusterResource
from registry.tenantgateway.types import TENANTGATEWAYS
from tests.controller.tenant.tenant_world import World
from tests.virtual_time import virtual

LABEL = "namespace.cozystack.io/"


@virtual
async def test_gateways_are_inherited_and_only_owners_have_a_tenantgateway() -> None:
    """The tenants of seed 000.

    R-066 to R-074, R-082 to R-086, R-278, R-279, R-281.
    """
    world = World()
    async with world.running():
        await world.create("alice")
        await world.create("acme", host="customer1.example", gateway=True)
        await world.create("bob", gateway=True)
        await world.create("plain", host="customer2.example", gateway=False)
        await world.settle()
        assert [name for name in _NAMESPACES if world.cluster.peek(TENANTGATEWAYS, name, "cozystack")] == [
            "tenant-acme",
            "tenant-bob",
        ]
        apexes = [world.content(TENANTGATEWAYS, name, "cozystack")["spec"]["apex"] for name in _NAMESPACES[1:3]]
        assert apexes == ["customer1.example", "bob.example.org"]
        assert "gateway" not in world.services("tenant-alice")
        await world.create("kid", "tenant-acme")
        await world.settle()
        assert world.services("tenant-acme-kid")["gateway"] == "tenant-acme"
        assert world.values("tenant-acme-kid")["_namespace"]["gateway"] == "tenant-acme"
        await world.change("root", gateway=True)
        await world.settle()
        owners = [world.services(name)["gateway"] for name in _NAMESPACES]
        assert owners == ["tenant-root", "tenant-acme", "tenant-bob", "tenant-root"]
        await world.change("acme", gateway=False)
        await world.settle()
        assert [world.services(name)["gateway"] for name in ("tenant-acme", "tenant-acme-kid")] == [
            "tenant-root",
            "tenant-root",
        ]
        assert world.cluster.peek(TENANTGATEWAYS, "tenant-acme", "cozystack") is None
        await world.change("root", gateway=None)
    assert ["gateway" in world.services(name) for name in _NAMESPACES] == [False, False, True, False]
    kinds = {plural for _, plural, _ in world.writes()}
    assert kinds.isdisjoint({"gateways", "issuers", "certificates", "httproutes"}), "R-096"


_NAMESPACES = ("tenant-alice", "tenant-acme", "tenant-bob", "tenant-plain")


@virtual
async def test_a_tenantgateway_follows_the_settings_and_the_host() -> None:
    """R-088, R-089: the class comes from the platform's settings, as all of the spec does."""
    world = World()
    async with world.running():
        await world.create("alpha", gateway=True)
        await world.settle()
        world.configure(gateway={"gatewayClassName": "other"})
        await world.settle()
        assert world.content(TENANTGATEWAYS, "tenant-alpha", "cozystack")["spec"]["gatewayClassName"] == "other"
        await world.change("alpha", host="new.example")
    spec = world.content(TENANTGATEWAYS, "tenant-alpha", "cozystack")["spec"]
    assert spec == tenantgateway_spec(world.settings.current, "new.example")


@virtual
async def test_an_owner_without_a_domain_has_no_tenantgateway_and_a_condition_says_why() -> None:
    """R-316: the TenantGateway is created as soon as there is a domain."""
    world = World(root_host="")
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
        assert message == (
            "no Gateway without a domain: neither the tenant nor an ancestor has one; set spec.host, or "
            "publishing.host of the platform settings"
        )
        assert world.conditions("alpha")["GatewayReady"] == ("False", "NoApex")
        assert world.conditions("alpha")["Ready"] == ("False", "NoApex")
        await world.change("alpha", host="alpha.example")
    assert world.content(TENANTGATEWAYS, "tenant-alpha", "cozystack")["spec"]["apex"] == "alpha.example"
    assert "TenantGatewayMissing" not in world.conditions("alpha")


@virtual
async def test_a_host_that_is_too_long_for_a_label_has_no_tenantgateway_and_a_condition() -> None:
    """FACT-6: a change of an ancestor's host makes it too long."""
    world = World()
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


async def _not_served(verb: str, res: ClusterResource, key: Key) -> None:
    if res == TENANTGATEWAYS:
        raise StatusError(404, "NotFound", "the server could not find the requested resource")


@virtual
async def test_if_the_cluster_does_not_serve_tenantgateways_a_condition_says_so_and_the_rest_is_written() -> None:
    world = World()
    world.cluster.before = _not_served
    async with world.running():
        await world.create("alpha", gateway=True, resourceQuotas={"cpu": "1"})
    assert world.conditions("alpha")["TenantGatewayMissing"] == ("True", "NotServed")
    assert world.content(RESOURCEQUOTAS, "tenant-alpha", "tenant-quota")


@virtual
async def test_tenantgateways_are_created_as_soon_as_the_cluster_serves_the_kind() -> None:
    world = World()
    world.cluster.before = _not_served
    async with world.running():
        await world.create("alpha", gateway=True)
        await world.create("aside")
        await world.settle()
        assert world.conditions("alpha")["TenantGatewayMissing"] == ("True", "NotServed")
        world.cluster.before = None
        await world.settle(120)
    assert world.content(TENANTGATEWAYS, "tenant-alpha", "cozystack")
    assert "TenantGatewayMissing" not in world.conditions("alpha")


@virtual
async def test_a_tenantgateway_that_somebody_else_created_is_not_deleted() -> None:
    world = World()
    async with world.running():
        await world.create("alpha")
        await world.settle()
        theirs = {"metadata": {"name": "cozystack", "namespace": "tenant-alpha"}, "spec": {"apex": "x.example"}}
        world.cluster.add(TENANTGATEWAYS, theirs)
    assert world.content(TENANTGATEWAYS, "tenant-alpha", "cozystack")["spec"] == {"apex": "x.example"}


@virtual
async def test_a_gateway_label_set_by_the_tenantgateway_controller_stays_until_an_ancestor_has_a_gateway() -> None:
    world = World()
    async with world.running():
        await world.create("alpha")
        await world.settle()
        attach = {
            "labels": {f"{LABEL}gateway": "tenant-bob"},
            "annotations": {"cozystack.io/gateway-attached-by": "tenant-bob/cozystack"},
        }
        await world.edit_namespace("tenant-alpha", attach)
        await world.settle()
        writes = world.writer.writes
        await world.reconcile_all()
        assert world.writer.writes == writes
        assert world.services("tenant-alpha")["gateway"] == "tenant-bob"
        await world.change("alpha", gateway=True)
        await world.settle()
        metadata = world.namespace("tenant-alpha")["metadata"]
        assert metadata["labels"][f"{LABEL}gateway"] == "tenant-alpha"
        assert "cozystack.io/gateway-attached-by" not in metadata["annotations"]
        await world.change("alpha", gateway=None)
    assert "gateway" not in world.services("tenant-alpha")
