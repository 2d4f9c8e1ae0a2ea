"""Every user may list and watch, and sees the objects that RBAC allows them to get.

R-327 to R-343, API-21 to API-27, ATTACK-04, ATTACK-05, ATTACK-15.
"""

from __future__ import annotations

import time

import pytest

from tests.e2e.support.clusters.cluster import ROOT, E2eCluster, tenants_path
from tests.e2e.support.clusters.processes import wait_until
from tests.e2e.support.http.pace import Pace
from tests.e2e.support.tenants import Tenants, manifest
from tests.e2e.support.visibility import (
    GET_TENANTS,
    NAMESPACES,
    PARTIAL,
    ROLEBINDINGS,
    ROLES,
    TABLE,
    RbacObjects,
    WatchReader,
    create_child,
    group_subject,
    list_names,
    open_watch,
    user_subject,
    wait_until_listed,
)


def test_a_user_without_bindings_sees_nothing(cluster: E2eCluster, tenants: Tenants, unique: str) -> None:
    """Lists are empty, not forbidden (R-337)."""
    create_child(tenants, tenants.create_with_namespace())
    client = cluster.client(unique)
    assert list_names(client, tenants_path()) == []
    assert list_names(client, tenants_path(ROOT)) == []
    assert list_names(client, NAMESPACES) == []


def test_permission_to_get_tenants_shows_them_and_their_namespace(
    cluster: E2eCluster, tenants: Tenants, access: RbacObjects, unique: str
) -> None:
    """The namespace is shown as a TenantNamespace (R-325, API-25)."""
    granted, other = tenants.create_with_namespace(), tenants.create_with_namespace()
    name = create_child(tenants, granted)
    create_child(tenants, other)
    client = cluster.client(unique)
    access.bind(unique, granted, user_subject(unique))
    wait_until_listed(client, tenants_path(), [name])
    wait_until_listed(client, NAMESPACES, [granted])
    assert list_names(client, tenants_path(granted)) == [name]
    assert list_names(client, tenants_path(other)) == []
    shown = client.get(f"{NAMESPACES}/{granted}").expect(200)
    listed = client.get(NAMESPACES).expect(200)["items"][0]
    assert shown == {"apiVersion": shown["apiVersion"], "kind": "TenantNamespace", **listed}
    assert shown["metadata"]["uid"] == tenants.client.get(f"/api/v1/namespaces/{granted}").json()["metadata"]["uid"]


def test_a_binding_to_unrelated_permissions_shows_nothing(
    cluster: E2eCluster, tenants: Tenants, access: RbacObjects, unique: str
) -> None:
    """Other resources, other verbs and resource names do not count (API-23)."""
    granted = tenants.create_with_namespace()
    create_child(tenants, granted)
    access.create_role("empty", granted)
    access.create_role("pods", granted, {"apiGroups": [""], "resources": ["pods"], "verbs": ["*"]})
    access.create_role("listing", granted, {**GET_TENANTS, "verbs": ["list", "watch"]})
    access.create_role("named", granted, {**GET_TENANTS, "resourceNames": ["x"]})
    access.create_role("status", granted, {**GET_TENANTS, "resources": ["tenants/status"]})
    for role in ("empty", "pods", "listing", "named", "status"):
        access.bind(role, granted, user_subject(unique), role)
    # once the last binding is visible, all earlier ones have been processed
    second = tenants.create_with_namespace()
    access.bind(unique, second, user_subject(unique))
    wait_until_listed(cluster.client(unique), NAMESPACES, [second])
    assert list_names(cluster.client(unique), tenants_path()) == []


def test_bindings_of_groups_service_accounts_and_the_whole_cluster_apply(
    cluster: E2eCluster, tenants: Tenants, access: RbacObjects, unique: str
) -> None:
    """Groups of the user and ClusterRoleBindings count, too (R-332, API-22)."""
    granted = tenants.create_with_namespace()
    name = create_child(tenants, granted)
    access.bind(f"{unique}-group", granted, group_subject(f"{unique}-g"))
    wait_until_listed(cluster.client(unique, [f"{unique}-g"]), tenants_path(), [name])
    access.bind(f"{unique}-all", "", user_subject(f"{unique}-all"))
    reader = cluster.client(f"{unique}-all")
    wait_until("all namespaces are visible", lambda: {granted, ROOT} <= set(list_names(reader, NAMESPACES)))
    # Tenants of earlier tests are still being deleted
    wait_until(
        "all Tenants are visible",
        lambda: list_names(reader, tenants_path()) == list_names(cluster.client(), tenants_path()),
    )


def test_permission_to_get_a_namespace_shows_it_without_its_tenants(
    cluster: E2eCluster, tenants: Tenants, access: RbacObjects, unique: str
) -> None:
    granted = tenants.create_with_namespace()
    create_child(tenants, granted)
    rule = {"apiGroups": [""], "resources": ["namespaces"], "resourceNames": [granted], "verbs": ["get"]}
    access.create("clusterroles", {"metadata": {"name": f"{unique}:ns"}, "rules": [rule]})
    access.bind(unique, "", user_subject(unique), f"{unique}:ns")
    wait_until_listed(cluster.client(unique), NAMESPACES, [granted])
    assert list_names(cluster.client(unique), tenants_path()) == []


def test_hidden_and_missing_objects_are_indistinguishable(
    cluster: E2eCluster, tenants: Tenants, access: RbacObjects, unique: str
) -> None:
    """Neither status, body, selectors nor page metadata reveal a hidden object (R-327)."""
    hidden, granted = tenants.create_with_namespace(), tenants.create_with_namespace()
    name = create_child(tenants, hidden)
    own = create_child(tenants, granted)
    access.bind(unique, granted, user_subject(unique))
    client = cluster.client(unique)
    wait_until_listed(client, tenants_path(), [own])
    missing = "tenant-nowhere"
    for_hidden, for_missing = client.get(f"{NAMESPACES}/{hidden}"), client.get(f"{NAMESPACES}/{missing}")
    assert (for_hidden.status, for_missing.status) == (404, 404)
    assert for_hidden.body.replace(hidden.encode(), b"X") == for_missing.body.replace(missing.encode(), b"X")
    rejected = [client.get(tenants_path(hidden, each)) for each in (name, "nothere")]
    assert [each.status for each in rejected] == [403, 403]
    assert rejected[0].body.replace(name.encode(), b"X") == rejected[1].body.replace(b"nothere", b"X")
    for query in (
        {"fieldSelector": f"metadata.name={name}"},
        {"fieldSelector": f"metadata.namespace={hidden}"},
        {"labelSelector": "x!=y", "fieldSelector": f"metadata.namespace={hidden}"},
        {"resourceVersion": "0", "fieldSelector": f"metadata.name={name}"},
    ):
        assert list_names(client, tenants_path(), **query) == []
    first = client.get(tenants_path(), query={"limit": 1}).expect(200)["metadata"]
    assert "continue" not in first
    assert "remainingItemCount" not in first
    table = client.get(tenants_path(), headers={"Accept": TABLE}).expect(200)
    assert [row["cells"][0] for row in table["rows"]] == [own]
    partial = client.get(tenants_path(), headers={"Accept": PARTIAL}).expect(200)
    assert [item["metadata"]["name"] for item in partial["items"]] == [own]


def test_a_continue_token_of_another_user_shows_nothing_more(
    cluster: E2eCluster, tenants: Tenants, access: RbacObjects, unique: str
) -> None:
    _, second = sorted((tenants.create_with_namespace(), tenants.create_with_namespace()))
    access.bind(unique, second, user_subject(unique))
    client = cluster.client(unique)
    wait_until_listed(client, NAMESPACES, [second])
    token = tenants.client.get(NAMESPACES, query={"limit": 1}).expect(200)["metadata"]["continue"]
    assert list_names(client, NAMESPACES, **{"limit": 500, "continue": token}) == [second]


def test_limits_count_visible_objects(cluster: E2eCluster, tenants: Tenants, access: RbacObjects, unique: str) -> None:
    """limit and remainingItemCount do not reveal hidden objects (API-21)."""
    made = sorted(tenants.create_with_namespace() for _ in range(3))
    for namespace in made:
        access.bind(unique, namespace, user_subject(unique))
    client = cluster.client(unique)
    wait_until_listed(client, NAMESPACES, made)
    page = client.get(NAMESPACES, query={"limit": 2}).expect(200)
    assert [item["metadata"]["name"] for item in page["items"]] == made[:2]
    assert page["metadata"]["remainingItemCount"] == 1
    assert list_names(client, NAMESPACES, limit=2, **{"continue": page["metadata"]["continue"]}) == made[2:]


def test_deleting_a_collection_deletes_only_visible_objects(
    cluster: E2eCluster, tenants: Tenants, access: RbacObjects, unique: str
) -> None:
    granted = tenants.create_with_namespace()
    name = create_child(tenants, granted)
    access.create_role("deleting", granted, {**GET_TENANTS, "verbs": ["deletecollection", "delete", "list"]})
    access.bind("deleting", granted, user_subject(unique), "deleting")
    client = cluster.client(unique)
    wait_until(
        "the role is in effect",
        lambda: client.request("DELETE", tenants_path(granted), query={"dryRun": "All"}).status == 200,
    )
    assert client.request("DELETE", tenants_path(granted)).expect(200).get("items") == []
    assert tenants.client.get(tenants_path(granted, name)).status == 200


def test_a_watch_adds_granted_objects_and_deletes_revoked_ones(
    cluster: E2eCluster, tenants: Tenants, access: RbacObjects, unique: str
) -> None:
    """Within two seconds, with a bookmark after each event (API-24)."""
    granted = tenants.create_with_namespace()
    name = create_child(tenants, granted)
    tenants.wait_until_settled(name, granted)
    client, pace = cluster.client(unique), Pace(cluster.direct_client())
    with open_watch(client, tenants_path()) as of_tenants, open_watch(client, NAMESPACES) as of_namespaces:
        started = time.monotonic()
        access.bind(unique, granted, user_subject(unique))
        for frames, expected in ((of_tenants, name), (of_namespaces, granted)):
            seen = WatchReader(frames)
            added = seen.wait_for_event("ADDED", expected)
            assert added["metadata"]["resourceVersion"]
            seen.wait_for_bookmark()
        granted_after = time.monotonic() - started
        assert granted_after < pace.limit(2)
        # events of visible objects arrive as usual
        tenants.patch(name, {"metadata": {"labels": {"e2e": unique}}}, granted)
        assert WatchReader(of_tenants).wait_for_event("MODIFIED", name)["metadata"]["labels"] == {"e2e": unique}
        started = time.monotonic()
        access.delete(ROLEBINDINGS, unique, granted)
        for frames, expected in ((of_tenants, name), (of_namespaces, granted)):
            seen = WatchReader(frames)
            deleted = seen.wait_for_event("DELETED", expected)
            assert set(deleted) == {"apiVersion", "kind", "metadata"}
            assert set(deleted["metadata"]) <= {"name", "namespace", "uid", "resourceVersion"}
            seen.wait_for_bookmark()
        revoked_after = time.monotonic() - started
        assert revoked_after < pace.limit(2)
    assert list_names(client, tenants_path()) == []


def test_a_changed_role_grants_or_revokes_visibility(
    cluster: E2eCluster, tenants: Tenants, access: RbacObjects, unique: str
) -> None:
    granted = tenants.create_with_namespace()
    client = cluster.client(unique)
    access.create_role("some", granted)
    access.bind("some", granted, user_subject(unique), "some")
    with open_watch(client, NAMESPACES) as frames:
        seen = WatchReader(frames)
        access.replace_rules("some", granted, GET_TENANTS)
        seen.wait_for_event("ADDED", granted)
        access.replace_rules("some", granted, {**GET_TENANTS, "verbs": ["list"]})
        seen.wait_for_event("DELETED", granted)
        access.replace_rules("some", granted, GET_TENANTS)
        seen.wait_for_event("ADDED", granted)
        access.delete(ROLES, "some", granted)
        seen.wait_for_event("DELETED", granted)


def test_a_deleted_namespace_is_reported_whatever_is_deleted_first(
    cluster: E2eCluster, tenants: Tenants, access: RbacObjects, unique: str
) -> None:
    """The binding and the namespace may be deleted in either order (API-24)."""
    granted = tenants.create_with_namespace()
    access.bind(unique, granted, user_subject(unique))
    client = cluster.client(unique)
    wait_until_listed(client, NAMESPACES, [granted])
    tenant = next(
        each
        for each in tenants.client.get(tenants_path(ROOT)).expect(200)["items"]
        if each["status"]["namespace"] == granted
    )
    with open_watch(client, NAMESPACES) as frames:
        assert tenants.client.request("DELETE", tenants_path(ROOT, tenant["metadata"]["name"])).status == 200
        WatchReader(frames).wait_for_event("DELETED", granted)


def test_a_resumed_watch_reports_what_was_granted_and_revoked_meanwhile(
    cluster: E2eCluster, tenants: Tenants, access: RbacObjects, unique: str
) -> None:
    gained, lost = tenants.create_with_namespace(), tenants.create_with_namespace()
    access.bind(unique, lost, user_subject(unique))
    client = cluster.client(unique)
    wait_until_listed(client, NAMESPACES, [lost])
    version = client.get(NAMESPACES).expect(200)["metadata"]["resourceVersion"]
    access.bind(unique, gained, user_subject(unique))
    access.delete(ROLEBINDINGS, unique, lost)
    wait_until_listed(client, NAMESPACES, [gained])
    with open_watch(client, NAMESPACES, version) as frames:
        seen = WatchReader(frames)
        events = {(frame["type"], frame["object"]["metadata"]["name"]) for frame in (next(frames), next(frames))}
        assert events == {("ADDED", gained), ("DELETED", lost)}
        assert int(seen.wait_for_bookmark()) >= int(version)


def test_a_resumed_watch_reports_lost_objects_that_changed_meanwhile(
    cluster: E2eCluster, tenants: Tenants, access: RbacObjects, unique: str
) -> None:
    """The client gets DELETED of objects that no longer match the selector, or are others of the same name (API-24)."""
    parent = tenants.create_with_namespace()
    relabelled, recreated = (
        tenants.create(parent, labels={"e2e": unique})["metadata"]["name"] for _ in ("relabelled", "recreated")
    )
    access.bind(unique, parent, user_subject(unique))
    client = cluster.client(unique)
    wait_until_listed(client, tenants_path(), [relabelled, recreated])
    version = client.get(tenants_path()).expect(200)["metadata"]["resourceVersion"]
    access.delete(ROLEBINDINGS, unique, parent)
    wait_until_listed(client, tenants_path(), [])
    tenants.patch(relabelled, {"metadata": {"labels": {"e2e": "another"}}}, parent)
    tenants.client.request("DELETE", tenants_path(parent, recreated)).expect(200)
    tenants.wait_until_gone(tenants_path(parent, recreated))
    again = manifest(recreated, parent, labels={"e2e": unique})
    tenants.client.request("POST", tenants_path(parent), again).expect(201)
    with open_watch(client, tenants_path(), version, labelSelector=f"e2e={unique}") as frames:
        events = {(frame["type"], frame["object"]["metadata"]["name"]) for frame in (next(frames), next(frames))}
    assert events == {("DELETED", relabelled), ("DELETED", recreated)}


def test_a_resumed_watch_does_not_repeat_what_was_granted_before(
    embedded: E2eCluster, tenants: Tenants, access: RbacObjects, unique: str
) -> None:
    """The only server knows that the client got the grant, before the event that the client resumes from."""
    granted = tenants.create_with_namespace()
    name = create_child(tenants, granted)
    tenants.wait_until_settled(name, granted)
    client = embedded.client(unique)
    with open_watch(client, tenants_path()) as frames:
        access.bind(unique, granted, user_subject(unique))
        WatchReader(frames).wait_for_event("ADDED", name)
        tenants.patch(name, {"metadata": {"labels": {"e2e": "first"}}}, granted)
        seen = WatchReader(frames).wait_for_event("MODIFIED", name)
    tenants.patch(name, {"metadata": {"labels": {"e2e": "second"}}}, granted)
    with open_watch(client, tenants_path(), seen["metadata"]["resourceVersion"]) as frames:
        events = [next(frames)]
        tenants.patch(name, {"metadata": {"labels": {"e2e": "third"}}}, granted)
        events.append(next(frames))
    assert [(each["type"], each["object"]["metadata"]["labels"]["e2e"]) for each in events] == [
        ("MODIFIED", "second"),
        ("MODIFIED", "third"),
    ]


def test_a_watch_list_begins_with_the_visible_objects(
    cluster: E2eCluster, tenants: Tenants, access: RbacObjects, unique: str
) -> None:
    granted = tenants.create_with_namespace()
    tenants.create_with_namespace()
    access.bind(unique, granted, user_subject(unique))
    client = cluster.client(unique)
    wait_until_listed(client, NAMESPACES, [granted])
    query = {
        "watch": "true",
        "allowWatchBookmarks": "true",
        "sendInitialEvents": "true",
        "resourceVersionMatch": "NotOlderThan",
    }
    with client.stream(NAMESPACES, query=query) as frames:
        first, end = next(frames), next(frames)
    assert (first["type"], first["object"]["metadata"]["name"]) == ("ADDED", granted)
    assert end["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}


def test_kubectl_shows_users_what_is_visible_to_them(
    cluster: E2eCluster, tenants: Tenants, access: RbacObjects, unique: str
) -> None:
    """Tables of visible objects, and a rejected delete (R-326)."""
    granted = tenants.create_with_namespace()
    name = create_child(tenants, granted)
    access.bind(unique, granted, user_subject(unique))
    wait_until_listed(cluster.client(unique), tenants_path(), [name])
    lines = cluster.kubectl("get", "tenants", "-A", as_user=unique).stdout.splitlines()
    assert [line.split()[:2] for line in lines[1:]] == [[granted, name]]
    lines = cluster.kubectl("get", "tenantnamespaces", as_user=unique).stdout.splitlines()
    assert [line.split()[:2] for line in lines] == [["NAME", "STATUS"], [granted, "Active"]]
    rejected = cluster.kubectl("delete", "tenantnamespaces", granted, as_user=unique, status=1)
    assert "does not allow this method" in rejected.stderr or "forbidden" in rejected.stderr


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_tenant_namespaces_cannot_be_written(cluster: E2eCluster, method: str) -> None:
    """TenantNamespaces are read-only (R-330)."""
    path = NAMESPACES if method == "POST" else f"{NAMESPACES}/{ROOT}"
    rejected = cluster.client().request(method, path, manifest("x"), content_type="application/json")
    assert rejected.expect(405)["reason"] == "MethodNotAllowed"
