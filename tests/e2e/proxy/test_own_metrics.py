"""The proxy shows its own metrics to users who may get /metrics in the cluster."""

from __future__ import annotations

import re

from tests.e2e.proxy.test_merged_lists import CONFIGMAPS, create, grant, keys
from tests.e2e.support.clusters.cluster import E2eCluster
from tests.e2e.support.clusters.tenant_proxy import TenantProxy
from tests.e2e.support.tenants import Tenants
from tests.e2e.support.visibility import RbacObjects, user_subject


def let_read_metrics(access: RbacObjects, user: str) -> None:
    """With them come the notes of health checks."""
    name = f"{user}:metrics"
    access.create(
        "clusterroles", {"metadata": {"name": name}, "rules": [{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}]}
    )
    access.bind(name, "", user_subject(user), name)


def test_metrics_tell_what_is_slow_and_how_the_proxy_is(
    cluster: E2eCluster, proxy: TenantProxy, tenants: Tenants, access: RbacObjects, unique: str
) -> None:
    namespace = tenants.create_with_namespace()
    create(tenants, namespace, "a")
    grant(access, unique, namespace)
    let_read_metrics(access, unique)
    client = proxy.client(unique)
    cluster.wait_until("the list is answered", lambda: keys(client) == [(namespace, "a")])
    client.get(f"/api/v1/namespaces/{namespace}{CONFIGMAPS.removeprefix('/api/v1')}").expect(200)
    assert client.get("/apis/invented.example.org/v1/things").status in (403, 404)
    cluster.wait_until("the metrics are readable", lambda: client.get("/proxy/metrics").status == 200)
    assert client.get("/proxy/readyz").status == 200
    text = client.get("/proxy/metrics").content.decode()
    for scope in ("cluster", "namespace"):
        labels = f'dry_run="",group="",resource="configmaps",scope="{scope}",subresource="",verb="LIST",version="v1"'
        assert f'apiserver_request_duration_seconds_count{{component="apiserver",{labels}}}' in text
    assert "invented" not in text
    assert 'kubernetes_healthcheck{name="cluster",type="readyz"} 1.0' in text
    assert re.search(r"^tenant_apiserver_certificate_expiration_timestamp_seconds 1\.\d+e\+09$", text, re.MULTILINE)
    for resource in ("namespaces", "rolebindings.rbac.authorization.k8s.io"):
        assert f'tenant_apiserver_informer_age_seconds{{resource="{resource}"}}' in text
