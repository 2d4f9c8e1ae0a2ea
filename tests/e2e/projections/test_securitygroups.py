"""SecurityGroups: every verb where the cluster has Cilium's kind, and what is answered where it has not."""

from __future__ import annotations

import pytest

from apiserver.meta.resource import Object
from tests.e2e.support.cilium import CILIUM_CRDS, CRDS
from tests.e2e.support.clusters.cluster import ROOT, SDN_GROUP_VERSION, E2eCluster
from tests.e2e.support.http.https_client import read_frames_until
from tests.e2e.support.visibility import TABLE

GROUPS = f"{SDN_GROUP_VERSION}/namespaces/{ROOT}/securitygroups"
POLICIES = f"/apis/cilium.io/v2/namespaces/{ROOT}/ciliumnetworkpolicies"
MERGE, APPLY = "application/merge-patch+json", "application/apply-patch+yaml"
APP = {"kind": "Postgres", "name": "db"}
SHOWN_APP = {"apiGroup": "apps.cozystack.io", **APP}


def _group(name: str, **spec: object) -> Object:
    head = {"apiVersion": "sdn.cozystack.io/v1alpha1", "kind": "SecurityGroup", "metadata": {"name": name}}
    return {**head, "spec": spec}


def test_without_cilium_there_are_no_groups(cluster: E2eCluster, unique: str) -> None:
    """Lists are empty, or Kubernetes would delete no namespace; writes say what is missing."""
    client = cluster.client()
    for path in (GROUPS, f"{SDN_GROUP_VERSION}/securitygroups"):
        listed = client.get(path)
        assert (listed.status, listed.json()["items"]) == (200, [])
    created = client.request("POST", GROUPS, _group(unique))
    read = client.get(f"{GROUPS}/{unique}")
    assert [each.status for each in (created, read)] == [503, 503]
    for each in (created, read):
        assert each.json()["message"].startswith("security groups need Cilium: "), each.json()
    invalid = client.request("POST", GROUPS, _group(unique, ingress=[{"fromCIDR": ["x"]}], attachments=[{}]))
    assert invalid.status == 422
    fields = [each["field"] for each in invalid.json()["details"]["causes"]]
    assert fields == ["spec.attachments[0].kind", "spec.attachments[0].name", "spec.ingress[0].fromCIDR[0]"]


@pytest.fixture
def cilium(own_cluster: E2eCluster) -> E2eCluster:
    """A cluster with Cilium's kinds."""
    client = own_cluster.client()
    for each in CILIUM_CRDS:
        client.request("POST", CRDS, each).expect(201)
    own_cluster.wait_until_served(POLICIES)
    return own_cluster


def test_a_group_has_all_verbs(cilium: E2eCluster, unique: str) -> None:
    client, one, policy = cilium.client(), f"{GROUPS}/{unique}", f"{POLICIES}/{unique}"
    body = _group(unique, attachments=[APP], ingress=[{"fromApp": [APP], "toPorts": [{"ports": [{"port": "5432"}]}]}])
    cilium.wait_until("Cilium is found", lambda: client.get(GROUPS).headers.get("Warning") is None)
    client.request("POST", GROUPS, body, query={"dryRun": "All"}).expect(201)
    assert client.get(policy).status == 404
    created = client.request("POST", GROUPS, body).expect(201)
    assert created["spec"]["attachments"] == [SHOWN_APP]
    stored = client.get(policy).expect(200)
    assert stored["spec"]["endpointSelector"] == {"matchLabels": {f"securitygroup.sdn.cozystack.io/{unique}": ""}}
    assert stored["metadata"]["labels"] == {"sdn.cozystack.io/securitygroup": "true"}
    assert client.request("POST", GROUPS, body).status == 409
    cilium.wait_until("it is listed", lambda: _names(cilium, unique) == [unique])
    table = client.get(GROUPS, headers={"Accept": TABLE}).expect(200)
    assert [each["name"] for each in table["columnDefinitions"]] == ["Name", "Age"]
    version = client.get(GROUPS).expect(200)["metadata"]["resourceVersion"]
    query = {"watch": "1", "fieldSelector": f"metadata.name={unique}", "resourceVersion": version}
    with client.stream(GROUPS, query=query) as frames:
        client.request("PATCH", one, {"metadata": {"labels": {"a": "b"}}}, content_type=MERGE).expect(200)
        for port in ("1", "2"):
            applied = _group(unique, egress=[{"toCIDR": ["10.0.0.1"], "toPorts": [{"ports": [{"port": port}]}]}])
            client.request("PATCH", one, applied, query={"fieldManager": "test"}, content_type=APPLY).expect(200)
        assert client.request("PUT", one, created).status == 409
        assert client.get(policy).expect(200)["spec"]["egress"][0]["toPorts"] == [{"ports": [{"port": "2"}]}]
        client.request("DELETE", one).expect(200)
        seen = read_frames_until(frames, "DELETED")
    assert [each["type"] for each in seen] == ["MODIFIED"] * 3 + ["DELETED"]
    assert client.get(policy).status == 404
    plain = {"apiVersion": "cilium.io/v2", "kind": "CiliumNetworkPolicy", "metadata": {"name": unique}, "spec": {}}
    client.request("POST", POLICIES, plain).expect(201)
    assert client.get(one).status == client.request("DELETE", one).status == 404
    assert client.request("POST", GROUPS, body).status == 409
    client.request("DELETE", policy).expect(200)


def _names(cluster: E2eCluster, name: str) -> list[str]:
    found = cluster.client().get(GROUPS, query={"fieldSelector": f"metadata.name={name}"}).expect(200)
    return [each["metadata"]["name"] for each in found["items"]]
