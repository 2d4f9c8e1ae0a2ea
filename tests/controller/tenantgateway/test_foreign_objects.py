"""Objects that exist under one of our names but are not owned by us are never changed, unless they are adopted."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest

from apiserver.meta.resource import Object
from registry.cluster.interface import ClusterResource
from registry.tenantgateway.types import TENANTGATEWAYS
from tests.controller.tenantgateway.gateway_world import (
    CERTIFICATES,
    GATEWAYS,
    HTTPROUTES,
    ISSUERS,
    World,
    run_in_world,
    run_until_settled,
)

HARBOR = "cozystack-harbor-760d5a8a-tls"
DNS01 = {"certMode": "dns01", "dns01": {"provider": "cloudflare"}}


class Case(NamedTuple):
    """`spec` is that of the foreign object; `ours` is a field that the object has once it is ours."""

    resource: ClusterResource
    name: str
    spec: Object
    ours: str
    mode: Mapping[str, Any] = MappingProxyType({})


# the sixth case, the label of a Namespace, is in test_attachment_reconciler.py
CASES = [
    pytest.param(Case(GATEWAYS, "cozystack", {"gatewayClassName": "mine", "listeners": []}, "listeners"), id="R-211"),
    pytest.param(Case(HTTPROUTES, "cozystack-http-redirect", {"hostnames": ["a.example"]}, "rules"), id="R-212"),
    pytest.param(Case(ISSUERS, "cozystack-gateway", {"selfSigned": {}}, "acme"), id="R-213"),
    pytest.param(Case(CERTIFICATES, "cozystack-gateway-tls", {"uris": ["spiffe://x"]}, "dnsNames", DNS01), id="R-214"),
    pytest.param(Case(CERTIFICATES, HARBOR, {"ipAddresses": ["10.0.0.1"]}, "dnsNames"), id="R-215"),
]


def set_up(world: World, case: Case) -> Object:
    """Adds the foreign object before the TenantGateway, and returns it."""
    foreign: Object = {"metadata": {"namespace": "tenant-foo", "name": case.name}, "spec": case.spec}
    world.cluster.add(case.resource, foreign)
    world.route("cozy-harbor", "harbor", "harbor.foo.example.com")
    world.add_tenantgateway(**case.mode)
    return world.get(case.resource, "tenant-foo", case.name)


@pytest.mark.parametrize("case", CASES)
def test_a_foreign_object_is_not_changed_and_the_other_objects_are_created(case: Case) -> None:
    """R-211 to R-218, R-222, R-224, R-225, R-226."""

    async def main(world: World) -> None:
        foreign = set_up(world, case)
        await run_until_settled(world)
        assert world.get(case.resource, "tenant-foo", case.name) == foreign
        status, reason, message = world.ready()
        assert (status, reason) == ("False", "ReconcileError")
        kind = case.resource.kind.lower()
        assert message.startswith(
            f"{kind} tenant-foo/{case.name} exists but is not owned by TenantGateway tenant-foo/cozystack: "
            "rename or delete it, or "
        )
        names = {
            GATEWAYS: await world.names(GATEWAYS),
            ISSUERS: await world.names(ISSUERS),
            HTTPROUTES: await world.names(HTTPROUTES),
        }
        assert names == {
            GATEWAYS: ["cozystack"],
            ISSUERS: ["cozystack-gateway"],
            HTTPROUTES: ["cozystack-http-redirect"],
        }

    run_in_world(main)


@pytest.mark.parametrize("case", CASES)
def test_our_object_is_created_once_the_foreign_object_is_deleted(case: Case) -> None:
    """R-219, R-221: renaming an object means deleting it under its former name."""

    async def main(world: World) -> None:
        set_up(world, case)
        async with world.running():
            await world.cluster.delete(case.resource, "tenant-foo", case.name)
        assert world.get(case.resource, "tenant-foo", case.name)["spec"][case.ours]
        assert world.ready()[1] != "ReconcileError"

    run_in_world(main)


@pytest.mark.parametrize("case", CASES)
def test_an_object_with_an_owner_reference_to_us_is_adopted(case: Case) -> None:
    """R-220, PEER-15, CHOICE-9: `controller: true` is not needed, and fields that contradict ours are removed."""

    async def main(world: World) -> None:
        set_up(world, case)
        async with world.running():
            owner = world.get(TENANTGATEWAYS, "tenant-foo", "cozystack")
            reference = {
                "apiVersion": owner["apiVersion"],
                "kind": owner["kind"],
                "name": "cozystack",
                "uid": owner["metadata"]["uid"],
            }
            body = {"metadata": {"ownerReferences": [reference]}}
            await world.edit(case.resource, "tenant-foo", case.name, body)
        spec = world.get(case.resource, "tenant-foo", case.name)["spec"]
        assert spec[case.ours]
        assert not ({"selfSigned", "ipAddresses", "uris"} & spec.keys())
        assert spec.get("hostnames") is None
        assert world.ready()[1] != "ReconcileError"

    run_in_world(main)


def test_an_owner_reference_with_another_uid_makes_an_object_foreign() -> None:
    async def main(world: World) -> None:
        foreign = set_up(world, Case(GATEWAYS, "cozystack", {"gatewayClassName": "mine"}, "listeners"))
        reference = {"apiVersion": "gateway.cozystack.io/v1alpha1", "kind": "TenantGateway", "name": "cozystack"}
        references = [{**reference, "uid": "of-a-former-one", "controller": True}]
        await world.edit(GATEWAYS, "tenant-foo", "cozystack", {"metadata": {"ownerReferences": references}})
        foreign = world.get(GATEWAYS, "tenant-foo", "cozystack")
        await run_until_settled(world)
        assert world.get(GATEWAYS, "tenant-foo", "cozystack") == foreign

    run_in_world(main)


def test_no_certificate_is_created_while_the_issuer_is_foreign() -> None:
    """cert-manager would keep a certificate that the foreign issuer signed until it expires."""

    async def main(world: World) -> None:
        set_up(world, Case(ISSUERS, "cozystack-gateway", {"selfSigned": {}}, "acme"))
        async with world.running():
            assert await world.names(CERTIFICATES) == []
            await world.cluster.delete(ISSUERS, "tenant-foo", "cozystack-gateway")
        assert await world.names(CERTIFICATES) == [HARBOR]

    run_in_world(main)


def test_objects_of_ours_that_are_edited_or_deleted_are_restored() -> None:
    """GW-20: fields of the operator are kept."""

    async def main(world: World) -> None:
        world.add_tenantgateway()
        world.route("cozy-harbor", "harbor", "harbor.foo.example.com")
        async with world.running():
            body = {"spec": {"gatewayClassName": "theirs", "listeners": [], "addresses": [{"value": "192.0.2.1"}]}}
            await world.edit(GATEWAYS, "tenant-foo", "cozystack", body)
            await world.edit(CERTIFICATES, "tenant-foo", HARBOR, {"spec": {"dnsNames": ["victim.example"]}})
            await world.cluster.delete(ISSUERS, "tenant-foo", "cozystack-gateway")
            await world.cluster.delete(HTTPROUTES, "tenant-foo", "cozystack-http-redirect")
        spec = world.get(GATEWAYS, "tenant-foo", "cozystack")["spec"]
        assert (spec["gatewayClassName"], spec["addresses"]) == ("cilium", [{"value": "192.0.2.1"}])
        assert world.listeners() == ["harbor.foo.example.com"]
        assert world.get(CERTIFICATES, "tenant-foo", HARBOR)["spec"]["dnsNames"] == ["harbor.foo.example.com"]
        assert await world.names(ISSUERS) == ["cozystack-gateway"]
        assert await world.names(HTTPROUTES) == ["cozystack-http-redirect"]

    run_in_world(main)
