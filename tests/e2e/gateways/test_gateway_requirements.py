"""The Gateway flag of the platform, tenants that own a Gateway, and tenants that inherit one."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.e2e.support.clusters.cluster import ROOT, ROOT_HOST, E2eCluster
from tests.e2e.support.gateways import MERGE, Gateways
from tests.e2e.support.tenants import Tenants

GATEWAY = r"jsonpath={.metadata.labels.namespace\.cozystack\.io/gateway}{'\n'}"
OBJECT_NAMES = {
    "tenantgateways": "cozystack",
    "gateways": "cozystack",
    "issuers": "cozystack-gateway",
    "httproutes": "cozystack-http-redirect",
}


class PlatformSettings:
    """The settings file that the server watches."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def write(self, *, publisher: str = ROOT, **gateway: Any) -> None:
        fresh = self.path.with_suffix(".new")
        fresh.write_text(yaml.safe_dump({"gateway": gateway, "publishing": {"ingressName": publisher}}))
        fresh.rename(self.path)


@pytest.fixture
def platform(cluster: E2eCluster, tmp_path: Path) -> Iterator[PlatformSettings]:
    """Restarts our server with a settings file, and after the test without one."""
    made = PlatformSettings(tmp_path / "platform.yaml")
    made.write()
    before = cluster.flags
    try:
        cluster.flags = (*before, f"--config={made.path}")
        cluster.restart()
        yield made
    finally:
        cluster.flags = before
        cluster.restart()


def has_gateway_label(cluster: E2eCluster, namespace: str, owner: str) -> bool:
    """True if the troubleshooting command prints this owner, or an empty line for ''."""
    return cluster.kubectl("get", "namespace", namespace, "-o", GATEWAY).stdout == f"{owner}\n"


def has_tenantgateways(gateways: Gateways, namespace: str, names: list[str]) -> bool:
    return gateways.names("tenantgateways", namespace) == names


def gateway_enabled_value(cluster: E2eCluster, namespace: str) -> str | None:
    """The platform flag in the values that the charts of a namespace read."""
    answer = cluster.client().get(f"/api/v1/namespaces/{namespace}/secrets/cozystack-values")
    if answer.status != 200:
        return None
    values = yaml.load(base64.b64decode(answer.json()["data"]["values.yaml"]), Loader=yaml.CSafeLoader)
    found: str | None = values["_cluster"].get("gateway-enabled")
    return found


def has_all_objects(gateways: Gateways, namespace: str) -> bool:
    return all(name in gateways.names(plural, namespace) for plural, name in OBJECT_NAMES.items())


def resource_versions(gateways: Gateways, namespace: str) -> dict[str, str]:
    """The resourceVersions of the objects rendered from the TenantGateway of a namespace."""
    made = {plural: name for plural, name in OBJECT_NAMES.items() if plural != "tenantgateways"}
    return {
        plural: gateways.get(plural, namespace, name)["metadata"]["resourceVersion"] for plural, name in made.items()
    }


@pytest.mark.every_tenant
def test_all_heirs_use_the_gateway_of_the_root_while_the_platform_flag_is_off(
    cluster: E2eCluster, tenants: Tenants, gateways: Gateways
) -> None:
    """One Gateway serves the root tenant and all tenants that inherit it; a tenant with its own Gateway keeps it.

    R-066, R-071, R-149, R-198, R-298, R-299, R-307, R-321, PEER-10.
    """
    child, own = tenants.create_with_namespace(), tenants.create_with_namespace(spec={"gateway": True})
    grandchild, below_own = tenants.create_with_namespace(child), tenants.create_with_namespace(own)
    heirs = (ROOT, child, grandchild)
    try:
        tenants.patch("root", {"spec": {"gateway": True}})
        for namespace in heirs:
            gateways.wait_until(
                f"{namespace} uses the Gateway of the root", partial(has_gateway_label, cluster, namespace, ROOT)
            )
        gateways.wait_until("all objects of the root exist", lambda: has_all_objects(gateways, ROOT))
        gateways.wait_until("the chart values of the child", lambda: gateway_enabled_value(cluster, child) == "false")
        ours, theirs = (f"harbor.{_host_of(each)}" for each in (grandchild, below_own))
        gateways.create_route(grandchild, "harbor", ours, to=ROOT)
        gateways.create_route(below_own, "harbor", theirs, to=own)
        gateways.wait_until(
            "the route of an inheriting tenant is served", lambda: ours in gateways.listener_hostnames(ROOT)
        )
        gateways.wait_until(
            "the route below the other owner is served", lambda: theirs in gateways.listener_hostnames(own)
        )
        assert [gateways.names("gateways", namespace) for namespace in heirs] == [["cozystack"], [], []]
        assert has_gateway_label(cluster, own, own)
        assert has_gateway_label(cluster, below_own, own)
        assert theirs not in gateways.listener_hostnames(ROOT)
        gateways.wait_until("the certificate exists", lambda: len(gateways.names("certificates", own)) == 1)
        assert gateways.names("certificates", below_own) == []
    finally:
        tenants.patch("root", {"spec": {"gateway": None}})
        gateways.wait_until("the root has no TenantGateway", lambda: gateways.names("tenantgateways", ROOT) == [])
    for namespace in heirs:
        gateways.wait_until(f"{namespace} has no Gateway", partial(has_gateway_label, cluster, namespace, ""))


def _host_of(namespace: str) -> str:
    """The host of a tenant that has none of its own, by its namespace tenant-PARENT-NAME."""
    labels = reversed(namespace.removeprefix("tenant-").split("-"))
    return f"{'.'.join(labels)}.{ROOT_HOST}"


def test_a_tenant_and_its_heirs_move_to_a_gateway_of_their_own_and_back(tenants: Tenants, gateways: Gateways) -> None:
    """Below an ancestor with a Gateway, `gateway: false` inherits it just as an unset field does.

    R-072, R-073, R-074, PEER-09.
    """
    owner = tenants.create_with_namespace(spec={"gateway": True})
    alice = tenants.create_with_namespace(owner, spec={"gateway": False})
    bob = tenants.create_with_namespace(alice)
    name = alice.removeprefix(f"{owner}-")
    for wanted, nearest in ((False, owner), (True, alice), (False, owner)):
        tenants.patch(name, {"spec": {"gateway": wanted}}, owner)
        for namespace in (alice, bob):
            gateways.wait_until(
                f"{namespace} uses the Gateway of {nearest}",
                partial(has_gateway_label, gateways.cluster, namespace, nearest),
            )
        made = ["cozystack"] if wanted else []
        gateways.wait_until("the TenantGateway exists as requested", partial(has_tenantgateways, gateways, alice, made))


@pytest.mark.every_tenant
def test_the_platform_flag_reaches_charts_and_does_not_affect_gateway_owners(
    cluster: E2eCluster, tenants: Tenants, gateways: Gateways, platform: PlatformSettings
) -> None:
    """The flag is switched on and off; R-287, R-292, R-293, R-301, R-303, R-304."""
    app = gateways.create_namespace("cozy-app")
    early = tenants.create_with_namespace(spec={"gateway": True})
    platform.write(publisher=early, attachedNamespaces=[app])
    plain = tenants.create_with_namespace()
    gateways.wait_until("the tenant has its Gateway while the flag is off", lambda: has_all_objects(gateways, early))
    gateways.wait_until("the app namespace is attached", lambda: gateways.attachment(app) == (early, early))
    before = resource_versions(gateways, early)

    platform.write(publisher=early, enabled=True, attachedNamespaces=[app])
    gateways.wait_until(
        "the values say true",
        lambda: gateway_enabled_value(cluster, plain) == gateway_enabled_value(cluster, early) == "true",
    )
    late = tenants.create_with_namespace(spec={"gateway": True})
    gateways.wait_until("a tenant created with the flag on has its Gateway", partial(has_all_objects, gateways, late))
    assert gateways.names("tenantgateways", plain) == []

    platform.write(publisher=early, enabled=False, attachedNamespaces=[app])
    gateways.wait_until(
        "the values say false",
        lambda: gateway_enabled_value(cluster, plain) == gateway_enabled_value(cluster, early) == "false",
    )
    assert resource_versions(gateways, early) == before
    hostname = f"new.{early.removeprefix('tenant-')}.{ROOT_HOST}"
    gateways.create_route(early, "new", hostname, to=early, port=443)
    gateways.wait_until("a new route is still served", lambda: gateways.listener_hostnames(early).count(hostname) == 1)

    for namespace in (early, late):
        tenants.patch(namespace.removeprefix("tenant-"), {"spec": {"gateway": False}})
        for plural, name in OBJECT_NAMES.items():
            gateways.wait_until(f"{name} of {namespace} is deleted", partial(gateways.is_gone, plural, namespace, name))
    gateways.wait_until("the app namespace is detached", lambda: gateways.attachment(app) == (None, None))


def test_a_condition_says_why_an_invalid_host_has_no_tenantgateway(
    cluster: E2eCluster, tenants: Tenants, gateways: Gateways
) -> None:
    """An invalid host can still be stored by clients that write the HelmRelease (R-316)."""
    name = tenants.create(spec={"gateway": True})["metadata"]["name"]
    namespace = f"tenant-{name}"
    gateways.wait_until(
        "the TenantGateway exists", lambda: gateways.names("tenantgateways", namespace) == ["cozystack"]
    )
    release = f"/apis/helm.toolkit.fluxcd.io/v2/namespaces/{ROOT}/helmreleases/tenant-{name}"
    body = {"spec": {"values": {"host": "*.example"}}}
    cluster.client().request("PATCH", release, body, content_type=MERGE).expect(200)
    gateways.wait_until("the TenantGateway is deleted", lambda: gateways.names("tenantgateways", namespace) == [])

    def shown_message() -> str:
        query = "jsonpath={.status.conditions[?(@.type=='TenantGatewayMissing')].message}"
        return cluster.kubectl("get", "tenant", name, "-n", ROOT, "-o", query).stdout

    message = "no Gateway for *.example: it is not a valid domain; correct spec.host, or that of the ancestor"
    gateways.wait_until("the condition says why", lambda: shown_message() == message)
