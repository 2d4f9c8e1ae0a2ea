"""The real kubectl calls the plugin `kubectl tenant`, as an administrator and as a person of one tenant."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e.support.clusters.cluster import KUBECTL, ROOT, E2eCluster, tenants_path
from tests.e2e.support.tenants import Tenants

Run = Callable[..., subprocess.CompletedProcess[str]]
_SCRIPT = """\
#!{python}
from tenant_apiserver.kubectl_tenant.main import {entry}
{entry}()
"""


@pytest.fixture
def kubectl_tenant(cluster: E2eCluster, tmp_path: Path) -> Run:
    """Runs `kubectl tenant` with the kubeconfig of a user, by default of the administrator."""
    for name, entry in (("kubectl-tenant", "main"), ("kubectl_complete-tenant", "complete")):
        script = tmp_path / name
        script.write_text(_SCRIPT.format(python=sys.executable, entry=entry))
        script.chmod(0o755)
    environment = {
        **os.environ,
        "PATH": f"{tmp_path}:{KUBECTL.parent}:{os.environ['PATH']}",
        "PYTHONPATH": str(Path(__file__).parents[3]),
        "KUBECTL": str(KUBECTL),
    }

    def run(*arguments: str, user: str = "", groups: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
        identity = cluster.identity(user, groups) if user else cluster.admin
        return subprocess.run(
            [str(KUBECTL), *arguments],
            env={**environment, "KUBECONFIG": str(identity.kubeconfig)},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    return run


def test_each_command_answers_about_a_tenant(
    cluster: E2eCluster, tenants: Tenants, unique: str, kubectl_tenant: Run
) -> None:
    tenant = tenants.create(spec={"resourceQuotas": {"requests.cpu": "4"}})["metadata"]["name"]
    tenants.wait_until_settled(tenant)
    domain = tenants.get(tenant)["status"]["host"]["value"]

    def output(*arguments: str) -> str:
        done = kubectl_tenant("tenant", *arguments)
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert f"{tenant}   " in output("tree")
    assert domain in output("tree", tenant, "-n", ROOT, "-o", "wide")
    assert json.loads(output("tree", tenant, "-o", "json"))["items"][0]["tenant"]["metadata"]["name"] == tenant
    assert f"Tenant {ROOT}/{tenant} status.namespace: tenant-{tenant}" in output("explain", "tenant", tenant)
    assert "→ " in output("explain", "host", f"shop.{domain}")
    assert f"cozy:tenant-self:{tenant}" in output("who-can-see", tenant, "-n", ROOT)
    assert f"{ROOT}/{tenant}   requests.cpu   4" in output("quota", tenant)
    assert "about: tenant" in output("explain", "tenant", tenant, "-o", "yaml")
    assert output("hosts")
    # a person of the tenant sees it as the top of a tree
    path, groups = tenants_path(ROOT, tenant, "explain"), (f"tenant-{tenant}-view",)
    eve = cluster.client(unique, groups)
    cluster.wait_until("eve may ask about her tenant", lambda: eve.get(path).status == 200)
    lines = kubectl_tenant("tenant", "tree", user=unique, groups=groups).stdout.splitlines()
    assert [each.split()[0] for each in lines] == ["TENANT", tenant]
    denied = kubectl_tenant("tenant", "who-can-see", tenant, user=unique, groups=groups)
    assert denied.returncode == 1
    assert "cannot list resource" in denied.stderr
    for command in (("explain", "tenant"), ("tree",), ("quota",)):
        missing = kubectl_tenant("tenant", *command, f"no{unique}")
        assert (missing.returncode, missing.stdout) == (1, "")
        assert "kubectl tenant tree -A" in missing.stderr
    assert kubectl_tenant("tenant", "tree", "--context", "missing").returncode == 1
    completed = kubectl_tenant("__complete", "tenant", "tree", tenant[:3]).stdout
    assert tenant in completed
