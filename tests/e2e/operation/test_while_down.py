"""No replica answers: what kube-apiserver says of our kinds, and kubectl from it, as on docs/while-down.md."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.e2e.support.clusters.cluster import AGGREGATED_DISCOVERY, GROUP_VERSION, KUBECTL, PATIENCE
from tests.e2e.support.clusters.kube import KubeCluster
from tests.e2e.support.clusters.processes import REPOSITORY, wait_until

GROUP, VERSION = GROUP_VERSION.removeprefix("/apis/").split("/")
PAGE = REPOSITORY / "docs" / "while-down.md"


def discovered(kube: KubeCluster) -> tuple[str, int]:
    """The freshness of our group, and the number of its kinds."""
    groups = kube.client().get("/apis", headers={"Accept": AGGREGATED_DISCOVERY}).expect(200)["items"]
    [version] = next(each["versions"] for each in groups if each["metadata"]["name"] == GROUP)
    assert version["version"] == VERSION
    return version["freshness"], len(version.get("resources", ()))


def test_kube_apiserver_forgets_the_kinds_and_learns_them_again(own_kube: KubeCluster, tmp_path: Path) -> None:
    """Although the server has answered before."""

    def kubectl(cache: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [
            str(KUBECTL),
            f"--kubeconfig={own_kube.admin.kubeconfig}",
            f"--cache-dir={tmp_path / cache}",
            *arguments,
        ]
        return subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, timeout=PATIENCE)

    assert discovered(own_kube)[0] == "Current"
    assert kubectl("warm", "get", "tenants", "-A").returncode == 0
    own_kube.server.stop()
    wait_until("the kinds are forgotten", lambda: discovered(own_kube) == ("Stale", 0), seconds=2 * PATIENCE)
    listed = kubectl("cold", "api-resources", f"--api-group={GROUP}", "--no-headers")
    assert (listed.returncode, listed.stdout, listed.stderr) == (0, "", "")
    shown = (
        kubectl("cold", "get", "tenants", "-A"),
        kubectl("cold", "apply", "--dry-run=server", "-f", "examples/tenant.yaml"),
        kubectl("warm", "get", "tenants", "-A"),
    )
    for each in shown:
        assert each.returncode == 1
        assert f"\n{each.stderr}" in PAGE.read_text()
    own_kube.restart()
    assert kubectl("cold", "get", "tenants", "-A").returncode == 0
