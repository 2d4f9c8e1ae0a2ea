"""After a change of mode, hostnames keep the certificate that they are served with until the next one is issued."""

from __future__ import annotations

from typing import Any

import pytest

from tests.controller.tenantgateway.gateway_world import CERTIFICATES, GATEWAYS, World, run_in_world, run_until_settled

APEX = "foo.example.com"
HARBOR, DEEP = f"harbor.{APEX}", f"a.b.{APEX}"
HTTP01: dict[str, Any] = {"certMode": "http01", "wildcardSecretRef": None, "dns01": None}
DNS01: dict[str, Any] = {"certMode": "dns01", "wildcardSecretRef": None, "dns01": {"provider": "cloudflare"}}
BOUGHT: dict[str, Any] = {"certMode": "existingSecret", "wildcardSecretRef": {"name": "bought"}}
WILDCARD = "cozystack-gateway-tls"


def served(world: World) -> dict[str, str]:
    """The Secret of each HTTPS hostname."""
    return {
        each["hostname"]: each["tls"]["certificateRefs"][0]["name"]
        for each in world.get(GATEWAYS, "tenant-foo", "cozystack")["spec"]["listeners"]
        if each["protocol"] == "HTTPS"
    }


async def issue(world: World, *names: str, ready: bool = True) -> None:
    """cert-manager reports the state of Certificates."""
    for name in names:
        generation = world.get(CERTIFICATES, "tenant-foo", name)["metadata"].get("generation", 1)
        status = "True" if ready else "False"
        condition = {"type": "Ready", "status": status, "reason": "X", "message": "", "observedGeneration": generation}
        await world.edit(CERTIFICATES, "tenant-foo", name, {"status": {"conditions": [condition]}}, "status")
    await world.settle()


async def certificate_of(world: World, hostname: str) -> str:
    [found] = [
        each
        for each in await world.names(CERTIFICATES)
        if world.get(CERTIFICATES, "tenant-foo", each)["spec"]["dnsNames"] == [hostname]
    ]
    return found


def test_hostnames_keep_the_wildcard_secret_until_their_own_certificates_are_issued() -> None:
    """PEER-03. Each for itself: one that is never issued keeps no other waiting, and is reported."""

    async def main(world: World) -> None:
        world.add_tenantgateway(**BOUGHT)
        world.route("tenant-foo", "harbor", HARBOR, DEEP, port=443)
        async with world.running():
            await world.edit_spec(**HTTP01)
            await world.settle()
            assert served(world) == {HARBOR: "bought", DEEP: "bought"}
            own = await certificate_of(world, HARBOR)
            await issue(world, own, ready=False)
            assert served(world) == {HARBOR: "bought", DEEP: "bought"}
            await issue(world, own)
            assert served(world) == {HARBOR: own, DEEP: "bought"}
            status, reason, message = world.conditions()["CertificatesReady"]
            assert (status, reason, message.endswith(f": {DEEP}")) == ("False", "CertificatesPending", True)
        world.cluster.clear_writes()
        await run_until_settled(world)
        assert world.cluster.writes == [], "a restart changes nothing"
        async with world.running():
            await issue(world, await certificate_of(world, DEEP))
            assert "bought" not in served(world).values()
            assert "CertificatesReady" not in world.conditions()

    run_in_world(main)


def test_a_certificate_that_is_renewed_stays_in_use() -> None:
    async def main(world: World) -> None:
        world.add_tenantgateway(**BOUGHT)
        world.route("tenant-foo", "harbor", HARBOR, port=443)
        async with world.running():
            await world.edit_spec(**HTTP01)
            await world.settle()
            own = await certificate_of(world, HARBOR)
            await issue(world, own)
            await issue(world, own, ready=False)
            assert served(world) == {HARBOR: own}

    run_in_world(main)


def test_a_hostname_that_nothing_served_waits_for_its_own_certificate() -> None:
    async def main(world: World) -> None:
        world.add_tenantgateway()
        world.route("tenant-foo", "harbor", HARBOR, port=443)
        async with world.running():
            assert served(world) == {HARBOR: await certificate_of(world, HARBOR)}

    run_in_world(main)


@pytest.mark.parametrize(
    ("before", "kept"),
    [
        pytest.param(BOUGHT, {APEX: "bought", f"*.{APEX}": "bought"}, id="a Secret that was bought"),
        pytest.param(HTTP01, None, id="certificates of single hostnames"),
    ],
)
def test_a_wildcard_certificate_takes_over_as_soon_as_it_is_issued(
    before: dict[str, Any], kept: dict[str, str] | None
) -> None:
    """R-158: until then, the Certificates of single hostnames stay."""

    async def main(world: World) -> None:
        world.add_tenantgateway(**{key: value for key, value in before.items() if value is not None})
        world.route("tenant-foo", "harbor", HARBOR, port=443)
        async with world.running():
            if kept is None:
                await issue(world, await certificate_of(world, HARBOR))
            expected = served(world) if kept is None else kept
            await world.edit_spec(**DNS01)
            await world.settle()
            assert served(world) == expected
            assert WILDCARD in await world.names(CERTIFICATES)
            await issue(world, WILDCARD)
            assert served(world) == {APEX: WILDCARD, f"*.{APEX}": WILDCARD}
            assert await world.names(CERTIFICATES) == [WILDCARD]

    run_in_world(main)


def test_certificates_of_single_hostnames_take_over_from_the_wildcard_certificate() -> None:
    """It stays until the last of them is issued."""

    async def main(world: World) -> None:
        world.add_tenantgateway(**{key: value for key, value in DNS01.items() if value is not None})
        world.route("tenant-foo", "harbor", HARBOR, port=443)
        async with world.running():
            await issue(world, WILDCARD)
            await world.edit_spec(**HTTP01)
            await world.settle()
            assert served(world) == {HARBOR: WILDCARD}
            own = await certificate_of(world, HARBOR)
            assert await world.names(CERTIFICATES) == sorted([own, WILDCARD])
            await issue(world, own)
            assert served(world) == {HARBOR: own}
            assert await world.names(CERTIFICATES) == [own]

    run_in_world(main)
