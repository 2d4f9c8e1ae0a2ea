"""Edge cases of watches: resource versions, missing objects and watches that start from a Table (WIRE-F6, WIRE-F15,
WIRE-F18, WIRE-F27 to WIRE-F29, WIRE-J31)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.e2e.support.clusters.cluster import ROOT, E2eCluster, tenants_path
from tests.e2e.support.http.https_client import read_frames_until
from tests.e2e.support.tenants import Tenants, manifest

Frame = dict[str, Any]
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
RELEASES = "/apis/helm.toolkit.fluxcd.io/v2/namespaces/tenant-root/helmreleases"


def version_of(document: Frame) -> int:
    return int(document["metadata"]["resourceVersion"])


def test_a_delete_event_has_the_last_state_and_a_new_resource_version(
    cluster: E2eCluster, tenants: Tenants, unique: str
) -> None:
    name = tenants.create(labels={"e2e": unique})["metadata"]["name"]
    tenants.patch(name, {"spec": {"etcd": True}})
    start = version_of(cluster.client().get(tenants_path(ROOT)).expect(200))
    last = tenants.patch(name, {"spec": {"monitoring": True}})
    query = {"watch": "true", "labelSelector": f"e2e={unique}", "resourceVersion": start}
    with cluster.client().stream(tenants_path(ROOT), query=query) as frames:
        cluster.client().request("DELETE", tenants_path(ROOT, name)).expect(200)
        *earlier, deletion = read_frames_until(frames, "DELETED")
    deleted = deletion["object"]
    assert (deleted["spec"], deleted["metadata"]["uid"]) == (last["spec"], last["metadata"]["uid"])
    versions = [version_of(frame["object"]) for frame in (*earlier, deletion)]
    assert versions == sorted(set(versions))
    assert version_of(deleted) > version_of(last)
    after = version_of(cluster.client().get(tenants_path(ROOT)).expect(200))
    assert version_of(deleted) <= after


@pytest.mark.parametrize("version", ["abc", "-5", "1.5", "0x1"])
def test_a_non_numeric_resource_version_is_a_bad_request(cluster: E2eCluster, version: str) -> None:
    query = {"watch": "true", "resourceVersion": version, "timeoutSeconds": 2}
    status = cluster.client().get(tenants_path(ROOT), query=query).expect(400)
    assert (status["reason"], "invalid resource version" in status["message"]) == ("BadRequest", True)


@pytest.mark.parametrize("path", [tenants_path(ROOT), "/apis/core.cozystack.io/v1alpha1/tenantnamespaces"])
def test_a_watch_with_a_negative_timeout_ends_at_once(cluster: E2eCluster, path: str) -> None:
    query = {"watch": "true", "timeoutSeconds": -5, "resourceVersion": "0"}
    answer = cluster.client().get(path, query=query)
    assert (answer.status, answer.body) == (200, b"")


def test_a_tenant_has_the_resource_version_of_its_helmrelease(cluster: E2eCluster, tenants: Tenants) -> None:
    """Tenants and HelmReleases share one version space: a Tenant shows its HelmRelease at that version."""
    name = tenants.create()["metadata"]["name"]
    client, release = cluster.client(), f"{RELEASES}/tenant-{name}"

    def agree() -> bool:
        return version_of(tenants.get(name)) == version_of(client.get(release).expect(200))

    tenants.wait("the tenant has the version of its HelmRelease", agree)
    # a change that is not made through the Tenant API and is visible only in the status
    status = {"status": {"observedGeneration": 1}}
    kind = "application/merge-patch+json"
    changed = client.request("PATCH", f"{release}/status", status, content_type=kind).expect(200)
    tenants.wait("the tenant has the change", lambda: version_of(tenants.get(name)) >= version_of(changed))
    tenants.wait("both versions agree again", agree)
    listed = client.get(tenants_path(ROOT)).expect(200)
    assert version_of(listed) >= max(version_of(item) for item in listed["items"])
    assert version_of(listed) <= version_of(client.get(RELEASES).expect(200))


def test_a_watch_may_start_before_the_object_exists(cluster: E2eCluster, tenants: Tenants) -> None:
    name, client = tenants.new_name(), cluster.client()
    start = version_of(client.get(tenants_path(ROOT)).expect(200))
    collection = {"watch": "true", "fieldSelector": f"metadata.name={name}", "resourceVersion": start}
    with (
        client.stream(tenants_path(ROOT), query=collection) as by_field,
        client.stream(_watch_path(name), query={"resourceVersion": start}) as by_name,
    ):
        tenants.create()
        client.request("POST", tenants_path(ROOT), manifest(name)).expect(201)
        client.request("DELETE", tenants_path(ROOT, name)).expect(200)
        events = [read_frames_until(frames, "DELETED") for frames in (by_field, by_name)]
    for seen in events:
        assert (seen[0]["type"], {frame["object"]["metadata"]["name"] for frame in seen}) == ("ADDED", {name})
    assert events[0] == events[1]


def test_the_deprecated_watch_path_serves_the_same_stream(cluster: E2eCluster, tenants: Tenants) -> None:
    name, client = tenants.new_name(), cluster.client()
    start = version_of(client.get(tenants_path(ROOT)).expect(200))
    with client.stream(_watch_path(name), query={"resourceVersion": start}) as frames:
        client.request("POST", tenants_path(ROOT), manifest(name)).expect(201)
        assert next(frames)["object"]["metadata"]["name"] == name


@pytest.mark.parametrize("query", ["watch=1", "watch=true&resourceVersion=1", "watch"])
def test_the_get_of_one_object_is_no_watch_whatever_its_query_says(
    cluster: E2eCluster, tenants: Tenants, query: str
) -> None:
    """A ConfigMap shows what kube-apiserver answers on one cluster, our embedded one on the other."""
    name = tenants.create()["metadata"]["name"]
    client, direct = cluster.client(), cluster.direct_client()
    configmap = f"/api/v1/namespaces/{ROOT}/configmaps/{name}"
    client.request("POST", configmap.rpartition("/")[0], {"metadata": {"name": name}}).expect(201)
    for asked, path in ((client, configmap), (client, tenants_path(ROOT, name)), (direct, tenants_path(ROOT, name))):
        got = asked.get(f"{path}?{query}").expect(200)
        assert got["metadata"]["name"] == name, (path, got)


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "POST"])
def test_nothing_is_written_below_the_deprecated_watch_path(cluster: E2eCluster, tenants: Tenants, method: str) -> None:
    name = tenants.create()["metadata"]["name"]
    configmap = f"/api/v1/watch/namespaces/{ROOT}/configmaps/{name}"
    client, direct = cluster.client(), cluster.direct_client()
    for asked, path in ((client, configmap), (client, _watch_path(name)), (direct, _watch_path(name))):
        answer = asked.request(method, path, {"metadata": {"name": name}})
        assert answer.status == 405, (path, answer.content)
    assert "deletionTimestamp" not in tenants.get(name)["metadata"]


def _watch_path(name: str) -> str:
    return tenants_path(ROOT, name).replace("/v1alpha1/", "/v1alpha1/watch/")


def test_kubectl_watches_from_the_resource_version_of_its_table(
    cluster: E2eCluster, tenants: Tenants, unique: str
) -> None:
    """kubectl lists a Table and then watches from the resourceVersion of the Table (WIRE-F29)."""
    tenants.create(labels={"e2e": unique})
    client, accept = cluster.client(), {"Accept": f"{TABLE},application/json"}
    query: dict[str, Any] = {"labelSelector": f"e2e={unique}", "limit": 500}
    table = client.get(tenants_path(ROOT), query=query, headers=accept).expect(200)
    assert len(table["rows"]) == 1
    second = tenants.create(labels={"e2e": unique})["metadata"]["name"]
    following = {"labelSelector": f"e2e={unique}", "watch": "true", "resourceVersion": version_of(table)}
    with client.stream(tenants_path(ROOT), query=following, headers=accept) as frames:
        added = next(frame for frame in frames if frame["type"] == "ADDED")
    assert added["object"]["kind"] == "Table"
    assert [row["cells"][0] for row in added["object"]["rows"]] == [second]


def test_a_watch_by_label_gets_every_matching_event_and_no_other(
    cluster: E2eCluster, tenants: Tenants, unique: str
) -> None:
    """Three watches report all events of two Tenants, up to the last event of each (WIRE-J31)."""
    client, start = cluster.client(), version_of(cluster.client().get(tenants_path(ROOT)).expect(200))
    first, second = f"{unique}a", f"{unique}b"

    def watch(selector: str) -> Any:
        query = {"watch": "true", "labelSelector": selector, "resourceVersion": start}
        return client.stream(tenants_path(ROOT), query=query)

    made = []
    for label in (first, second):
        made.append(tenants.create(labels={"e2e": label})["metadata"]["name"])
        tenants.patch(made[-1], {"spec": {"etcd": True}})
        client.request("DELETE", tenants_path(ROOT, made[-1])).expect(200)
    with watch(f"e2e={first}") as a, watch(f"e2e={second}") as b, watch(f"e2e in ({first},{second})") as both:
        events = [
            read_frames_until(a, "DELETED"),
            read_frames_until(b, "DELETED"),
            read_frames_until(both, "DELETED") + read_frames_until(both, "DELETED"),
        ]
    for seen, name in zip(events, made, strict=False):
        assert {frame["object"]["metadata"]["name"] for frame in seen} == {name}
        assert [frame["type"] for frame in seen][:2] == ["ADDED", "MODIFIED"]
    # the two Tenants are deleted independently, so their events may interleave
    assert events[2] == sorted(
        events[0] + events[1], key=lambda frame: int(frame["object"]["metadata"]["resourceVersion"])
    )
