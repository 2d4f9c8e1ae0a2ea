"""Bugs and limits of the Tenant API of cozystack-api (the peer) that our server does not have, one test each: writes.

This module has API-1 to API-6, API-17, API-18 and API-28, test_peer_lessons_reads.py has API-7 to API-16, and
test_peer_lessons_platform.py has API-19, API-20 and API-29. Each docstring describes the bug of the peer.
"""

from __future__ import annotations

import json
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tests.e2e.support.applying import APPLY, MERGE, configuration
from tests.e2e.support.clusters.cluster import ROOT, E2eCluster, tenants_path
from tests.e2e.support.http.https_client import Client, Response
from tests.e2e.support.peer_lessons import JSON_PATCH, create_settled_tenant, helmrelease_path, patch
from tests.e2e.support.tenants import Object, Tenants, manifest

ETCD = [{"op": "replace", "path": "/spec/etcd", "value": True}]
CONFLICT = "the object has been modified; please apply your changes to the latest version and try again"


def test_no_dry_run_stores_anything(cluster: E2eCluster, tenants: Tenants) -> None:
    """The peer persists creates, updates and deletes of dry runs (API-1)."""
    absent, client = tenants.new_name(), cluster.client()
    cluster.kubectl("apply", "--dry-run=server", "-f", "-", input=json.dumps(manifest(absent)))
    client.request("POST", tenants_path(ROOT), manifest(absent), query={"dryRun": "All"}).expect(201)
    patch(cluster, absent, configuration(absent), APPLY, dryRun="All", fieldManager="e2e").expect(201)
    assert not tenants.exists(absent)

    before = create_settled_tenant(tenants, labels={"e2e": absent})
    name, path = before["metadata"]["name"], tenants_path(ROOT, before["metadata"]["name"])
    put = client.update(path, lambda tenant: {**tenant, "spec": {"etcd": True}}, query={"dryRun": "All"}).expect(200)
    answers = [
        put,
        patch(cluster, name, {"spec": {"etcd": True}}, dryRun="All").expect(200),
        patch(cluster, name, ETCD, JSON_PATCH, dryRun="All").expect(200),
        patch(
            cluster,
            name,
            configuration(name, spec={"etcd": True}),
            APPLY,
            dryRun="All",
            fieldManager="e2e",
            force="true",
        ).expect(200),
    ]
    assert [each["spec"]["etcd"] for each in answers] == [True] * 4
    client.request("DELETE", path, query={"dryRun": "All"}).expect(200)
    client.request("DELETE", path, {"dryRun": ["All"]}).expect(200)
    client.request("DELETE", tenants_path(ROOT), query={"dryRun": "All", "labelSelector": f"e2e={absent}"}).expect(200)
    assert tenants.get(name) == before


def test_delete_preconditions_are_enforced(cluster: E2eCluster, tenants: Tenants) -> None:
    """The peer ignores preconditions (API-2)."""
    tenant, client = create_settled_tenant(tenants), cluster.client()
    path, metadata = tenants_path(ROOT, tenant["metadata"]["name"]), tenant["metadata"]
    for wrong in ({"uid": "another"}, {"resourceVersion": "1"}, {"uid": metadata["uid"], "resourceVersion": "1"}):
        rejected = client.request("DELETE", path, {"preconditions": wrong}).expect(409)
        assert "in the precondition" in rejected["message"]
        assert "deletionTimestamp" not in client.get(path).expect(200)["metadata"]

    def is_deleted() -> bool:
        """The status may be written between the read and the request."""
        version = client.get(path).expect(200)["metadata"]["resourceVersion"]
        right = {"uid": metadata["uid"], "resourceVersion": version}
        return client.request("DELETE", path, {"preconditions": right}).status in (200, 202)

    tenants.wait("the right preconditions are met", is_deleted)
    tenants.wait_until_gone(path)


def test_a_stale_update_overwrites_nothing(cluster: E2eCluster, tenants: Tenants) -> None:
    """On a conflict, the peer overwrites the new spec with the old one (API-3)."""
    read = create_settled_tenant(tenants)
    path, client = tenants_path(ROOT, read["metadata"]["name"]), cluster.client()
    client.update(path, lambda tenant: {**tenant, "spec": {"etcd": True}}).expect(200)
    stale = client.request("PUT", path, {**read, "spec": {"ingress": True}}).expect(409)
    assert (stale["reason"], CONFLICT in stale["message"]) == ("Conflict", True)
    spec = client.get(path).expect(200)["spec"]
    assert (spec["etcd"], spec["ingress"]) == (True, False)


def test_fifty_concurrent_writers_lose_no_update(cluster: E2eCluster, tenants: Tenants) -> None:
    """On a conflict, the peer loses the concurrent update (API-3)."""
    name, client = create_settled_tenant(tenants)["metadata"]["name"], cluster.client()
    path = tenants_path(ROOT, name)

    def increment(_: int) -> None:
        while True:
            read = client.get(path).expect(200)
            annotations = read["metadata"].setdefault("annotations", {})
            annotations["steps"] = str(int(annotations.get("steps", 0)) + 1)
            answer = client.request("PUT", path, read)
            if answer.status != 409:
                answer.expect(200)
                return

    def annotate(number: int) -> int:
        return patch(cluster, name, {"metadata": {"annotations": {f"note-{number}": "x"}}}).status

    with ThreadPoolExecutor(50) as pool:
        list(pool.map(increment, range(50)))
        # a patch without a resourceVersion is unconditional and never conflicts
        assert Counter(pool.map(annotate, range(50))) == {200: 50}
    annotations = tenants.get(name)["metadata"]["annotations"]
    assert annotations["steps"] == "50"
    assert len([key for key in annotations if key.startswith("note-")]) == 50


def test_foreign_fields_of_the_stored_object_survive_every_write(cluster: E2eCluster, tenants: Tenants) -> None:
    """The peer rebuilds the HelmRelease on every write and so drops the finalizer that Flux uninstalls with (API-4)."""
    name, client = create_settled_tenant(tenants)["metadata"]["name"], cluster.client()
    foreign: Object = {
        "metadata": {
            "labels": {"example.org/theirs": "label", "sharding.fluxcd.io/key": "other"},
            "annotations": {"example.org/theirs": "annotation"},
            "finalizers": [
                *client.get(helmrelease_path(name)).expect(200)["metadata"].get("finalizers", []),
                "finalizers.fluxcd.io",
                "example.org/keep",
            ],
            "ownerReferences": [
                {"apiVersion": "v1", "kind": "Namespace", "name": ROOT, "uid": root_uid(client)},
            ],
        },
        "spec": {"suspend": True, "maxHistory": 9, "values": {"theirs": {"deep": [1]}, "_cluster": "x"}},
    }
    client.request("PATCH", helmrelease_path(name), foreign, content_type=MERGE).expect(200)

    def assert_preserved(theirs: Object) -> None:
        stored = client.get(helmrelease_path(name)).expect(200)
        metadata, spec = stored["metadata"], stored["spec"]
        assert foreign["metadata"]["labels"].items() <= metadata["labels"].items()
        assert foreign["metadata"]["annotations"].items() <= metadata["annotations"].items()
        assert sorted(metadata["finalizers"]) == sorted(foreign["metadata"]["finalizers"])
        assert [owner["name"] for owner in metadata["ownerReferences"]] == [ROOT]
        assert (spec["suspend"], spec["maxHistory"]) == (True, 9)
        assert {key: spec["values"].get(key) for key in ("theirs", "_cluster")} == theirs

    whole: Object = {"theirs": {"deep": [1]}, "_cluster": "x"}
    try:
        for write in (_put, _merge, _json, _apply, _label):
            write(cluster, tenants, name)
            assert_preserved(whole)
        assert tenants.get(name)["spec"]["seaweedfs"] is True
        # a caller who removes all that is shown removes the values of others among it, and nothing that is hidden
        patch(cluster, name, [{"op": "remove", "path": "/spec"}], JSON_PATCH).expect(200)
        assert_preserved({"theirs": None, "_cluster": "x"})
        assert client.request("DELETE", tenants_path(ROOT, name)).status in (200, 202)
        assert_preserved({"theirs": None, "_cluster": "x"})
    finally:
        body = {"metadata": {"finalizers": None}}
        client.request("PATCH", helmrelease_path(name), body, content_type=MERGE)


def root_uid(client: Client) -> str:
    uid: str = client.get(f"/api/v1/namespaces/{ROOT}").expect(200)["metadata"]["uid"]
    return uid


def _put(cluster: E2eCluster, tenants: Tenants, name: str) -> None:
    def enable_etcd(tenant: Object) -> Object:
        return {**tenant, "spec": {**tenant["spec"], "etcd": True}}

    cluster.client().update(tenants_path(ROOT, name), enable_etcd).expect(200)


def _merge(cluster: E2eCluster, tenants: Tenants, name: str) -> None:
    patch(cluster, name, {"spec": {"ingress": True}, "metadata": {"labels": None, "annotations": None}}).expect(200)


def _json(cluster: E2eCluster, tenants: Tenants, name: str) -> None:
    patch(cluster, name, [{"op": "remove", "path": "/spec/ingress"}], JSON_PATCH).expect(200)


def _apply(cluster: E2eCluster, tenants: Tenants, name: str) -> None:
    body = configuration(name, spec={"seaweedfs": True})
    patch(cluster, name, body, APPLY, fieldManager="e2e", force="true").expect(200)


def _label(cluster: E2eCluster, tenants: Tenants, name: str) -> None:
    cluster.kubectl("label", "tenant", name, "-n", ROOT, "example.org/theirs=mine")


def test_errors_of_the_cluster_keep_their_code_and_name_the_tenant(cluster: E2eCluster, tenants: Tenants) -> None:
    """The peer turns all of them into a 500 (API-5)."""
    name, client = tenants.create()["metadata"]["name"], cluster.client()
    twice = client.request("POST", tenants_path(ROOT), manifest(name)).expect(409)
    assert (twice["reason"], twice["message"]) == (
        "AlreadyExists",
        f'tenants.apps.cozystack.io "{name}" already exists',
    )
    assert "AlreadyExists" in cluster.kubectl("create", "-f", "-", input=json.dumps(manifest(name)), status=1).stderr
    missing = client.request("DELETE", tenants_path(ROOT, f"{name}x")).expect(404)
    assert missing["details"]["kind"] == "tenants"
    # the cluster itself rejects an owner without a uid
    owner = {"apiVersion": "v1", "kind": "Namespace", "name": "x", "uid": ""}
    invalid = patch(cluster, name, {"metadata": {"ownerReferences": [owner]}}).expect(422)
    assert (invalid["reason"], invalid["details"]["kind"]) == ("Invalid", "Tenant")


def test_an_applied_field_has_an_owner_and_a_conflict_names_the_owner(cluster: E2eCluster, tenants: Tenants) -> None:
    """The peer shows no managedFields, generation, finalizers or ownerReferences, so no apply conflicts (API-6)."""
    name = tenants.new_name()
    alice = configuration(name, spec={"schedulingClass": "a"})
    alice["metadata"]["finalizers"] = ["example.org/keep"]
    created = patch(cluster, name, alice, APPLY, fieldManager="alice").expect(201)
    assert created["metadata"]["generation"] >= 1
    assert created["metadata"]["finalizers"] == ["example.org/keep"]
    bob = configuration(name, spec={"schedulingClass": "b"})
    conflict = patch(cluster, name, bob, APPLY, fieldManager="bob").expect(409)
    assert 'conflict with "alice"' in conflict["message"]
    [cause] = conflict["details"]["causes"]
    assert (cause["reason"], cause["field"]) == ("FieldManagerConflict", ".spec.schedulingClass")
    forced = patch(cluster, name, bob, APPLY, fieldManager="bob", force="true").expect(200)
    managers = {entry["manager"] for entry in forced["metadata"]["managedFields"]}
    assert {"alice", "bob"} <= managers
    patch(cluster, name, {"metadata": {"finalizers": None}}).expect(200)


def test_the_schema_is_enforced(cluster: E2eCluster, tenants: Tenants) -> None:
    """The peer uses the schema only for defaults (API-17)."""
    client, body = cluster.client(), manifest(tenants.new_name(), spec={"quota": {"deep": 1}, "etcd": True})
    warned = client.request("POST", tenants_path(ROOT), body)
    created = warned.expect(201)
    assert warned.warnings[0] == '299 - "unknown field \\"spec.quota\\": it is kept, and the chart decides"'
    assert created["spec"]["quota"] == {"deep": 1}
    # as it was sent, without the defaults that are shown
    name = created["metadata"]["name"]
    stored = client.get(helmrelease_path(name)).expect(200)
    assert stored["spec"]["values"] == {"quota": {"deep": 1}, "etcd": True}
    replaced = {**body, "spec": {"etcd": False}}
    shown = client.request("PUT", tenants_path(ROOT, name), replaced, query={"fieldValidation": "Strict"}).expect(200)
    assert "quota" not in shown["spec"]
    assert client.get(helmrelease_path(name)).expect(200)["spec"]["values"] == {"etcd": False}
    wrong = {"etcd": "yes", "host": 1, "resourceQuotas": {"cpu": [1]}}
    invalid = client.request("POST", tenants_path(ROOT), manifest(tenants.new_name(), spec=wrong)).expect(422)
    fields = [cause["field"] for cause in invalid["details"]["causes"]]
    assert fields == ["spec.etcd", "spec.host", "spec.resourceQuotas.cpu"]


def test_a_quota_admits_exactly_as_many_tenants_as_it_declares(cluster: E2eCluster, tenants: Tenants) -> None:
    """The peer checks quotas against a snapshot and derives the parent from the name (API-18)."""
    limited = tenants.create_with_namespace(spec={"resourceQuotas": {"cpu": "20"}})
    unlimited = tenants.create_with_namespace(limited)
    client = cluster.client()

    def create(number: int) -> int:
        # the nearest ancestor with a declared quota limits a grandchild
        namespace = unlimited if number % 2 else limited
        body = manifest(tenants.new_name(namespace), namespace, spec={"resourceQuotas": {"cpu": "1"}})
        return client.request("POST", tenants_path(namespace), body).status

    with ThreadPoolExecutor(50) as pool:
        assert Counter(pool.map(create, range(50))) == {201: 20, 422: 30}
    admitted = sum(
        item["spec"]["resourceQuotas"].get("cpu") == "1"
        for namespace in (limited, unlimited)
        for item in client.get(tenants_path(namespace)).expect(200)["items"]
    )
    assert admitted == 20


def test_every_way_to_write_passes_admission(cluster: E2eCluster, tenants: Tenants, unique: str) -> None:
    """Some handlers of the peer skip admission; here every verb checks hosts and deletions.

    R-015, R-016, R-017, API-28.
    """
    cluster.grant(unique, "cozy:tenant:super-admin", ROOT)
    user, owned = cluster.client(unique), f"{unique}.example.com"
    tenant = create_settled_tenant(tenants, spec={"host": owned}, labels={"e2e": unique})
    name, workload = tenant["metadata"]["name"], tenant["status"]["namespace"]
    tenants.create(workload)
    path, fresh, other = tenants_path(ROOT, name), tenants.new_name(), {"host": f"x{owned}"}
    applied = {"fieldManager": "e2e", "force": "true"}

    def patched(kind: str, body: Any, to: str = path) -> Response:
        return user.request("PATCH", to, body, content_type=kind, query=applied if kind == APPLY else None)

    rejected = {
        "create": user.request("POST", tenants_path(ROOT), manifest(fresh, spec=other)),
        "create by apply": patched(APPLY, configuration(fresh, spec=other), tenants_path(ROOT, fresh)),
        "update": user.request("PUT", path, manifest(name, spec=other)),
        "merge patch": patched(MERGE, {"spec": other}),
        "JSON patch": patched(JSON_PATCH, [{"op": "replace", "path": "/spec/host", "value": other["host"]}]),
        "apply": patched(APPLY, configuration(name, spec=other)),
    }
    assert {verb: answer.status for verb, answer in rejected.items()} == dict.fromkeys(rejected, 403)
    assert all("tenant.spec.host can only be set" in answer.json()["message"] for answer in rejected.values())
    rejected_deletions = {
        "delete": user.request("DELETE", path),
        "delete a collection": user.request("DELETE", tenants_path(ROOT), query={"labelSelector": f"e2e={unique}"}),
    }
    assert {verb: answer.status for verb, answer in rejected_deletions.items()} == dict.fromkeys(
        rejected_deletions, 409
    )
    assert not tenants.exists(fresh)
    after = tenants.get(name)
    assert (after["spec"]["host"], "deletionTimestamp" in after["metadata"]) == (owned, False)
