"""Bugs and limits of the peer with other kinds, deep trees and namespace deletion: API-19, API-20, API-29."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.e2e.support.clusters.cluster import PATIENCE, ROOT, ROOT_HOST, E2eCluster, tenants_path
from tests.e2e.support.clusters.kube import KubeCluster
from tests.e2e.support.clusters.processes import wait_until
from tests.e2e.support.peer_lessons import list_version, next_event, watch
from tests.e2e.support.tenants import Object, Tenants, manifest

_BLOCKED = "NamespaceDeletionDiscoveryFailure"


def test_installing_and_removing_a_kind_interrupts_nothing(cluster: E2eCluster, tenants: Tenants, unique: str) -> None:
    """The peer restarts when a kind changes, which ends all watches (API-19)."""
    client, pid = cluster.client(), cluster.server.pid
    path, body = _new_kind(cluster, f"{unique}.example.org")
    with watch(cluster, resourceVersion=list_version(cluster), labelSelector=f"e2e={unique}") as frames:
        client.request("POST", path, body).expect(201)
        first = tenants.create(labels={"e2e": unique})["metadata"]["name"]
        assert next_event(frames, "ADDED")["object"]["metadata"]["name"] == first
        assert client.request("DELETE", f"{path}/{body['metadata']['name']}").status == 200
        second = tenants.create(labels={"e2e": unique})["metadata"]["name"]
        assert next_event(frames, "ADDED")["object"]["metadata"]["name"] == second
    assert (cluster.server.pid, cluster.server.ended) == (pid, False)


def _new_kind(cluster: E2eCluster, group: str) -> tuple[str, Object]:
    """Path and body that add a kind: a CRD, or on the embedded cluster an APIService of another group."""
    if cluster.kind == "embedded":
        spec: Object = {"group": group, "version": "v1", "groupPriorityMinimum": 1, "versionPriority": 1}
        made = {"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": {"name": f"v1.{group}"}}
        return "/apis/apiregistration.k8s.io/v1/apiservices", {**made, "spec": spec}
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    spec = {
        "group": group,
        "scope": "Namespaced",
        "names": {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"},
        "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
    }
    made = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}
    return (
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
        {**made, "metadata": {"name": f"things.{group}"}, "spec": spec},
    )


def test_ten_levels_of_tenants_work_and_a_name_that_is_too_long_is_rejected(
    cluster: E2eCluster, tenants: Tenants
) -> None:
    """At the peer, dashes make name chains ambiguous, and too long ones fail only at chart installation (API-20)."""
    client, namespace = cluster.client(), tenants.create_with_namespace()
    names = [namespace.removeprefix("tenant-")]
    for level in range(9):
        name = f"l{level}"
        created = client.request("POST", tenants_path(namespace), manifest(name, namespace)).expect(201)
        assert created["status"]["namespace"] == f"{namespace}-{name}"
        namespace = created["status"]["namespace"]
        tenants.wait_for_namespace(namespace)
        names.append(name)
    labels = client.get(f"/api/v1/namespaces/{namespace}").expect(200)["metadata"]["labels"]
    assert labels["namespace.cozystack.io/host"] == ".".join([*reversed(names), ROOT_HOST])
    assert len([key for key in labels if key.startswith("tenant.cozystack.io/")]) == len(names) + 1
    longest = "x" * (63 - len(namespace) - 1)
    dry = {"dryRun": "All"}
    client.request("POST", tenants_path(namespace), manifest(f"{longest}x", namespace), query=dry).expect(422)
    client.request("POST", tenants_path(ROOT), manifest("with-dash"), query=dry).expect(422)


@pytest.mark.parametrize(("length", "status"), [(63, 201), (64, 422), (200, 422)])
def test_a_host_may_be_as_long_as_a_label_value(
    cluster: E2eCluster, tenants: Tenants, unique: str, length: int, status: int
) -> None:
    """A longer host is rejected on the write instead of failing as a label later (API-20, FACT-6)."""
    long = f"{unique}." + "a." * length
    value = long[: length - 4].rstrip(".").ljust(length - 4, "a") + ".org"
    assert len(value) == length
    answer = cluster.client().request("POST", tenants_path(ROOT), manifest(tenants.new_name(), spec={"host": value}))
    body = answer.expect(status)
    if status == 201:
        labels = tenants.wait_for_namespace(body["status"]["namespace"])["metadata"]["labels"]
        assert labels["namespace.cozystack.io/host"] == value
    else:
        assert [cause["field"] for cause in body["details"]["causes"]] == ["spec.host"]


def test_every_schema_is_readable_by_type_checkers(cluster: E2eCluster) -> None:
    """The peer's `additionalProperties: true` crashed the type checker of admission policies (API-29)."""
    document = cluster.client().get("/openapi/v3/apis/apps.cozystack.io/v1alpha1").expect(200)
    schemas = document["components"]["schemas"]
    assert any("Tenant" in name for name in schemas)
    problems = [problem for name, schema in schemas.items() for problem in _lint(name, schema, schemas)]
    assert problems == []


def _lint(path: str, schema: Object, schemas: Object) -> Iterator[str]:
    """Yields free-form maps, dangling references, arrays without items and invalid types."""
    if "additionalProperties" in schema and not isinstance(schema["additionalProperties"], dict):
        yield f"{path}: additionalProperties is {schema['additionalProperties']}"
    if schema.get("type") == "array" and "items" not in schema:
        yield f"{path}: an array without items"
    if not isinstance(schema.get("type", ""), str):
        yield f"{path}: {schema['type']} is not one type"
    reference = schema.get("$ref", "").removeprefix("#/components/schemas/")
    if reference and reference not in schemas:
        yield f"{path}: {reference} is missing"
    children = dict(schema.get("properties", {}))
    children |= {key: schema[key] for key in ("items", "additionalProperties") if isinstance(schema.get(key), dict)}
    children |= {
        f"{key}[{n}]": each for key in ("allOf", "anyOf", "oneOf") for n, each in enumerate(schema.get(key, ()))
    }
    for key, child in children.items():
        yield from _lint(f"{path}.{key}", child, schemas)


@pytest.mark.controller_manager
def test_a_namespace_is_deleted_with_the_tenants_in_it(cluster: E2eCluster, tenants: Tenants) -> None:
    """At the peer, the error "content is not a list" blocked the deletion forever (API-29)."""
    namespace = tenants.create_with_namespace()
    tenants.create(namespace)
    client, path = cluster.client(), f"/api/v1/namespaces/{namespace}"
    uid = client.get(path).expect(200)["metadata"]["uid"]
    client.request("DELETE", path).expect(200)

    def is_deleted() -> bool:
        # the Tenant of the namespace still exists, so the namespace is created again
        answer = client.get(path)
        return answer.status == 404 or answer.expect(200)["metadata"]["uid"] != uid

    tenants.wait("the namespace is deleted", is_deleted)
    # our cache sees the deletions of the cluster a moment later
    tenants.wait("no Tenant is listed", lambda: client.get(tenants_path(namespace)).expect(200)["items"] == [])


def test_a_namespace_deletion_completes_once_our_server_is_back(own_kube: KubeCluster, unique: str) -> None:
    """While our server is down, its APIService is unavailable and the rest of the cluster works (R-002, API-29)."""
    if not own_kube.has_controllers:
        pytest.skip("needs a kube-controller-manager beside kube-apiserver: put it into KUBEBUILDER_ASSETS")
    client, service = own_kube.client(), "/apis/apiregistration.k8s.io/v1/apiservices/v1alpha1.apps.cozystack.io"
    plain = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": unique}}
    client.request("POST", "/api/v1/namespaces", plain).expect(201)

    def availability() -> str:
        conditions = client.get(service).expect(200)["status"]["conditions"]
        return {each["type"]: str(each["status"]) for each in conditions}["Available"]

    assert own_kube.server.stop() == 0
    wait_until("the APIService is not Available", lambda: availability() == "False", seconds=PATIENCE)
    assert client.get(tenants_path(ROOT)).status == 503
    assert client.get("/api/v1/namespaces").status == 200
    client.request("DELETE", f"/api/v1/namespaces/{unique}").expect(200)
    namespace = f"/api/v1/namespaces/{unique}"

    def is_blocked() -> bool:
        conditions = client.get(namespace).expect(200)["status"].get("conditions", ())
        return any((each["type"], each["status"]) == (_BLOCKED, "True") for each in conditions)

    wait_until("the namespace deletion is blocked", is_blocked, seconds=PATIENCE)
    own_kube.server = own_kube.start()
    wait_until("the APIService is Available", lambda: availability() == "True", seconds=PATIENCE)
    wait_until("the namespace is deleted", lambda: client.get(namespace).status == 404, seconds=2 * PATIENCE)
