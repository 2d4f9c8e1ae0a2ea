"""`--tls-transport=asyncio`: TLS by the standard library instead of our own OpenSSL transport."""

from __future__ import annotations

import pytest

from tests.e2e.support.clusters.cluster import PATIENCE, ROOT, E2eCluster, tenants_path

IN_ROOT, TIMEOUT = f"--namespace={ROOT}", f"--timeout={PATIENCE:.0f}s"


@pytest.fixture
def own_flags() -> list[str]:
    return ["--tls-transport=asyncio"]


def test_kubectl_works_over_tls_of_asyncio(own_cluster: E2eCluster, unique: str) -> None:
    """Requests, a watch, and users authenticated by their client certificates."""
    document = {
        "apiVersion": "apps.cozystack.io/v1alpha1",
        "kind": "Tenant",
        "metadata": {"name": unique, "namespace": ROOT},
    }
    own_cluster.client().request("POST", tenants_path(ROOT), document).expect(201)
    waited = own_cluster.kubectl("wait", "--for=condition=Ready", f"tenant/{unique}", IN_ROOT, TIMEOUT)
    assert "condition met" in waited.stdout
    shown = own_cluster.kubectl("get", "tenants", IN_ROOT, "--output=name").stdout.split()
    assert f"tenant.apps.cozystack.io/{unique}" in shown
    assert "username" in own_cluster.kubectl("auth", "whoami", "--output=yaml").stdout
    deleted = own_cluster.kubectl("delete", "tenant", unique, IN_ROOT, TIMEOUT)
    assert "deleted" in deleted.stdout
