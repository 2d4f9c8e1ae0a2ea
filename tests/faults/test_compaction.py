"""A host that has forgotten what happened while our server was not looking: it is read anew, and clients' watches are
told what has changed."""

from __future__ import annotations

import re
from pathlib import Path

from tests.e2e.support.clusters import PATIENCE, ROOT, KubeCluster, tenants_path
from tests.e2e.support.processes import wait_until
from tests.e2e.support.tenants import manifest
from tests.faults.reflector import Reflector
from tests.faults.server_behind_proxy import DOOR, is_ready, standing_before


def release_path(name: str) -> str:
    return f"/apis/helm.toolkit.fluxcd.io/v2/namespaces/{ROOT}/helmreleases/tenant-{name}"


def change(kube: KubeCluster) -> None:
    """Of three, one is changed and one is deleted, and there are many changes of the third."""
    client, merge = kube.client(), "application/merge-patch+json"
    client.request("DELETE", release_path("a")).expect(200)
    for number in range(120):
        body = {"metadata": {"annotations": {"number": str(number)}}}
        client.request("PATCH", release_path("b"), body, content_type=merge).expect(200)
    values = {"spec": {"values": {"etcd": True}}}
    client.request("PATCH", release_path("c"), values, content_type=merge).expect(200)


def test_compaction_loses_nothing(own_kube: KubeCluster, tmp_path: Path) -> None:
    kube = own_kube
    for name in "abc":
        kube.client().request("POST", tenants_path(ROOT), manifest(name)).expect(201)
    with standing_before(kube, kube.account, tmp_path) as front:
        watching = Reflector(lambda: front.client, tenants_path())
        try:
            wait_until("the watch has begun", lambda: len(watching.state) > 3, seconds=PATIENCE)
            with front.proxy.away(DOOR):
                change(kube)
                kube.compact()
                wait_until("the host is back", lambda: is_ready(kube.client()), seconds=PATIENCE)
            wait_until("the cache equals the host", front.agrees, seconds=2 * PATIENCE, processes=[front.process])
            wait_until("the watch has it all", lambda: watching.state == front.served(), seconds=PATIENCE)
            assert watching.state[ROOT, "c"]["spec"]["etcd"] is True
            assert re.search("informer of helmreleases: version [0-9]+ is not available", front.process.log())
            # the first one: that the host was read anew is no reason to end clients' watches
            assert (watching.lists, watching.contradictions) == (1, [])
        finally:
            watching.stop()
