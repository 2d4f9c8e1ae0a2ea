"""ATTACK-04: access to a foreign Tenant by name, list, watch, table, selector, count and page.

ATTACK-15 tests that hidden objects are indistinguishable from missing ones; further tests of lists are in
tests/e2e/identity/test_visibility.py.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import pytest

from tests.attacks.support.two_tenants import TenantAdmin
from tests.e2e.support.applying import APPLY, MERGE, configuration
from tests.e2e.support.clusters.cluster import E2eCluster, tenants_path
from tests.e2e.support.http.https_client import Client, Response
from tests.e2e.support.peer_lessons import JSON_PATCH
from tests.e2e.support.tenants import Object, Tenants, manifest
from tests.e2e.support.visibility import NAMESPACES, PARTIAL, TABLE, list_names

JSON = "application/json"
PARTIAL_OBJECT = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
WHOLE_TABLE = {"includeObject": "Object"}


class HiddenTenant:
    """Bob's child Tenant, and the words that alice must not learn: they occur only in bob's objects."""

    def __init__(self, bob: TenantAdmin, tenants: Tenants) -> None:
        self.bob = bob
        self.tenant = tenants.get(bob.child, bob.namespace)
        self.version: str = self.tenant["metadata"]["resourceVersion"]
        self.uid: str = self.tenant["metadata"]["uid"]

    def is_absent_from(self, text: str, *, named_by_caller: bool = False) -> bool:
        words = [self.bob.secret, self.uid]
        if not named_by_caller:
            words += [self.bob.child, self.bob.namespace]
        return not any(word in text for word in words)


@pytest.fixture
def hidden_tenant(bob: TenantAdmin, tenants: Tenants) -> HiddenTenant:
    return HiddenTenant(bob, tenants)


def requests_by_name(bob: TenantAdmin) -> Iterator[tuple[str, str, Any, str]]:
    one, collection, name = bob.child_path, bob.children, bob.child
    spec = {"etcd": True}
    yield "GET", one, None, JSON
    yield "GET", f"{one}/status", None, JSON
    yield "PUT", one, manifest(name, bob.namespace, spec=spec), JSON
    yield "PATCH", one, {"spec": spec}, MERGE
    yield "PATCH", one, [{"op": "test", "path": "/spec/etcd", "value": False}], JSON_PATCH
    yield "PATCH", one, configuration(name, spec=spec), APPLY
    yield "PATCH", f"{one}x", configuration(f"{name}x", spec=spec), APPLY
    yield "DELETE", one, None, JSON
    yield "DELETE", collection, None, JSON
    yield "POST", collection, manifest("mine", bob.namespace), JSON
    for subresource in ("status", "scale", "finalize", "log", "token"):
        yield "PUT", f"{one}/{subresource}", manifest(name, bob.namespace), JSON
        yield "PATCH", f"{one}/{subresource}", {"spec": spec}, MERGE


@pytest.mark.lasting("alice", "bob")
def test_requests_for_a_foreign_tenant_by_name_are_forbidden(
    alice: TenantAdmin, bob: TenantAdmin, hidden_tenant: HiddenTenant, tenants: Tenants
) -> None:
    for method, path, body, kind in requests_by_name(bob):
        query = {"fieldManager": "alice"} if kind == APPLY else None
        for dry_run in ({}, {"dryRun": "All"}):
            parameters = {**(query or {}), **dry_run} if method != "GET" else query
            answer = alice.client.request(method, path, body, query=parameters, content_type=kind)
            assert answer.status == 403, (method, path, answer.body)
            assert hidden_tenant.is_absent_from(answer.content.decode(), named_by_caller=True)
    # a list with a field selector for the name is allowed, and empty
    for path in (bob.children, tenants_path()):
        for accept in (JSON, TABLE, PARTIAL):
            listed = alice.client.get(
                path, query={"fieldSelector": f"metadata.name={bob.child}"}, headers={"Accept": accept}
            )
            assert listed.status == 200
            assert hidden_tenant.is_absent_from(listed.content.decode())
    for accept in (JSON, TABLE, PARTIAL_OBJECT):
        assert alice.client.get(bob.child_path, headers={"Accept": accept}).status == 403
        assert alice.client.get(f"{NAMESPACES}/{bob.namespace}", headers={"Accept": accept}).status == 404
    assert tenants.get(bob.child, bob.namespace)["spec"] == hidden_tenant.tenant["spec"]


def list_queries(hidden_tenant: HiddenTenant) -> Iterator[dict[str, str]]:
    bob = hidden_tenant.bob
    yield {}
    yield {"limit": "1"}
    for field in ("name", "namespace"):
        value = bob.child if field == "name" else bob.namespace
        yield {"fieldSelector": f"metadata.{field}={value}"}
        yield {"fieldSelector": f"metadata.{field}!=x"}
    for selector in (
        f"word={bob.secret}",
        "word!=x",
        "word",
        "word notin (x)",
        f"word in (x,{bob.secret})",
        "!nothing",
        f"apps.cozystack.io/application.name in ({bob.child})",
        f"kubernetes.io/metadata.name={bob.child}",
        f"kubernetes.io/metadata.name in ({bob.namespace})",
        f"kubernetes.io/metadata.name notin ({hidden_tenant.uid})",
        f"tenant.cozystack.io/{bob.namespace}",
        f"tenant.cozystack.io/{bob.namespace}!=x",
    ):
        yield {"labelSelector": selector}
        yield {"labelSelector": selector, "limit": "1", "resourceVersion": "0"}
    yield {"resourceVersion": "0"}
    yield {"resourceVersion": hidden_tenant.version}
    yield {"resourceVersion": hidden_tenant.version, "resourceVersionMatch": "NotOlderThan"}
    yield {"resourceVersion": hidden_tenant.version, "resourceVersionMatch": "Exact", "limit": "1"}


@pytest.mark.parametrize("accept", [JSON, TABLE, PARTIAL])
@pytest.mark.lasting("alice", "bob")
def test_no_list_shows_a_foreign_tenant(alice: TenantAdmin, hidden_tenant: HiddenTenant, accept: str) -> None:
    """Lists are empty in every representation and for every selector, and their metadata counts nothing."""
    for path in (tenants_path(), tenants_path(hidden_tenant.bob.namespace), NAMESPACES):
        for query in list_queries(hidden_tenant):
            if path == NAMESPACES and query.get("resourceVersion") == hidden_tenant.version:
                # a version of Tenants; the cache of TenantNamespaces may be older
                continue
            more: Mapping[str, str] = WHOLE_TABLE if accept == TABLE else {}
            answer = alice.client.get(path, query={**query, **more}, headers={"Accept": accept})
            # an exact version may be too old
            assert answer.status == 200 or (answer.status == 410 and "resourceVersion" in query), answer.body
            assert hidden_tenant.is_absent_from(answer.content.decode()), (path, query)
            metadata = answer.json()["metadata"]
            assert "remainingItemCount" not in metadata
            assert "continue" not in metadata or answer.status == 410


def test_counts_and_pages_include_only_visible_tenants(
    alice: TenantAdmin, bob: TenantAdmin, hidden_tenant: HiddenTenant, tenants: Tenants
) -> None:
    for party in (alice, bob):
        tenants.create(party.namespace)
    own = sorted(list_names(alice.client, tenants_path()))
    assert len(own) == 2
    page = alice.client.get(tenants_path(), query={"limit": 1}).expect(200)
    assert page["metadata"]["remainingItemCount"] == 1
    rest = alice.client.get(tenants_path(), query={"limit": 1, "continue": page["metadata"]["continue"]}).expect(200)
    assert sorted(item["metadata"]["name"] for item in (*page["items"], *rest["items"])) == own
    assert "continue" not in rest["metadata"]
    for owner in (bob.client, tenants.client):
        for path in (tenants_path(), bob.children):
            token = owner.get(path, query={"limit": 1}).expect(200)["metadata"]["continue"]
            for target in (tenants_path(), bob.children, NAMESPACES):
                answer = alice.client.get(target, query={"limit": 500, "continue": token})
                assert answer.status in (200, 400, 410), answer.body
                # an error message may repeat the position in the token
                assert hidden_tenant.is_absent_from(answer.content.decode(), named_by_caller=answer.status != 200)


WATCH_STARTS = [
    pytest.param({}, id="unset"),
    pytest.param({"resourceVersion": "0"}, id="any"),
    pytest.param({"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}, id="initial events"),
    pytest.param(
        {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan", "resourceVersion": "0"},
        id="initial events of any",
    ),
]


@pytest.mark.parametrize("start", WATCH_STARTS)
@pytest.mark.parametrize("accept", [JSON, TABLE, PARTIAL_OBJECT])
@pytest.mark.lasting("alice", "bob")
def test_no_watch_shows_a_foreign_tenant(
    alice: TenantAdmin,
    bob: TenantAdmin,
    hidden_tenant: HiddenTenant,
    tenants: Tenants,
    start: dict[str, str],
    accept: str,
) -> None:
    query = {**start, "labelSelector": "word!=x"}

    value = str(uuid.uuid4())

    def change_both() -> None:
        _annotate_child(tenants, bob)
        _annotate_child(tenants, alice, value)

    # the watch works: alice's own Tenant is in it
    events = _read_watch(alice.client, tenants_path(), query, accept, change_both, until=value)
    assert hidden_tenant.is_absent_from(events)
    # a watch in which she sees nothing, of two seconds
    query["timeoutSeconds"] = "2"
    events = _read_watch(alice.client, bob.children, query, accept, lambda: _annotate_child(tenants, bob))
    assert hidden_tenant.is_absent_from(events)


def _annotate_child(tenants: Tenants, party: TenantAdmin, value: str = "") -> None:
    change = {"metadata": {"annotations": {"changed": f"changed-{party.secret}-{value or uuid.uuid4()}"}}}
    tenants.patch(party.child, change, party.namespace)


def _read_watch(
    client: Client, path: str, query: Mapping[str, str], accept: str, change: Callable[[], None], *, until: str = ""
) -> str:
    """Makes a change during a watch and returns its events as text: up to the first one that contains `until`, or all
    of a watch that ends. Events are in the order of the changes."""
    parameters = {"watch": "true", "allowWatchBookmarks": "true", **query}
    received = []
    with client.stream(path, query=parameters, headers={"Accept": accept}) as frames:
        change()
        for frame in frames:
            received.append(frame)
            if until and until in str(frame):
                break
        else:
            assert not until, received
    for frame in received:
        assert frame["type"] in ("ADDED", "MODIFIED", "BOOKMARK"), frame
        if frame["type"] == "BOOKMARK" and accept == JSON:
            assert set(frame["object"]) <= {"kind", "apiVersion", "metadata"}
            assert set(frame["object"]["metadata"]) <= {"resourceVersion", "annotations", "creationTimestamp"}
    return str(received)


@pytest.mark.lasting("alice", "bob")
def test_a_watch_from_the_version_of_a_foreign_tenant_does_not_show_it(
    alice: TenantAdmin, bob: TenantAdmin, hidden_tenant: HiddenTenant, tenants: Tenants
) -> None:
    _annotate_child(tenants, bob)
    query = {"resourceVersion": hidden_tenant.version}
    for accept in (JSON, TABLE, PARTIAL_OBJECT):
        value = str(uuid.uuid4())
        annotate = partial(_annotate_child, tenants, alice, value)
        events = _read_watch(alice.client, tenants_path(), query, accept, annotate, until=value)
        assert hidden_tenant.is_absent_from(events)


@pytest.mark.lasting("alice", "bob")
def test_the_version_of_a_list_does_not_reveal_where_a_change_was_made(
    alice: TenantAdmin, bob: TenantAdmin, tenants: Tenants, unique: str
) -> None:
    """The version of a list is that of the whole collection, the same for all users and namespaces."""

    def versions() -> set[str]:
        paths = (tenants_path(), bob.children, alice.children, tenants_path(f"tenant-{unique}"))
        return {alice.client.get(path).expect(200)["metadata"]["resourceVersion"] for path in paths}

    tenants.wait_until_settled(bob.tenant)
    for party in (bob, alice, bob):
        _annotate_child(tenants, party)
        tenants.patch(party.child, {"spec": {"etcd": party is bob}}, party.namespace)
        # another write may come between two of the requests
        tenants.wait("all lists have one version", lambda: len(versions()) == 1)
        last = tenants.get(party.child, party.namespace)["metadata"]["resourceVersion"]
        assert int(versions().pop()) >= int(last)


@pytest.mark.lasting("alice", "bob")
def test_kubectl_shows_only_visible_tenants(
    cluster: E2eCluster, alice: TenantAdmin, bob: TenantAdmin, hidden_tenant: HiddenTenant
) -> None:
    for arguments in (("-A",), ("-A", "-o", "yaml"), ("-A", "--show-labels"), ("-n", bob.namespace)):
        shown = cluster.kubectl("get", "tenants", *arguments, as_user=alice.user)
        assert hidden_tenant.is_absent_from(shown.stdout)
        assert (alice.child in shown.stdout) == ("-A" in arguments)
    shown = cluster.kubectl("get", "tenantnamespaces", "-o", "yaml", as_user=alice.user)
    assert hidden_tenant.is_absent_from(shown.stdout)
    assert alice.namespace in shown.stdout
    denied = cluster.kubectl("describe", "tenant", bob.child, "-n", bob.namespace, as_user=alice.user, status=None)
    assert hidden_tenant.is_absent_from(denied.stdout + denied.stderr, named_by_caller=True)


@pytest.mark.lasting("alice", "bob")
def test_foreign_tenants_cannot_be_deleted_in_bulk(alice: TenantAdmin, bob: TenantAdmin, tenants: Tenants) -> None:
    """deletecollection is forbidden for all namespaces at once, and for alice in bob's namespace."""
    answers: dict[str, Response] = {
        path: alice.client.request("DELETE", path, query={"labelSelector": "word!=x"})
        for path in (tenants_path(), bob.children)
    }
    assert [answer.status for answer in answers.values()] == [403, 403]
    remaining: Object = tenants.get(bob.child, bob.namespace)
    assert "deletionTimestamp" not in remaining["metadata"]
