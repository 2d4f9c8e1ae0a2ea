"""Writes after a restart, and a cluster on which the required kinds are missing at first."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from functools import partial

import pytest

from tests.e2e.support.clusters.cluster import PATIENCE, E2eCluster
from tests.e2e.support.clusters.kube import KubeCluster
from tests.e2e.support.gateways import (
    CERT_MANAGER,
    COLLECTIONS,
    DNS01,
    GATEWAY_API,
    HOST_LABEL,
    LABEL,
    Gateways,
    Object,
)
from tests.e2e.support.http.api_request_counts import QUIET_SECONDS, count_requests, wait_until_quiet

APEX = "foo.example.com"
_CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_READS = ("GET", "LIST", "WATCH", "CONNECT")


def count_writes(cluster: E2eCluster) -> Counter[tuple[str, str, str]]:
    """Counts write requests, successful or not, by (verb, resource, code)."""
    requests = count_requests(cluster, {*COLLECTIONS, "namespaces"})
    return Counter({each: count for each, count in requests.items() if each[0] not in _READS})


def resource_versions(cluster: E2eCluster) -> dict[str, str]:
    """The resourceVersions of all objects of the kinds that the controller writes."""
    client = cluster.client()
    found = {}
    for plural, (group, _) in COLLECTIONS.items():
        for each in client.get(f"/apis/{group}/{plural}").expect(200)["items"]:
            metadata = each["metadata"]
            found[f"{plural} {metadata['namespace']}/{metadata['name']}"] = metadata["resourceVersion"]
    return found


def test_a_restart_writes_nothing(own_cluster: E2eCluster) -> None:
    """In every mode, with losing routes, hostnames left out, attached namespaces and delegations (R-102, R-190, R-197,
    GW-20)."""
    gateways = Gateways(own_cluster)
    foo, bar, existing_secret = (gateways.create_owner(f"tenant-{name}") for name in ("foo", "bar", "existing-secret"))
    harbor = gateways.create_namespace("cozy-harbor")
    gateways.create_namespace("kid", labels={LABEL: bar, HOST_LABEL: f"kid.{APEX}"})
    gateways.create_tenantgateway(foo, APEX, attachedNamespaces=[harbor, "missing"], tlsPassthroughServices=["api"])
    gateways.create_tenantgateway(bar, APEX, **DNS01)
    gateways.create_tenantgateway(
        existing_secret, APEX, certMode="existingSecret", wildcardSecretRef={"name": "existing-secret"}
    )
    gateways.create_route(harbor, "harbor", f"harbor.{APEX}", to=foo)
    gateways.create_route(foo, "loser", f"harbor.{APEX}", f"*.{APEX}", "x.elsewhere.example", to=foo, port=443)
    gateways.create_route(foo, "api", f"api.{APEX}", to=foo, plural="tlsroutes", sectionName="tls-api")
    vertex = gateways.create_namespace("vertex")
    gateways.create_root(foo, "www", f"www.{APEX}", "/part", f"{vertex}/part")
    gateways.create_vertex(vertex, "part", "/part", parent=f"{foo}/www")
    gateways.create_delegation_grant(vertex, foo, "part")
    gateways.wait_until("the losing route has the conflict in its status", lambda: gateways.has_conflict(foo, "loser"))
    gateways.wait_until("the delegated route is told so", lambda: gateways.parent_statuses(vertex, "part"))
    gateways.wait_until("the namespace is attached", lambda: gateways.attachment(harbor) == (foo, foo))
    gateways.wait_until("the listener of the child exists", lambda: f"*.kid.{APEX}" in gateways.listener_hostnames(bar))
    gateways.wait_until("the routes are served", lambda: gateways.has_listeners(foo, f"harbor.{APEX}", f"api.{APEX}"))
    gateways.wait_until("the certificate exists", lambda: gateways.names("certificates", foo))
    for namespace in (foo, bar, existing_secret):
        gateways.wait_until("the status is written", partial(gateways.ready_reason, namespace))
    gateways.mark_gateway_programmed(foo)
    gateways.mark_certificates_ready(foo)
    wait_until_quiet(own_cluster, count_writes)
    before, counted = resource_versions(own_cluster), count_writes(own_cluster)
    own_cluster.restart()
    # the embedded cluster counts from the start of its process
    start = counted if own_cluster.kind == "kube" else Counter[tuple[str, str, str]]()
    wait_until_quiet(own_cluster, count_writes)
    time.sleep(QUIET_SECONDS)
    assert count_writes(own_cluster) - start == Counter()
    assert resource_versions(own_cluster) == before
    gateways.create_route(foo, "new", f"new.{APEX}", to=foo, port=443)
    gateways.wait_until("the new route is served", lambda: f"new.{APEX}" in gateways.listener_hostnames(foo))
    gateways.wait_until("its listener is in the status", lambda: _has_listener_status(gateways, foo, f"new.{APEX}"))
    wait_until_quiet(own_cluster, count_writes)
    # the route of the test, the Gateway, the Certificate, and the status of the TenantGateway
    expected = {"httproutes": 1, "gateways": 1, "certificates": 1, "tenantgateways": 1}
    by_resource = Counter[str]()
    for (_, resource, code), count in (count_writes(own_cluster) - start).items():
        assert code.startswith("2")
        by_resource[resource] += count
    assert by_resource == expected


def _has_listener_status(gateways: Gateways, namespace: str, hostname: str) -> bool:
    listeners = gateways.get("tenantgateways", namespace)["status"]["listeners"]
    return hostname in [each.get("hostname") for each in listeners]


@pytest.mark.timeout(600)
def test_missing_kinds_are_reported_and_used_once_installed(own_kube: KubeCluster) -> None:
    """The Tenant API and the rest of the controller work meanwhile."""
    gateways = Gateways(own_kube)
    own_kube.server.stop()
    gateway_api, cert_manager = (_remove_crds(own_kube, group) for group in (GATEWAY_API, CERT_MANAGER))
    own_kube.restart()
    foo = gateways.create_owner()
    gateways.create_tenantgateway(foo, APEX)
    message = "no CustomResourceDefinition of Gateway (gateways.gateway.networking.k8s.io)"
    gateways.wait_until("the missing Gateway kind is reported", lambda: message in _ready_message(gateways, foo))
    _install_crds(own_kube, gateway_api)
    gateways.wait_until("the Gateway exists", partial(_has_gateway, gateways, foo), seconds=2 * PATIENCE)
    message = "no CustomResourceDefinition of Certificate (certificates.cert-manager.io)"
    gateways.wait_until("the missing Certificate kind is reported", lambda: message in _ready_message(gateways, foo))
    _install_crds(own_kube, cert_manager)
    gateways.wait_until(
        "the error is resolved", lambda: gateways.ready_reason(foo) == "GatewayNotAccepted", seconds=2 * PATIENCE
    )
    assert gateways.names("issuers", foo) == ["cozystack-gateway"]


def _remove_crds(cluster: KubeCluster, group_version: str) -> Sequence[Object]:
    """Deletes the CRDs of an API group and returns them."""
    items: list[Object] = cluster.client().get(_CRDS).expect(200)["items"]
    found = [each for each in items if each["spec"]["group"] == group_version.partition("/")[0]]
    cluster.kubectl("delete", "crd", *(each["metadata"]["name"] for each in found))
    return found


def _install_crds(cluster: KubeCluster, crds: Sequence[Object]) -> None:
    for each in crds:
        # the annotations contain the approval that a group of Kubernetes needs
        metadata = {key: each["metadata"][key] for key in ("name", "annotations") if key in each["metadata"]}
        cluster.client().request("POST", _CRDS, {"metadata": metadata, "spec": each["spec"]}).expect(201)


def _ready_message(gateways: Gateways, namespace: str) -> str:
    message: str = gateways.conditions(namespace).get("Ready", {}).get("message", "")
    return message


def _has_gateway(gateways: Gateways, namespace: str) -> bool:
    return not gateways.is_gone("gateways", namespace)
