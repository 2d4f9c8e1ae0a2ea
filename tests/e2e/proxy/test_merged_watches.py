"""Watches of all namespaces through the proxy, for a user who may watch a kind in some of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.e2e.proxy.test_merged_lists import CONFIGMAPS, READ, create, grant, keys
from tests.e2e.support.clusters.cluster import E2eCluster
from tests.e2e.support.clusters.tenant_proxy import TenantProxy
from tests.e2e.support.http.https_client import Client
from tests.e2e.support.tenants import Tenants
from tests.e2e.support.visibility import ROLEBINDINGS, TABLE, RbacObjects, WatchReader, open_watch, user_subject

END = "k8s.io/initial-events-end"


@pytest.fixture
def two(
    cluster: E2eCluster, proxy: TenantProxy, tenants: Tenants, access: RbacObjects, unique: str
) -> tuple[Client, str, str]:
    """A client who may read the first namespace, and a second one that he may not; each has the ConfigMap a."""
    one, other = (tenants.create_with_namespace() for _ in range(2))
    create(tenants, one, "a")
    create(tenants, other, "a", "hidden")
    grant(access, unique, one)
    client = proxy.client(unique)
    cluster.wait_until("the list is answered", lambda: keys(client) == [(one, "a")])
    return client, one, other


def test_a_watch_follows_writes_grants_and_revocations(
    two: tuple[Client, str, str], tenants: Tenants, access: RbacObjects, unique: str
) -> None:
    """The objects of a granted namespace are ADDED, those of a revoked one DELETED, though they exist."""
    client, one, other = two
    with open_watch(client, CONFIGMAPS) as frames:
        reader = WatchReader(frames)
        create(tenants, one, "b")
        assert reader.wait_for_event("ADDED", "b")["metadata"]["namespace"] == one
        grant(access, unique, other)
        assert reader.wait_for_event("ADDED", "hidden")["metadata"]["namespace"] == other
        create(tenants, other, "c")
        reader.wait_for_event("ADDED", "c")
        access.delete(ROLEBINDINGS, unique, other)
        gone = reader.wait_for_event("DELETED", "hidden")
        assert gone["kind"] == "ConfigMap"
        assert "data" not in gone
        create(tenants, other, "unseen")
        create(tenants, one, "last")
        for frame in frames:
            assert frame["object"]["metadata"].get("name") != "unseen"
            if frame["object"]["metadata"].get("name") == "last":
                break


def test_a_namespace_that_is_granted_in_two_steps_appears_in_an_open_watch(
    cluster: E2eCluster, two: tuple[Client, str, str], access: RbacObjects, unique: str
) -> None:
    """The right to watch comes first, and a watch of this namespace alone works with it."""
    client, _, other = two
    of_other = CONFIGMAPS.replace("/v1/", f"/v1/namespaces/{other}/")
    with open_watch(client, CONFIGMAPS) as frames:
        grant(access, unique, other, {**READ, "verbs": ["watch"]})
        query = {"watch": "true", "timeoutSeconds": "1"}
        cluster.wait_until("the other can be watched", lambda: client.get(of_other, query=query).status == 200)
        access.create_role(f"{unique}-list", other, {**READ, "verbs": ["list"]})
        access.bind(f"{unique}-list", other, user_subject(unique), f"{unique}-list")
        assert WatchReader(frames).wait_for_event("ADDED", "hidden")["metadata"]["namespace"] == other


def test_a_watch_whose_user_is_granted_the_kind_cluster_wide_ends_with_410(
    two: tuple[Client, str, str], access: RbacObjects, unique: str
) -> None:
    """The next watch is the cluster's own, and would miss the objects that exist."""
    client, _, _ = two
    version = client.get(CONFIGMAPS).expect(200)["metadata"]["resourceVersion"]
    with client.stream(CONFIGMAPS, query={"watch": "true", "resourceVersion": version}) as frames:
        access.create("clusterroles", {"metadata": {"name": f"{unique}:all"}, "rules": [READ]})
        access.bind(f"{unique}:all", "", user_subject(unique), f"{unique}:all")
        [frame] = frames
    assert (frame["type"], frame["object"]["code"]) == ("ERROR", 410)


@pytest.mark.parametrize("listed", ["for=test", ""], ids=["at any replica", "at the one that knows the client"])
def test_a_watch_that_goes_on_after_the_kind_was_granted_cluster_wide_gets_410(
    cluster: E2eCluster, two: tuple[Client, str, str], access: RbacObjects, unique: str, listed: str
) -> None:
    """The watch has ended by itself before the grant. The cluster would answer the next one, without the objects that
    were hidden. `listed` is the selector of the list, of which the watch is not a continuation."""
    client, _, _ = two
    version = client.get(CONFIGMAPS, query={"labelSelector": listed}).expect(200)["metadata"]["resourceVersion"]
    query = {"watch": "true", "resourceVersion": version}
    with client.stream(CONFIGMAPS, query={**query, "timeoutSeconds": "1"}) as frames:
        assert [frame["type"] for frame in frames if frame["type"] == "ERROR"] == []
    access.create("clusterroles", {"metadata": {"name": f"{unique}:all"}, "rules": [READ]})
    access.bind(f"{unique}:all", "", user_subject(unique), f"{unique}:all")
    cluster.wait_until_allowed(unique, "", verb="watch", group="", resource="configmaps")
    cluster.wait_until("all are listed", lambda: "hidden" in {name for _, name in keys(client) or ()})
    for path in (CONFIGMAPS, CONFIGMAPS.replace("/v1/", "/v1/watch/")):
        with client.stream(path, query=query) as frames:
            [frame] = frames
        assert (frame["type"], frame["object"]["code"]) == ("ERROR", 410)
    fresh = client.get(CONFIGMAPS).expect(200)["metadata"]["resourceVersion"]
    with client.stream(CONFIGMAPS, query={**query, "resourceVersion": fresh, "timeoutSeconds": "1"}) as frames:
        assert [frame["type"] for frame in frames if frame["type"] == "ERROR"] == []


def test_objects_that_were_listed_before_the_watch_are_deleted_by_a_revocation(
    two: tuple[Client, str, str], access: RbacObjects, unique: str
) -> None:
    """As rows, for kubectl get -w."""
    client, one, _ = two
    accept = {"Accept": TABLE}
    version = client.get(CONFIGMAPS, headers=accept).expect(200)["metadata"]["resourceVersion"]
    with client.stream(CONFIGMAPS, query={"watch": "true", "resourceVersion": version}, headers=accept) as frames:
        access.delete(ROLEBINDINGS, unique, one)
        for frame in frames:
            assert frame["type"] == "DELETED", frame
            [row] = frame["object"]["rows"]
            if row["object"]["metadata"]["name"] == "a":
                assert row["cells"][0] == "a"
                assert len(row["cells"]) == 3
                break


def test_a_resumed_watch_gets_what_was_granted_and_revoked_meanwhile(
    cluster: E2eCluster, two: tuple[Client, str, str], access: RbacObjects, unique: str
) -> None:
    client, one, other = two
    version = client.get(CONFIGMAPS).expect(200)["metadata"]["resourceVersion"]
    grant(access, unique, other)
    access.delete(ROLEBINDINGS, unique, one)
    cluster.wait_until("the other is listed", lambda: keys(client) == [(other, "a"), (other, "hidden")])
    with open_watch(client, CONFIGMAPS, version) as frames:
        reader = WatchReader(frames)
        assert reader.wait_for_event("DELETED", "a")["metadata"]["namespace"] == one
        assert reader.wait_for_event("ADDED", "hidden")["metadata"]["namespace"] == other


def test_initial_events_end_once_all_namespaces_are_complete(
    cluster: E2eCluster, two: tuple[Client, str, str], tenants: Tenants, access: RbacObjects, unique: str
) -> None:
    """As client-go's informers begin since 1.35; a watch goes on from the bookmark."""
    client, one, other = two
    more = [f"c{number}" for number in range(110)]
    create(tenants, one, *more)
    grant(access, unique, other)
    cluster.wait_until("both are listed", lambda: len(keys(client) or ()) == 113)
    query = {"watch": "true", "sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
    found = []
    with client.stream(CONFIGMAPS, query={**query, "allowWatchBookmarks": "true"}) as frames:
        for frame in frames:
            metadata = frame["object"]["metadata"]
            if frame["type"] == "BOOKMARK":
                assert metadata["annotations"] == {END: "true"}
                version = metadata["resourceVersion"]
                break
            found.append((metadata["namespace"], metadata["name"]))
    assert set(found) >= {(one, "a"), (other, "a"), (other, "hidden"), *((one, name) for name in more)}
    assert len(found) == len(set(found))
    with open_watch(client, CONFIGMAPS, version) as frames:
        access.delete(ROLEBINDINGS, unique, other)
        WatchReader(frames).wait_for_event("DELETED", "hidden")


def test_a_watch_of_any_version_begins_with_the_objects(two: tuple[Client, str, str]) -> None:
    """Also on a cluster that has no bookmarks for such a watch: that of a single namespace asks for none."""
    client, one, _ = two
    query = {"watch": "true", "labelSelector": "for=test", "resourceVersion": "0", "timeoutSeconds": "3"}
    with client.stream(CONFIGMAPS, query=query) as frames:
        found = [(each["type"], each["object"]["metadata"].get("namespace")) for each in frames]
    assert found == [("ADDED", one)]


def test_a_watch_ends_when_its_user_is_granted_too_many_namespaces(
    cluster: E2eCluster, tenants: Tenants, access: RbacObjects, unique: str, tmp_path: Path
) -> None:
    config = tmp_path / "config.yaml"
    config.write_text("namespacedKinds: [configmaps]")
    narrow = TenantProxy(cluster, tmp_path, f"--config={config}", "--max-namespaces=2")
    try:
        namespaces = [tenants.create_with_namespace() for _ in range(3)]
        for each in namespaces[:2]:
            create(tenants, each, "a")
            grant(access, unique, each)
        client = narrow.client(unique)
        cluster.wait_until("both are listed", lambda: len(keys(client) or ()) == 2)
        with open_watch(client, CONFIGMAPS) as frames:
            grant(access, unique, namespaces[2])
            assert all(frame["type"] != "ERROR" for frame in frames)
        refused = client.get(CONFIGMAPS)
        assert refused.status == 403
        assert "at most 2 are merged" in refused.json()["message"]
    finally:
        narrow.stop()


def test_a_watch_from_a_version_that_is_gone_is_told_to_list_again(two: tuple[Client, str, str]) -> None:
    client, _, _ = two
    with client.stream(CONFIGMAPS, query={"watch": "true", "resourceVersion": "1"}) as frames:
        frame = next(iter(frames))
    assert (frame["type"], frame["object"]["code"]) == ("ERROR", 410)


def test_a_watch_needs_the_right_to_watch(
    cluster: E2eCluster, proxy: TenantProxy, tenants: Tenants, access: RbacObjects, unique: str
) -> None:
    namespace = tenants.create_with_namespace()
    create(tenants, namespace, "a")
    grant(access, unique, namespace, {**READ, "verbs": ["get", "list"]})
    client = proxy.client(unique)
    cluster.wait_until("the list is answered", lambda: keys(client) == [(namespace, "a")])
    answer = client.get(CONFIGMAPS, query={"watch": "true"}).expect(403)
    assert f'User "{unique}" cannot watch' in json.dumps(answer["message"]).replace("\\", "")


def test_kubectl_lists_watches_and_describes_all_namespaces(
    proxy: TenantProxy, two: tuple[Client, str, str], unique: str
) -> None:
    _, one, _ = two
    listed = proxy.kubectl("get", "configmaps", "-A", "--chunk-size=1", "-l", "for=test", user=unique).stdout
    assert [line.split()[:2] for line in listed.splitlines()] == [["NAMESPACE", "NAME"], [one, "a"]]
    assert "Namespace:    " + one in proxy.kubectl("describe", "configmaps", "-A", "-l", "for=test", user=unique).stdout
    watched = proxy.kubectl(
        "get", "configmaps", "-A", "-w", "-l", "for=test", "--request-timeout=3s", user=unique, status=None
    ).stdout
    assert [one, "a"] in [line.split()[:2] for line in watched.splitlines()]
