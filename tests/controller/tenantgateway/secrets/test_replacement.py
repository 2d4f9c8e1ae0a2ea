"""A wildcard Secret replaces the certificates that a Gateway serves only once the data plane can use it."""

from __future__ import annotations

from typing import Any

import pytest

from apiserver.meta.resource import Object
from registry.tenantgateway.types import TENANTGATEWAYS
from tests.controller.tenantgateway.gateway_world import (
    CERTIFICATES,
    GATEWAYS,
    ISSUERS,
    World,
    run_in_world,
    run_until_settled,
)

HOST = "harbor.foo.example.com"
HTTP01: dict[str, Any] = {}
DNS01 = {"certMode": "dns01", "dns01": {"provider": "cloudflare"}}
OWN = {"certMode": "existingSecret", "wildcardSecretRef": {"name": "own"}}
BOUGHT: dict[str, Any] = {"certMode": "existingSecret", "dns01": None, "wildcardSecretRef": {"name": "bought"}}


async def report(world: World, *, missing: str = "") -> None:
    """The data plane writes the status of the Gateway: everything is programmed but what uses the missing Secret."""
    obj = world.get(GATEWAYS, "tenant-foo", "cozystack")

    def condition(type_: str, ok: bool, reason: str = "") -> Object:
        return {
            "type": type_,
            "status": "True" if ok else "False",
            "reason": type_ if ok else reason,
            "message": "",
            "observedGeneration": obj["metadata"]["generation"],
        }

    def state(listener: Object) -> Object:
        references = (listener.get("tls") or {}).get("certificateRefs") or []
        ok = missing not in [each["name"] for each in references]
        conditions = [
            condition("Accepted", True),
            condition("Programmed", ok, "Invalid"),
            condition("ResolvedRefs", ok, "InvalidCertificateRef"),
        ]
        return {"name": listener["name"], "conditions": conditions}

    status = {
        "conditions": [condition("Accepted", True), condition("Programmed", True)],
        "listeners": [state(each) for each in obj["spec"]["listeners"]],
    }
    await world.edit(GATEWAYS, "tenant-foo", "cozystack", {"status": status}, "status")
    await world.settle()


def served(world: World) -> dict[str, str]:
    """The Secret of each HTTPS hostname, without the listener that tries one."""
    listeners = world.get(GATEWAYS, "tenant-foo", "cozystack")["spec"]["listeners"]
    return {
        each["hostname"]: each["tls"]["certificateRefs"][0]["name"]
        for each in listeners
        if each["protocol"] == "HTTPS" and not each["name"].startswith("wildcard-secret-")
    }


def tried(world: World) -> list[str]:
    listeners = world.get(GATEWAYS, "tenant-foo", "cozystack")["spec"]["listeners"]
    return [each["tls"]["certificateRefs"][0]["name"] for each in listeners if each["name"].startswith("wildcard-sec")]


@pytest.mark.parametrize(
    "before", [pytest.param(HTTP01, id="http01"), pytest.param(DNS01, id="dns01"), pytest.param(OWN, id="another one")]
)
def test_what_serves_stays_until_the_secret_is_there(before: dict[str, Any]) -> None:
    """PEER-03: Certificates, Issuer and listeners; conditions say why, and what to do."""

    async def main(world: World) -> None:
        world.add_tenantgateway(**before)
        world.route("tenant-foo", "harbor", HOST, port=443)
        async with world.running():
            await report(world)
            kept = served(world), await world.names(CERTIFICATES), await world.names(ISSUERS)
            await world.edit_spec(**BOUGHT)
            await world.settle()
            assert (served(world), await world.names(CERTIFICATES), await world.names(ISSUERS)) == kept
            assert tried(world) == ["bought"]
            assert world.ready()[:2] == ("False", "SecretNotConfirmed")
            await report(world, missing="bought")
            assert (served(world), await world.names(CERTIFICATES), await world.names(ISSUERS)) == kept
            for type_ in ("Ready", "CertificatesReady"):
                status, reason, message = world.conditions()[type_]
                assert (status, reason) == ("False", "SecretMissing")
                assert message.startswith("Secret tenant-foo/bought is missing or holds no certificate")
                assert "create it in namespace tenant-foo, with type kubernetes.io/tls" in message
        world.cluster.clear_writes()
        await run_until_settled(world)
        assert world.cluster.writes == [], "a restart changes nothing"
        async with world.running():
            await report(world)
            assert served(world) == {"foo.example.com": "bought", "*.foo.example.com": "bought"}
            assert tried(world) == []
            assert await world.names(CERTIFICATES) == await world.names(ISSUERS) == []
            await report(world)
            assert world.conditions().keys() == {"Ready"}
            assert world.ready()[0] == "True"

    run_in_world(main)


def test_nothing_is_tried_where_nothing_is_served() -> None:
    """Before any data plane has programmed the Gateway, the Secret may as well be used at once."""

    async def main(world: World) -> None:
        world.add_tenantgateway()
        world.route("tenant-foo", "harbor", HOST, port=443)
        async with world.running():
            await world.edit_spec(**BOUGHT)
            await world.settle()
            assert set(served(world).values()) == {"bought"}
            assert tried(world) == await world.names(CERTIFICATES) == []

    run_in_world(main)


def test_a_missing_secret_of_a_new_gateway_is_told_with_the_remedy() -> None:
    async def main(world: World) -> None:
        world.add_tenantgateway(**BOUGHT)
        async with world.running():
            await report(world, missing="bought")
            status, reason, message = world.ready()
            assert (status, reason) == ("False", "SecretMissing")
            assert message.startswith("Secret tenant-foo/bought is missing or holds no certificate")
            await report(world)
            assert world.ready()[0] == "True"

    run_in_world(main)


def test_the_owner_may_go_back() -> None:
    async def main(world: World) -> None:
        world.add_tenantgateway()
        world.route("tenant-foo", "harbor", HOST, port=443)
        async with world.running():
            await report(world)
            before = world.get(GATEWAYS, "tenant-foo", "cozystack")["spec"]
            await world.edit_spec(**BOUGHT)
            await world.settle()
            await world.edit_spec(certMode="http01", wildcardSecretRef=None)
            await world.settle()
            assert world.get(GATEWAYS, "tenant-foo", "cozystack")["spec"] == before
            assert "CertificatesReady" not in world.conditions()
            assert world.get(TENANTGATEWAYS, "tenant-foo", "cozystack")["spec"]["certMode"] == "http01"

    run_in_world(main)


def test_a_full_gateway_has_no_room_to_try_it() -> None:
    """It keeps what it serves, and says so."""

    async def main(world: World) -> None:
        world.add_tenantgateway()
        for start in range(0, 63, 21):
            names = [f"a{each:02}.foo.example.com" for each in range(start, start + 21)]
            world.route("tenant-foo", f"r{start}", *names, port=443)
        async with world.running():
            await report(world)
            kept = served(world)
            assert len(kept) == 63
            await world.edit_spec(**BOUGHT)
            await world.settle()
            assert served(world) == kept
            assert tried(world) == []
            _, reason, message = world.ready()
            assert reason == "SecretNotConfirmed"
            assert "there are 64; remove a hostname" in message

    run_in_world(main)
