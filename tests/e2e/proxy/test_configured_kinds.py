"""Kinds of --config that the cluster does not serve as they are written: the log and readyz say so."""

from __future__ import annotations

from pathlib import Path

from tests.e2e.support.clusters.kube import KubeCluster
from tests.e2e.support.clusters.tenant_proxy import TenantProxy
from tests.e2e.support.visibility import RbacObjects, user_subject

CONFIG = """
namespacedKinds: [Pod, pod, deployments, nodes, pods, later.example.org]
clusterKinds: [pods, nodes]
"""
WRONG = (
    "namespacedKinds: the cluster has no Pod in the core group; did you mean pods?",
    "namespacedKinds: the cluster has no pod in the core group; did you mean pods?",
    "namespacedKinds: the cluster has no deployments in the core group; did you mean deployments.apps?",
    "namespacedKinds: nodes is cluster-scoped: name it in clusterKinds",
    "clusterKinds: pods is namespaced: name it in namespacedKinds",
)
LATER = "namespacedKinds: the cluster has no later in the group example.org"


def test_misspelt_kinds_are_logged_and_noted(
    kube: KubeCluster, tmp_path: Path, access: RbacObjects, unique: str
) -> None:
    (tmp_path / "config.yaml").write_text(CONFIG)
    rule = {"nonResourceURLs": ["/metrics"], "verbs": ["get"]}
    access.create("clusterroles", {"metadata": {"name": f"{unique}:m"}, "rules": [rule]})
    access.bind(f"{unique}:m", "", user_subject(unique), f"{unique}:m")
    proxy = TenantProxy(kube, tmp_path / "proxy", f"--config={tmp_path / 'config.yaml'}")
    try:
        client = proxy.client(unique)
        noted = f"[+]config ok: {'; '.join((*WRONG[:4], LATER, *WRONG[4:]))}\n"
        kube.wait_until("readyz notes it", lambda: noted in client.get("/proxy/readyz?verbose").body.decode())
        lines = [line for line in proxy.process.log().splitlines() if "--config" in line]
        assert [line.partition("--config: ")[2] for line in lines] == [*WRONG[:4], LATER, *WRONG[4:]]
        assert [text for text in (*WRONG, LATER) if "W" in next(line for line in lines if text in line)[:40]] == [
            *WRONG
        ]
    finally:
        proxy.stop()
