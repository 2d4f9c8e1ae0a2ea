"""The Helm chart on a real kube-apiserver: what an install, an upgrade and an uninstall of a real Helm write and leave.

No Pod runs there, so each release is installed without waiting for it.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.e2e.support.clusters.cluster import KUBECTL
from tests.e2e.support.clusters.control_plane import ControlPlane
from tests.e2e.support.clusters.processes import REPOSITORY, wait_until
from tests.e2e.support.helm import helm, run_helm_alone
from tests.e2e.support.http.https_client import Client
from tests.server_fixtures import control_plane_with_crds

CHART = REPOSITORY / "manifests" / "chart"
MERGE = "application/merge-patch+json"
CRD = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/tenantgateways.gateway.cozystack.io"
DEPLOYMENT = "/apis/apps/v1/namespaces/cozy-system/deployments/tenant-apiserver"
API_SERVICES = "/apis/apiregistration.k8s.io/v1/apiservices"
API_SERVICE = f"{API_SERVICES}/v1alpha1.apps.cozystack.io"
GATEWAYS = "/apis/gateway.cozystack.io/v1alpha1/namespaces/cozy-system/tenantgateways"
KEPT = ("/api/v1/namespaces/cozy-system", CRD, "/apis/rbac.authorization.k8s.io/v1/clusterroles/cozy:tenant:admin")
OTHER_DEPLOYMENTS = (
    "/apis/apps/v1/namespaces/cozy-system/deployments/tenant-apiserver-shadow",
    "/apis/apps/v1/namespaces/tenant-apiserver-proxy/deployments/tenant-apiserver-proxy",
)
LIVE = f"--values={CHART / 'values-live.yaml'}"
CA = "LS0tLS1CRUdJTg=="


class ChartCluster:
    """A control plane without a server of ours."""

    def __init__(self, directory: Path, control_plane: ControlPlane) -> None:
        self.client = Client(control_plane.url, control_plane.admin.tls, control_plane.admin.headers)
        self._directory = directory
        self._kubeconfig = control_plane.admin.kubeconfig

    def kubectl(self, *arguments: str) -> None:
        command = [str(KUBECTL), f"--kubeconfig={self._kubeconfig}", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=180)
        assert done.returncode == 0, done.stderr

    def helm(self, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
        flags = (f"--kubeconfig={self._kubeconfig}", "--namespace=cozy-system")
        return run_helm_alone(self._directory, *arguments, *flags)

    def helm_succeeds(self, *arguments: str | Path) -> str:
        done = self.helm(*arguments)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def serves(self, path: str) -> bool:
        return self.client.get(path).status == 200


@pytest.fixture
def cluster(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ChartCluster]:
    helm()
    running = control_plane_with_crds(tmp_path, tmp_path_factory)
    try:
        yield ChartCluster(tmp_path, running)
    finally:
        running.stop()


def former_chart(folder: Path) -> Path:
    """The chart of a version whose CustomResourceDefinition has no passthrough services, and no printed column."""
    chart = folder / "former"
    shutil.copytree(CHART, chart)
    file = chart / "templates" / "crd.yaml"
    head, _, text = file.read_text().partition("---\n")
    body, end = text.removesuffix("{{- end }}\n"), "{{- end }}\n"
    crd = yaml.load(body, Loader=yaml.CSafeLoader)
    [version] = crd["spec"]["versions"]
    del version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["tlsPassthroughServices"]
    version["additionalPrinterColumns"] = version["additionalPrinterColumns"][:1]
    file.write_text(f"{head}---\n{yaml.safe_dump(crd)}{end}")
    return chart


def gateway(*services: str) -> dict[str, Any]:
    return {
        "apiVersion": "gateway.cozystack.io/v1alpha1",
        "kind": "TenantGateway",
        "metadata": {"name": "kept", "namespace": "cozy-system"},
        "spec": {"apex": "example.org", "tlsPassthroughServices": list(services)},
    }


def test_a_release_is_installed_upgraded_and_removed_and_leaves_what_others_use(
    cluster: ChartCluster, tmp_path: Path
) -> None:
    client = cluster.client
    for mode in ("none", "register", "cert-manager"):
        cluster.helm_succeeds(
            "install", "tenant-apiserver", CHART, "--create-namespace", "--dry-run=server", f"--set=registration={mode}"
        )
        assert not cluster.serves(DEPLOYMENT), f"a dry run has written something with registration={mode}"
    former = former_chart(tmp_path)
    notes = cluster.helm_succeeds("install", "tenant-apiserver", former, "--create-namespace", "--set=replicas=1")
    assert "No request reaches it" in notes
    assert client.get(DEPLOYMENT).expect(200)["spec"]["replicas"] == 1
    assert not cluster.serves(API_SERVICE)
    wait_until("TenantGateways are served", lambda: cluster.serves(GATEWAYS))
    created = client.request("POST", GATEWAYS, gateway("kubernetes")).expect(201)
    assert "tlsPassthroughServices" not in created["spec"], "the former definition does not know them"

    upgraded = cluster.helm_succeeds("upgrade", "tenant-apiserver", CHART, "--set=registration=register")
    assert "kubectl get tenants -A" in upgraded
    assert client.get(DEPLOYMENT).expect(200)["spec"]["replicas"] == 2
    [version] = client.get(CRD).expect(200)["spec"]["versions"]
    assert len(version["additionalPrinterColumns"]) > 1, "the upgrade changes the CustomResourceDefinition"

    def keeps_new_field() -> bool:
        changed = {"spec": {"tlsPassthroughServices": ["kubernetes"]}}
        path = f"{GATEWAYS}/kept"
        return (
            "tlsPassthroughServices" in client.request("PATCH", path, changed, content_type=MERGE).expect(200)["spec"]
        )

    wait_until("the new definition is in effect", keeps_new_field)

    # the server writes its CA, which the next upgrade leaves
    client.request("PATCH", API_SERVICE, {"spec": {"caBundle": CA}}, content_type=MERGE).expect(200)
    cluster.helm_succeeds("upgrade", "tenant-apiserver", CHART, "--reuse-values", "--set=replicas=3")
    assert client.get(API_SERVICE).expect(200)["spec"]["caBundle"] == CA
    assert client.get(DEPLOYMENT).expect(200)["spec"]["replicas"] == 3
    cluster.helm_succeeds("rollback", "tenant-apiserver", "2")
    assert client.get(DEPLOYMENT).expect(200)["spec"]["replicas"] == 2

    # no release without its server may keep the groups in discovery
    cluster.helm_succeeds("upgrade", "tenant-apiserver", CHART, "--reuse-values", "--set=registration=none")
    assert not cluster.serves(API_SERVICE)
    cluster.helm_succeeds("rollback", "tenant-apiserver", "2")
    assert cluster.serves(API_SERVICE)

    cluster.helm_succeeds("uninstall", "tenant-apiserver")
    assert not cluster.serves(API_SERVICE)
    wait_until("the Deployment is gone", lambda: not cluster.serves(DEPLOYMENT))
    assert [path for path in KEPT if not cluster.serves(path)] == []
    assert client.get(f"{GATEWAYS}/kept").expect(200)["spec"]["tlsPassthroughServices"] == ["kubernetes"]
    # The objects that stayed have the marks of this release, which can be installed again. helm/helm#31510: with
    # server-side apply, Helm 4.0 takes over nothing.
    cluster.helm_succeeds("install", "tenant-apiserver", CHART, "--server-side=false")


def test_a_release_takes_nothing_that_another_server_has(cluster: ChartCluster) -> None:
    client = cluster.client
    peers = {
        "apiVersion": "apiregistration.k8s.io/v1",
        "kind": "APIService",
        "metadata": {"name": "v1alpha1.apps.cozystack.io"},
        "spec": {
            "group": "apps.cozystack.io",
            "version": "v1alpha1",
            "groupPriorityMinimum": 1000,
            "versionPriority": 15,
            "service": {"namespace": "cozy-system", "name": "cozystack-api"},
        },
    }
    before = client.request("POST", API_SERVICES, peers).expect(201)["spec"]
    refused = cluster.helm("install", "tenant-apiserver", CHART, "--create-namespace", "--set=registration=register")
    assert refused.returncode != 0
    assert 'APIService "v1alpha1.apps.cozystack.io"' in refused.stderr
    assert "cannot be imported into the current release" in refused.stderr
    assert client.get(API_SERVICE).expect(200)["spec"] == before
    assert not cluster.serves(DEPLOYMENT)
    # beside it, the values of a live Cozystack touch none of its objects
    notes = cluster.helm_succeeds("install", "tenant-apiserver", CHART, "--create-namespace", LIVE)
    assert "tenant-apiserver preflight --for=replace" in notes
    assert "registration=register" not in notes
    assert client.get(API_SERVICE).expect(200)["spec"] == before
    [container] = client.get(DEPLOYMENT).expect(200)["spec"]["template"]["spec"]["containers"]
    assert "--controllers=none" in container["args"]


_DEFAULTS = (
    *("registration=register", "prerequisites.crd=true", "policies.hostnames=true", "policies.ingresses=false"),
    *("policies.deletionGuard=false", "tenantRoles=true", "tenantsVisible=true", "tenantLists=false"),
    *("tenantRoutes=false", "tenantsecrets=false", "networkPolicy=false", "replicas=2", "controllers=*"),
    *("shadow=false", "proxy.enabled=false", "proxy.clusterKinds=false"),
)
_TOGGLED = (
    *("registration=none", "prerequisites.crd=false", "policies.hostnames=false", "policies.ingresses=true"),
    *("policies.deletionGuard=true", "tenantRoles=false", "tenantsVisible=false", "tenantLists=true"),
    *("tenantRoutes=true", "tenantsecrets=true", "networkPolicy=true", "replicas=0", "controllers=none"),
    *("shadow=true", "proxy.enabled=true", "proxy.clusterKinds=true"),
)


def test_an_upgrade_can_toggle_every_value_and_toggle_it_back(cluster: ChartCluster) -> None:
    def upgrade(values: tuple[str, ...], *flags: str) -> None:
        cluster.helm_succeeds("upgrade", "tenant-apiserver", CHART, *(f"--set={each}" for each in values), *flags)

    cluster.helm_succeeds("install", "tenant-apiserver", CHART, "--create-namespace")
    upgrade(_TOGGLED)
    assert [path for path in (*KEPT, *OTHER_DEPLOYMENTS) if not cluster.serves(path)] == []
    assert not cluster.serves(API_SERVICE)
    upgrade(_DEFAULTS)
    assert cluster.serves(API_SERVICE)
    assert cluster.client.get(DEPLOYMENT).expect(200)["spec"]["replicas"] == 2
