"""The proxy is told to stop: its watches end with their events, and new ones are sent elsewhere."""

from __future__ import annotations

import signal
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.e2e.proxy.conftest import CONFIG
from tests.e2e.proxy.test_merged_lists import CONFIGMAPS, create, grant, keys
from tests.e2e.support.clusters.cluster import E2eCluster
from tests.e2e.support.clusters.tenant_proxy import TenantProxy
from tests.e2e.support.http.pace import Pace
from tests.e2e.support.http.raw_tls import RawTls
from tests.e2e.support.tenants import Tenants
from tests.e2e.support.visibility import RbacObjects, user_subject

LAST_CHUNK = b"0\r\n\r\n"
# a graceful shutdown takes at most this long
LIMIT = 10.0


@pytest.fixture
def own_proxy(cluster: E2eCluster, tmp_path: Path) -> TenantProxy:
    config = tmp_path / "config.yaml"
    config.write_text(CONFIG)
    return TenantProxy(cluster, tmp_path, f"--config={config}")


def test_every_watch_ends_cleanly_and_new_ones_are_refused(
    cluster: E2eCluster, own_proxy: TenantProxy, tenants: Tenants, access: RbacObjects, unique: str
) -> None:
    """That of the namespaces, a merged one, and a forwarded one: with a terminating chunk, so that clients go on."""
    namespace = tenants.create_with_namespace()
    create(tenants, namespace, "a")
    grant(access, unique, namespace)
    access.bind(f"{unique}-view", namespace, user_subject(unique))
    client = own_proxy.client(unique)
    cluster.wait_until("the list is answered", lambda: keys(client) == [(namespace, "a")])
    cluster.wait_until("the namespaces are listed", lambda: client.get("/api/v1/namespaces").status == 200)
    version = client.get(CONFIGMAPS).expect(200)["metadata"]["resourceVersion"]
    limit = Pace(client).limit(LIMIT)
    paths = ("/api/v1/namespaces", CONFIGMAPS, f"/api/v1/namespaces/{namespace}/configmaps")
    with ExitStack() as stack:
        watches = [stack.enter_context(RawTls(client)) for _ in paths]
        for each, path in zip(watches, paths, strict=True):
            each.send_request_head("GET", f"{path}?watch=true&resourceVersion={version}")
            assert each.read_until(b"\r\n\r\n").startswith(b"HTTP/1.1 200")
        own_proxy.process.signal(signal.SIGTERM)
        cluster.wait_until("the proxy shuts down", lambda: "shutting down" in own_proxy.process.log())
        refused = client.get(CONFIGMAPS, query={"watch": "true", "resourceVersion": version})
        assert refused.expect(429)["message"] == "apiserver is shutting down"
        assert (refused.headers["Retry-After"], refused.headers["Connection"]) == ("1", "close")
        assert [each.read_to_end()[-5:] for each in watches] == [LAST_CHUNK] * 3
    assert own_proxy.process.wait(seconds=limit) == 0
    assert "Traceback" not in own_proxy.process.log()
