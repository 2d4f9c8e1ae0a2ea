"""Requirements of the Tenant API, R-001 to R-017 and R-029 to R-031.

R-002 is in test_peer_lessons_platform.py, R-018 in test_admission_requirements.py, R-020 to R-026 in
test_tenant_contents.py, and R-027 and R-032 to R-053 in test_tenant_tree_requirements.py.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.e2e.support.applying import APPLY, MERGE, configuration
from tests.e2e.support.clusters.cluster import GROUP_VERSION, ROOT, E2eCluster, tenants_path
from tests.e2e.support.http.https_client import Client
from tests.e2e.support.peer_lessons import JSON_PATCH, helmrelease_path, patch
from tests.e2e.support.tenants import Object, Tenants, manifest

FLAGS = ("etcd", "monitoring", "ingress", "seaweedfs", "computeplane")
HOST_DENIAL = "tenant.spec.host can only be set or changed by"


@pytest.fixture
def untrusted(cluster: E2eCluster, unique: str) -> Client:
    """A client that may write Tenants of the root namespace but belongs to no group that may set hosts."""
    cluster.grant(unique, "cozy:tenant:super-admin", ROOT)
    return cluster.client(unique)


def create(cluster: E2eCluster, name: str, spec: Any = None, **more: Any) -> Any:
    body = {**manifest(name), "spec": spec if spec is not None else {}, **more}
    return cluster.client().request("POST", tenants_path(ROOT), body)


def spec_schema(cluster: E2eCluster) -> Object:
    schemas = cluster.client().get(f"/openapi/v3{GROUP_VERSION}").expect(200)["components"]["schemas"]
    [tenant] = [each for name, each in schemas.items() if name.endswith(".Tenant")]
    spec = tenant["properties"]["spec"]
    [reference] = [each["$ref"] for each in spec.get("allOf", ())] or [spec.get("$ref", "")]
    found: Object = schemas[reference.rpartition("/")[2]]["properties"] if reference else spec["properties"]
    return found


def test_tenants_are_served_in_their_group_and_version(cluster: E2eCluster) -> None:
    """The kind Tenant belongs to apps.cozystack.io/v1alpha1 and is namespaced (R-001)."""
    listed = cluster.kubectl("api-resources", "--api-group", "apps.cozystack.io", "--no-headers").stdout
    [row] = [line.split() for line in listed.splitlines() if line.startswith("tenants ")]
    assert row[-3:] == ["apps.cozystack.io/v1alpha1", "true", "Tenant"]


def test_a_tenant_is_created_by_kubectl_or_http_and_shown_to_a_dashboard(
    cluster: E2eCluster, tenants: Tenants, unique: str
) -> None:
    """Clients may use kubectl, plain HTTP, tables and watches (R-003)."""
    applied, posted, client = tenants.new_name(), tenants.new_name(), cluster.client()
    labels = {"e2e": unique}
    cluster.kubectl("apply", "-f", "-", input=json.dumps(manifest(applied, labels=labels)))
    created = client.request("POST", tenants_path(ROOT), manifest(posted, labels=labels)).expect(201)
    shown = tenants.get(posted)
    assert (shown["metadata"]["uid"], shown["spec"]) == (created["metadata"]["uid"], created["spec"])
    assert tenants.get(applied)["spec"] == created["spec"]
    table = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
    query = {"labelSelector": f"e2e={unique}"}
    rows = client.get(tenants_path(), query=query, headers=table).expect(200)["rows"]
    assert sorted(row["cells"][0] for row in rows) == sorted((applied, posted))
    with client.stream(tenants_path(), query={**query, "watch": "true"}, headers=table) as frames:
        assert {next(frames)["object"]["rows"][0]["cells"][0] for _ in range(2)} == {applied, posted}


def test_an_empty_spec_is_valid_and_creates_no_gateway(cluster: E2eCluster, tenants: Tenants) -> None:
    """No field of the spec is required, and an unset gateway stays unset (R-004, R-006)."""
    name = tenants.new_name()
    assert create(cluster, name).expect(201)["status"]["namespace"] == f"tenant-{name}"
    tenants.wait_until_settled(name)
    assert "gateway" not in tenants.get(name)["spec"]
    path = f"/apis/gateway.cozystack.io/v1alpha1/namespaces/tenant-{name}/tenantgateways"
    assert cluster.client().get(path).expect(200)["items"] == []


@pytest.mark.parametrize("gateway", [True, False])
def test_host_and_gateway_read_back(cluster: E2eCluster, tenants: Tenants, gateway: bool) -> None:
    """The values that a client sets are returned unchanged (R-005)."""
    name = tenants.new_name()
    spec = {"host": f"{name}.example", "gateway": gateway}
    create(cluster, name, spec).expect(201)
    assert spec.items() <= tenants.get(name)["spec"].items()


@pytest.mark.parametrize(
    ("field", "value"),
    [
        pytest.param("gateway", "yes", id="R-005: a gateway is a boolean"),
        *(pytest.param(flag, "true", id=f"R-007: {flag} is a boolean") for flag in FLAGS),
        pytest.param("seaweedfs", {"volume": {"pools": {}}}, id="R-008: a tenant has no settings of services"),
    ],
)
def test_a_value_of_the_wrong_type_is_rejected_by_field(
    cluster: E2eCluster, unique: str, field: str, value: Any
) -> None:
    """The response names the field, and nothing is stored (PEER-20)."""
    status = create(cluster, unique, {field: value}).expect(422)
    assert [cause["field"] for cause in status["details"]["causes"]] == [f"spec.{field}"]
    assert cluster.client().get(tenants_path(ROOT, unique)).status == 404


@pytest.mark.parametrize("flag", FLAGS)
def test_a_service_flag_defaults_to_false_and_reaches_the_chart(
    cluster: E2eCluster, tenants: Tenants, flag: str
) -> None:
    """The Helm values of the stored HelmRelease follow every change of the flag (R-007, R-029)."""
    name, client = tenants.create()["metadata"]["name"], cluster.client()
    assert tenants.get(name)["spec"][flag] is False
    for value in (True, False):
        assert tenants.patch(name, {"spec": {flag: value}})["spec"][flag] is value
        # a default that is sent back after a change is a change, too, and stored
        assert client.get(helmrelease_path(name)).expect(200)["spec"]["values"] == {flag: value}


@pytest.mark.parametrize(
    ("field", "value"),
    [
        pytest.param("isolated", False, id="R-009: isolation is not optional"),
        pytest.param("gatewayIP", "192.0.2.1", id="R-010: a tenant has no gateway address"),
    ],
)
def test_an_undocumented_field_is_warned_about_and_left_to_the_chart(
    cluster: E2eCluster, tenants: Tenants, field: str, value: Any
) -> None:
    assert field not in spec_schema(cluster)
    assert set(FLAGS) <= set(spec_schema(cluster))
    name = tenants.new_name()
    answer = create(cluster, name, {field: value})
    assert answer.expect(201)["spec"][field] == value
    assert any(f"spec.{field}" in warning for warning in answer.warnings)
    assert cluster.client().get(helmrelease_path(name)).expect(200)["spec"]["values"] == {field: value}


def test_resource_quotas_are_a_free_map_of_quantities(cluster: E2eCluster, tenants: Tenants, unique: str) -> None:
    """Any key and any quantity is accepted; a value that is no quantity is rejected (R-011)."""
    name, quotas = tenants.new_name(), {"count/certificates.cert-manager.io": "10", "cpu": 4, "memory": "1.5Gi"}
    create(cluster, name, {"resourceQuotas": quotas}).expect(201)
    assert tenants.get(name)["spec"]["resourceQuotas"] == quotas
    status = create(cluster, unique, {"resourceQuotas": {"cpu": "ten"}}).expect(422)
    assert [cause["field"] for cause in status["details"]["causes"]] == ["spec.resourceQuotas[cpu]"]


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({"spec": {}}, id="an empty spec"),
        pytest.param({"spec": {"host": ""}}, id="an empty host"),
        pytest.param({}, id="no spec"),
    ],
)
def test_every_creator_of_tenants_may_inherit_the_host(tenants: Tenants, untrusted: Client, fields: Object) -> None:
    """An unset or empty host needs no special permission (R-012, PEER-23)."""
    body = {**{key: value for key, value in manifest(tenants.new_name()).items() if key != "spec"}, **fields}
    assert untrusted.request("POST", tenants_path(ROOT), body).expect(201)["spec"]["host"] == ""


def test_the_list_of_a_namespace_shows_the_direct_children(cluster: E2eCluster, tenants: Tenants) -> None:
    """Grandchildren are in the namespace of their own parent (R-013, R-049, R-053)."""
    alpha = tenants.create_with_namespace()
    beta = tenants.create(alpha)
    tenants.wait_for_namespace(beta["status"]["namespace"])
    tenants.create(beta["status"]["namespace"])
    client = cluster.client()
    listed = client.get(tenants_path(alpha)).expect(200)["items"]
    assert [each["metadata"]["name"] for each in listed] == [beta["metadata"]["name"]]
    everywhere = client.get(tenants_path()).expect(200)["items"]
    assert [each["metadata"]["uid"] for each in everywhere if each["metadata"]["namespace"] == alpha] == [
        beta["metadata"]["uid"]
    ]


def test_discovery_lists_the_verbs_of_tenants(cluster: E2eCluster) -> None:
    """Clients can read the kind, scope and verbs of Tenants from discovery (R-014)."""
    document = cluster.client().get(GROUP_VERSION).expect(200)
    [tenants] = [each for each in document["resources"] if each["name"] == "tenants"]
    assert document["kind"] == "APIResourceList"
    assert (tenants["singularName"], tenants["namespaced"], tenants["kind"]) == ("tenant", True, "Tenant")
    assert {"get", "list", "watch", "create", "update", "patch", "delete"} <= set(tenants["verbs"])


def test_admission_rejects_a_create(tenants: Tenants, untrusted: Client) -> None:
    """A user may not set the host of a new Tenant, and nothing is stored (R-015, FACT-11)."""
    name = tenants.new_name()
    rejected = untrusted.request("POST", tenants_path(ROOT), manifest(name, spec={"host": f"{name}.example"})).expect(
        403
    )
    assert HOST_DENIAL in rejected["message"]
    assert not tenants.exists(name)


@pytest.mark.parametrize("kind", ["PUT", MERGE, JSON_PATCH, APPLY])
def test_admission_rejects_updates_and_every_kind_of_patch(tenants: Tenants, untrusted: Client, kind: str) -> None:
    """A user may not change the host with PUT, a merge or JSON patch, or apply (R-016)."""
    name = tenants.create()["metadata"]["name"]
    path, wanted = tenants_path(ROOT, name), f"{name}.example"
    body: Any = {
        "PUT": manifest(name, spec={"host": wanted}),
        MERGE: {"spec": {"host": wanted}},
        JSON_PATCH: [{"op": "replace", "path": "/spec/host", "value": wanted}],
        APPLY: configuration(name, spec={"host": wanted}),
    }[kind]
    if kind == "PUT":
        answer = untrusted.request("PUT", path, body)
    else:
        query = {"fieldManager": "r016", "force": "true"} if kind == APPLY else None
        answer = untrusted.request("PATCH", path, body, content_type=kind, query=query)
    assert HOST_DENIAL in answer.expect(403)["message"]
    assert tenants.get(name)["spec"]["host"] == ""


def test_admission_rejects_a_delete(cluster: E2eCluster, tenants: Tenants, untrusted: Client) -> None:
    """A Tenant with children cannot be deleted, also by a user who may not see them (R-017)."""
    namespace = tenants.create_with_namespace()
    child = tenants.create(namespace)["metadata"]["name"]
    name = namespace.removeprefix("tenant-")
    rejected = untrusted.request("DELETE", tenants_path(ROOT, name)).expect(409)
    assert "the tenant has sub-tenants" in rejected["message"]
    assert child not in rejected["message"]
    assert "deletionTimestamp" not in tenants.get(name)["metadata"]


def test_manual_edits_of_the_stored_values_are_preserved(cluster: E2eCluster, tenants: Tenants) -> None:
    """A later write of the Tenant of another field does not remove them (R-030)."""
    name, client = tenants.create()["metadata"]["name"], cluster.client()
    edited = {"spec": {"values": {"tuned": {"replicas": 3}}}}
    client.request("PATCH", helmrelease_path(name), edited, content_type=MERGE).expect(200)
    tenants.patch(name, {"spec": {"etcd": True}})
    values = client.get(helmrelease_path(name)).expect(200)["spec"]["values"]
    assert (values["tuned"], values["etcd"]) == ({"replicas": 3}, True)


def test_a_merge_patch_changes_only_the_named_leaf(cluster: E2eCluster, tenants: Tenants) -> None:
    """Sibling keys and other fields keep their values (R-031)."""
    quotas = {"cpu": "2", "memory": "4Gi"}
    name = tenants.create(spec={"resourceQuotas": quotas, "etcd": True})["metadata"]["name"]
    patched = patch(cluster, name, {"spec": {"resourceQuotas": {"cpu": "4"}}}).expect(200)
    assert patched["spec"]["resourceQuotas"] == {**quotas, "cpu": "4"}
    assert patched["spec"]["etcd"] is True
