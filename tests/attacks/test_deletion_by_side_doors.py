"""ATTACK-18: deleting a Tenant, or its children with it, without the right to delete it.

The doors are owners, which the garbage collector follows, what makes a deletion cascade, and the HelmRelease.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from tests.attacks.support.two_tenants import TenantAdmin
from tests.e2e.support.applying import APPLY, MERGE, configuration
from tests.e2e.support.clusters.cluster import ROOT, E2eCluster, tenants_path
from tests.e2e.support.http.https_client import Client, Response
from tests.e2e.support.peer_lessons import JSON_PATCH
from tests.e2e.support.tenants import Object, Tenants, manifest
from tests.e2e.support.visibility import RbacObjects, user_subject

CASCADE = "tenant.cozystack.io/allow-cascading-deletion"
STORED_CASCADE = f"apps.cozystack.io-{CASCADE}"
NOBODY = "11111111-2222-4333-8444-555555555555"
GHOST = {"apiVersion": "v1", "kind": "ConfigMap", "name": "ghost", "uid": NOBODY}
HELD = "delete them, or have them deleted with it: kubectl delete --cascade=foreground, or the annotation"


def helmrelease_path(namespace: str, name: str) -> str:
    return f"/apis/helm.toolkit.fluxcd.io/v2/namespaces/{namespace}/helmreleases/tenant-{name}"


def reference(obj: Object, **more: Any) -> Object:
    metadata = obj["metadata"]
    return {
        "apiVersion": obj["apiVersion"],
        "kind": obj["kind"],
        "name": metadata["name"],
        "uid": metadata["uid"],
        **more,
    }


@dataclass(frozen=True, slots=True)
class Victim:
    """A Tenant with one child, and a `client` that may do everything with it but delete it."""

    access: RbacObjects
    client: Client
    user: str
    namespace: str
    name: str
    workload: str
    child: str

    @property
    def path(self) -> str:
        return tenants_path(self.namespace, self.name)

    @property
    def release_path(self) -> str:
        return helmrelease_path(self.namespace, self.name)

    @property
    def child_path(self) -> str:
        return tenants_path(self.workload, self.child)

    def patch(self, metadata: Object) -> Response:
        return self.client.request("PATCH", self.path, {"metadata": metadata}, content_type=MERGE)

    def allow(self, *verbs: str, group: str = "apps.cozystack.io", resource: str = "tenants") -> None:
        name = f"{resource.replace('/', '-')}-{verbs[0]}"
        rule = {"apiGroups": [group], "resources": [resource], "verbs": list(verbs)}
        self.access.create_role(name, self.namespace, rule)
        self.access.bind(name, self.namespace, user_subject(self.user), name)


@pytest.fixture
def victim(cluster: E2eCluster, tenants: Tenants, access: RbacObjects, unique: str) -> Victim:
    namespace = tenants.create_with_namespace()
    tenant = tenants.create(namespace)
    name, workload = tenant["metadata"]["name"], tenant["status"]["namespace"]
    tenants.wait_for_namespace(workload)
    child = tenants.create(workload)["metadata"]["name"]
    tenants.wait_for_namespace(f"{workload}-{child}")
    found = Victim(access, cluster.client(unique), unique, namespace, name, workload, child)
    found.allow("get", "list", "create", "update", "patch")
    # the cluster's authorizer may see the binding later
    tenants.wait("the user may patch the tenant", lambda: found.patch({}).status == 200)
    return found


def writes(victim: Victim, metadata: Object) -> Iterator[tuple[str, Response]]:
    """Sends every kind of write that sets this metadata."""
    client, path = victim.client, victim.path

    def changed(obj: Object) -> Object:
        return {**obj, "metadata": {**obj["metadata"], **metadata}}

    yield "PUT", client.update(path, changed)
    yield "merge patch", victim.patch(metadata)
    add = [{"op": "add", "path": f"/metadata/{field}", "value": value} for field, value in metadata.items()]
    yield "JSON patch", client.request("PATCH", path, add, content_type=JSON_PATCH)
    applied = configuration(victim.name, metadata=metadata)
    query = {"fieldManager": "attacker", "force": "true"}
    yield "apply", client.request("PATCH", path, applied, query=query, content_type=APPLY)


def test_no_write_gives_a_tenant_an_owner_without_the_right_to_delete_it(victim: Victim, tenants: Tenants) -> None:
    """The garbage collector deletes an object whose owner does not exist."""
    metadata = {
        "ownerReferences": [GHOST],
        "annotations": {CASCADE: "true"},
        "finalizers": ["foregroundDeletion"],
    }
    for way, answer in writes(victim, metadata):
        assert answer.status == 403, (way, answer.content)
        assert "cannot set an ownerRef on a resource you can't delete" in answer.json()["message"], way
    metadata = tenants.get(victim.name, victim.namespace)["metadata"]
    assert not {"ownerReferences", "finalizers", "deletionTimestamp", "annotations"} & metadata.keys()
    assert tenants.exists(victim.child, victim.workload)


def test_no_write_removes_an_owner_without_the_right_to_delete(victim: Victim, tenants: Tenants) -> None:
    root = tenants.client.get(f"/api/v1/namespaces/{ROOT}").expect(200)
    owned = {"metadata": {"ownerReferences": [reference(root)]}}
    tenants.client.request("PATCH", victim.path, owned, content_type=MERGE).expect(200)
    assert victim.patch({"ownerReferences": None}).status == 403
    assert victim.patch({"labels": {"team": "a"}}).status == 200


@pytest.mark.parametrize(
    ("metadata", "what"),
    [
        pytest.param({"annotations": {CASCADE: "true"}}, f"the annotation {CASCADE}", id="annotation"),
        pytest.param({"finalizers": ["foregroundDeletion"]}, "the finalizer foregroundDeletion", id="finalizer"),
    ],
)
def test_what_deletes_the_children_needs_the_right_to_delete(
    victim: Victim, tenants: Tenants, metadata: Object, what: str
) -> None:
    for way, answer in writes(victim, metadata):
        assert answer.status == 403, (way, answer.content)
        assert f"cannot set {what} on a tenant that you can't delete" in answer.json()["message"], way
    created = manifest("other", victim.namespace, **metadata)
    assert victim.client.request("POST", tenants_path(victim.namespace), created).status == 403
    victim.allow("delete")
    tenants.wait("who may delete may set it", lambda: victim.patch(metadata).status == 200)


def test_an_owner_that_blocks_needs_the_right_to_its_finalizers(victim: Victim, tenants: Tenants) -> None:
    """With it, a user delays the deletion of an object that is not its own."""
    victim.allow("delete")
    collection = f"/api/v1/namespaces/{victim.namespace}/configmaps"
    owner = tenants.client.request("POST", collection, {"metadata": {"name": "owner"}}).expect(201)
    blocking = {"ownerReferences": [reference(owner, blockOwnerDeletion=True)]}
    plain = {"ownerReferences": [reference(owner)]}
    tenants.wait("the owner alone may be set", lambda: victim.patch(plain).status == 200)
    for metadata in (blocking, {"ownerReferences": [{**blocking["ownerReferences"][0], "uid": NOBODY}]}):
        answer = victim.patch(metadata).expect(403)
        assert "cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't" in answer["message"]
    unknown = victim.patch({"ownerReferences": [{**GHOST, "kind": "Ghost", "blockOwnerDeletion": True}]}).expect(403)
    assert 'no matches for kind "Ghost" in version "v1"' in unknown["message"]
    outside = {**GHOST, "apiVersion": "../v1", "blockOwnerDeletion": True}
    assert victim.patch({"ownerReferences": [outside]}).status == 403
    victim.allow("update", group="", resource="configmaps/finalizers")
    tenants.wait("with the right it may block", lambda: victim.patch(blocking).status == 200)


def test_the_root_tenant_takes_no_owner(cluster: E2eCluster, tenants: Tenants) -> None:
    """A user who deletes the owner could otherwise have the root tenant created anew with the defaults."""
    before = tenants.client.get(helmrelease_path(ROOT, "root")).expect(200)["metadata"]
    for owner in (GHOST, reference(tenants.client.get(f"/api/v1/namespaces/{ROOT}").expect(200))):
        body = {"metadata": {"ownerReferences": [owner]}}
        answer = tenants.client.request("PATCH", tenants_path(ROOT, "root"), body, content_type=MERGE).expect(422)
        assert answer["message"] == (
            'Tenant.apps.cozystack.io "root" is invalid: metadata.ownerReferences: Forbidden: the root tenant cannot '
            "have owners"
        )
    after = tenants.client.get(helmrelease_path(ROOT, "root")).expect(200)["metadata"]
    assert (after["uid"], "ownerReferences" in after) == (before["uid"], False)


def wait_until_held(victim: Victim, tenants: Tenants) -> None:
    def is_held() -> bool:
        found = tenants.get(victim.name, victim.namespace)
        messages = {each["type"]: each["message"] for each in found["status"].get("conditions", [])}
        return HELD in messages.get("Terminating", "") and HELD in messages.get("Ready", "")

    tenants.wait("the tenant says what its deletion waits for", is_held)
    # who may get the tenant need not be allowed to get its children (ATTACK-15)
    events = tenants.client.get(f"/apis/events.k8s.io/v1/namespaces/{victim.namespace}/events").expect(200)["items"]
    notes = [each["note"] for each in events if each["regarding"]["name"] == victim.name]
    assert victim.child not in str([tenants.get(victim.name, victim.namespace)["status"], notes])
    assert_child_is_left(victim, tenants)


def assert_child_is_left(victim: Victim, tenants: Tenants) -> None:
    child = tenants.get(victim.child, victim.workload)
    assert "deletionTimestamp" not in child["metadata"]
    assert tenants.client.get(f"/api/v1/namespaces/{victim.workload}").expect(200)["status"]["phase"] == "Active"


def refused_deletions(cluster: E2eCluster) -> float:
    """Deletions of Tenants that our server has refused with a conflict."""
    lines = cluster.direct_client().get("/metrics").content.decode().splitlines()
    labels = ('verb="DELETE"', 'resource="tenants"', 'code="409"')
    counts = [each for each in lines if each.startswith("apiserver_request_total{") and all(map(each.count, labels))]
    return sum(float(each.rpartition(" ")[2]) for each in counts)


def test_deleting_the_helmrelease_deletes_no_children(victim: Victim, tenants: Tenants) -> None:
    tenants.client.request("DELETE", victim.release_path).expect(200)
    wait_until_held(victim, tenants)
    assert tenants.client.request("DELETE", victim.child_path).status == 200
    tenants.wait_until_gone(victim.path)
    tenants.wait_until_gone(f"/api/v1/namespaces/{victim.workload}")


def test_the_annotation_on_a_deletion_that_waits_deletes_the_children(victim: Victim, tenants: Tenants) -> None:
    tenants.client.request("DELETE", victim.release_path).expect(200)
    wait_until_held(victim, tenants)
    assert victim.patch({"annotations": {CASCADE: "true"}}).status == 403
    tenants.patch(victim.name, {"metadata": {"annotations": {CASCADE: "true"}}}, victim.namespace)
    tenants.wait_until_gone(victim.path)
    tenants.wait_until_gone(f"/api/v1/namespaces/{victim.workload}")


def test_deleting_again_in_the_foreground_deletes_the_children(
    victim: Victim, cluster: E2eCluster, tenants: Tenants
) -> None:
    """The refusal of a plain deletion says so, and the condition of one that waits."""
    command = ("delete", "tenant", victim.name, "-n", victim.namespace)
    refused = cluster.kubectl(*command, status=1)
    assert "kubectl delete --cascade=foreground, or the annotation" in refused.stderr
    tenants.client.request("DELETE", victim.release_path).expect(200)
    wait_until_held(victim, tenants)
    cluster.kubectl(*command, "--cascade=foreground")
    for path in (victim.path, victim.child_path, f"/api/v1/namespaces/{victim.workload}"):
        tenants.wait_until_gone(path)


@pytest.mark.controller_manager
def test_the_garbage_collector_deletes_no_children(victim: Victim, cluster: E2eCluster, tenants: Tenants) -> None:
    """Here the HelmRelease itself got the owner, from somebody who may write it. HelmRelease and Tenant have one uid,
    and the collector knows one of them, whichever it has seen first: it deletes the former, or is refused to delete the
    latter."""

    def is_deleted() -> bool:
        return "deletionTimestamp" in tenants.get(victim.name, victim.namespace)["metadata"]

    body = {"metadata": {"ownerReferences": [GHOST]}}
    refused_before = refused_deletions(cluster)
    tenants.client.request("PATCH", victim.release_path, body, content_type=MERGE).expect(200)
    tenants.wait(
        "the garbage collector has tried to delete it",
        lambda: is_deleted() or refused_deletions(cluster) > refused_before,
    )
    if is_deleted():
        wait_until_held(victim, tenants)
    assert_child_is_left(victim, tenants)


@pytest.mark.controller_manager
def test_a_deletion_in_the_foreground_deletes_children_of_children(victim: Victim, tenants: Tenants) -> None:
    """The garbage collector removes its finalizer at once, because no object in the namespace blocks it."""
    inner = tenants.create(f"{victim.workload}-{victim.child}")
    options = {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Foreground"}
    tenants.client.request("DELETE", victim.release_path, options).expect(200)
    tenants.wait_until_gone(victim.path)
    for namespace in (victim.workload, inner["status"]["namespace"]):
        tenants.wait_until_gone(f"/api/v1/namespaces/{namespace}")


@pytest.mark.controller_manager
def test_children_go_with_the_namespace_above(victim: Victim, tenants: Tenants) -> None:
    tenants.client.request("DELETE", victim.release_path).expect(200)
    wait_until_held(victim, tenants)
    tenants.client.request("DELETE", f"/api/v1/namespaces/{victim.namespace}").expect(200)
    for path in (victim.path, victim.child_path, f"/api/v1/namespaces/{victim.workload}"):
        tenants.wait_until_gone(path)


RESTORED = "because no such owner exists with this uid"


@pytest.mark.controller_manager
def test_restored_yaml_with_stale_owners_is_not_deleted(victim: Victim, tenants: Tenants) -> None:
    """Each owner has the name of an existing object, and the uid that it had in another cluster."""
    kinds = {
        "Tenant": ("apps.cozystack.io/v1alpha1", victim.name),
        "Namespace": ("v1", victim.namespace),
        "TenantNamespace": ("core.cozystack.io/v1alpha1", victim.namespace),
    }
    stale = [
        {"apiVersion": version, "kind": kind, "name": name, "uid": str(uuid.uuid4())}
        for kind, (version, name) in kinds.items()
    ]
    real = reference(tenants.get(victim.name, victim.namespace))
    name, collection = tenants.new_name(victim.namespace), tenants_path(victim.namespace)
    body = manifest(name, victim.namespace, ownerReferences=[*stale, real])
    answer = tenants.client.request("POST", collection, body)
    assert answer.expect(201)["metadata"]["ownerReferences"] == [real]
    assert [each for each in answer.warnings if RESTORED in each], answer.warnings
    # who may not delete the tenant may apply such YAML as well: it changes nothing
    for way, written in writes(victim, {"ownerReferences": stale}):
        assert "ownerReferences" not in written.expect(200)["metadata"], way
        assert [each for each in written.warnings if RESTORED in each], way
    # the garbage collector has seen the tenants once it has deleted this one
    ghost = tenants.create(victim.namespace, ownerReferences=[GHOST])["metadata"]["name"]
    tenants.wait_until_gone(tenants_path(victim.namespace, ghost))
    for each in (name, victim.name):
        assert "deletionTimestamp" not in tenants.get(each, victim.namespace)["metadata"]


def test_an_owner_tells_nobody_whether_a_hidden_object_exists(
    victim: Victim, bob: TenantAdmin, tenants: Tenants
) -> None:
    """An existing object of another tenant gets the same answer as a missing one."""
    namespace = tenants.client.get(f"/api/v1/namespaces/{bob.namespace}").expect(200)
    hidden = [
        reference(namespace),
        {**reference(namespace), "apiVersion": "core.cozystack.io/v1alpha1", "kind": "TenantNamespace"},
    ]
    for real in hidden:
        answers = []
        for owner in (real, {**real, "uid": NOBODY}):
            body = manifest("restored", victim.namespace, ownerReferences=[owner])
            answers.append(victim.client.request("POST", tenants_path(victim.namespace), body, query={"dryRun": "All"}))
        assert [each.status for each in answers] == [201, 201]
        assert ["ownerReferences" in each.json()["metadata"] for each in answers] == [False, False]
        assert answers[0].warnings == answers[1].warnings != []
