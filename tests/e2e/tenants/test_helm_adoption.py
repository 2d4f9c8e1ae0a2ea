"""A chart with an object that we have written: a real Helm 4 refuses it, or takes it over if told to."""

from __future__ import annotations

from pathlib import Path

from tests.e2e.support.clusters.cluster import E2eCluster
from tests.e2e.support.helm import run_helm, write_chart
from tests.e2e.support.tenants import Object, Tenants

RELEASE, POLICY, ETCD_POLICY = "mine", "tenant-isolation", "tenant-services-etcd"


def isolation(tenants: Tenants, name: str) -> Object:
    conditions = tenants.get(name)["status"].get("conditions", ())
    return next((each for each in conditions if each["type"] == "IsolationReady"), {})


def test_helm_takes_a_policy_of_ours_only_if_told_to_and_we_leave_it_until_it_is_gone(
    cluster: E2eCluster, tenants: Tenants, tmp_path: Path
) -> None:
    namespace = tenants.create_with_namespace()
    name, client = namespace.removeprefix("tenant-"), cluster.client()
    path = f"/apis/networking.k8s.io/v1/namespaces/{namespace}/networkpolicies/{POLICY}"
    tenants.wait("it is isolated", lambda: isolation(tenants, name).get("reason") == "NetworkPolicies")
    ours = client.get(path).expect(200)
    opening = {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": POLICY, "namespace": namespace},
        "spec": {"podSelector": {}, "policyTypes": ["Ingress"]},
    }
    install = ("install", RELEASE, write_chart(tmp_path, opening), f"--namespace={namespace}")

    refused = run_helm(cluster, tmp_path, *install)
    assert refused.returncode != 0
    assert "cannot be imported into the current release" in refused.stderr
    assert client.get(path).expect(200) == ours

    # helm/helm#31510: with server-side apply, Helm 4.0 takes over nothing
    taken = run_helm(cluster, tmp_path, *install, "--take-ownership", "--server-side=false")
    assert taken.returncode == 0, taken.stderr
    tenants.wait("the condition names it", lambda: isolation(tenants, name).get("reason") == "Refused")
    assert f'"{POLICY}" is managed by Helm' in isolation(tenants, name)["message"]
    helms = client.get(path).expect(200)
    assert helms["spec"]["policyTypes"] == ["Ingress"]
    # the tenant is reconciled, and the policy left
    tenants.patch(name, {"spec": {"etcd": True}})
    tenants.wait("etcd has its policy", lambda: client.get(path.replace(POLICY, ETCD_POLICY)).status == 200)
    assert client.get(path).expect(200) == helms

    removed = run_helm(cluster, tmp_path, "uninstall", RELEASE, f"--namespace={namespace}")
    assert removed.returncode == 0, removed.stderr
    tenants.wait("it is isolated again", lambda: isolation(tenants, name).get("reason") == "NetworkPolicies")
    assert client.get(path).expect(200)["spec"] == ours["spec"]
