"""Hosts of the tests' own: what a restart writes, and a host on which the kinds are missing at first."""

from __future__ import annotations

import time
from collections import Counter
from functools import partial

import pytest

from tests.e2e.support.api_request_counts import QUIET_SECONDS, count_requests, wait_until_quiet
from tests.e2e.support.clusters import PATIENCE, E2eCluster, KubeCluster
from tests.e2e.support.gateways import COLLECTIONS, DNS01, HOST_LABEL, LABEL, Gateways

APEX = "foo.example.com"
_READS = ("GET", "LIST", "WATCH", "CONNECT")


def count_writes(cluster: E2eCluster) -> Counter[tuple[str, str, str]]:
    """Requests that would write, whatever became of them: (verb, resource, code)."""
    asked = count_requests(cluster, {*COLLECTIONS, "namespaces"})
    return Counter({each: count for each, count in asked.items() if each[0] not in _READS})


def resource_versions(cluster: E2eCluster) -> dict[str, str]:
    """resourceVersions of all objects of the kinds that the controller writes."""
    client = cluster.client()
    found = {}
    for plural, (group, _) in COLLECTIONS.items():
        for each in client.get(f"/apis/{group}/{plural}").expect(200)["items"]:
            metadata = each["metadata"]
            found[f"{plural} {metadata['namespace']}/{metadata['name']}"] = metadata["resourceVersion"]
    return found


def test_a_restart_writes_nothing(own_cluster: E2eCluster) -> None:
    """R-102, R-190, R-197, GW-20: every kind, every mode, with losers, what is left out, and attached namespaces."""
    gateways = Gateways(own_cluster)
    foo, bar, bought = (gateways.create_namespace(name) for name in ("m-foo", "m-bar", "m-bought"))
    harbor = gateways.create_namespace("cozy-harbor")
    gateways.create_namespace("kid", labels={LABEL: bar, HOST_LABEL: f"kid.{APEX}"})
    gateways.create_tenantgateway(foo, APEX, attachedNamespaces=[harbor, "missing"], tlsPassthroughServices=["api"])
    gateways.create_tenantgateway(bar, APEX, **DNS01)
    gateways.create_tenantgateway(bought, APEX, certMode="existingSecret", wildcardSecretRef={"name": "bought"})
    gateways.create_route(harbor, "harbor", f"harbor.{APEX}", to=foo)
    gateways.create_route(foo, "loser", f"harbor.{APEX}", f"*.{APEX}", "x.elsewhere.example", to=foo, port=443)
    gateways.create_route(foo, "api", f"api.{APEX}", to=foo, plural="tlsroutes", sectionName="tls-api")
    gateways.wait_until("the loser is told", lambda: gateways.conflict_message(foo, "loser"))
    gateways.wait_until("and attached", lambda: gateways.attachment(harbor) == (foo, foo))
    gateways.wait_until("the child", lambda: f"*.kid.{APEX}" in gateways.listener_hostnames(bar))
    gateways.mark_gateway_programmed(foo)
    gateways.mark_certificates_ready(foo)
    wait_until_quiet(own_cluster, count_writes)
    before, counted = resource_versions(own_cluster), count_writes(own_cluster)
    own_cluster.restart()
    # an embedded host counts from the start of its process
    start = counted if own_cluster.kind == "kube" else Counter[tuple[str, str, str]]()
    wait_until_quiet(own_cluster, count_writes)
    time.sleep(QUIET_SECONDS)
    assert count_writes(own_cluster) - start == Counter()
    assert resource_versions(own_cluster) == before
    gateways.create_route(foo, "new", f"new.{APEX}", to=foo, port=443)
    gateways.wait_until("it works", lambda: f"new.{APEX}" in gateways.listener_hostnames(foo))
    wait_until_quiet(own_cluster, count_writes)
    # the test's route; the Gateway, the Certificate, and what the status says of them
    expected = {"httproutes": 1, "gateways": 1, "certificates": 1, "tenantgateways": 1}
    done = Counter[str]()
    for (_, resource, code), count in (count_writes(own_cluster) - start).items():
        assert code.startswith("2")
        done[resource] += count
    assert done == expected


@pytest.mark.timeout(600)
def test_missing_kinds_are_reported_and_used_once_installed(own_kube: KubeCluster) -> None:
    """The Tenant API and the rest work meanwhile."""
    gateways, crds = Gateways(own_kube), own_kube.crds
    own_kube.server.stop()
    for folder in ("gateway-api", "cert-manager"):
        own_kube.kubectl("delete", f"--filename={crds / folder}")
    own_kube.restart()
    foo = gateways.create_namespace("m-foo")
    gateways.create_tenantgateway(foo, APEX)
    message = "no CustomResourceDefinition of Gateway (gateways.gateway.networking.k8s.io)"
    gateways.wait_until("what is missing", lambda: message in _message(gateways, foo))
    own_kube.kubectl("apply", "--server-side", f"--filename={crds / 'gateway-api'}")
    gateways.wait_until("the Gateway", partial(_served, gateways, foo), seconds=2 * PATIENCE)
    message = "no CustomResourceDefinition of Certificate (certificates.cert-manager.io)"
    gateways.wait_until("what else is missing", lambda: message in _message(gateways, foo))
    own_kube.kubectl("apply", "--server-side", f"--filename={crds / 'cert-manager'}")
    gateways.wait_until("no fault", lambda: gateways.ready_reason(foo) == "GatewayNotAccepted", seconds=2 * PATIENCE)
    assert gateways.names("issuers", foo) == ["cozystack-gateway"]


def _message(gateways: Gateways, namespace: str) -> str:
    message: str = gateways.conditions(namespace).get("Ready", {}).get("message", "")
    return message


def _served(gateways: Gateways, namespace: str) -> bool:
    return not gateways.is_gone("gateways", namespace)
