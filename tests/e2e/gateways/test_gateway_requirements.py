"""The platform's flag, owners and their heirs: which of them brings about what."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.e2e.support.clusters import ROOT, ROOT_HOST, E2eCluster
from tests.e2e.support.gateways import MERGE, Gateways
from tests.e2e.support.tenants import Tenants

GATEWAY = r"jsonpath={.metadata.labels.namespace\.cozystack\.io/gateway}{'\n'}"
LITERALS = {
    "tenantgateways": "cozystack",
    "gateways": "cozystack",
    "issuers": "cozystack-gateway",
    "httproutes": "cozystack-http-redirect",
}


class Platform:
    """The settings file of a server that follows it."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def write(self, **gateway: Any) -> None:
        fresh = self.path.with_suffix(".new")
        fresh.write_text(yaml.safe_dump({"gateway": gateway}))
        fresh.rename(self.path)


@pytest.fixture
def platform(cluster: E2eCluster, tmp_path: Path) -> Iterator[Platform]:
    """The host's server, started anew with a settings file, and after the test without one."""
    made = Platform(tmp_path / "platform.yaml")
    made.write()
    before = cluster.flags
    try:
        cluster.flags = (*before, f"--config={made.path}")
        cluster.restart()
        yield made
    finally:
        cluster.flags = before
        cluster.restart()


def is_owned(cluster: E2eCluster, namespace: str, owner: str) -> bool:
    """By the line that the troubleshooting command prints: the owner, or nothing."""
    return cluster.kubectl("get", "namespace", namespace, "-o", GATEWAY).stdout == f"{owner}\n"


def has_named(gateways: Gateways, namespace: str, names: list[str]) -> bool:
    return gateways.names("tenantgateways", namespace) == names


def flag_in_values(cluster: E2eCluster, namespace: str) -> str | None:
    """What the charts of a namespace read of the platform's flag."""
    answer = cluster.session().get(f"/api/v1/namespaces/{namespace}/secrets/cozystack-values")
    if answer.status != 200:
        return None
    values = yaml.safe_load(base64.b64decode(answer.json()["data"]["values.yaml"]))
    found: str | None = values["_cluster"].get("gateway-enabled")
    return found


def has_all(gateways: Gateways, namespace: str) -> bool:
    return all(name in gateways.names(plural, namespace) for plural, name in LITERALS.items())


def versions(gateways: Gateways, namespace: str) -> dict[str, str]:
    """resourceVersions of what is made from the TenantGateway of a namespace."""
    made = {plural: name for plural, name in LITERALS.items() if plural != "tenantgateways"}
    return {
        plural: gateways.get(plural, namespace, name)["metadata"]["resourceVersion"] for plural, name in made.items()
    }


def test_the_root_opts_in_and_all_heirs_follow_while_the_flag_is_off(
    cluster: E2eCluster, tenants: Tenants, gateways: Gateways
) -> None:
    """R-066, R-071, R-149, R-198, R-298, R-299, R-307, R-321, PEER-10: one Gateway for the root and all its heirs; an
    owner below it keeps its own, and what is below that."""
    kid, own = tenants.nest(), tenants.nest(spec={"gateway": True})
    grandkid, below_own = tenants.nest(kid), tenants.nest(own)
    heirs = (ROOT, kid, grandkid)
    try:
        tenants.patch("root", {"spec": {"gateway": True}})
        for namespace in heirs:
            gateways.until(f"{namespace} is root's", partial(is_owned, cluster, namespace, ROOT))
        gateways.until("all of it is made", lambda: has_all(gateways, ROOT))
        assert flag_in_values(cluster, kid) == "false"
        ours, theirs = (f"harbor.{each.removeprefix('tenant-')}.{ROOT_HOST}" for each in (kid, own))
        gateways.route(grandkid, "harbor", ours, to=ROOT)
        gateways.route(below_own, "harbor", theirs, to=own)
        gateways.until("an heir's route is served", lambda: ours in gateways.listeners(ROOT))
        gateways.until("and that of the owner's heir", lambda: theirs in gateways.listeners(own))
        assert [gateways.names("gateways", namespace) for namespace in heirs] == [["cozystack"], [], []]
        assert is_owned(cluster, own, own)
        assert is_owned(cluster, below_own, own)
        assert theirs not in gateways.listeners(ROOT)
        gateways.until("its certificate", lambda: len(gateways.names("certificates", own)) == 1)
        assert gateways.names("certificates", below_own) == []
    finally:
        tenants.patch("root", {"spec": {"gateway": None}})
        gateways.until("root owns none", lambda: gateways.names("tenantgateways", ROOT) == [])
    for namespace in heirs:
        gateways.until(f"{namespace} has none", partial(is_owned, cluster, namespace, ""))


def test_ownership_moves_a_tenant_and_its_heirs_there_and_back(tenants: Tenants, gateways: Gateways) -> None:
    """R-072, R-073, R-074, PEER-09: under an ancestor that owns a Gateway; `false` is to inherit, as unset is."""
    owner = tenants.nest(spec={"gateway": True})
    alice = tenants.nest(owner, spec={"gateway": False})
    bob = tenants.nest(alice)
    name = alice.removeprefix(f"{owner}-")
    for wanted, nearest in ((False, owner), (True, alice), (False, owner)):
        tenants.patch(name, {"spec": {"gateway": wanted}}, owner)
        for namespace in (alice, bob):
            gateways.until(f"{namespace} is {nearest}'s", partial(is_owned, gateways.cluster, namespace, nearest))
        made = ["cozystack"] if wanted else []
        gateways.until("a TenantGateway or none", partial(has_named, gateways, alice, made))


def test_the_flag_is_the_charts_and_owners_do_not_wait_for_it(
    cluster: E2eCluster, tenants: Tenants, gateways: Gateways, platform: Platform
) -> None:
    """R-287, R-292, R-293, R-301, R-303, R-304: with the flag off, on, and off again."""
    app = gateways.namespace("cozy-app")
    platform.write(attachedNamespaces=[app])
    early = tenants.nest(spec={"gateway": True})
    plain = tenants.nest()
    gateways.until("an owner before the flag", lambda: has_all(gateways, early))
    gateways.until("has its app", lambda: gateways.mark(app) == (early, early))
    before = versions(gateways, early)

    platform.write(enabled=True, attachedNamespaces=[app])
    gateways.until("charts read it", lambda: flag_in_values(cluster, plain) == flag_in_values(cluster, early) == "true")
    late = tenants.nest(spec={"gateway": True})
    gateways.until("an owner from its creation on", partial(has_all, gateways, late))
    assert gateways.names("tenantgateways", plain) == []

    platform.write(enabled=False, attachedNamespaces=[app])
    gateways.until(
        "charts read that", lambda: flag_in_values(cluster, plain) == flag_in_values(cluster, early) == "false"
    )
    assert versions(gateways, early) == before
    hostname = f"new.{early.removeprefix('tenant-')}.{ROOT_HOST}"
    gateways.route(early, "new", hostname, to=early, port=443)
    gateways.until("leftovers are looked after", lambda: gateways.listeners(early).count(hostname) == 1)

    for namespace in (early, late):
        tenants.patch(namespace.removeprefix("tenant-"), {"spec": {"gateway": False}})
        for plural, name in LITERALS.items():
            gateways.until(f"{namespace} has no {name}", partial(gateways.gone, plural, namespace, name))
    gateways.until("the app is let go", lambda: gateways.mark(app) == (None, None))


def test_an_owner_whose_domain_is_none_is_told_why_there_is_no_tenantgateway(
    cluster: E2eCluster, tenants: Tenants, gateways: Gateways
) -> None:
    """R-316: what the API refuses can still be stored by others, who write the HelmRelease."""
    name = tenants.create(spec={"gateway": True})["metadata"]["name"]
    namespace = f"tenant-{name}"
    gateways.until("it has one", lambda: gateways.names("tenantgateways", namespace) == ["cozystack"])
    release = f"/apis/helm.toolkit.fluxcd.io/v2/namespaces/{ROOT}/helmreleases/tenant-{name}"
    body = {"spec": {"values": {"host": "*.example"}}}
    cluster.session().request("PATCH", release, body, content_type=MERGE).expect(200)
    gateways.until("it has none", lambda: gateways.names("tenantgateways", namespace) == [])
    shown = cluster.kubectl(
        *("get", "tenant", name, "-n", ROOT, "-o"),
        "jsonpath={.status.conditions[?(@.type=='TenantGatewayMissing')].message}",
    ).stdout
    assert shown == "no Gateway for *.example: it is no domain"
