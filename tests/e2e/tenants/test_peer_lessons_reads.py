"""Bugs and limits of the peer in lists and watches, API-7 to API-16."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from tests.e2e.support.clusters.cluster import ROOT, E2eCluster, tenants_path
from tests.e2e.support.peer_lessons import (
    create_settled_tenant,
    list_version,
    metric_value,
    next_event,
    patch,
    watch,
)
from tests.e2e.support.tenants import Object, Tenants, manifest


def test_a_deletion_between_list_and_watch_is_reported(cluster: E2eCluster, tenants: Tenants, unique: str) -> None:
    """The watch that the peer opens on the cluster starts from now (API-7)."""
    name = tenants.create(labels={"e2e": unique})["metadata"]["name"]
    listed = list_version(cluster)
    cluster.client().request("DELETE", tenants_path(ROOT, name)).expect(200)
    tenants.wait_until_gone(tenants_path(ROOT, name))
    with watch(cluster, resourceVersion=listed, labelSelector=f"e2e={unique}") as frames:
        assert next_event(frames, "DELETED")["object"]["metadata"]["name"] == name


def test_a_watch_a_write_and_a_get_show_the_same_object(cluster: E2eCluster, tenants: Tenants, unique: str) -> None:
    """The watch of the peer shows resource versions that no GET ever returned (API-8)."""
    name = create_settled_tenant(tenants, labels={"e2e": unique})["metadata"]["name"]
    with watch(cluster, resourceVersion=list_version(cluster), labelSelector=f"e2e={unique}") as frames:
        written = patch(cluster, name, {"spec": {"etcd": True}}).expect(200)
        shown = next_event(frames, "MODIFIED")["object"]
        while shown["metadata"]["resourceVersion"] != written["metadata"]["resourceVersion"]:
            shown = next_event(frames, "MODIFIED")["object"]
        assert shown == written
        # the last event shows the object that a GET returns
        last = tenants.get(name)
        while shown["metadata"]["resourceVersion"] != last["metadata"]["resourceVersion"]:
            shown = next_event(frames, "MODIFIED")["object"]
        assert shown == last
    answer = cluster.client().request("PUT", tenants_path(ROOT, name), {**shown, "spec": {}})
    assert answer.status in (200, 409)
    assert (answer.status == 200) == (tenants.get(name)["spec"]["etcd"] is False)


def test_a_watch_of_all_namespaces_shows_changes_of_readiness(cluster: E2eCluster, tenants: Tenants) -> None:
    """The cluster-wide watch of the peer drops these events (API-9)."""
    name = tenants.new_name()
    follower = cluster.start_kubectl("get", "tenants", "-A", "-w", "--no-headers")

    def readiness(name: str) -> list[str]:
        """The successive values of the column Ready of a Tenant."""
        rows = [line.split() for line in follower.log().splitlines()]
        return [row[2] for row in rows if row[:2] == [ROOT, name]]

    try:
        tenants.wait("kubectl shows the root tenant", lambda: readiness("root"))
        body = manifest(name, finalizers=["example.org/keep"])
        cluster.client().request("POST", tenants_path(ROOT), body).expect(201)
        tenants.wait("the tenant is ready", lambda: readiness(name)[-1:] == ["True"])
        assert readiness(name)[0] == "Unknown"
        cluster.client().request("DELETE", tenants_path(ROOT, name))
        tenants.wait("the tenant is no longer ready", lambda: readiness(name)[-1:] == ["False"])
    finally:
        follower.stop()
        patch(cluster, name, {"metadata": {"finalizers": None}})


def test_an_expired_watch_reports_the_error_and_ends(cluster: E2eCluster) -> None:
    """Clients of the peer stay connected to a dead stream (API-10)."""
    with watch(cluster, resourceVersion="1") as frames:
        error = next_event(frames, "ERROR", "ADDED", "BOOKMARK")
        assert (error["type"], error["object"]["code"], error["object"]["reason"]) == ("ERROR", 410, "Expired")
        assert list(frames) == []


def test_watches_of_tenants_open_no_watches_on_the_cluster(cluster: E2eCluster) -> None:
    """At the peer, each watch opens two watches on the cluster (API-11)."""
    labels = 'resource="helmreleases"', 'verb="WATCH"'
    before = metric_value(cluster.client(), "apiserver_longrunning_requests", *labels)
    assert before >= 1
    with ExitStack() as open_watches:
        version = list_version(cluster)
        for _ in range(60):
            open_watches.enter_context(watch(cluster, resourceVersion=version))
        open_at_our_server = metric_value(
            cluster.direct_client(), "apiserver_longrunning_requests", 'resource="tenants"', 'verb="WATCH"'
        )
        assert open_at_our_server >= 60
        # a watch of an earlier test may have ended only now
        cluster.wait_until(
            "the cluster has no more watches than before",
            lambda: metric_value(cluster.client(), "apiserver_longrunning_requests", *labels) <= before,
        )


def test_the_resource_version_of_a_list_never_decreases(cluster: E2eCluster, tenants: Tenants) -> None:
    """The peer returns the version of the newest item, which decreases when that is deleted (API-12)."""
    namespace = tenants.create_with_namespace()
    versions = [list_version(cluster, namespace)]
    for _ in range(3):
        name = tenants.create(namespace)["metadata"]["name"]
        versions.append(list_version(cluster, namespace))
        cluster.client().request("DELETE", tenants_path(namespace, name)).expect(200)
        tenants.wait_until_gone(tenants_path(namespace, name))
        versions.append(list_version(cluster, namespace))
    assert cluster.client().get(tenants_path(namespace)).expect(200)["items"] == []
    assert versions[0] > 0
    assert versions == sorted(set(versions))


def test_pages_of_one_object_show_one_snapshot_of_the_list(cluster: E2eCluster, tenants: Tenants, unique: str) -> None:
    """The peer ignores limit, continue and resourceVersionMatch (API-13)."""
    made = [tenants.create(labels={"e2e": unique})["metadata"]["name"] for _ in range(4)]
    client, path, query = cluster.client(), tenants_path(ROOT), {"labelSelector": f"e2e={unique}"}
    whole = client.get(path, query=query).expect(200)
    walked: list[Object] = []
    token, version = "", ""
    while not walked or token:
        page = client.get(path, query={**query, "limit": 1, "continue": token}).expect(200)
        assert len(page["items"]) == 1
        version = version or page["metadata"]["resourceVersion"]
        assert page["metadata"]["resourceVersion"] == version
        walked += page["items"]
        token = page["metadata"].get("continue", "")
        # later writes do not affect the paginated list
        tenants.create(labels={"e2e": unique})
        client.request("DELETE", tenants_path(ROOT, made[-1]))
    names = [item["metadata"]["name"] for item in walked]
    assert names == sorted(made) == [item["metadata"]["name"] for item in whole["items"]]
    exact = {**query, "resourceVersion": version, "resourceVersionMatch": "Exact"}
    assert client.get(path, query=exact).expect(200)["items"] == walked


def test_a_list_sends_no_requests_to_the_cluster(cluster: E2eCluster, tenants: Tenants) -> None:
    """The peer requests the monitors and services of every item (API-14)."""
    create_settled_tenant(tenants)
    client = cluster.direct_client()
    lists = 100
    assert len(client.get(tenants_path(ROOT)).expect(200)["items"]) >= 1
    assert metric_value(client, "rest_client_requests_total") > 0

    def requests_during_lists() -> float:
        before = metric_value(client, "rest_client_requests_total")
        for _ in range(lists):
            client.get(tenants_path(ROOT)).expect(200)
        return metric_value(client, "rest_client_requests_total") - before

    # the process also sends requests in the background: first because of earlier tests, then only a few
    cluster.wait_until("lists send no requests", lambda: requests_during_lists() < lists / 4)


def test_a_write_is_visible_to_the_next_read(cluster: E2eCluster, tenants: Tenants, unique: str) -> None:
    """The peer reads from a cache that may not have the write yet (API-15)."""
    client, query = cluster.client(), {"labelSelector": f"e2e={unique}"}

    def names() -> list[str]:
        items = client.get(tenants_path(ROOT), query=query).expect(200)["items"]
        return sorted(item["metadata"]["name"] for item in items)

    made: list[str] = []
    for _ in range(5):
        made.append(tenants.create(labels={"e2e": unique})["metadata"]["name"])
        assert names() == sorted(made)
        changed = tenants.patch(made[-1], {"spec": {"etcd": True}})
        assert tenants.get(made[-1])["spec"] == changed["spec"]
    for name in list(made):
        client.request("DELETE", tenants_path(ROOT, name)).expect(200)
        made.remove(name)
        if not tenants.exists(name):
            assert name not in names()


@pytest.mark.parametrize(
    "key",
    [
        pytest.param("a" * 63, id="63 characters"),
        pytest.param(".".join(["a" * 60] * 4) + "/" + "n" * 63, id="a long prefix"),
        pytest.param("apps.cozystack.io-mine", id="the prefix of stored labels"),
        pytest.param("sharding.fluxcd.io/key", id="a key of a system label"),
    ],
)
def test_labels_with_any_valid_key_can_be_selected(
    cluster: E2eCluster, tenants: Tenants, unique: str, key: str
) -> None:
    """The peer prefixes label keys, and a key that becomes too long fails with a 500 (API-16)."""
    name = tenants.create(labels={key: unique})["metadata"]["name"]
    answer = cluster.client().get(tenants_path(ROOT), query={"labelSelector": f"{key}={unique}"})
    assert [item["metadata"]["name"] for item in answer.expect(200)["items"]] == [name]
    assert tenants.get(name)["metadata"]["labels"] == {key: unique}


def test_system_labels_can_be_selected(cluster: E2eCluster, tenants: Tenants) -> None:
    """The prefix of the peer hides system labels (API-16)."""
    name = tenants.create()["metadata"]["name"]
    for selector in (
        f"kubernetes.io/metadata.name={name}",
        f"apps.cozystack.io/application.name={name}",
        f"sharding.fluxcd.io/key=tenants,apps.cozystack.io/application.kind=Tenant,kubernetes.io/metadata.name={name}",
    ):
        listed = cluster.kubectl("get", "tenants", "-n", ROOT, "-l", selector, "-o", "name").stdout.split()
        assert listed == [f"tenant.apps.cozystack.io/{name}"], selector
    assert "labels" not in tenants.get(name)["metadata"]
