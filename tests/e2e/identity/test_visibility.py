"""Everybody may list and watch; what they see is what RBAC lets them get.

R-327 to R-343, API-21 to API-27, ATTACK-04, ATTACK-05, ATTACK-15.
"""

from __future__ import annotations

import random
import time
from collections.abc import Sequence

import pytest

from registry.rbac.role_index import to_policy_rule
from tests.e2e.support.clusters import RBAC, ROOT, E2eCluster, tenants_path
from tests.e2e.support.https_client import Client
from tests.e2e.support.processes import wait_until
from tests.e2e.support.tenants import Tenants, manifest
from tests.e2e.support.visibility import (
    GET_TENANTS,
    NAMESPACES,
    PARTIAL,
    ROLEBINDINGS,
    ROLES,
    TABLE,
    Access,
    Seen,
    child,
    group,
    names,
    sees,
    user,
    watch,
)
from tests.random_rbac import random_rule


def test_who_holds_nothing_sees_nothing(cluster: E2eCluster, tenants: Tenants, unique: str) -> None:
    """R-337."""
    child(tenants, tenants.nest())
    nobody = cluster.session(unique)
    assert names(nobody, tenants_path()) == []
    assert names(nobody, tenants_path(ROOT)) == []
    assert names(nobody, NAMESPACES) == []


def test_who_may_get_tenants_in_a_namespace_sees_them_and_it(
    cluster: E2eCluster, tenants: Tenants, access: Access, unique: str
) -> None:
    """R-325, API-25."""
    mine, other = tenants.nest(), tenants.nest()
    name = child(tenants, mine)
    child(tenants, other)
    client = cluster.session(unique)
    access.bind(unique, mine, user(unique))
    sees(client, tenants_path(), [name])
    sees(client, NAMESPACES, [mine])
    assert names(client, tenants_path(mine)) == [name]
    assert names(client, tenants_path(other)) == []
    shown = client.get(f"{NAMESPACES}/{mine}").expect(200)
    listed = client.get(NAMESPACES).expect(200)["items"][0]
    assert shown == {"apiVersion": shown["apiVersion"], "kind": "TenantNamespace", **listed}
    assert shown["metadata"]["uid"] == tenants.client.get(f"/api/v1/namespaces/{mine}").json()["metadata"]["uid"]


def test_a_binding_that_grants_neither_shows_nothing(
    cluster: E2eCluster, tenants: Tenants, access: Access, unique: str
) -> None:
    """API-23."""
    mine = tenants.nest()
    child(tenants, mine)
    access.role("empty", mine)
    access.role("pods", mine, {"apiGroups": [""], "resources": ["pods"], "verbs": ["*"]})
    access.role("listing", mine, {**GET_TENANTS, "verbs": ["list", "watch"]})
    access.role("named", mine, {**GET_TENANTS, "resourceNames": ["x"]})
    access.role("status", mine, {**GET_TENANTS, "resources": ["tenants/status"]})
    for role in ("empty", "pods", "listing", "named", "status"):
        access.bind(role, mine, user(unique), role)
    # what is granted last is seen last: by then the rest has been taken into account
    second = tenants.nest()
    access.bind(unique, second, user(unique))
    sees(cluster.session(unique), NAMESPACES, [second])
    assert names(cluster.session(unique), tenants_path()) == []


def test_groups_service_accounts_and_the_whole_cluster_count(
    cluster: E2eCluster, tenants: Tenants, access: Access, unique: str
) -> None:
    """R-332, API-22."""
    mine = tenants.nest()
    name = child(tenants, mine)
    access.bind(f"{unique}-group", mine, group(f"{unique}-g"))
    sees(cluster.session(unique, [f"{unique}-g"]), tenants_path(), [name])
    access.bind(f"{unique}-all", "", user(f"{unique}-all"))
    everything = cluster.session(f"{unique}-all")
    wait_until("all is seen", lambda: mine in names(everything, NAMESPACES), seconds=10)
    assert names(everything, tenants_path()) == names(cluster.session(), tenants_path())
    assert ROOT in names(everything, NAMESPACES)


def test_who_may_get_a_namespace_sees_it_and_no_tenants(
    cluster: E2eCluster, tenants: Tenants, access: Access, unique: str
) -> None:
    mine = tenants.nest()
    child(tenants, mine)
    rule = {"apiGroups": [""], "resources": ["namespaces"], "resourceNames": [mine], "verbs": ["get"]}
    access.make("clusterroles", {"metadata": {"name": f"{unique}:ns"}, "rules": [rule]})
    access.bind(unique, "", user(unique), f"{unique}:ns")
    sees(cluster.session(unique), NAMESPACES, [mine])
    assert names(cluster.session(unique), tenants_path()) == []


def test_what_is_hidden_cannot_be_told_from_what_is_not_there(
    cluster: E2eCluster, tenants: Tenants, access: Access, unique: str
) -> None:
    """R-327."""
    hidden, mine = tenants.nest(), tenants.nest()
    name = child(tenants, hidden)
    own = child(tenants, mine)
    access.bind(unique, mine, user(unique))
    client = cluster.session(unique)
    sees(client, tenants_path(), [own])
    missing = "tenant-nowhere"
    there, nowhere = client.get(f"{NAMESPACES}/{hidden}"), client.get(f"{NAMESPACES}/{missing}")
    assert (there.status, nowhere.status) == (404, 404)
    assert there.body.replace(hidden.encode(), b"X") == nowhere.body.replace(missing.encode(), b"X")
    refused = [client.get(tenants_path(hidden, each)) for each in (name, "nothere")]
    assert [each.status for each in refused] == [403, 403]
    assert refused[0].body.replace(name.encode(), b"X") == refused[1].body.replace(b"nothere", b"X")
    for query in (
        {"fieldSelector": f"metadata.name={name}"},
        {"fieldSelector": f"metadata.namespace={hidden}"},
        {"labelSelector": "x!=y", "fieldSelector": f"metadata.namespace={hidden}"},
        {"resourceVersion": "0", "fieldSelector": f"metadata.name={name}"},
    ):
        assert names(client, tenants_path(), **query) == []
    first = client.get(tenants_path(), query={"limit": 1}).expect(200)["metadata"]
    assert "continue" not in first
    assert "remainingItemCount" not in first
    table = client.get(tenants_path(), headers={"Accept": TABLE}).expect(200)
    assert [row["cells"][0] for row in table["rows"]] == [own]
    partial = client.get(tenants_path(), headers={"Accept": PARTIAL}).expect(200)
    assert [item["metadata"]["name"] for item in partial["items"]] == [own]


def test_a_continue_token_of_somebody_else_shows_no_more(
    cluster: E2eCluster, tenants: Tenants, access: Access, unique: str
) -> None:
    _, second = sorted((tenants.nest(), tenants.nest()))
    access.bind(unique, second, user(unique))
    client = cluster.session(unique)
    sees(client, NAMESPACES, [second])
    token = tenants.client.get(NAMESPACES, query={"limit": 1}).expect(200)["metadata"]["continue"]
    assert names(client, NAMESPACES, **{"limit": 500, "continue": token}) == [second]


def test_limits_count_what_is_seen(cluster: E2eCluster, tenants: Tenants, access: Access, unique: str) -> None:
    """API-21."""
    made = sorted(tenants.nest() for _ in range(3))
    for namespace in made:
        access.bind(unique, namespace, user(unique))
    client = cluster.session(unique)
    sees(client, NAMESPACES, made)
    page = client.get(NAMESPACES, query={"limit": 2}).expect(200)
    assert [item["metadata"]["name"] for item in page["items"]] == made[:2]
    assert page["metadata"]["remainingItemCount"] == 1
    assert names(client, NAMESPACES, limit=2, **{"continue": page["metadata"]["continue"]}) == made[2:]


def test_a_collection_is_deleted_as_far_as_it_is_seen(
    cluster: E2eCluster, tenants: Tenants, access: Access, unique: str
) -> None:
    mine = tenants.nest()
    name = child(tenants, mine)
    access.role("deleting", mine, {**GET_TENANTS, "verbs": ["deletecollection", "delete", "list"]})
    access.bind("deleting", mine, user(unique), "deleting")
    client = cluster.session(unique)
    wait_until(
        "the role counts",
        lambda: client.request("DELETE", tenants_path(mine), query={"dryRun": "All"}).status == 200,
        seconds=10,
    )
    assert client.request("DELETE", tenants_path(mine)).expect(200).get("items") == []
    assert tenants.client.get(tenants_path(mine, name)).status == 200


def test_a_watch_gains_what_is_granted_and_loses_what_is_revoked(
    cluster: E2eCluster, tenants: Tenants, access: Access, unique: str
) -> None:
    """API-24."""
    mine = tenants.nest()
    name = child(tenants, mine)
    tenants.wait("it has settled", lambda: tenants.get(name, mine)["status"].get("conditions"))
    client = cluster.session(unique)
    with watch(client, tenants_path()) as of_tenants, watch(client, NAMESPACES) as of_namespaces:
        started = time.monotonic()
        access.bind(unique, mine, user(unique))
        for frames, there in ((of_tenants, name), (of_namespaces, mine)):
            seen = Seen(frames)
            added = seen.until("ADDED", there)
            assert added["metadata"]["resourceVersion"]
            seen.bookmark()
        assert time.monotonic() - started < 2
        # an event of what is seen is told as ever
        tenants.patch(name, {"metadata": {"labels": {"e2e": unique}}}, mine)
        assert Seen(of_tenants).until("MODIFIED", name)["metadata"]["labels"] == {"e2e": unique}
        started = time.monotonic()
        access.drop(ROLEBINDINGS, unique, mine)
        for frames, there in ((of_tenants, name), (of_namespaces, mine)):
            seen = Seen(frames)
            gone = seen.until("DELETED", there)
            assert set(gone) == {"apiVersion", "kind", "metadata"}
            assert set(gone["metadata"]) <= {"name", "namespace", "uid", "resourceVersion"}
            seen.bookmark()
        assert time.monotonic() - started < 2
    assert names(client, tenants_path()) == []


def test_a_role_that_changes_is_a_grant_or_a_revocation(
    cluster: E2eCluster, tenants: Tenants, access: Access, unique: str
) -> None:
    mine = tenants.nest()
    client = cluster.session(unique)
    access.role("some", mine)
    access.bind("some", mine, user(unique), "some")
    with watch(client, NAMESPACES) as frames:
        seen = Seen(frames)
        access.replace_rules("some", mine, GET_TENANTS)
        seen.until("ADDED", mine)
        access.replace_rules("some", mine, {**GET_TENANTS, "verbs": ["list"]})
        seen.until("DELETED", mine)
        access.replace_rules("some", mine, GET_TENANTS)
        seen.until("ADDED", mine)
        access.drop(ROLES, "some", mine)
        seen.until("DELETED", mine)


def test_a_namespace_that_goes_is_told_of_whatever_goes_first(
    cluster: E2eCluster, tenants: Tenants, access: Access, unique: str
) -> None:
    """API-24."""
    mine = tenants.nest()
    access.bind(unique, mine, user(unique))
    client = cluster.session(unique)
    sees(client, NAMESPACES, [mine])
    tenant = next(
        each
        for each in tenants.client.get(tenants_path(ROOT)).expect(200)["items"]
        if each["status"]["namespace"] == mine
    )
    with watch(client, NAMESPACES) as frames:
        assert tenants.client.request("DELETE", tenants_path(ROOT, tenant["metadata"]["name"])).status == 200
        Seen(frames).until("DELETED", mine)


def test_a_watch_that_goes_on_is_told_what_was_granted_and_revoked_meanwhile(
    cluster: E2eCluster, tenants: Tenants, access: Access, unique: str
) -> None:
    gained, lost = tenants.nest(), tenants.nest()
    access.bind(unique, lost, user(unique))
    client = cluster.session(unique)
    sees(client, NAMESPACES, [lost])
    version = client.get(NAMESPACES).expect(200)["metadata"]["resourceVersion"]
    access.bind(unique, gained, user(unique))
    access.drop(ROLEBINDINGS, unique, lost)
    sees(client, NAMESPACES, [gained])
    with watch(client, NAMESPACES, version) as frames:
        seen = Seen(frames)
        told = {(frame["type"], frame["object"]["metadata"]["name"]) for frame in (next(frames), next(frames))}
        assert told == {("ADDED", gained), ("DELETED", lost)}
        assert int(seen.bookmark()) >= int(version)


def test_a_watch_list_begins_with_what_is_seen(
    cluster: E2eCluster, tenants: Tenants, access: Access, unique: str
) -> None:
    mine = tenants.nest()
    tenants.nest()
    access.bind(unique, mine, user(unique))
    client = cluster.session(unique)
    sees(client, NAMESPACES, [mine])
    query = {
        "watch": "true",
        "allowWatchBookmarks": "true",
        "sendInitialEvents": "true",
        "resourceVersionMatch": "NotOlderThan",
    }
    with client.stream(NAMESPACES, query=query, seconds=30) as frames:
        first, end = next(frames), next(frames)
    assert (first["type"], first["object"]["metadata"]["name"]) == ("ADDED", mine)
    assert end["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}


def test_kubectl_shows_people_what_is_theirs(
    cluster: E2eCluster, tenants: Tenants, access: Access, unique: str
) -> None:
    """R-326."""
    mine = tenants.nest()
    name = child(tenants, mine)
    access.bind(unique, mine, user(unique))
    sees(cluster.session(unique), tenants_path(), [name])
    lines = cluster.kubectl("get", "tenants", "-A", as_user=unique).stdout.splitlines()
    assert [line.split()[:2] for line in lines[1:]] == [[mine, name]]
    lines = cluster.kubectl("get", "tenantnamespaces", as_user=unique).stdout.splitlines()
    assert [line.split()[:2] for line in lines] == [["NAME", "STATUS"], [mine, "Active"]]
    refused = cluster.kubectl("delete", "tenantnamespaces", mine, as_user=unique, status=1)
    assert "does not allow this method" in refused.stderr or "forbidden" in refused.stderr


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_tenant_namespaces_cannot_be_written(cluster: E2eCluster, method: str) -> None:
    """R-330."""
    path = NAMESPACES if method == "POST" else f"{NAMESPACES}/{ROOT}"
    refused = cluster.session().request(method, path, manifest("x"), content_type="application/json")
    assert refused.expect(405)["reason"] == "MethodNotAllowed"


def review(client: Client, who: str, groups: Sequence[str], namespace: str, **resource: str) -> bool:
    """What the host says of `get`."""
    attributes = {"verb": "get", "namespace": namespace, **resource}
    spec = {"user": who, "groups": list(groups), "resourceAttributes": attributes}
    path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
    answer = client.request("POST", path, {"spec": spec}).expect(201)
    return bool(answer["status"].get("allowed"))


def test_what_is_seen_is_what_the_host_s_reviews_allow(
    cluster: E2eCluster, tenants: Tenants, access: Access, unique: str
) -> None:
    """Random roles and bindings: no difference between lists and reviews, place by place and user by user."""
    rng = random.Random(11)
    places = [tenants.nest() for _ in range(6)]
    children = {place: child(tenants, place) for place in places}
    people = {f"{unique}a": [f"{unique}g"], f"{unique}b": [], f"{unique}c": [f"{unique}g", f"{unique}h"]}
    subjects = [*(user(name) for name in people), group(f"{unique}g"), group(f"{unique}h")]
    for number in range(60):
        name, namespace = f"{unique}-{number}", rng.choice([*places, *places, ""])
        rules = [to_policy_rule(random_rule(rng, places)) for _ in range(rng.randint(0, 2))]
        kind = "Role" if namespace and rng.random() < 0.5 else "ClusterRole"
        path = ROLES if kind == "Role" else "clusterroles"
        access.make(path, {"metadata": {"name": name}, "rules": rules}, namespace if kind == "Role" else "")
        body = {
            "metadata": {"name": name},
            "roleRef": {"apiGroup": RBAC, "kind": kind, "name": name},
            "subjects": rng.sample(subjects, 1),
        }
        access.make(ROLEBINDINGS if namespace else "clusterrolebindings", body, namespace)
    last = f"{unique}last"
    access.bind("last", places[0], user(last))
    sees(cluster.session(last), NAMESPACES, [places[0]])
    admin, counted = cluster.session(), {True: 0, False: 0}
    for name, groups in people.items():
        groups = [*groups, "system:authenticated"]
        client = cluster.session(name, groups[:-1])
        shown, listed = set(names(client, NAMESPACES)), set(names(client, tenants_path()))
        for place in places:
            of_tenants = review(admin, name, groups, place, group="apps.cozystack.io", resource="tenants")
            of_namespace = review(admin, name, groups, place, resource="namespaces", name=place)
            assert (place in shown) == (of_tenants or of_namespace), (name, place)
            assert (children[place] in listed) == of_tenants, (name, place)
            counted[of_tenants] += 1
    assert min(counted.values()) >= 3
