"""Fields that PUT and PATCH may change, and fields that they ignore or reject (WIRE-D35, WIRE-D47 to WIRE-D50,
WIRE-D52, WIRE-D53, WIRE-D78)."""

from __future__ import annotations

import copy
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.e2e.support.clusters.cluster import ROOT, E2eCluster, tenants_path
from tests.e2e.support.http.https_client import Response
from tests.e2e.support.tenants import Object, Tenants, manifest

MERGE = "application/merge-patch+json"


def put(cluster: E2eCluster, name: str, body: Object) -> Response:
    return cluster.client().request("PUT", tenants_path(ROOT, name), body)


def merge(cluster: E2eCluster, name: str, body: Object) -> Response:
    return cluster.client().request("PATCH", tenants_path(ROOT, name), body, content_type=MERGE)


def with_metadata(tenant: Object, **metadata: Any) -> Object:
    """A copy with changed metadata and without a resourceVersion; None removes a field."""
    body = copy.deepcopy(tenant)
    body["metadata"].pop("resourceVersion")
    for field, value in metadata.items():
        body["metadata"].pop(field, None)
        if value is not None:
            body["metadata"][field] = value
    return body


@pytest.mark.parametrize(
    ("metadata", "message"),
    [
        pytest.param(
            {"name": "other"},
            "the name of the object (other) does not match the name on the URL ({name})",
            id="another name",
        ),
        pytest.param(
            {"name": None},
            "the name of the object ({name} based on URL) was undeterminable: name must be provided",
            id="no name",
        ),
        pytest.param(
            {"namespace": "default"},
            "the namespace of the object (default) does not match the namespace on the request (tenant-root)",
            id="another namespace",
        ),
    ],
)
def test_the_name_and_namespace_of_an_update_must_match_the_url(
    cluster: E2eCluster, tenants: Tenants, metadata: dict[str, Any], message: str
) -> None:
    tenant = tenants.create()
    name = tenant["metadata"]["name"]
    assert put(cluster, name, with_metadata(tenant, **metadata)).expect(400)["message"] == message.format(name=name)
    assert merge(cluster, name, {"metadata": metadata}).expect(400)["message"] == message.format(name=name)


def test_an_update_without_a_namespace_uses_the_one_of_the_url(cluster: E2eCluster, tenants: Tenants) -> None:
    tenant = tenants.create()
    updated = put(cluster, tenant["metadata"]["name"], with_metadata(tenant, namespace=None)).expect(200)
    assert updated["metadata"]["namespace"] == ROOT


def test_an_update_may_omit_system_fields(cluster: E2eCluster, tenants: Tenants) -> None:
    tenant = tenants.create()
    left_out = dict.fromkeys(("uid", "creationTimestamp", "generation"))
    updated = put(cluster, tenant["metadata"]["name"], with_metadata(tenant, **left_out)).expect(200)
    for field in ("uid", "creationTimestamp", "generation"):
        assert updated["metadata"][field] == tenant["metadata"][field]


def test_an_update_cannot_change_system_fields(cluster: E2eCluster, tenants: Tenants) -> None:
    tenant = tenants.create()
    past = "2001-01-01T00:00:00Z"
    claimed = {"creationTimestamp": past, "deletionTimestamp": past, "generation": 99}
    updated = put(cluster, tenant["metadata"]["name"], with_metadata(tenant, **claimed)).expect(200)["metadata"]
    assert updated["creationTimestamp"] == tenant["metadata"]["creationTimestamp"]
    assert updated["generation"] == tenant["metadata"]["generation"]
    assert "deletionTimestamp" not in updated


def test_another_uid_is_a_conflict(cluster: E2eCluster, tenants: Tenants) -> None:
    tenant = tenants.create()
    name, uid = tenant["metadata"]["name"], tenant["metadata"]["uid"]
    other = "00000000-0000-4000-8000-000000000000"
    expected = f"Precondition failed: UID in precondition: {other}, UID in object meta: {uid}"
    for answer in (
        put(cluster, name, with_metadata(tenant, uid=other)),
        merge(cluster, name, {"metadata": {"uid": other}}),
    ):
        status = answer.expect(409)
        assert status["reason"] == "Conflict"
        assert status["message"].endswith(expected)


def test_a_terminating_object_accepts_no_new_finalizers(cluster: E2eCluster, tenants: Tenants) -> None:
    name = tenants.create(finalizers=["example.org/keep"])["metadata"]["name"]
    cluster.client().request("DELETE", tenants_path(ROOT, name)).expect(200)
    answer = merge(cluster, name, {"metadata": {"finalizers": ["example.org/keep", "example.org/new"]}})
    [cause] = answer.expect(422)["details"]["causes"]
    assert (cause["reason"], cause["field"]) == ("FieldValueForbidden", "metadata.finalizers")
    assert 'found new finalizers []string{"example.org/new"}' in cause["message"]
    tenants.patch(name, {"metadata": {"finalizers": None}})


def test_the_generation_counts_changes_of_the_spec_and_the_deletion(cluster: E2eCluster, tenants: Tenants) -> None:
    tenant = tenants.create(finalizers=["example.org/keep"])
    name = tenant["metadata"]["name"]
    generations = [tenant["metadata"]["generation"]]
    for change in (
        {"metadata": {"labels": {"a": "b"}}},
        {"spec": {"etcd": True}},
        {"spec": {"etcd": True}},
        {"metadata": {"annotations": {"a": "b"}}},
        {"spec": {"host": ""}},
    ):
        generations.append(tenants.patch(name, change)["metadata"]["generation"])
    deleted = cluster.client().request("DELETE", tenants_path(ROOT, name)).expect(200)
    generations.append(deleted["metadata"]["generation"])
    tenants.patch(name, {"metadata": {"finalizers": None}})
    assert generations == [1, 1, 2, 2, 2, 2, 3]


def test_an_update_without_a_resource_version_is_unconditional(cluster: E2eCluster, tenants: Tenants) -> None:
    name = tenants.create()["metadata"]["name"]
    tenants.patch(name, {"spec": {"etcd": True}})
    assert put(cluster, name, manifest(name, spec={"monitoring": True})).expect(200)["spec"]["monitoring"] is True
    assert tenants.get(name)["spec"]["etcd"] is False


@pytest.mark.parametrize("version", ["abc", "-1", "1.5"])
def test_a_non_numeric_resource_version_is_a_bad_request(cluster: E2eCluster, tenants: Tenants, version: str) -> None:
    tenant = tenants.create()
    answer = put(cluster, tenant["metadata"]["name"], with_metadata(tenant, resourceVersion=version))
    assert answer.expect(400)["message"] == f"invalid resource version: {version}"


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({}, id="an empty patch"),
        pytest.param({"metadata": {"labels": {"b": "2", "a": "1"}}}, id="the same labels in another order"),
        pytest.param({"metadata": {"annotations": {}}}, id="an empty map of annotations"),
        pytest.param({"metadata": {"finalizers": []}}, id="an empty list of finalizers"),
        pytest.param({"metadata": {"ownerReferences": []}}, id="an empty list of owners"),
        pytest.param({"spec": {"resourceQuotas": {}}}, id="an explicit default"),
    ],
)
def test_an_equivalent_update_changes_nothing(cluster: E2eCluster, tenants: Tenants, change: Object) -> None:
    name = tenants.create(labels={"a": "1", "b": "2"})["metadata"]["name"]
    before = tenants.wait_until_settled(name)
    after = tenants.patch(name, change)
    assert after == before
    whole = {**before, "metadata": {**before["metadata"], **change.get("metadata", {})}}
    assert put(cluster, name, whole).expect(200) == before


def test_an_update_ignores_the_status(cluster: E2eCluster, tenants: Tenants) -> None:
    name = tenants.create()["metadata"]["name"]
    before = tenants.wait_until_settled(name)
    claimed = {**before, "status": {"namespace": "kube-system", "version": "9"}}
    assert put(cluster, name, claimed).expect(200) == before
    assert tenants.patch(name, {"status": {"version": "9"}}) == before


def test_patches_never_conflict_with_concurrent_status_writes(cluster: E2eCluster, tenants: Tenants) -> None:
    """Only a patch that names a resourceVersion can fail with a conflict (WIRE-D78, WIRE-D84)."""
    name = tenants.create()["metadata"]["name"]
    release = f"/apis/helm.toolkit.fluxcd.io/v2/namespaces/{ROOT}/helmreleases/tenant-{name}/status"

    def write_status(step: int) -> int:
        body = {"status": {"observedGeneration": step + 1}}
        return cluster.client().request("PATCH", release, body, content_type=MERGE).status

    def label(step: int) -> int:
        return merge(cluster, name, {"metadata": {"labels": {f"step{step}": "yes"}}}).status

    with ThreadPoolExecutor(8) as pool:
        status_codes, label_codes = pool.map(write_status, range(12)), pool.map(label, range(12))
        assert set(status_codes) == set(label_codes) == {200}
    assert tenants.get(name)["metadata"]["labels"] == {f"step{step}": "yes" for step in range(12)}
