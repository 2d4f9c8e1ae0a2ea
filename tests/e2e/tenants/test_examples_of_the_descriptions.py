"""The examples of the descriptions of Gateways (seed 000) and of tenants (seed 001), with their names, documents and
commands, on clusters that have nothing else."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import pytest

from tests.e2e.support.clusters.cluster import ROOT, E2eCluster
from tests.e2e.support.clusters.control_plane import Binaries
from tests.e2e.support.gateways import HOST_LABEL, Gateways
from tests.e2e.support.namespace_content import NamespaceContent
from tests.e2e.support.platform_package import serve_packages
from tests.e2e.support.tenants import Tenants, manifest

PLATFORM = """
apiVersion: cozystack.io/v1alpha1
kind: Package
metadata:
  name: cozystack.cozystack-platform
spec:
  variant: isp-full
  components:
    platform:
      values:
        publishing:
          host: example.org
        gateway:
          enabled: true
          attachedNamespaces:
            - cozy-cert-manager
            - cozy-dashboard
            - cozy-keycloak
            - cozy-system
            - cozy-harbor
            - cozy-bucket
            - cozy-kubevirt
            - cozy-kubevirt-cdi
            - cozy-monitoring
            - cozy-linstor-gui
            - default
"""
TENANTS = """
# Tenant 'alice' under tenant-root: apex is derived as alice.<parent apex>,
# inherits the parent's Gateway. No separate LB IP, no separate Issuer.
apiVersion: apps.cozystack.io/v1alpha1
kind: Tenant
metadata:
  name: alice
  namespace: tenant-root
spec: {}
---
# Tenant 'acme' with a fully independent apex: must opt in to own a
# Gateway, because the parent's cert/Issuer can't cover customer1.example.
apiVersion: apps.cozystack.io/v1alpha1
kind: Tenant
metadata:
  name: acme
  namespace: tenant-root
spec:
  host: customer1.example
  gateway: true
---
# Tenant 'bob' under tenant-root: derived apex, but wants its own
# LB IP and ACME account (DNS pinned to a specific address).
apiVersion: apps.cozystack.io/v1alpha1
kind: Tenant
metadata:
  name: bob
  namespace: tenant-root
spec:
  gateway: true
"""
QUOTA = """
apiVersion: apps.cozystack.io/v1alpha1
kind: Tenant
metadata:
  name: carol
  namespace: tenant-root
spec:
  gateway: true
  resourceQuotas:
    count/certificates.cert-manager.io: "10"
"""
"""The description leaves out the metadata."""
HOSTS = {
    ROOT: "example.org",
    "tenant-alice": "alice.example.org",
    "tenant-acme": "customer1.example",
    "tenant-bob": "bob.example.org",
}


class Examples:
    """The cluster, as the operator of the descriptions uses it."""

    def __init__(self, cluster: E2eCluster) -> None:
        self.cluster = cluster
        self.tenants = Tenants(cluster)
        self.content = NamespaceContent(cluster, self.tenants)
        self.gateways = Gateways(cluster)

    def apply(self, text: str) -> None:
        self.cluster.kubectl("apply", "--filename=-", input=text)

    def create(self, name: str, namespace: str, **spec: object) -> str:
        """Applies a Tenant, and returns its Namespace once that exists."""
        self.apply(json.dumps(manifest(name, namespace, spec=spec)))
        workload: str = self.tenants.get(name, namespace)["status"]["namespace"]
        self.tenants.wait_for_namespace(workload)
        return workload

    def has_gateway_label(self, namespace: str, owner: str) -> bool:
        return self.content.gateway_label(namespace) == owner

    def service(self, namespace: str, key: str) -> object:
        """The namespace whose service a tenant's charts use."""
        return self.content.values(namespace)["_namespace"].get(key)


@pytest.fixture
def platform(own_cluster: E2eCluster, control_plane_files: tuple[Binaries, Path]) -> Examples:
    serve_packages(own_cluster, control_plane_files[1])
    return Examples(own_cluster)


@pytest.mark.timeout(900)
def test_the_examples_about_gateways(platform: Examples) -> None:
    """Seed 000: the Package, the tenants alice, acme and bob, the label of each, and the quota of certificates."""
    content, gateways = platform.content, platform.gateways
    platform.apply(PLATFORM)
    platform.cluster.kubectl("patch", "tenant", "root", "-n", ROOT, "--type=merge", "-p", '{"spec":{"gateway":true}}')
    platform.apply(TENANTS)
    owners = {ROOT: ROOT, "tenant-alice": ROOT, "tenant-acme": "tenant-acme", "tenant-bob": "tenant-bob"}
    for namespace, owner in owners.items():
        platform.tenants.wait_for_namespace(namespace)
        content.wait_until(
            f"{namespace} uses the Gateway of {owner}", partial(platform.has_gateway_label, namespace, owner)
        )
        assert content.labels(namespace)[HOST_LABEL] == HOSTS[namespace]
    content.wait_until("the list attaches default", partial(platform.has_gateway_label, "default", ROOT))
    for namespace in (ROOT, "tenant-acme", "tenant-bob"):
        content.wait_until(f"{namespace} has an Issuer", partial(gateways.names, "issuers", namespace))
        assert gateways.names("issuers", namespace) == ["cozystack-gateway"]
        assert gateways.get("tenantgateways", namespace)["spec"]["apex"] == HOSTS[namespace]
    assert gateways.get("tenantgateways", ROOT)["spec"]["attachedNamespaces"][-2:] == ["cozy-linstor-gui", "default"]
    assert gateways.names("gateways", "tenant-alice") == gateways.names("issuers", "tenant-alice") == []

    platform.apply(QUOTA)
    platform.tenants.wait_for_namespace("tenant-carol")
    quota = "/api/v1/namespaces/tenant-carol/resourcequotas/tenant-quota"
    content.wait_until("carol has a quota", partial(content.exists, quota))
    hard = content.client.get(quota).expect(200)["spec"]["hard"]
    assert hard == {"count/certificates.cert-manager.io": "10"}


@pytest.mark.timeout(900)
def test_the_examples_about_the_tree(own_cluster: E2eCluster) -> None:
    """Seed 001: foo and bar share services, domains, a flag that is turned on in the values of a HelmRelease, and the
    namespaces of nested tenants, which kubectl lists."""
    examples, kubectl = Examples(own_cluster), own_cluster.kubectl
    content = examples.content
    foo = examples.create("foo", ROOT, etcd=True, monitoring=True)
    bar = examples.create("bar", foo, etcd=True)
    assert (foo, bar) == ("tenant-foo", "tenant-foo-bar")
    for key, owner in {"etcd": bar, "monitoring": foo, "ingress": ROOT}.items():
        content.wait_until(f"bar uses the {key} of {owner}", partial(_uses, examples, bar, key, owner))
    content.wait_until("foo has its domain", lambda: content.labels(foo).get(HOST_LABEL) == "foo.example.org")
    kubectl("patch", "tenant", "foo", "-n", ROOT, "--type=merge", "-p", '{"spec":{"host":"example.com"}}')
    content.wait_until("foo has another domain", lambda: content.labels(foo)[HOST_LABEL] == "example.com")
    values = '{"spec":{"values":{"seaweedfs":true}}}'
    kubectl("patch", "helmrelease", "tenant-foo", "-n", ROOT, "--type=merge", "-p", values)
    content.wait_until("foo runs its own SeaweedFS", partial(_uses, examples, foo, "seaweedfs", foo))
    refused = kubectl("create", "-f", "-", input=json.dumps(manifest("foo-bar")), status=None)
    assert refused.returncode != 0
    assert "dashes are not allowed" in refused.stderr

    alpha = examples.create("alpha", ROOT)
    beta = examples.create("beta", alpha)
    gamma = examples.create("gamma", beta)
    assert (alpha, beta, gamma) == ("tenant-alpha", "tenant-alpha-beta", "tenant-alpha-beta-gamma")
    for parent, child in ((alpha, "beta"), (beta, "gamma")):
        assert kubectl("get", "tenants", "--namespace", parent, "-o", "name").stdout == (
            f"tenant.apps.cozystack.io/{child}\n"
        )
    assert "tenants" in kubectl("api-resources", "--api-group", "apps.cozystack.io", "-o", "name").stdout


def _uses(examples: Examples, namespace: str, key: str, owner: str) -> bool:
    return examples.service(namespace, key) == owner
