"""Invalid metadata and the messages for it (WIRE-D40, WIRE-D43 to WIRE-D46, WIRE-D76)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.e2e.support.clusters.cluster import ROOT, E2eCluster, tenants_path
from tests.e2e.support.tenants import Object, Tenants, manifest

NAME_PART = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
LABEL_VALUE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
SUBDOMAIN = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    r"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
OWNER = {"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "1"}


@pytest.mark.parametrize(
    ("metadata", "field", "message"),
    [
        pytest.param({"labels": {"a b": ""}}, "labels", f'Invalid value: "a b": {NAME_PART}', id="a label key"),
        pytest.param({"labels": {"a": "b c"}}, "labels", f'Invalid value: "b c": {LABEL_VALUE}', id="a label value"),
        pytest.param(
            {"annotations": {"a b": ""}}, "annotations", f'Invalid value: "a b": {NAME_PART}', id="an annotation key"
        ),
        pytest.param(
            {"annotations": {"a": "x" * 262144}},
            "annotations",
            "Too long: may not be more than 262144 bytes",
            id="the total size of annotations",
        ),
        pytest.param({"finalizers": ["a b"]}, "finalizers", f'Invalid value: "a b": {NAME_PART}', id="a finalizer"),
        pytest.param(
            {"finalizers": ["orphan", "foregroundDeletion"]},
            "finalizers",
            'Invalid value: ["orphan","foregroundDeletion"]: finalizer orphan and foregroundDeletion cannot be both '
            "set",
            id="mutually exclusive finalizers",
        ),
        pytest.param(
            {"ownerReferences": [{**OWNER, "apiVersion": ""}]},
            "ownerReferences.apiVersion",
            'Invalid value: "": version must not be empty',
            id="an owner without a version",
        ),
        pytest.param(
            {"ownerReferences": [{**OWNER, "uid": ""}]},
            "ownerReferences.uid",
            'Invalid value: "": must not be empty',
            id="an owner without a uid",
        ),
    ],
)
def test_invalid_metadata_is_reported_as_one_cause(
    cluster: E2eCluster, tenants: Tenants, metadata: dict[str, Any], field: str, message: str
) -> None:
    name = tenants.new_name()
    status = cluster.client().request("POST", tenants_path(ROOT), manifest(name, **metadata)).expect(422)
    [cause] = status["details"]["causes"]
    assert (cause["field"], cause["message"]) == (f"metadata.{field}", message)
    assert status["message"] == f'Tenant.apps.cozystack.io "{name}" is invalid: metadata.{field}: {message}'


def test_an_annotation_key_may_contain_capitals(cluster: E2eCluster, tenants: Tenants) -> None:
    annotations = {"Example.COM/Some": "text", "x": "y" * 1000}
    assert tenants.create(annotations=annotations)["metadata"]["annotations"] == annotations


def test_two_controlling_owners_are_rejected_by_name(cluster: E2eCluster, tenants: Tenants) -> None:
    owners = [{**OWNER, "uid": uid, "name": f"n{uid}", "controller": True} for uid in "12"]
    answer = cluster.client().request("POST", tenants_path(ROOT), manifest(tenants.new_name(), ownerReferences=owners))
    assert answer.expect(422)["message"].endswith(
        'Only one reference can have Controller set to true. Found "true" in references for ConfigMap/n1 and '
        "ConfigMap/n2"
    )


def test_a_duplicate_owner_is_stored_once_with_a_warning(cluster: E2eCluster, tenants: Tenants) -> None:
    root = tenants.get("root")
    owner = {"apiVersion": root["apiVersion"], "kind": "Tenant", "name": "root", "uid": root["metadata"]["uid"]}
    body = manifest(tenants.new_name(), ownerReferences=[owner, owner])
    created = cluster.client().request("POST", tenants_path(ROOT), body)
    metadata = created.expect(201)["metadata"]
    path = tenants_path(ROOT, metadata["name"])
    again = {"name": metadata["name"], "ownerReferences": [owner] * 2}
    updated = cluster.client().request("PUT", path, {**body, "metadata": again})
    patch = {"metadata": {"ownerReferences": [owner] * 2}}
    kind = "application/merge-patch+json"
    patched = cluster.client().request("PATCH", path, patch, content_type=kind)
    for answer in (created, updated, patched):
        assert answer.json()["metadata"]["ownerReferences"] == [owner]
        [warning] = answer.warnings
        assert warning.startswith('299 - ".metadata.ownerReferences contains duplicate entries; API server dedups ')
        assert f"duplicate UID(s) observed: {owner['uid']}" in warning


def test_an_invalid_name_gets_the_dns_subdomain_message(cluster: E2eCluster) -> None:
    body: Object = {"metadata": {"name": "A_b"}}
    status = cluster.client().request("POST", f"/api/v1/namespaces/{ROOT}/configmaps", body).expect(422)
    assert status["message"] == f'ConfigMap "A_b" is invalid: metadata.name: Invalid value: "A_b": {SUBDOMAIN}'
