"""Options follow what the cluster has, and are empty where it has not."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from apiserver.meta.resource import Object
from tests.e2e.support.clusters.cluster import CORE_GROUP_VERSION, ROOT, E2eCluster
from tests.e2e.support.visibility import TABLE

OPTIONS = f"{CORE_GROUP_VERSION}/namespaces/{ROOT}/options"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
SOURCES = {
    *("appkind", "backup", "backupclass", "gpu", "image", "instanceprofile", "instancetype", "network", "plan"),
    *("storageclass", "storagepool", "vmdisk"),
}
KINDS = (
    ("kubevirt.io", "v1", "KubeVirt", "kubevirts", "Namespaced"),
    *(
        ("instancetype.kubevirt.io", "v1beta1", kind, f"{kind.lower()}s", "Cluster")
        for kind in ("VirtualMachineClusterInstancetype", "VirtualMachineClusterPreference")
    ),
    ("k8s.cni.cncf.io", "v1", "NetworkAttachmentDefinition", "network-attachment-definitions", "Namespaced"),
    ("backups.cozystack.io", "v1alpha1", "BackupClass", "backupclasses", "Cluster"),
    ("backups.cozystack.io", "v1alpha1", "Plan", "plans", "Namespaced"),
    ("backups.cozystack.io", "v1alpha1", "Backup", "backups", "Namespaced"),
)


def _crd(group: str, version: str, kind: str, plural: str, scope: str) -> Object:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    served = {"name": version, "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"kind": kind, "plural": plural, "singular": kind.lower()}
    spec = {"group": group, "scope": scope, "names": names, "versions": [served]}
    head = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}
    return {**head, "metadata": {"name": f"{plural}.{group}"}, "spec": spec}


def _values(cluster: E2eCluster, name: str) -> list[str]:
    found = cluster.client().get(f"{OPTIONS}/{name}")
    return [each["value"] for each in found.json()["spec"]["items"]] if found.status == 200 else []


def test_a_cluster_without_these_kinds_has_empty_options(cluster: E2eCluster) -> None:
    client = cluster.client()

    def names() -> set[str]:
        return {each["metadata"]["name"] for each in client.get(OPTIONS).expect(200)["items"]}

    cluster.wait_until("all sources are known", lambda: names() == SOURCES)
    assert client.get(f"{OPTIONS}/gpu").expect(200)["spec"]["items"] == []
    assert client.get(f"{OPTIONS}/nothere").status == 404
    table = client.get(OPTIONS, headers={"Accept": TABLE}).expect(200)
    assert [each["name"] for each in table["columnDefinitions"]] == ["Name", "Items"]
    everywhere = client.get(f"{CORE_GROUP_VERSION}/options").expect(200)["items"]
    assert {each["metadata"]["name"] for each in everywhere} == SOURCES
    assert client.request("DELETE", f"{OPTIONS}/gpu").status == 405


@pytest.fixture
def complete(own_cluster: E2eCluster) -> Iterator[E2eCluster]:
    """A cluster that has all kinds."""
    client = own_cluster.client()
    for kind in KINDS:
        client.request("POST", CRDS, _crd(*kind)).expect(201)
    for group, version, _, plural, _ in KINDS:
        own_cluster.wait_until_served(f"/apis/{group}/{version}/{plural}")
    yield own_cluster
    for group, _, _, plural, _ in KINDS:
        client.request("DELETE", f"{CRDS}/{plural}.{group}").expect(200)


def test_options_follow_what_the_cluster_has(complete: E2eCluster, unique: str) -> None:
    client, networks = complete.client(), f"/apis/k8s.cni.cncf.io/v1/namespaces/{ROOT}/network-attachment-definitions"
    types = "/apis/instancetype.kubevirt.io/v1beta1/virtualmachineclusterinstancetypes"
    for path in (types, networks):
        client.request("POST", path, {**_head(path), "metadata": {"name": unique}}).expect(201)
    complete.wait_until("the type is offered", lambda: unique in _values(complete, "instancetype"))
    complete.wait_until("the network is offered", lambda: unique in _values(complete, "network"))
    elsewhere = f"{CORE_GROUP_VERSION}/namespaces/default/options/network"
    assert client.get(elsewhere).expect(200)["spec"]["items"] == []
    version = client.get(OPTIONS).expect(200)["metadata"]["resourceVersion"]
    query = {"watch": "1", "fieldSelector": "metadata.name=network", "resourceVersion": version}
    with client.stream(OPTIONS, query=query) as frames:
        client.request("DELETE", f"{networks}/{unique}").expect(200)
        changed = next(iter(frames))
    assert (changed["type"], changed["object"]["spec"]["items"]) == ("MODIFIED", [])
    client.request("DELETE", f"{types}/{unique}").expect(200)


def _head(path: str) -> Object:
    _, _, group, version, *_ = path.split("/")
    kind = "VirtualMachineClusterInstancetype" if "instancetypes" in path else "NetworkAttachmentDefinition"
    return {"apiVersion": f"{group}/{version}", "kind": kind}
