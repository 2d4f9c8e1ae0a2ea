"""The bugs and limits of the direct peer that lists and watches show, API-7 to API-16."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from tests.e2e.support.clusters import ROOT, E2eCluster, tenants_path
from tests.e2e.support.peer_lessons import list_version, metric, next_of, ours, patch, settled, watch
from tests.e2e.support.tenants import Object, Tenants, manifest


def test_t7_a_deletion_between_list_and_watch_is_told(cluster: E2eCluster, tenants: Tenants, unique: str) -> None:
    """API-7: the peer's watch behind the watch starts from now."""
    name = tenants.create(labels={"t7": unique})["metadata"]["name"]
    listed = list_version(cluster)
    cluster.session().request("DELETE", tenants_path(ROOT, name)).expect(200)
    tenants.wait_until_gone(tenants_path(ROOT, name))
    with watch(cluster, resourceVersion=listed, labelSelector=f"t7={unique}") as frames:
        assert next_of(frames, "DELETED")["object"]["metadata"]["name"] == name


def test_t8_what_a_watch_shows_is_what_a_write_answered_and_a_get_reads(
    cluster: E2eCluster, tenants: Tenants, unique: str
) -> None:
    """API-8: the peer's watch shows versions that no GET ever returned."""
    name = settled(tenants, labels={"t8": unique})["metadata"]["name"]
    with watch(cluster, resourceVersion=list_version(cluster), labelSelector=f"t8={unique}") as frames:
        written = patch(cluster, name, {"spec": {"etcd": True}}).expect(200)
        shown = next_of(frames, "MODIFIED")["object"]
        while shown["metadata"]["resourceVersion"] != written["metadata"]["resourceVersion"]:
            shown = next_of(frames, "MODIFIED")["object"]
        assert shown == written
        # and the last that is told is what is read
        last = tenants.get(name)
        while shown["metadata"]["resourceVersion"] != last["metadata"]["resourceVersion"]:
            shown = next_of(frames, "MODIFIED")["object"]
        assert shown == last
    answer = cluster.session().request("PUT", tenants_path(ROOT, name), {**shown, "spec": {}})
    assert answer.status in (200, 409)
    assert (answer.status == 200) == (tenants.get(name)["spec"]["etcd"] is False)


def test_t9_who_watches_all_namespaces_sees_readiness_change(cluster: E2eCluster, tenants: Tenants) -> None:
    """API-9: the peer's cluster-wide watch drops these events."""
    name = tenants.name()
    follower = cluster.follow("get", "tenants", "-A", "-w", "--no-headers")

    def told(name: str) -> list[str]:
        """What the column Ready said of the Tenant, one after the other."""
        rows = [line.split() for line in follower.log().splitlines()]
        return [row[2] for row in rows if row[:2] == [ROOT, name]]

    try:
        tenants.wait("kubectl shows the root tenant", lambda: told("root"))
        kept = manifest(name, finalizers=["example.org/keep"])
        cluster.session().request("POST", tenants_path(ROOT), kept).expect(201)
        tenants.wait("the tenant is ready", lambda: told(name)[-1:] == ["True"])
        assert told(name)[0] == "Unknown"
        cluster.session().request("DELETE", tenants_path(ROOT, name))
        tenants.wait("it no longer is", lambda: told(name)[-1:] == ["False"])
    finally:
        follower.stop()
        patch(cluster, name, {"metadata": {"finalizers": None}})


def test_t10_a_watch_that_cannot_go_on_says_so_and_ends(cluster: E2eCluster) -> None:
    """API-10: the peer's clients stay on a dead stream."""
    with watch(cluster, resourceVersion="1") as frames:
        error = next_of(frames, "ERROR", "ADDED", "BOOKMARK")
        assert (error["type"], error["object"]["code"], error["object"]["reason"]) == ("ERROR", 410, "Expired")
        assert list(frames) == []


def test_t11_a_thousand_watches_cost_the_host_none(cluster: E2eCluster) -> None:
    """API-11: at the peer, each costs it two."""
    labels = 'resource="helmreleases"', 'verb="WATCH"'
    before = metric(cluster.session(), "apiserver_longrunning_requests", *labels)
    assert before >= 1
    with ExitStack() as open_watches:
        version = list_version(cluster)
        for _ in range(60):
            open_watches.enter_context(watch(cluster, resourceVersion=version))
        ours_now = metric(ours(cluster), "apiserver_longrunning_requests", 'resource="tenants"', 'verb="WATCH"')
        assert ours_now >= 60
        assert metric(cluster.session(), "apiserver_longrunning_requests", *labels) == before


def test_t12_the_version_of_a_list_never_goes_back(cluster: E2eCluster, tenants: Tenants) -> None:
    """API-12: the peer's is that of the newest item, and so goes back when that is deleted."""
    namespace = tenants.nest()
    versions = [list_version(cluster, namespace)]
    for _ in range(3):
        name = tenants.create(namespace)["metadata"]["name"]
        versions.append(list_version(cluster, namespace))
        cluster.session().request("DELETE", tenants_path(namespace, name)).expect(200)
        tenants.wait_until_gone(tenants_path(namespace, name))
        versions.append(list_version(cluster, namespace))
    assert cluster.session().get(tenants_path(namespace)).expect(200)["items"] == []
    assert versions[0] > 0
    assert versions == sorted(set(versions))


def test_t13_pages_of_one_are_the_list_as_it_was(cluster: E2eCluster, tenants: Tenants, unique: str) -> None:
    """API-13: the peer ignores limit, continue and resourceVersionMatch."""
    made = [tenants.create(labels={"t13": unique})["metadata"]["name"] for _ in range(4)]
    client, path, query = cluster.session(), tenants_path(ROOT), {"labelSelector": f"t13={unique}"}
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
        # what happens meanwhile is none of this list's business
        tenants.create(labels={"t13": unique})
        client.request("DELETE", tenants_path(ROOT, made[-1]))
    names = [item["metadata"]["name"] for item in walked]
    assert names == sorted(made) == [item["metadata"]["name"] for item in whole["items"]]
    exact = {**query, "resourceVersion": version, "resourceVersionMatch": "Exact"}
    assert client.get(path, query=exact).expect(200)["items"] == walked


def test_t14_a_list_asks_nothing_of_the_host(cluster: E2eCluster, tenants: Tenants) -> None:
    """API-14: the peer asks for every item's monitors and services."""
    settled(tenants)
    client = ours(cluster)
    lists = 100
    assert len(client.get(tenants_path(ROOT)).expect(200)["items"]) >= 1
    before = metric(client, "rest_client_requests_total")
    assert before > 0
    for _ in range(lists):
        client.get(tenants_path(ROOT)).expect(200)
    # what the process does by itself goes on meanwhile
    assert metric(client, "rest_client_requests_total") - before < lists / 4


def test_t15_what_was_written_is_read_at_once(cluster: E2eCluster, tenants: Tenants, unique: str) -> None:
    """API-15: the peer reads from a cache that need not have it yet."""
    client, query = cluster.session(), {"labelSelector": f"t15={unique}"}

    def names() -> list[str]:
        items = client.get(tenants_path(ROOT), query=query).expect(200)["items"]
        return sorted(item["metadata"]["name"] for item in items)

    made: list[str] = []
    for _ in range(5):
        made.append(tenants.create(labels={"t15": unique})["metadata"]["name"])
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
        pytest.param("sharding.fluxcd.io/key", id="a key that the system has too"),
    ],
)
def test_t16_labels_of_any_legal_key_select(cluster: E2eCluster, tenants: Tenants, unique: str, key: str) -> None:
    """API-16: at the peer, a prefix makes long keys a 500."""
    name = tenants.create(labels={key: unique})["metadata"]["name"]
    answer = cluster.session().get(tenants_path(ROOT), query={"labelSelector": f"{key}={unique}"})
    assert [item["metadata"]["name"] for item in answer.expect(200)["items"]] == [name]
    assert tenants.get(name)["metadata"]["labels"] == {key: unique}


def test_t16_system_labels_can_be_selected(cluster: E2eCluster, tenants: Tenants) -> None:
    """API-16: at the peer, the same prefix hides them."""
    name = tenants.create()["metadata"]["name"]
    for selector in (
        f"kubernetes.io/metadata.name={name}",
        f"apps.cozystack.io/application.name={name}",
        f"sharding.fluxcd.io/key=tenants,apps.cozystack.io/application.kind=Tenant,kubernetes.io/metadata.name={name}",
    ):
        listed = cluster.kubectl("get", "tenants", "-n", ROOT, "-l", selector, "-o", "name").stdout.split()
        assert listed == [f"tenant.apps.cozystack.io/{name}"], selector
    assert "labels" not in tenants.get(name)["metadata"]
