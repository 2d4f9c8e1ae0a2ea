"""What was there before, under a name of ours, is somebody else's until he says otherwise."""

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
    in_world,
    pass_through,
)

HARBOR = "cozystack-harbor-760d5a8a-tls"
DNS01 = {"certMode": "dns01", "dns01": {"provider": "cloudflare"}}


class Case(NamedTuple):
    """`spec` is what the foreign object has, `ours` a field that it has once it is ours."""

    resource: ClusterResource
    name: str
    spec: Object
    ours: str
    mode: Mapping[str, Any] = MappingProxyType({})


# the sixth guard is the namespace's label: test_attachment_reconciler.py
GUARDS = [
    pytest.param(Case(GATEWAYS, "cozystack", {"gatewayClassName": "mine", "listeners": []}, "listeners"), id="R-211"),
    pytest.param(Case(HTTPROUTES, "cozystack-http-redirect", {"hostnames": ["a.example"]}, "rules"), id="R-212"),
    pytest.param(Case(ISSUERS, "cozystack-gateway", {"selfSigned": {}}, "acme"), id="R-213"),
    pytest.param(Case(CERTIFICATES, "cozystack-gateway-tls", {"uris": ["spiffe://x"]}, "dnsNames", DNS01), id="R-214"),
    pytest.param(Case(CERTIFICATES, HARBOR, {"ipAddresses": ["10.0.0.1"]}, "dnsNames"), id="R-215"),
]


def set_up(world: World, case: Case) -> Object:
    """The foreign object as it is there before us."""
    foreign: Object = {"metadata": {"namespace": "tenant-foo", "name": case.name}, "spec": case.spec}
    world.cluster.add(case.resource, foreign)
    world.route("cozy-harbor", "harbor", "harbor.foo.example.com")
    world.ask(**case.mode)
    return world.get(case.resource, "tenant-foo", case.name)


@pytest.mark.parametrize("case", GUARDS)
def test_a_foreign_object_stays_as_it_is_and_the_rest_is_made(case: Case) -> None:
    """R-211 to R-218, R-222, R-224, R-225, R-226."""

    async def main(world: World) -> None:
        foreign = set_up(world, case)
        await pass_through(world)
        assert world.get(case.resource, "tenant-foo", case.name) == foreign
        status, reason, message = world.ready()
        assert (status, reason) == ("False", "ReconcileError")
        kind = case.resource.kind.lower()
        assert message.startswith(
            f"{kind} tenant-foo/{case.name} exists but is not owned by TenantGateway tenant-foo/cozystack: "
            "rename or delete it, or "
        )
        there = {
            GATEWAYS: await world.names(GATEWAYS),
            ISSUERS: await world.names(ISSUERS),
            HTTPROUTES: await world.names(HTTPROUTES),
        }
        assert there == {
            GATEWAYS: ["cozystack"],
            ISSUERS: ["cozystack-gateway"],
            HTTPROUTES: ["cozystack-http-redirect"],
        }

    in_world(main)


@pytest.mark.parametrize("case", GUARDS)
def test_ours_is_made_once_the_foreign_object_is_gone(case: Case) -> None:
    """R-219, R-221: whoever renames it deletes it under its former name."""

    async def main(world: World) -> None:
        set_up(world, case)
        async with world.running():
            await world.cluster.delete(case.resource, "tenant-foo", case.name)
        assert world.get(case.resource, "tenant-foo", case.name)["spec"][case.ours]
        assert world.ready()[1] != "ReconcileError"

    in_world(main)


@pytest.mark.parametrize("case", GUARDS)
def test_an_owner_reference_with_our_uid_hands_an_object_over(case: Case) -> None:
    """R-220, PEER-15, CHOICE-9: `controller: true` is not needed. What made another thing of it goes."""

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

    in_world(main)


def test_an_owner_of_the_same_name_and_another_uid_is_somebody_else() -> None:
    async def main(world: World) -> None:
        foreign = set_up(world, Case(GATEWAYS, "cozystack", {"gatewayClassName": "mine"}, "listeners"))
        reference = {"apiVersion": "gateway.cozystack.io/v1alpha1", "kind": "TenantGateway", "name": "cozystack"}
        references = [{**reference, "uid": "of-a-former-one", "controller": True}]
        await world.edit(GATEWAYS, "tenant-foo", "cozystack", {"metadata": {"ownerReferences": references}})
        foreign = world.get(GATEWAYS, "tenant-foo", "cozystack")
        await pass_through(world)
        assert world.get(GATEWAYS, "tenant-foo", "cozystack") == foreign

    in_world(main)


def test_nobody_elses_issuer_signs_for_us() -> None:
    """cert-manager would keep what it signed until that expires."""

    async def main(world: World) -> None:
        set_up(world, Case(ISSUERS, "cozystack-gateway", {"selfSigned": {}}, "acme"))
        async with world.running():
            assert await world.names(CERTIFICATES) == []
            await world.cluster.delete(ISSUERS, "tenant-foo", "cozystack-gateway")
        assert await world.names(CERTIFICATES) == [HARBOR]

    in_world(main)


def test_what_we_made_and_somebody_edits_or_deletes_comes_back() -> None:
    """GW-20: and what is the operator's on it stays."""

    async def main(world: World) -> None:
        world.ask()
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

    in_world(main)
