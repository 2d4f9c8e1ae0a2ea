"""ATTACK-05: access that outlives its revocation.

The effect of a grant and of a revocation in general is tested in tests/e2e/identity/test_visibility.py.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import pytest

from tests.e2e.support.applying import APPLY, MERGE, configuration
from tests.e2e.support.clusters.cluster import PATIENCE, ROOT, E2eCluster, tenants_path
from tests.e2e.support.clusters.processes import wait_until
from tests.e2e.support.http.https_client import Client
from tests.e2e.support.http.pace import Pace
from tests.e2e.support.tenants import Object, Tenants, manifest
from tests.e2e.support.visibility import (
    GET_TENANTS,
    NAMESPACES,
    ROLEBINDINGS,
    RbacObjects,
    WatchReader,
    create_child,
    group_subject,
    list_names,
    open_watch,
    rbac_path,
    user_subject,
    wait_until_listed,
)

MAX_SECONDS = 1.0
# for which an authorizer may use the answer to a review
REVIEW_SECONDS = 10.0
ROUNDS = 3


@dataclass(frozen=True, slots=True)
class RevocableTenant:
    """A workload namespace with the Tenant `name` in it, and a client that sees them only while `subject` has a
    grant."""

    access: RbacObjects
    admin: Client
    client: Client
    subject: Object
    namespace: str
    name: str

    def grant(self) -> None:
        self.access.bind("grant", self.namespace, self.subject)

    def patch(self, path: str, body: Object) -> None:
        self.admin.request("PATCH", path, body, content_type=MERGE).expect(200)


GrantAndRevocation = tuple[Callable[[RevocableTenant], None], Callable[[RevocableTenant], None]]
"""The functions that grant the access and revoke it."""


def _grant_by_role(revocable: RevocableTenant) -> None:
    revocable.access.create_role("some", revocable.namespace, GET_TENANTS)
    revocable.access.bind("grant", revocable.namespace, revocable.subject, "some")


def _delete_role(revocable: RevocableTenant) -> None:
    revocable.access.delete(ROLEBINDINGS, "grant", revocable.namespace)
    revocable.access.delete("roles", "some", revocable.namespace)


def _grant_by_cluster_role(revocable: RevocableTenant) -> None:
    rule = {**GET_TENANTS, "apiGroups": ["apps.cozystack.io"]}
    revocable.access.create("clusterroles", {"metadata": {"name": f"attack:{revocable.namespace}"}, "rules": [rule]})
    revocable.access.bind(revocable.namespace, "", revocable.subject, f"attack:{revocable.namespace}")


def _delete_cluster_role(revocable: RevocableTenant) -> None:
    revocable.access.delete("clusterrolebindings", revocable.namespace)
    revocable.access.delete("clusterroles", f"attack:{revocable.namespace}")


def _remove_get_from_role(revocable: RevocableTenant) -> None:
    revocable.access.replace_rules("some", revocable.namespace, {**GET_TENANTS, "verbs": ["list", "watch"]})


def _replace_subject(revocable: RevocableTenant) -> None:
    body = {"subjects": [group_subject("others")]}
    revocable.patch(rbac_path(ROLEBINDINGS, revocable.namespace, "grant"), body)


def _delete_binding(revocable: RevocableTenant) -> None:
    revocable.access.delete(ROLEBINDINGS, "grant", revocable.namespace)


REVOCATIONS = [
    pytest.param(RevocableTenant.grant, _delete_binding, _delete_binding, id="RoleBinding deleted"),
    pytest.param(_grant_by_role, _remove_get_from_role, _delete_role, id="Role without get"),
    pytest.param(RevocableTenant.grant, _replace_subject, _delete_binding, id="subject replaced"),
    pytest.param(_grant_by_cluster_role, _delete_cluster_role, _delete_cluster_role, id="ClusterRoleBinding deleted"),
]


@pytest.fixture
def revocable(cluster: E2eCluster, tenants: Tenants, access: RbacObjects, unique: str) -> RevocableTenant:
    namespace = tenants.create_with_namespace()
    name = create_child(tenants, namespace)
    tenants.wait_until_settled(name, namespace)
    client = cluster.client(unique, [f"{unique}-group"])
    return RevocableTenant(access, cluster.client(), client, group_subject(f"{unique}-group"), namespace, name)


def wait_for_event(frames: Iterator[Object], type_: str, name: str) -> Object:
    return WatchReader(frames).wait_for_event(type_, name)


@pytest.mark.parametrize(("grant", "revoke", "clean_up"), REVOCATIONS)
def test_a_watch_loses_revoked_objects_within_a_second(
    cluster: E2eCluster,
    revocable: RevocableTenant,
    tenants: Tenants,
    grant: Callable[[RevocableTenant], None],
    revoke: Callable[[RevocableTenant], None],
    clean_up: Callable[[RevocableTenant], None],
) -> None:
    """The DELETED event has only the object's identity. The median of some rounds counts, so that one pause of the
    machine does not fail the test."""
    durations, pace = list[float](), Pace(cluster.direct_client())
    with (
        open_watch(revocable.client, tenants_path()) as of_tenants,
        open_watch(revocable.client, NAMESPACES) as of_namespaces,
    ):
        for number in range(ROUNDS):
            grant(revocable)
            wait_for_event(of_tenants, "ADDED", revocable.name)
            wait_for_event(of_namespaces, "ADDED", revocable.namespace)
            started = time.monotonic()
            revoke(revocable)
            for frames, name in ((of_tenants, revocable.name), (of_namespaces, revocable.namespace)):
                deleted = wait_for_event(frames, "DELETED", name)
                assert set(deleted) == {"apiVersion", "kind", "metadata"}
                assert set(deleted["metadata"]) <= {"name", "namespace", "uid", "resourceVersion"}
            durations.append(time.monotonic() - started)
            tenants.patch(revocable.name, {"metadata": {"labels": {"round": f"hidden-{number}"}}}, revocable.namespace)
            assert list_names(revocable.client, tenants_path()) == []
            if number + 1 < ROUNDS and revoke is not clean_up:
                clean_up(revocable)
        assert statistics.median(durations) < pace.limit(MAX_SECONDS), durations
        # the next event is about another object: there was none about the hidden one in between
        other = tenants.create_with_namespace()
        child = create_child(tenants, other)
        revocable.access.bind("other", other, revocable.subject)
        for frames, name, hidden in ((of_tenants, child, revocable.name), (of_namespaces, other, revocable.namespace)):
            for frame in frames:
                received = frame["object"]["metadata"].get("name")
                assert received != hidden, frame
                if received == name:
                    break


def test_gets_and_lists_do_not_show_revoked_objects(revocable: RevocableTenant, tenants: Tenants) -> None:
    """Lists are empty as soon as the watch has its DELETED event. A `get` may be allowed for ten more seconds, since
    reviews are cached, as in any aggregated server."""
    with open_watch(revocable.client, tenants_path()) as frames:
        revocable.grant()
        wait_for_event(frames, "ADDED", revocable.name)
        # the cluster's authorizer may see the grant after our server
        path = tenants_path(revocable.namespace, revocable.name)
        tenants.wait("the get is allowed", lambda: revocable.client.get(path).status == 200)
        _delete_binding(revocable)
        wait_for_event(frames, "DELETED", revocable.name)
    for query in ({}, {"resourceVersion": "0"}, {"fieldSelector": f"metadata.name={revocable.name}"}, {"limit": "1"}):
        for collection in (tenants_path(), tenants_path(revocable.namespace)):
            assert list_names(revocable.client, collection, **query) == []
    assert revocable.client.get(f"{NAMESPACES}/{revocable.namespace}").status == 404
    pace, started = Pace(tenants.client), time.monotonic()
    wait_until("the get is denied", lambda: revocable.client.get(path).status == 403, seconds=PATIENCE)
    elapsed = time.monotonic() - started
    assert elapsed < REVIEW_SECONDS + pace.limit(5)


WRITE_VERBS = ("create", "get", "update", "patch", "delete", "deletecollection")


def _send_dry_runs(client: Client, namespace: str, name: str) -> dict[str, int]:
    """Sends every kind of write as a dry run, which can be repeated, and returns the status codes."""
    dry, collection, path = {"dryRun": "All"}, tenants_path(namespace), tenants_path(namespace, name)
    new, applied = manifest("other", namespace), configuration(name, spec={})
    field_manager = {**dry, "fieldManager": "attack", "force": "true"}
    return {
        "create": client.request("POST", collection, new, query=dry).status,
        "update": client.request("PUT", path, manifest(name, namespace), query=dry).status,
        "patch": client.request("PATCH", path, {"spec": {"etcd": True}}, query=dry, content_type=MERGE).status,
        "apply": client.request("PATCH", path, applied, query=field_manager, content_type=APPLY).status,
        "delete": client.request("DELETE", path, query=dry).status,
        "deletecollection": client.request("DELETE", collection, query=dry).status,
    }


def test_no_write_passes_after_a_revocation(
    cluster: E2eCluster, tenants: Tenants, access: RbacObjects, unique: str
) -> None:
    """Neither through the aggregator nor past it, although each write was allowed a moment before."""
    namespace = tenants.create_with_namespace()
    name = create_child(tenants, namespace)
    access.create_role("writer", namespace, {**GET_TENANTS, "verbs": WRITE_VERBS})
    access.bind("writer", namespace, user_subject(unique), "writer")
    clients = [cluster.direct_client(unique), cluster.client(unique)]
    for client in clients:
        tenants.wait(
            "writes are allowed", lambda c=client: set(_send_dry_runs(c, namespace, name).values()) <= {200, 201}
        )
    access.delete(ROLEBINDINGS, "writer", namespace)
    tenants.wait("the cluster denies writes", lambda: not _is_allowed(cluster, unique, namespace))
    for client in clients:
        answers = _send_dry_runs(client, namespace, name)
        assert set(answers.values()) == {403}, answers


def _is_allowed(cluster: E2eCluster, user: str, namespace: str) -> bool:
    """Asks the cluster for a review of its own, which no cache of ours answers."""
    attributes = {"verb": "create", "group": "apps.cozystack.io", "resource": "tenants", "namespace": namespace}
    review = {"spec": {"user": user, "resourceAttributes": attributes}}
    answer = cluster.client().request("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", review)
    return bool(answer.expect(201)["status"]["allowed"])


def test_an_impersonator_loses_the_identity_with_the_right_to_it(
    cluster: E2eCluster, tenants: Tenants, access: RbacObjects, unique: str
) -> None:
    namespace = tenants.create_with_namespace()
    other = f"{unique}-other"
    access.bind("viewer", namespace, user_subject(other))
    rule = {"apiGroups": [""], "resources": ["users"], "verbs": ["impersonate"], "resourceNames": [other]}
    access.create("clusterroles", {"metadata": {"name": f"attack:{unique}"}, "rules": [rule]})
    access.bind(unique, "", user_subject(unique), f"attack:{unique}")
    client, headers = cluster.client(unique), {"Impersonate-User": other}
    path = tenants_path(namespace)
    tenants.wait("the list is allowed", lambda: client.get(path, headers=headers).status == 200)
    access.delete("clusterrolebindings", unique)
    tenants.wait("the list is denied", lambda: client.get(path, headers=headers).status == 403)


@pytest.mark.controller_manager
def test_a_recreated_tenant_needs_a_new_grant(
    cluster: E2eCluster, tenants: Tenants, access: RbacObjects, unique: str
) -> None:
    name = tenants.new_name()
    client, path, namespace = cluster.client(), tenants_path(ROOT), f"tenant-{name}"
    client.request("POST", path, manifest(name)).expect(201)
    tenants.wait_for_namespace(namespace)
    inner = create_child(tenants, namespace)
    access.bind("grant", namespace, user_subject(unique))
    person = cluster.client(unique)
    wait_until_listed(person, NAMESPACES, [namespace])
    with open_watch(person, NAMESPACES) as of_namespaces, open_watch(person, tenants_path()) as of_tenants:
        client.request("DELETE", tenants_path(ROOT, name), query={"propagationPolicy": "Foreground"}).expect(200)
        wait_for_event(of_tenants, "DELETED", inner)
        wait_for_event(of_namespaces, "DELETED", namespace)
        tenants.wait_until_gone(tenants_path(ROOT, name))
        client.request("POST", path, manifest(name)).expect(201)
        tenants.wait_for_namespace(namespace)
        tenants.wait("the child can be created again", lambda: _is_created(client, tenants, namespace, inner))
        assert list_names(person, NAMESPACES) == list_names(person, tenants_path()) == []
        access.bind("again", namespace, user_subject(unique))
        assert wait_for_event(of_namespaces, "ADDED", namespace)["metadata"]["uid"]
        assert wait_for_event(of_tenants, "ADDED", inner)["metadata"]["namespace"] == namespace


def _is_created(client: Client, tenants: Tenants, namespace: str, name: str) -> bool:
    return client.request("POST", tenants_path(namespace), manifest(name, namespace)).status == 201


def test_continue_tokens_and_versions_from_before_a_revocation_show_nothing(
    cluster: E2eCluster, tenants: Tenants, access: RbacObjects, unique: str
) -> None:
    namespaces = sorted(tenants.create_with_namespace() for _ in range(3))
    for namespace in namespaces:
        access.bind("grant", namespace, user_subject(unique))
    client = cluster.client(unique)
    wait_until_listed(client, NAMESPACES, namespaces)
    page = client.get(NAMESPACES, query={"limit": 1}).expect(200)["metadata"]
    version, token = page["resourceVersion"], page["continue"]
    for namespace in namespaces:
        access.delete(ROLEBINDINGS, "grant", namespace)
    wait_until_listed(client, NAMESPACES, [])
    for parameters in _resuming_queries(version, token):
        answer = client.get(NAMESPACES, query=parameters)
        assert answer.status in (200, 410), answer.body
        assert not any(namespace in answer.content.decode() for namespace in namespaces)
    query = {"watch": "true", "resourceVersion": version, "timeoutSeconds": "2", "allowWatchBookmarks": "true"}
    with client.stream(NAMESPACES, query=query) as frames:
        for frame in frames:
            # the user saw the namespaces at this version, so DELETED events reveal nothing new
            assert frame["type"] in ("DELETED", "BOOKMARK", "ERROR"), frame
            assert "status" not in frame["object"] or frame["type"] == "ERROR"


def _resuming_queries(version: str, token: str) -> Iterator[Mapping[str, str]]:
    yield {"limit": "1", "continue": token}
    yield {"limit": "500", "continue": token}
    yield {"resourceVersion": version, "resourceVersionMatch": "Exact"}
    yield {"resourceVersion": version, "resourceVersionMatch": "NotOlderThan"}
    yield {"resourceVersion": version, "resourceVersionMatch": "Exact", "limit": "2"}
