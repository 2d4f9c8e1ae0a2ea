"""TenantGateways outside of tenants' namespaces: served only where the settings allow it."""

from __future__ import annotations

import pytest

from controller.platform.settings import PlatformSettings
from controller.tenantgateway.owners.owner_namespaces import may_own_gateways
from registry.tenantgateway.types import TENANTGATEWAYS
from tests.controller.tenantgateway.gateway_world import (
    CERTIFICATES,
    GATEWAYS,
    HTTPROUTES,
    ISSUERS,
    World,
    run_in_world,
)

ALLOWED = PlatformSettings.model_validate({"gateway": {"attachedNamespaces": [], "ownerNamespaces": ["shop", "other"]}})
NOT_ALLOWED = PlatformSettings.model_validate({"gateway": {"attachedNamespaces": []}})
MINE, LATE = "mine.foo.example.com", "late.foo.example.com"


@pytest.mark.parametrize(
    ("namespace", "expected"),
    [
        pytest.param("tenant-foo", True, id="a tenant's"),
        pytest.param("tenant-root", True, id="the root tenant's"),
        pytest.param("shop", True, id="listed"),
        pytest.param("kube-public", False, id="not listed"),
        pytest.param("tenants", False, id="a name that is only similar"),
        pytest.param("cozy-system", False, id="the platform's"),
    ],
)
def test_the_namespaces_that_may_own_a_gateway(namespace: str, expected: bool) -> None:
    assert may_own_gateways(namespace, ALLOWED.gateway.owner_namespaces) is expected


def test_nothing_is_rendered_where_the_settings_do_not_allow_it() -> None:
    """R-363: the status names the setting, and once it lists the namespace, the TenantGateway is served."""

    async def main(world: World) -> None:
        world.add_tenantgateway("shop", attachedNamespaces=["cozy-harbor"])
        world.namespace("cozy-harbor")
        world.route("shop", "mine", MINE, to="shop/cozystack")
        async with world.running():
            status, reason, message = world.ready("shop")
            assert (status, reason) == ("False", "NamespaceNotAllowed")
            assert "gateway.ownerNamespaces" in message
            assert "shop" in message
            for kind in (GATEWAYS, ISSUERS, CERTIFICATES):
                assert await world.names(kind, "shop") == []
            assert await world.names(HTTPROUTES, "shop") == ["mine"]
            assert world.label_and_annotation("cozy-harbor") == (None, None)
            assert ("TenantGateway", "cozystack", "Warning", "NamespaceNotAllowed") in world.recorder.events
            world.settings.replace(ALLOWED)
            await world.settle()
            assert world.listeners("shop") == [MINE]
            assert world.ready("shop")[1] == "GatewayNotAccepted"
        assert world.label_and_annotation("cozy-harbor") == ("shop", "shop")

    run_in_world(main)


def test_what_was_served_before_stays_as_it_is_until_the_tenantgateway_is_deleted() -> None:
    """An upgrade, or a namespace that leaves the list, takes no hostname down by itself."""

    async def main(world: World) -> None:
        world.settings.replace(ALLOWED)
        world.add_tenantgateway("shop", attachedNamespaces=["cozy-harbor"])
        world.namespace("cozy-harbor")
        world.route("shop", "mine", MINE, to="shop/cozystack")
        async with world.running():
            assert world.listeners("shop") == [MINE]
        shown = world.get(TENANTGATEWAYS, "shop", "cozystack")["status"]["listeners"]
        world.settings.replace(NOT_ALLOWED)
        world.cluster.clear_writes()
        async with world.running():
            world.route("shop", "late", LATE, to="shop/cozystack")
            await world.cluster.delete(HTTPROUTES, "shop", "mine")
            await world.settle()
            status, reason, message = world.ready("shop")
            assert (status, reason) == ("False", "NamespaceNotAllowed")
            assert "stays as it is" in message
            assert world.listeners("shop") == [MINE]
            assert len(await world.names(CERTIFICATES, "shop")) == 1
            assert world.get(TENANTGATEWAYS, "shop", "cozystack")["status"]["listeners"] == shown
            assert world.label_and_annotation("cozy-harbor") == ("shop", "shop")
            written = {(each.verb, each.resource.plural) for each in world.cluster.writes if each.key.name != "late"}
            assert written <= {("patch", "tenantgateways"), ("update", "tenantgateways"), ("delete", "httproutes")}
        world.cluster.clear_writes()
        async with world.running():
            pass
        assert world.cluster.writes == []

    run_in_world(main)


def test_it_takes_no_namespace_that_another_gateway_may_have() -> None:
    """It keeps the namespaces that it has."""

    async def main(world: World) -> None:
        world.add_tenantgateway("a-shop", attachedNamespaces=["cozy-x", "cozy-held"])
        world.add_tenantgateway("tenant-foo", attachedNamespaces=["cozy-x", "cozy-held"])
        world.namespace("cozy-x")
        world.namespace("cozy-held", gateway="a-shop", by="a-shop")
        async with world.running():
            pass
        assert world.label_and_annotation("cozy-x") == ("tenant-foo", "tenant-foo")
        assert world.label_and_annotation("cozy-held") == ("a-shop", "a-shop")

    run_in_world(main)
