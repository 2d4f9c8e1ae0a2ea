"""kubectl creates, shows, patches, applies, waits for and deletes an object of each of Cozystack's kinds, and changes
a service of a tenant."""

from __future__ import annotations

import json
from collections.abc import Collection

from apiserver.meta.resource import Object
from registry.names import GROUP
from tests.application_definitions.samples import definition, definition_names, sample_spec
from tests.e2e.support.applications import Applications
from tests.e2e.support.clusters.cluster import AGGREGATED_DISCOVERY, GROUP_VERSION, ROOT, E2eCluster
from tests.e2e.support.tenants import Tenants

API_VERSION = GROUP_VERSION.removeprefix("/apis/")


def _objects(unique: str) -> list[Object]:
    """One of each kind. Kinds without a prefix share the names of HelmReleases, so that all names differ."""
    stem = unique.replace("-", "")
    return [
        {
            "apiVersion": API_VERSION,
            "kind": definition(kind)["spec"]["application"]["kind"],
            "metadata": {"name": f"{stem}x{number}", "namespace": ROOT},
            # a host is for administrators to set, and a quota needs room
            "spec": sample_spec(kind) if kind != "tenant" else {"undocumented": {"deep": [1]}},
        }
        for number, kind in enumerate(definition_names())
    ]


def is_known_to_kubectl(cluster: E2eCluster, kinds: Collection[str]) -> bool:
    """True if kubectl finds these kinds of our group. A kube-apiserver reads our discovery again once a minute."""
    listed = cluster.client().get("/apis", headers={"Accept": AGGREGATED_DISCOVERY}).expect(200)["items"]
    group = next(each for each in listed if each["metadata"].get("name") == GROUP)
    return {each["responseKind"]["kind"] for each in group["versions"][0]["resources"]} >= set(kinds)


def test_kubectl_handles_every_kind(applications: Applications, cluster: E2eCluster, unique: str) -> None:
    objects = _objects(unique)
    text = "\n---\n".join(json.dumps(each) for each in objects)

    def done(*command: str) -> list[str]:
        """The names of the objects that kubectl has handled, which has a line for each."""
        lines = cluster.kubectl(*command, "-f", "-", input=text).stdout.splitlines()
        return [line.partition("/")[2].partition(" ")[0] for line in lines]

    kinds = {each["kind"] for each in objects}
    cluster.wait_until("kubectl finds every kind", lambda: is_known_to_kubectl(cluster, kinds))
    names = [each["metadata"]["name"] for each in objects]
    assert done("create") == names
    shown = cluster.kubectl("get", "-f", "-", "-o", "json", input=text).stdout
    for sent, found in zip(objects, json.loads(shown)["items"], strict=True):
        assert (found["kind"], found["metadata"]["name"]) == (sent["kind"], sent["metadata"]["name"])
        assert sent["spec"].keys() <= found["spec"].keys()
    table = cluster.kubectl("get", "-f", "-", input=text).stdout.split()
    assert {"NAME", "READY", "AGE", *(each.rpartition("/")[2] for each in names)} <= {
        each.rpartition("/")[2] for each in table
    }
    assert done("patch", "--type=merge", "-p", '{"metadata": {"labels": {"more": "y"}}}') == names
    assert done("wait", "--for=jsonpath={.metadata.labels.more}=y") == names
    assert done("apply", "--server-side", "--field-manager=test", "--force-conflicts") == names
    # it waits until a watch has told that each is gone
    assert len(done("delete")) == len(names)
    assert cluster.kubectl("get", "-f", "-", "--ignore-not-found", input=text).stdout == ""


def test_a_pool_that_is_added_to_seaweedfs_stays_when_the_tenant_changes(
    applications: Applications, cluster: E2eCluster, tenants: Tenants
) -> None:
    """The command of seed 001. The test plays the chart that creates the SeaweedFS with its defaults."""
    made = {"apiVersion": API_VERSION, "kind": "SeaweedFS", "metadata": {"name": "seaweedfs"}}
    applications.client.request("POST", applications.path("seaweedfses"), made).expect(201)
    service = ("-n", "tenant-root", "seaweedfses.apps.cozystack.io", "seaweedfs")
    patch = '{"spec":{"volume":{"pools":{"ssd":{"diskType":"ssd","size":"50Gi"}}}}}'
    cluster.wait_until("kubectl finds the kind", lambda: is_known_to_kubectl(cluster, ["SeaweedFS"]))
    try:
        cluster.kubectl("patch", *service, "--type=merge", "-p", patch)
        tenants.patch("root", {"spec": {"seaweedfs": True}})
        tenants.wait_until_settled("root")
        assert applications.values("seaweedfs")["volume"]["pools"] == {"ssd": {"diskType": "ssd", "size": "50Gi"}}
        size = "jsonpath={.spec.volume.pools.ssd.size}"
        assert cluster.kubectl("get", *service, "-o", size).stdout == "50Gi"
    finally:
        tenants.patch("root", {"spec": {"seaweedfs": None}})
        cluster.kubectl("delete", *service)
