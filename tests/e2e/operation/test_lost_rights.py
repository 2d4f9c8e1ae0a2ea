"""A right that the server's account loses while kube-apiserver restarts: what users, operators and the log are told."""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any

from tests.e2e.support.clusters.cluster import PATIENCE, ROOT, tenants_path
from tests.e2e.support.clusters.kube import KubeCluster
from tests.e2e.support.clusters.processes import wait_until

RELEASES = "helmreleases.helm.toolkit.fluxcd.io"


def test_a_right_that_is_lost_during_an_outage_is_named(own_kube: KubeCluster) -> None:
    kube, client = own_kube, own_kube.direct_client()

    def warnings() -> list[str]:
        return client.get(tenants_path(ROOT)).warnings

    def cluster_line() -> str:
        lines = client.get("/readyz", query={"verbose": ""}).content.decode().splitlines()
        return next(line for line in lines if "]cluster" in line)

    role = json.loads(kube.kubectl("get", "clusterrole", "tenant-apiserver", "-o", "json").stdout)
    set_verbs_of_releases(kube, role, withheld=("list", "watch"))
    kube.kube_apiserver.restart_after_kill()
    named = f"the server lacks the right to list {RELEASES}"
    wait_until("readyz names it", lambda: cluster_line() == f"[+]cluster ok: {named}", seconds=PATIENCE)
    assert warnings() == [f'299 - "{named}: the response may be out of date"']
    logged = f"the watch failed: {RELEASES} is forbidden"
    wait_until("it is logged", lambda: logged in kube.server.log(), seconds=PATIENCE)
    set_verbs_of_releases(kube, role, withheld=())
    wait_until("all is well", lambda: (cluster_line(), warnings()) == ("[+]cluster ok", []), seconds=PATIENCE)


def set_verbs_of_releases(kube: KubeCluster, role: dict[str, Any], *, withheld: Collection[str]) -> None:
    rules = [
        {**rule, "verbs": [verb for verb in rule["verbs"] if verb not in withheld]}
        if "helmreleases" in rule.get("resources", ())
        else rule
        for rule in role["rules"]
    ]
    kube.kubectl("patch", "clusterrole", "tenant-apiserver", "--type=merge", f"--patch={json.dumps({'rules': rules})}")
