"""Informers of client-go through the proxy, of all namespaces.

CLIENT_GO_INFORMER names the program, which `go build .` makes in the folder informer.
"""

from __future__ import annotations

import os

import pytest

from tests.e2e.proxy.test_merged_lists import create, grant, keys
from tests.e2e.support.clusters.cluster import E2eCluster
from tests.e2e.support.clusters.processes import Process
from tests.e2e.support.clusters.tenant_proxy import TenantProxy
from tests.e2e.support.tenants import Tenants
from tests.e2e.support.visibility import ROLEBINDINGS, RbacObjects, user_subject


@pytest.fixture
def program() -> str:
    found = os.environ.get("CLIENT_GO_INFORMER")
    if not found:
        pytest.skip("CLIENT_GO_INFORMER does not name the program of tests/e2e/proxy/informer")
    return found


def test_informers_follow_writes_grants_and_revocations(
    cluster: E2eCluster, proxy: TenantProxy, tenants: Tenants, access: RbacObjects, unique: str, program: str
) -> None:
    """Also after the proxy was killed and has come back: they resume, or list again."""
    one, other = (tenants.create_with_namespace() for _ in range(2))
    create(tenants, one, "a")
    create(tenants, other, "hidden")
    grant(access, unique, one)
    access.bind(f"{unique}-view", one, user_subject(unique))
    client = proxy.client(unique)
    cluster.wait_until("the list is answered", lambda: keys(client) == [(one, "a")])
    cluster.wait_until("the namespace is listed", lambda: client.get("/api/v1/namespaces").status == 200)
    log = cluster.directory / f"informer-{unique}.log"
    kubeconfig = cluster.identity(unique).kubeconfig
    informer = Process("client-go informer", [program, kubeconfig, proxy.url, proxy.ca], log=log)

    def wait_for(event: str) -> None:
        cluster.wait_until(f"the informer prints {event}", lambda: event in informer.log().splitlines())

    try:
        for event in (f"ADDED configmaps {one}/a", f"ADDED namespaces {one}", "SYNCED"):
            wait_for(event)
        create(tenants, one, "b")
        wait_for(f"ADDED configmaps {one}/b")
        grant(access, unique, other)
        access.bind(f"{unique}-view", other, user_subject(unique))
        wait_for(f"ADDED configmaps {other}/hidden")
        wait_for(f"ADDED namespaces {other}")
        proxy.process.restart_after_kill()
        create(tenants, other, "late")
        wait_for(f"ADDED configmaps {other}/late")
        for name in (unique, f"{unique}-view"):
            access.delete(ROLEBINDINGS, name, other)
        for event in (f"DELETED configmaps {other}/hidden", f"DELETED namespaces {other}"):
            wait_for(event)
        create(tenants, one, "last")
        wait_for(f"ADDED configmaps {one}/last")
        assert f"DELETED configmaps {one}/a" not in informer.log()
    finally:
        informer.kill()
