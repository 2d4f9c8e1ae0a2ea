"""Tables and metadata-only responses (WIRE-J13 to WIRE-J16)."""

from __future__ import annotations

import pytest

from tests.e2e.support.clusters.cluster import ROOT, E2eCluster, tenants_path
from tests.e2e.support.tenants import Tenants

TABLE = "application/json;as=Table;v={};g=meta.k8s.io"
PARTIAL = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
PARTIAL_LIST = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
def test_one_object_is_returned_as_a_table(cluster: E2eCluster, tenants: Tenants, version: str) -> None:
    name = tenants.create()["metadata"]["name"]
    accept = {"Accept": TABLE.format(version)}
    table = cluster.client().get(tenants_path(ROOT, name), headers=accept).expect(200)
    assert (table["kind"], table["apiVersion"]) == ("Table", f"meta.k8s.io/{version}")
    assert table["columnDefinitions"][0]["name"] == "Name"
    assert len(table["rows"]) == 1
    assert len(table["rows"][0]["cells"]) == len(table["columnDefinitions"])
    assert table["rows"][0]["cells"][0] == name


def test_the_columns_appear_in_their_order(cluster: E2eCluster) -> None:
    table = cluster.client().get(tenants_path(ROOT), headers={"Accept": TABLE.format("v1")}).expect(200)
    always = [column["name"] for column in table["columnDefinitions"] if column.get("priority", 0) == 0]
    assert always == ["Name", "Ready", "Namespace", "Host", "Gateway", "Age"]


def test_a_table_is_paginated(cluster: E2eCluster, tenants: Tenants, unique: str) -> None:
    made = sorted(tenants.create(labels={"e2e": unique})["metadata"]["name"] for _ in range(3))
    query: dict[str, object] = {"labelSelector": f"e2e={unique}", "limit": 2}
    accept = {"Accept": TABLE.format("v1")}
    first = cluster.client().get(tenants_path(ROOT), query=query, headers=accept).expect(200)
    token = first["metadata"]["continue"]
    rest = cluster.client().get(tenants_path(ROOT), query={**query, "continue": token}, headers=accept).expect(200)
    assert [row["cells"][0] for row in (*first["rows"], *rest["rows"])] == made
    assert first["metadata"]["resourceVersion"] == rest["metadata"]["resourceVersion"]


def test_a_table_of_all_namespaces_has_a_resource_version(cluster: E2eCluster) -> None:
    table = cluster.client().get(tenants_path(), headers={"Accept": TABLE.format("v1")}).expect(200)
    assert int(table["metadata"]["resourceVersion"]) > 0


@pytest.mark.parametrize(
    ("include", "kind"),
    [
        pytest.param("", "PartialObjectMetadata", id="metadata by default"),
        pytest.param("Metadata", "PartialObjectMetadata", id="metadata"),
        pytest.param("Object", "Tenant", id="whole objects"),
    ],
)
def test_rows_include_the_requested_form_of_the_object(cluster: E2eCluster, include: str, kind: str) -> None:
    query = {"includeObject": include} if include else None
    table = cluster.client().get(tenants_path(ROOT, "root"), query=query, headers={"Accept": TABLE.format("v1")})
    assert table.expect(200)["rows"][0]["object"]["kind"] == kind


def test_rows_can_omit_objects(cluster: E2eCluster) -> None:
    answer = cluster.client().get(
        tenants_path(ROOT, "root"), query={"includeObject": "None"}, headers={"Accept": TABLE.format("v1")}
    )
    assert not answer.expect(200)["rows"][0].get("object")


def test_one_object_is_returned_as_metadata(cluster: E2eCluster, tenants: Tenants) -> None:
    tenant = tenants.create(labels={"a": "b"})
    path = tenants_path(ROOT, tenant["metadata"]["name"])
    partial = cluster.client().get(path, headers={"Accept": PARTIAL}).expect(200)
    assert (partial["kind"], partial["apiVersion"]) == ("PartialObjectMetadata", "meta.k8s.io/v1")
    assert partial["metadata"]["uid"] == tenant["metadata"]["uid"]
    assert {"spec", "status"}.isdisjoint(partial)


def test_a_list_is_returned_as_metadata(cluster: E2eCluster, tenants: Tenants, unique: str) -> None:
    tenants.create(labels={"e2e": unique})
    answer = cluster.client().get(
        tenants_path(), query={"labelSelector": f"e2e={unique}"}, headers={"Accept": PARTIAL_LIST}
    )
    listed = answer.expect(200)
    assert (listed["kind"], len(listed["items"])) == ("PartialObjectMetadataList", 1)
    assert "spec" not in listed["items"][0]


def test_a_patch_can_be_answered_with_metadata(cluster: E2eCluster, tenants: Tenants) -> None:
    path = tenants_path(ROOT, tenants.create()["metadata"]["name"])
    body = {"metadata": {"labels": {"x": "y"}}}
    answer = cluster.client().request(
        "PATCH", path, body, content_type="application/merge-patch+json", headers={"Accept": PARTIAL}
    )
    assert answer.expect(200)["kind"] == "PartialObjectMetadata"


def test_an_error_is_never_a_table(cluster: E2eCluster, unique: str) -> None:
    answer = cluster.client().get(
        tenants_path(ROOT, unique), headers={"Accept": f"{TABLE.format('v1')},application/json"}
    )
    assert answer.expect(404)["kind"] == "Status"


def test_yaml_is_accepted_and_returned(cluster: E2eCluster, tenants: Tenants) -> None:
    name = tenants.new_name()
    text = f"apiVersion: apps.cozystack.io/v1alpha1\nkind: Tenant\nmetadata:\n  name: {name}\nspec:\n  etcd: true\n"
    answer = cluster.client().request(
        "POST", tenants_path(ROOT), text, content_type="application/yaml", headers={"Accept": "application/yaml"}
    )
    assert answer.status == 201
    assert answer.headers.get_content_type() == "application/yaml"
    assert "etcd: true" in answer.content.decode()
