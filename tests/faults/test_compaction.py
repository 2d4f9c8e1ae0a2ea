"""etcd is compacted while our server is disconnected: the server lists again, and clients' watches get the changes."""

from __future__ import annotations

import re
from pathlib import Path

from tests.e2e.support.clusters.cluster import PATIENCE, ROOT, tenants_path
from tests.e2e.support.clusters.kube import KubeCluster
from tests.e2e.support.clusters.processes import wait_until
from tests.e2e.support.tenants import manifest
from tests.faults.support.reflector import Reflector
from tests.faults.support.server_behind_proxy import PROXIED_SERVER, is_ready, started_proxied_server


def release_path(name: str) -> str:
    return f"/apis/helm.toolkit.fluxcd.io/v2/namespaces/{ROOT}/helmreleases/tenant-{name}"


def change_releases(kube: KubeCluster) -> None:
    """Deletes the first release, changes the second one many times, and the third one once."""
    client, merge = kube.client(), "application/merge-patch+json"
    client.request("DELETE", release_path("a")).expect(200)
    for number in range(120):
        body = {"metadata": {"annotations": {"number": str(number)}}}
        client.request("PATCH", release_path("b"), body, content_type=merge).expect(200)
    values = {"spec": {"values": {"etcd": True}}}
    client.request("PATCH", release_path("c"), values, content_type=merge).expect(200)


def test_no_event_is_lost_by_compaction(own_kube: KubeCluster, tmp_path: Path) -> None:
    kube = own_kube
    for name in "abc":
        kube.client().request("POST", tenants_path(ROOT), manifest(name)).expect(201)
    # a list that an outage makes necessary is logged for debugging
    with started_proxied_server(kube, kube.account, tmp_path, verbosity=4) as proxied:
        reflector = Reflector(lambda: proxied.client, tenants_path())
        try:
            wait_until("the watch has begun", lambda: len(reflector.state) > 3, seconds=PATIENCE)
            with proxied.proxy.disconnected(PROXIED_SERVER):
                change_releases(kube)
                kube.compact()
                wait_until("the cluster is ready again", lambda: is_ready(kube.client()), seconds=PATIENCE)
            wait_until(
                "the cache equals the cluster",
                proxied.cache_equals_cluster,
                seconds=2 * PATIENCE,
                processes=[proxied.process],
            )
            wait_until(
                "the watch has every change", lambda: reflector.state == proxied.served_tenants(), seconds=PATIENCE
            )
            assert reflector.state[ROOT, "c"]["spec"]["etcd"] is True
            assert re.search("informer of helmreleases: version [0-9]+ is not available", proxied.process.log())
            # only the initial list: our server's relist does not end the watches of its clients
            assert (reflector.lists, reflector.inconsistencies) == (1, [])
        finally:
            reflector.stop()
