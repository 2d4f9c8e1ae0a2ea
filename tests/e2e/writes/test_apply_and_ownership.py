"""Server-side apply: field ownership in managedFields and errors (WIRE-G1 to WIRE-G41, WIRE-J36, WIRE-J37)."""

from __future__ import annotations

import json
import re

import pytest

from tests.e2e.support.applying import API_VERSION, APPLY, MERGE, apply, configuration, managed_fields
from tests.e2e.support.clusters.cluster import ROOT, E2eCluster, tenants_path
from tests.e2e.support.http.https_client import Response
from tests.e2e.support.tenants import Tenants, manifest


def test_the_format_of_managed_fields_entries(cluster: E2eCluster, tenants: Tenants) -> None:
    name = tenants.new_name()
    config = configuration(
        name, metadata={"labels": {"a": "b"}, "finalizers": ["example.org/x"]}, spec={"resourceQuotas": {"cpu": 1}}
    )
    apply(cluster, name, "applier", config).expect(201)
    updated = cluster.client().request(
        "PATCH",
        tenants_path(ROOT, name),
        {"metadata": {"annotations": {"c": "d"}, "finalizers": None}, "spec": {"etcd": True}},
        query={"fieldManager": "updater"},
        content_type=MERGE,
    )
    managed = updated.expect(200)["metadata"]["managedFields"]
    assert [(entry["operation"], entry["manager"]) for entry in managed] == [
        ("Apply", "applier"),
        ("Update", "updater"),
    ]
    for entry in managed:
        assert (entry["apiVersion"], entry["fieldsType"]) == (API_VERSION, "FieldsV1")
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", entry["time"])
        assert "subresource" not in entry
    # compared as text, because clients compare the serialized fieldsV1 (WIRE-J36)
    assert [json.dumps(entry["fieldsV1"], separators=(",", ":")) for entry in managed] == [
        '{"f:metadata":{"f:labels":{"f:a":{}}},"f:spec":{"f:resourceQuotas":{"f:cpu":{}}}}',
        '{"f:metadata":{"f:annotations":{".":{},"f:c":{}}},"f:spec":{"f:etcd":{}}}',
    ]


def test_fields_set_by_the_server_have_no_owner(cluster: E2eCluster, tenants: Tenants) -> None:
    created = tenants.create(labels={"a": "b"}, generateName="x")
    [entry] = created["metadata"]["managedFields"]
    assert set(entry["fieldsV1"]) == {"f:metadata", "f:spec"}
    assert set(entry["fieldsV1"]["f:metadata"]) == {"f:labels", "f:generateName"}


def test_the_default_field_manager_is_the_user_agent(cluster: E2eCluster, tenants: Tenants) -> None:
    agent = {"User-Agent": "my-tool/v1.2 (linux/amd64)"}
    created = (
        cluster.client().request("POST", tenants_path(ROOT), manifest(tenants.new_name()), headers=agent).expect(201)
    )
    assert [entry["manager"] for entry in created["metadata"]["managedFields"]] == ["my-tool"]


def test_owner_references_are_owned_by_their_uid(cluster: E2eCluster, tenants: Tenants) -> None:
    uid = tenants.get("root")["metadata"]["uid"]
    owner = {"apiVersion": API_VERSION, "kind": "Tenant", "name": "root", "uid": uid}
    other = {"apiVersion": "v1", "kind": "Namespace", "name": ROOT}
    other["uid"] = cluster.client().get(f"/api/v1/namespaces/{ROOT}").expect(200)["metadata"]["uid"]
    name = tenants.new_name()
    apply(cluster, name, "first", configuration(name, metadata={"ownerReferences": [owner]})).expect(201)
    metadata = {"ownerReferences": [other], "finalizers": ["example.org/x"]}
    both = apply(cluster, name, "second", configuration(name, metadata=metadata)).expect(200)
    assert both["metadata"]["ownerReferences"] == [owner, other]
    owned = managed_fields(both)["second", "Apply"]["fieldsV1"]["f:metadata"]
    assert owned == {
        "f:finalizers": {'v:"example.org/x"': {}},
        "f:ownerReferences": {f'k:{{"uid":"{other["uid"]}"}}': {}},
    }
    left = apply(cluster, name, "second", configuration(name)).expect(200)
    assert left["metadata"]["ownerReferences"] == [owner]
    assert "finalizers" not in left["metadata"]


@pytest.mark.parametrize(
    ("config", "code", "message"),
    [
        pytest.param("a: [", 400, "error decoding patch: ", id="broken YAML"),
        pytest.param("- a", 400, "error decoding patch: ", id="not an object"),
        pytest.param(
            "kind: Pod\nmetadata: {managedFields: [{}]}", 400, "invalid object type: /, Kind=Pod", id="another kind"
        ),
        pytest.param(
            f"apiVersion: {API_VERSION}\nkind: Tenant\nmetadata: {{managedFields: [{{}}]}}\nspec: {{colour: 1}}",
            400,
            "metadata.managedFields must be nil",
            id="managedFields",
        ),
        pytest.param(
            f"apiVersion: {API_VERSION}\nkind: Tenant\nkind: Tenant\nmetadata: {{name: other}}\ncolour: 1",
            400,
            f"failed to create typed patch object (/other; {API_VERSION}, Kind=Tenant): "
            ".colour: field not declared in schema",
            id="an unknown field",
        ),
        pytest.param(
            f"apiVersion: {API_VERSION}\nkind: Tenant\nmetadata: {{name: other}}\nspec: {{etcd: text}}",
            400,
            f"failed to create typed patch object (/other; {API_VERSION}, Kind=Tenant): "
            ".spec.etcd: expected boolean, got &{text}",
            id="a wrong type",
        ),
        pytest.param(
            f"apiVersion: {API_VERSION}\nkind: Tenant\nkind: Tenant\nmetadata: {{name: other}}\nspec: {{etcd: true}}",
            409,
            'Apply failed with 1 conflict: conflict with "e2e" using apps.cozystack.io/v1alpha1: .spec.etcd',
            id="a conflict",
        ),
        pytest.param(
            f"apiVersion: {API_VERSION}\nkind: Tenant\nkind: Tenant\nmetadata: {{name: other}}",
            400,
            "error strict decoding patch: ",
            id="a duplicate key",
        ),
        pytest.param(
            f"apiVersion: {API_VERSION}\nkind: Tenant\nmetadata: {{name: other}}",
            400,
            "the name of the object (other) does not match the name on the URL ",
            id="another name",
        ),
    ],
)
def test_errors_of_an_apply_are_reported_in_order(
    cluster: E2eCluster, tenants: Tenants, config: str, code: int, message: str
) -> None:
    name, client = tenants.new_name(), cluster.client()
    own = manifest(name, spec={"etcd": False})
    client.request("POST", tenants_path(ROOT), own, query={"fieldManager": "e2e"}).expect(201)
    status = apply(cluster, name, "applier", config, fieldValidation="Strict").expect(code)
    assert status["message"].startswith(message)


def test_an_apply_of_a_missing_object_creates_it(cluster: E2eCluster, tenants: Tenants) -> None:
    name = tenants.new_name()
    outdated = configuration(name, metadata={"resourceVersion": "5"})
    assert apply(cluster, name, "first", outdated).expect(409)["reason"] == "Conflict"
    created = apply(cluster, name, "first", configuration(name, spec={"etcd": True}))
    assert created.expect(201)["metadata"]["generation"] == 1
    again = apply(cluster, name, "first", configuration(name, spec={"etcd": False}))
    assert again.expect(200)["metadata"]["uid"] == created.json()["metadata"]["uid"]


def test_apply_creates_nothing_without_the_create_verb(cluster: E2eCluster, tenants: Tenants, unique: str) -> None:
    rules = [{"apiGroups": ["apps.cozystack.io"], "resources": ["tenants"], "verbs": ["get", "patch"]}]
    rbac = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{ROOT}"
    role = {"metadata": {"name": unique}, "rules": rules}
    cluster.client().request("POST", f"{rbac}/roles", role).expect(201)
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": unique}
    subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": unique}
    binding = {"metadata": {"name": unique}, "roleRef": reference, "subjects": [subject]}
    cluster.client().request("POST", f"{rbac}/rolebindings", binding).expect(201)
    user, existing, missing = cluster.client(unique), tenants.create()["metadata"]["name"], tenants.new_name()

    def attempt(name: str) -> Response:
        query = {"fieldManager": "e2e"}
        config = configuration(name, metadata={"labels": {"a": "b"}})
        return user.request("PATCH", tenants_path(ROOT, name), config, query=query, content_type=APPLY)

    tenants.wait("the user may patch", lambda: attempt(existing).status == 200)
    assert 'cannot create resource "tenants"' in attempt(missing).expect(403)["message"]
    assert not tenants.exists(missing)


def test_a_new_field_owner_alone_changes_the_resource_version(cluster: E2eCluster, tenants: Tenants) -> None:
    name = tenants.new_name()
    config = configuration(name, spec={"etcd": True})
    apply(cluster, name, "first", config).expect(201)
    before = tenants.wait_until_settled(name)["metadata"]
    unchanged = apply(cluster, name, "first", config).expect(200)["metadata"]
    assert unchanged == before
    shared = apply(cluster, name, "second", config).expect(200)["metadata"]
    assert int(shared["resourceVersion"]) > int(before["resourceVersion"])
    assert shared["generation"] == before["generation"]
    # a manager that changed no value has no time, and so sorts first (WIRE-G3)
    assert [(entry["manager"], "time" in entry) for entry in shared["managedFields"]] == [
        ("second", False),
        ("first", True),
    ]


def test_the_first_apply_over_unowned_fields_conflicts(cluster: E2eCluster, tenants: Tenants) -> None:
    name = tenants.create()["metadata"]["name"]
    untracked = tenants.patch(name, {"metadata": {"managedFields": [{}]}})
    assert "managedFields" not in untracked["metadata"]
    assert "managedFields" not in tenants.patch(name, {"spec": {"monitoring": True}})["metadata"]
    status = apply(cluster, name, "first", configuration(name, spec={"monitoring": False})).expect(409)
    assert 'conflict with "before-first-apply" using' in status["message"]
    same = apply(cluster, name, "first", configuration(name, spec={"monitoring": True})).expect(200)
    assert ("before-first-apply", "Update") in managed_fields(same)


@pytest.mark.parametrize(
    ("value", "conflicts"),
    [
        pytest.param(1, False, id="the same number"),
        pytest.param("1", True, id="the same number as a string"),
        pytest.param("1000m", True, id="the same in another unit"),
    ],
)
def test_quantities_are_compared_as_written(
    cluster: E2eCluster, tenants: Tenants, value: int | str, conflicts: bool
) -> None:
    name = tenants.new_name()
    apply(cluster, name, "first", configuration(name, spec={"resourceQuotas": {"cpu": 1}})).expect(201)
    other = apply(cluster, name, "second", configuration(name, spec={"resourceQuotas": {"cpu": value}}))
    assert other.status == (409 if conflicts else 200)
    assert tenants.get(name)["spec"]["resourceQuotas"] == {"cpu": 1}


def test_an_applied_null_sets_the_default_and_owns_it(cluster: E2eCluster, tenants: Tenants) -> None:
    name = tenants.new_name()
    apply(cluster, name, "first", configuration(name, spec={"schedulingClass": "a"})).expect(201)
    nulled = apply(cluster, name, "first", configuration(name, spec={"schedulingClass": None})).expect(200)
    assert nulled["spec"]["schedulingClass"] == ""
    assert managed_fields(nulled)["first", "Apply"]["fieldsV1"] == {"f:spec": {"f:schedulingClass": {}}}


def test_defaulted_fields_have_no_owner(cluster: E2eCluster, tenants: Tenants) -> None:
    name = tenants.new_name()
    created = apply(cluster, name, "first", configuration(name, spec={"etcd": True})).expect(201)
    assert created["spec"]["monitoring"] is False
    assert managed_fields(created)["first", "Apply"]["fieldsV1"] == {"f:spec": {"f:etcd": {}}}
    apply(cluster, name, "second", configuration(name, spec={"monitoring": True})).expect(200)


def test_managed_fields_are_in_every_response(cluster: E2eCluster, tenants: Tenants) -> None:
    created = tenants.create()
    name, client = created["metadata"]["name"], cluster.client()
    one_only = {"fieldSelector": f"metadata.name={name}"}
    [listed] = client.get(tenants_path(ROOT), query=one_only).expect(200)["items"]
    with client.stream(tenants_path(ROOT), query={**one_only, "watch": "true"}) as frames:
        watched = next(frames)["object"]
    for shown in (tenants.get(name), listed, watched):
        assert shown["metadata"]["managedFields"] == created["metadata"]["managedFields"]


def test_an_applied_status_has_its_own_entry(cluster: E2eCluster, tenants: Tenants) -> None:
    """WIRE-J37, for the HelmRelease that stores a Tenant, since the status of a Tenant is read-only."""
    name = tenants.create()["metadata"]["name"]
    path = f"/apis/helm.toolkit.fluxcd.io/v2/namespaces/{ROOT}/helmreleases/tenant-{name}"
    moment = "2026-01-01T00:00:00Z"
    condition = {"type": "Released", "status": "True", "reason": "Done", "message": "", "lastTransitionTime": moment}
    config = {
        "apiVersion": "helm.toolkit.fluxcd.io/v2",
        "kind": "HelmRelease",
        "metadata": {"name": f"tenant-{name}", "namespace": ROOT},
        "status": {"conditions": [condition]},
    }
    query = {"fieldManager": "helm-controller"}
    client = cluster.client()
    applied = client.request("PATCH", f"{path}/status", config, query=query, content_type=APPLY).expect(200)
    [entry] = [each for each in applied["metadata"]["managedFields"] if each["manager"] == "helm-controller"]
    assert (entry["operation"], entry["subresource"]) == ("Apply", "status")
    assert set(entry["fieldsV1"]) == {"f:status"}
    tenants.wait("the tenant shows the condition", lambda: "Released" in str(tenants.get(name)["status"]))
    readonly = client.request("PATCH", tenants_path(ROOT, name, "status"), config, query=query, content_type=APPLY)
    assert readonly.expect(405)["reason"] == "MethodNotAllowed"
