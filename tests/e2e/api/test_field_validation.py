"""fieldValidation: unknown and duplicate fields are rejected, warned about or ignored (WIRE-J29, WIRE-J30).

The spec is open at the top, as its schema says by x-kubernetes-preserve-unknown-fields: undocumented keys are values of
the chart, and not unknown to Kubernetes.
"""

from __future__ import annotations

import pytest

from tests.e2e.support.clusters.cluster import ROOT, E2eCluster, tenants_path
from tests.e2e.support.http.https_client import Response
from tests.e2e.support.tenants import Tenants

UNKNOWN = """{{"apiVersion": "apps.cozystack.io/v1alpha1", "kind": "Tenant", "metadata": {{"name": "{name}"}},
 "unknownField": 1, "spec": {{"undocumented": 1, "etcd": true, "etcd": false}}}}"""
KEPT = 'unknown field \\"spec.undocumented\\": it is kept, and the chart decides'
UNKNOWN_METADATA = """{{"apiVersion": "apps.cozystack.io/v1alpha1", "kind": "Tenant",
 "metadata": {{"name": "{name}", "unknownMeta": "foo"}}, "spec": {{}}}}"""
APPLIED = """
apiVersion: apps.cozystack.io/v1alpha1
kind: Tenant
metadata:
  name: {name}
spec:
  etcd: true
"""


def post(cluster: E2eCluster, tenants: Tenants, body: str, validation: str) -> Response:
    query = {"fieldValidation": validation} if validation else None
    return cluster.client().request("POST", tenants_path(ROOT), body.format(name=tenants.new_name()), query=query)


def apply(cluster: E2eCluster, tenants: Tenants, body: str) -> Response:
    name = tenants.new_name()
    query = {"fieldValidation": "Strict", "fieldManager": "e2e"}
    kind = "application/apply-patch+yaml"
    path = tenants_path(ROOT, name)
    return cluster.client().request("PATCH", path, body.format(name=name), query=query, content_type=kind)


def test_strict_reports_every_problem_in_document_order(cluster: E2eCluster, tenants: Tenants) -> None:
    status = post(cluster, tenants, UNKNOWN, "Strict").expect(400)
    assert 'strict decoding error: unknown field "unknownField", duplicate field "spec.etcd"' in status["message"]


def test_strict_rejects_unknown_metadata_fields(cluster: E2eCluster, tenants: Tenants) -> None:
    status = post(cluster, tenants, UNKNOWN_METADATA, "Strict").expect(400)
    assert 'strict decoding error: unknown field "metadata.unknownMeta"' in status["message"]


@pytest.mark.parametrize("validation", ["", "Warn"])
def test_warn_is_the_default(cluster: E2eCluster, tenants: Tenants, validation: str) -> None:
    answer = post(cluster, tenants, UNKNOWN, validation)
    answer.expect(201)
    warnings = " ".join(answer.warnings)
    assert 'unknown field \\"unknownField\\"' in warnings
    assert 'duplicate field \\"spec.etcd\\"' in warnings
    assert KEPT in warnings


def test_ignore_drops_fields_without_a_warning_about_them(cluster: E2eCluster, tenants: Tenants) -> None:
    answer = post(cluster, tenants, UNKNOWN, "Ignore")
    created = answer.expect(201)
    assert "unknownField" not in created
    assert (created["spec"]["undocumented"], created["spec"]["etcd"]) == (1, False)
    [warning] = answer.warnings
    assert KEPT in warning


def test_an_unknown_field_validation_value_is_invalid(cluster: E2eCluster, tenants: Tenants) -> None:
    assert "fieldValidation" in post(cluster, tenants, UNKNOWN_METADATA, "Sometimes").expect(422)["message"]


def test_a_strict_merge_patch_is_rejected(cluster: E2eCluster, tenants: Tenants) -> None:
    path = tenants_path(ROOT, tenants.create()["metadata"]["name"])
    answer = cluster.client().request(
        "PATCH",
        path,
        {"unknownField": 1, "spec": {"undocumented": 1}},
        query={"fieldValidation": "Strict"},
        content_type="application/merge-patch+json",
    )
    assert 'strict decoding error: unknown field "unknownField"' in str(answer.json())
    assert 400 <= answer.status < 500


def test_a_strict_apply_of_undocumented_keys_passes_and_its_manager_owns_them(
    cluster: E2eCluster, tenants: Tenants
) -> None:
    applied = apply(cluster, tenants, APPLIED + "  undocumented:\n    deep: [1]\n    text: x\n").expect(201)
    assert (applied["spec"]["etcd"], applied["spec"]["undocumented"]) == (True, {"deep": [1], "text": "x"})
    [entry] = applied["metadata"]["managedFields"]
    assert entry["fieldsV1"]["f:spec"] == {"f:etcd": {}, "f:undocumented": {".": {}, "f:deep": {}, "f:text": {}}}
    path = tenants_path(ROOT, applied["metadata"]["name"])
    again = APPLIED.format(name=applied["metadata"]["name"]) + "  undocumented:\n    text: changed\n"
    query = {"fieldValidation": "Strict", "fieldManager": "e2e"}
    changed = cluster.client().request("PATCH", path, again, query=query, content_type="application/apply-patch+yaml")
    assert changed.expect(200)["spec"]["undocumented"] == {"text": "changed"}


def test_a_strict_apply_names_the_undeclared_field(cluster: E2eCluster, tenants: Tenants) -> None:
    answer = apply(cluster, tenants, APPLIED + "unknownField: 1\n")
    assert ".unknownField: field not declared in schema" in str(answer.json())
    assert 400 <= answer.status < 500


def test_a_strict_apply_names_the_line_of_a_duplicate_key(cluster: E2eCluster, tenants: Tenants) -> None:
    answer = apply(cluster, tenants, APPLIED + "  host: a\n  host: a\n")
    assert 'line 9: key "host" already set in map' in answer.expect(400)["message"]
