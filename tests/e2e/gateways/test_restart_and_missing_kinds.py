"""Hosts of the tests' own: what a restart writes, and a host on which the kinds are missing at first."""

from __future__ import annotations

import time
from collections import Counter
from functools import partial

import pytest

from tests.e2e.support.api_request_counts import QUIET_SECONDS, requests, wait_until_quiet
from tests.e2e.support.clusters import PATIENCE, E2eCluster, KubeCluster
from tests.e2e.support.gateways import COLLECTIONS, DNS01, HOST_LABEL, LABEL, Gateways

APEX = "foo.example.com"
_READS = ("GET", "LIST", "WATCH", "CONNECT")


def writes(cluster: E2eCluster) -> Counter[tuple[str, str, str]]:
    """Requests that would write, whatever became of them: (verb, resource, code)."""
    asked = requests(cluster, {*COLLECTIONS, "namespaces"})
    return Counter({each: count for each, count in asked.items() if each[0] not in _READS})


def versions(cluster: E2eCluster) -> dict[str, str]:
    """resourceVersions of all objects of the kinds that the controller writes."""
    client = cluster.session()
    found = {}
    for plural, (group, _) in COLLECTIONS.items():
        for each in client.get(f"/apis/{group}/{plural}").expect(200)["items"]:
            metadata = each["metadata"]
            found[f"{plural} {metadata['namespace']}/{metadata['name']}"] = metadata["resourceVersion"]
    return found


def test_a_second_pass_writes_nothing(own_cluster: E2eCluster) -> None:
    """R-102, R-190, R-197, GW-20: every kind, every mode, with losers, what is left out, and attached namespaces."""
    gateways = Gateways(own_cluster)
    foo, bar, bought = (gateways.namespace(name) for name in ("m-foo", "m-bar", "m-bought"))
    harbor = gateways.namespace("cozy-harbor")
    gateways.namespace("kid", labels={LABEL: bar, HOST_LABEL: f"kid.{APEX}"})
    gateways.ask(foo, APEX, attachedNamespaces=[harbor, "missing"], tlsPassthroughServices=["api"])
    gateways.ask(bar, APEX, **DNS01)
    gateways.ask(bought, APEX, certMode="existingSecret", wildcardSecretRef={"name": "bought"})
    gateways.route(harbor, "harbor", f"harbor.{APEX}", to=foo)
    gateways.route(foo, "loser", f"harbor.{APEX}", f"*.{APEX}", "x.elsewhere.example", to=foo, port=443)
    gateways.route(foo, "api", f"api.{APEX}", to=foo, plural="tlsroutes", sectionName="tls-api")
    gateways.until("the loser is told", lambda: gateways.lost(foo, "loser"))
    gateways.until("and attached", lambda: gateways.mark(harbor) == (foo, foo))
    gateways.until("the child", lambda: f"*.kid.{APEX}" in gateways.listeners(bar))
    gateways.be_cilium(foo)
    gateways.be_cert_manager(foo)
    wait_until_quiet(own_cluster, writes)
    before, counted = versions(own_cluster), writes(own_cluster)
    own_cluster.restart()
    # an embedded host counts from the start of its process
    start = counted if own_cluster.kind == "kube" else Counter[tuple[str, str, str]]()
    wait_until_quiet(own_cluster, writes)
    time.sleep(QUIET_SECONDS)
    assert writes(own_cluster) - start == Counter()
    assert versions(own_cluster) == before
    gateways.route(foo, "new", f"new.{APEX}", to=foo, port=443)
    gateways.until("it works", lambda: f"new.{APEX}" in gateways.listeners(foo))
    wait_until_quiet(own_cluster, writes)
    # the test's route; the Gateway, the Certificate, and what the status says of them
    expected = {"httproutes": 1, "gateways": 1, "certificates": 1, "tenantgateways": 1}
    done = Counter[str]()
    for (_, resource, code), count in (writes(own_cluster) - start).items():
        assert code.startswith("2")
        done[resource] += count
    assert done == expected


@pytest.mark.timeout(600)
def test_kinds_that_are_missing_are_named_and_picked_up_when_they_come(own_kube: KubeCluster) -> None:
    """The Tenant API and the rest work meanwhile."""
    gateways, crds = Gateways(own_kube), own_kube.crds
    own_kube.server.stop()
    for folder in ("gateway-api", "cert-manager"):
        own_kube.kubectl("delete", f"--filename={crds / folder}")
    own_kube.restart()
    foo = gateways.namespace("m-foo")
    gateways.ask(foo, APEX)
    message = "no CustomResourceDefinition of Gateway (gateways.gateway.networking.k8s.io)"
    gateways.until("what is missing", lambda: message in _message(gateways, foo))
    own_kube.kubectl("apply", "--server-side", f"--filename={crds / 'gateway-api'}")
    gateways.until("the Gateway", partial(_served, gateways, foo), seconds=2 * PATIENCE)
    message = "no CustomResourceDefinition of Certificate (certificates.cert-manager.io)"
    gateways.until("what else is missing", lambda: message in _message(gateways, foo))
    own_kube.kubectl("apply", "--server-side", f"--filename={crds / 'cert-manager'}")
    gateways.until("no fault", lambda: gateways.reason(foo) == "GatewayNotAccepted", seconds=2 * PATIENCE)
    assert gateways.names("issuers", foo) == ["cozystack-gateway"]


def _message(gateways: Gateways, namespace: str) -> str:
    message: str = gateways.conditions(namespace).get("Ready", {}).get("message", "")
    return message


def _served(gateways: Gateways, namespace: str) -> bool:
    return not gateways.gone("gateways", namespace)
