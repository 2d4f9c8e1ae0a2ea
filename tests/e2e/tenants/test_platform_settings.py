"""--config: valid changes take effect without a restart, and invalid ones are ignored (R-092, R-287)."""

from __future__ import annotations

import base64
import ssl
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.e2e.support.clusters.cluster import PATIENCE, ROOT, E2eCluster
from tests.e2e.support.clusters.processes import run_command, wait_until
from tests.e2e.support.http.https_client import Client
from tests.e2e.support.tenants import Tenants

SETTINGS = "platform.yaml"
GATEWAYS = "/apis/gateway.cozystack.io/v1alpha1/namespaces/{}/tenantgateways/cozystack"


def write_settings(path: Path, text: str) -> None:
    """Replaces the file atomically, as the kubelet does with a mounted ConfigMap."""
    fresh = path.with_suffix(".new")
    fresh.write_text(text)
    fresh.rename(path)


def host_label(cluster: E2eCluster, namespace: str) -> str | None:
    found = cluster.client().get(f"/api/v1/namespaces/{namespace}").expect(200)
    labels: dict[str, str] = found["metadata"].get("labels") or {}
    return labels.get("namespace.cozystack.io/host")


def has_settings(cluster: E2eCluster, namespace: str, host: str, class_name: str) -> bool:
    """True if the host and the Gateway class have reached the Namespace and the TenantGateway of a tenant."""
    spec: dict[str, Any] = cluster.client().get(GATEWAYS.format(namespace)).json().get("spec") or {}
    return (host_label(cluster, namespace), spec.get("apex"), spec.get("gatewayClassName")) == (host, host, class_name)


def cluster_values(cluster: E2eCluster, namespace: str) -> dict[str, str]:
    answer = cluster.client().get(f"/api/v1/namespaces/{namespace}/secrets/cozystack-values")
    if answer.status != 200:
        return {}
    values: dict[str, Any] = yaml.load(base64.b64decode(answer.json()["data"]["values.yaml"]), Loader=yaml.CSafeLoader)
    found: dict[str, str] = values["_cluster"]
    return found


def max_history(cluster: E2eCluster, tenant: str) -> int:
    found = cluster.client().get(f"/apis/helm.toolkit.fluxcd.io/v2/namespaces/{ROOT}/helmreleases/tenant-{tenant}")
    number: int = found.expect(200)["spec"]["maxHistory"]
    return number


def readyz(cluster: E2eCluster) -> str:
    client = cluster.direct_client()
    answer = client.get("/readyz?verbose")
    assert answer.status == 200, answer.content
    return answer.content.decode()


def anonymous_readyz(cluster: E2eCluster) -> str:
    answer = Client(cluster.direct_url, ssl._create_unverified_context(), {}).get("/readyz?verbose")
    assert answer.status == 200, answer.content
    return answer.content.decode()


@pytest.fixture
def own_flags(tmp_path: Path) -> list[str]:
    path = tmp_path / SETTINGS
    write_settings(path, "publishing: {host: one.example}\ngateway: {gatewayClassName: first}\n")
    return [f"--config={path}"]


def test_a_changed_settings_file_takes_effect_and_an_invalid_one_does_not(
    own_cluster: E2eCluster, tmp_path: Path
) -> None:
    """The change reaches labels, TenantGateways, chart values and the status (R-057, R-089, R-092)."""
    path = tmp_path / SETTINGS
    process, tenants = own_cluster.server.pid, Tenants(own_cluster)
    workload = tenants.create_with_namespace(spec={"gateway": True})
    name = workload.removeprefix("tenant-")
    has = partial(has_settings, own_cluster, workload)

    wait_until("the settings take effect", lambda: has(f"{name}.one.example", "first"), seconds=PATIENCE)
    assert "[+]config ok\n" in readyz(own_cluster)

    write_settings(
        path, "publishing: {host: two.example}\ngateway: {gatewayClassName: second}\nrelease: {maxHistory: 2}\n"
    )
    wait_until("the changed settings take effect", lambda: has(f"{name}.two.example", "second"), seconds=PATIENCE)
    wait_until(
        "the chart values have the changed host",
        lambda: cluster_values(own_cluster, ROOT).get("root-host") == "two.example",
        seconds=PATIENCE,
    )
    wait_until(
        "the status has the changed host",
        lambda: tenants.get(name)["status"]["host"]["value"] == f"{name}.two.example",
        seconds=PATIENCE,
    )
    later = tenants.create_with_namespace().removeprefix("tenant-")
    # the settings under `release` apply to new tenants only
    assert (max_history(own_cluster, name), max_history(own_cluster, later)) == (5, 2)

    write_settings(path, "publishing: {host: three.example, certificates: {issuerName: mine}}\n")
    error = "the file is invalid, the previous settings stay in force: publishing.certificates.issuerName:"
    wait_until("the error is shown", lambda: f"{error} 'mine' is not known" in readyz(own_cluster), seconds=PATIENCE)
    assert "[+]config ok\n" in anonymous_readyz(own_cluster), "the error is shown to anonymous users"
    warning = "the changed file is invalid, keeping the previous settings"
    wait_until("the error is logged", lambda: warning in own_cluster.server.log())
    assert has(f"{name}.two.example", "second")

    write_settings(path, "publishing: {host: three.example}\ngateway: {gatewayClassName: second}\n")
    wait_until("the corrected settings take effect", lambda: has(f"{name}.three.example", "second"), seconds=PATIENCE)
    assert "[+]config ok\n" in readyz(own_cluster)
    assert own_cluster.server.pid == process, "the server was restarted"


def test_an_invalid_settings_file_prevents_the_start(tmp_path: Path) -> None:
    """The error is one line that names the key, and nothing is written (R-162)."""
    path = tmp_path / "platform.yaml"
    write_settings(path, "publishing: {certificates: {solver: dns01, dns01: {provider: route53}}}")
    process = run_command(
        "standalone", f"--data-dir={tmp_path / 'data'}", f"--config={path}", log=tmp_path / "standalone.log"
    )
    assert process.wait(seconds=PATIENCE) == 2
    assert process.log() == (
        f"tenant-apiserver standalone: --config: {path}: publishing.certificates.dns01.route53.region: "
        "must be set for the provider route53\n"
    )
    assert not (tmp_path / "data").exists()
