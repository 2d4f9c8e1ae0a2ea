"""`--visibility=reviews`: the cluster's SubjectAccessReviews decide what lists and watches show."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.attacks.support.proxied_replica import ClusterRequest, FakeResponse, Replica, started_replica
from tests.e2e.support.clusters.cluster import ROOT, E2eCluster, tenants_path
from tests.e2e.support.tenants import Tenants
from tests.e2e.support.visibility import (
    GET_TENANTS,
    NAMESPACES,
    ROLEBINDINGS,
    TABLE,
    RbacObjects,
    WatchReader,
    create_child,
    list_names,
    open_watch,
    user_subject,
    wait_until_listed,
)

_REVIEWS = "/subjectaccessreviews"


@pytest.fixture(scope="module")
def reviewing(cluster: E2eCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Replica]:
    with started_replica(cluster, tmp_path_factory.mktemp("reviewing"), "--visibility=reviews") as running:
        yield running


def test_lists_show_what_the_cluster_lets_the_user_get(
    cluster: E2eCluster, reviewing: Replica, tenants: Tenants, access: RbacObjects, unique: str
) -> None:
    granted, other = tenants.create_with_namespace(), tenants.create_with_namespace()
    child, hidden = create_child(tenants, granted), create_child(tenants, other)
    cluster.grant(unique, "cozy:tenant:view", granted)
    client = reviewing.client(unique)
    wait_until_listed(client, tenants_path(), [child])
    wait_until_listed(client, NAMESPACES, [granted])
    assert list_names(client, tenants_path(other)) == []
    assert list_names(client, tenants_path(), fieldSelector=f"metadata.name={hidden}") == []
    rows = client.get(tenants_path(), headers={"Accept": TABLE}).expect(200)["rows"]
    assert [row["cells"][0] for row in rows] == [child]
    assert client.get(f"{NAMESPACES}/{other}").status == 404
    assert client.get(tenants_path(other, hidden)).status == 403


def test_the_people_of_a_tenant_see_their_own(reviewing: Replica, tenants: Tenants, unique: str) -> None:
    name = tenants.create()["metadata"]["name"]
    tenants.create()
    tenants.wait_until_settled(name)
    child = create_child(tenants, f"tenant-{name}")
    client = reviewing.client(unique, [f"tenant-{name}-view"])
    wait_until_listed(client, tenants_path(), [child, name])
    assert list_names(client, tenants_path(ROOT)) == [name]


def test_a_watch_follows_grants_and_revocations(
    reviewing: Replica, tenants: Tenants, access: RbacObjects, unique: str
) -> None:
    """Within ten seconds, by the next reviews."""
    granted, other = tenants.create_with_namespace(), tenants.create_with_namespace()
    child, _ = create_child(tenants, granted), create_child(tenants, other)
    access.create_role("reader", granted, GET_TENANTS)
    with open_watch(reviewing.client(unique), tenants_path()) as frames:
        events = WatchReader(frames)
        access.bind("reader", granted, user_subject(unique), "reader")
        shown = events.wait_for_event("ADDED", child)
        assert shown["spec"]
        events.wait_for_bookmark()
        access.delete(ROLEBINDINGS, "reader", granted)
        lost = events.wait_for_event("DELETED", child)
        assert set(lost) <= {"apiVersion", "kind", "metadata"}


def test_an_authorizer_other_than_rbac_is_obeyed(reviewing: Replica, tenants: Tenants, unique: str) -> None:
    """It allows what RBAC does not: as a webhook does."""
    granted, other = tenants.create_with_namespace(), tenants.create_with_namespace()
    child, _ = create_child(tenants, granted), create_child(tenants, other)

    def allow(request: ClusterRequest) -> FakeResponse | None:
        review = json.loads(request.body) if request.path.endswith(_REVIEWS) else {}
        spec = review.get("spec", {})
        if spec.get("user") != unique or spec.get("resourceAttributes", {}).get("verb") != "get":
            return None
        allowed = spec["resourceAttributes"].get("namespace") == granted
        return FakeResponse(body={**review, "status": {"allowed": allowed}})

    with reviewing.with_fake_responses(allow):
        client = reviewing.client(unique)
        assert list_names(client, tenants_path()) == [child]
        assert list_names(client, NAMESPACES) == [granted]


def test_a_failed_review_is_no_empty_list(reviewing: Replica, unique: str) -> None:
    """Clients would delete what they have (API-27)."""

    def fail(request: ClusterRequest) -> FakeResponse | None:
        spec = json.loads(request.body)["spec"] if request.path.endswith(_REVIEWS) else {}
        if spec.get("resourceAttributes", {}).get("verb") == "get":
            return FakeResponse(status=500, body={"kind": "Status", "code": 500, "message": "away"})
        return None

    with reviewing.with_fake_responses(fail):
        response = reviewing.client(unique).get(tenants_path())
    assert response.status in (500, 503), response.content
