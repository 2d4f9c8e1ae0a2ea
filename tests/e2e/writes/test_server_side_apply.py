"""Server-side apply: ownership, conflicts and omitted fields (WIRE-J36 to WIRE-J43)."""

from __future__ import annotations

from typing import Any

from tests.e2e.support.clusters.cluster import ROOT, E2eCluster, tenants_path
from tests.e2e.support.http.https_client import Response
from tests.e2e.support.tenants import Tenants

APPLY = "application/apply-patch+yaml"
Object = dict[str, Any]


def apply(cluster: E2eCluster, name: str, manager: str, *, force: bool = False, **fields: Any) -> Response:
    body = {"apiVersion": "apps.cozystack.io/v1alpha1", "kind": "Tenant", "metadata": {"name": name}, **fields}
    query = {"fieldManager": manager, "force": str(force).lower()}
    return cluster.client().request("PATCH", tenants_path(ROOT, name), body, query=query, content_type=APPLY)


def owned_fields(tenant: Object, manager: str) -> Object:
    """The fields that a manager owns."""
    [found] = [each for each in tenant["metadata"]["managedFields"] if each["manager"] == manager]
    assert found["fieldsType"] == "FieldsV1"
    owned: Object = found["fieldsV1"]
    return owned


def test_applying_a_missing_tenant_creates_it(cluster: E2eCluster, tenants: Tenants) -> None:
    name = tenants.new_name()
    created = apply(cluster, name, "first", spec={"etcd": True}).expect(201)
    assert owned_fields(created, "first") == {"f:spec": {"f:etcd": {}}}
    assert created["metadata"]["managedFields"][0]["operation"] == "Apply"


def test_two_managers_may_own_a_field_with_the_same_value(cluster: E2eCluster, tenants: Tenants) -> None:
    name = tenants.new_name()
    apply(cluster, name, "first", spec={"etcd": True}).expect(201)
    both = apply(cluster, name, "second", spec={"etcd": True}).expect(200)
    assert owned_fields(both, "first") == owned_fields(both, "second") == {"f:spec": {"f:etcd": {}}}


def test_omitting_an_owned_field_removes_it(cluster: E2eCluster, tenants: Tenants) -> None:
    name = tenants.new_name()
    apply(cluster, name, "first", metadata={"name": name, "labels": {"a": "1", "b": "2"}}).expect(201)
    left = apply(cluster, name, "first", metadata={"name": name, "labels": {"a": "1"}}).expect(200)
    assert left["metadata"]["labels"] == {"a": "1"}


def test_omitting_a_shared_field_leaves_it(cluster: E2eCluster, tenants: Tenants) -> None:
    name = tenants.new_name()
    apply(cluster, name, "first", spec={"etcd": True}).expect(201)
    apply(cluster, name, "second", spec={"etcd": True}).expect(200)
    left = apply(cluster, name, "first", spec={}).expect(200)
    assert left["spec"]["etcd"] is True


def test_a_conflict_names_the_manager_and_the_field(cluster: E2eCluster, tenants: Tenants) -> None:
    name = tenants.new_name()
    apply(cluster, name, "first", spec={"etcd": True, "monitoring": True}).expect(201)
    status = apply(cluster, name, "second", spec={"etcd": False, "monitoring": False}).expect(409)
    assert status["reason"] == "Conflict"
    causes = {cause["field"]: cause for cause in status["details"]["causes"]}
    assert set(causes) == {".spec.etcd", ".spec.monitoring"}
    assert all('conflict with "first"' in cause["message"] for cause in causes.values())
    assert {cause["reason"] for cause in causes.values()} == {"FieldManagerConflict"}


def test_force_takes_over_ownership(cluster: E2eCluster, tenants: Tenants) -> None:
    name = tenants.new_name()
    apply(cluster, name, "first", spec={"etcd": True}).expect(201)
    taken = apply(cluster, name, "second", force=True, spec={"etcd": False}).expect(200)
    assert taken["spec"]["etcd"] is False
    assert [each["manager"] for each in taken["metadata"]["managedFields"] if "f:spec" in each["fieldsV1"]] == [
        "second"
    ]


def test_an_update_conflicts_with_the_next_apply(cluster: E2eCluster, tenants: Tenants) -> None:
    name = tenants.new_name()
    apply(cluster, name, "first", spec={"etcd": True}).expect(201)
    tenants.patch(name, {"spec": {"etcd": False}})
    apply(cluster, name, "first", spec={"etcd": True}).expect(409)
    assert apply(cluster, name, "first", force=True, spec={"etcd": True}).expect(200)["spec"]["etcd"] is True


def test_a_field_taken_over_by_an_update_survives_its_omission_from_an_apply(
    cluster: E2eCluster, tenants: Tenants
) -> None:
    name = tenants.new_name()
    apply(cluster, name, "first", spec={"schedulingClass": "a"}).expect(201)
    tenants.patch(name, {"spec": {"schedulingClass": "b"}})
    left = apply(cluster, name, "first", spec={}).expect(200)
    assert left["spec"]["schedulingClass"] == "b"


def test_each_manager_owns_the_finalizers_it_applied(cluster: E2eCluster, tenants: Tenants) -> None:
    name = tenants.new_name()
    apply(cluster, name, "first", metadata={"name": name, "finalizers": ["example.org/a"]}).expect(201)
    apply(cluster, name, "second", metadata={"name": name, "finalizers": ["example.org/b"]}).expect(200)
    left = apply(cluster, name, "first", metadata={"name": name}).expect(200)
    assert left["metadata"]["finalizers"] == ["example.org/b"]
    apply(cluster, name, "second", metadata={"name": name}).expect(200)


def test_applying_the_same_again_changes_nothing(cluster: E2eCluster, tenants: Tenants) -> None:
    name = tenants.new_name()
    apply(cluster, name, "first", spec={"etcd": True}).expect(201)
    tenants.wait_until_settled(name)

    def applied_version() -> str:
        version: str = apply(cluster, name, "first", spec={"etcd": True}).expect(200)["metadata"]["resourceVersion"]
        return version

    # the reconciler may write the status between two of them
    tenants.wait("the version stays", lambda: applied_version() == applied_version())


def test_an_apply_body_is_parsed_as_yaml(cluster: E2eCluster, tenants: Tenants) -> None:
    name = tenants.new_name()
    body = f"""{{"apiVersion": "apps.cozystack.io/v1alpha1", "kind": "Tenant",
      "metadata": {{"name": "{name}"}}, "spec": {{"etcd": true,}},}}"""
    query = {"fieldManager": "first"}
    answer = cluster.client().request("PATCH", tenants_path(ROOT, name), body, query=query, content_type=APPLY)
    assert answer.expect(201)["spec"]["etcd"] is True


def test_stored_ownership_is_not_visible_as_an_annotation(cluster: E2eCluster, tenants: Tenants) -> None:
    name = tenants.new_name()
    apply(cluster, name, "first", spec={"etcd": True}).expect(201)
    tenant = tenants.get(name)
    assert owned_fields(tenant, "first") == {"f:spec": {"f:etcd": {}}}
    assert "annotations" not in tenant["metadata"]


def test_apply_requires_a_field_manager(cluster: E2eCluster, tenants: Tenants) -> None:
    name = tenants.new_name()
    body = {"apiVersion": "apps.cozystack.io/v1alpha1", "kind": "Tenant", "metadata": {"name": name}}
    answer = cluster.client().request("PATCH", tenants_path(ROOT, name), body, content_type=APPLY)
    assert "fieldManager" in answer.expect(422)["message"]


def test_apply_validates_a_new_object_like_create(cluster: E2eCluster) -> None:
    status = apply(cluster, "super", "first", spec={}).expect(422)
    assert status["details"]["causes"][0]["field"] == "metadata.name"


def test_a_dry_run_of_apply_persists_nothing(cluster: E2eCluster, tenants: Tenants) -> None:
    name = tenants.new_name()
    body = {"apiVersion": "apps.cozystack.io/v1alpha1", "kind": "Tenant", "metadata": {"name": name}}
    query = {"fieldManager": "first", "dryRun": "All"}
    answer = cluster.client().request("PATCH", tenants_path(ROOT, name), body, query=query, content_type=APPLY)
    answer.expect(201)
    assert not tenants.exists(name)
