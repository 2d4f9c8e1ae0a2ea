"""ATTACK-21: responses of an aggregated server that break the cluster: redirects, and discovery or OpenAPI that fails.

The OpenAPI documents are tested in more detail in tests/apiserver/endpoints/test_openapi_documents.py, and fuzzed in
tests/e2e/api/test_openapi_fuzz.py.
"""

from __future__ import annotations

import statistics
import time
from functools import partial

import pytest

from tests.attacks.support.openapi_checks import find_dangling_references, find_untyped_objects
from tests.attacks.support.proxied_replica import Replica
from tests.attacks.support.two_tenants import TenantAdmin
from tests.e2e.support.clusters.cluster import (
    CORE_GROUP_VERSION,
    GROUP_VERSION,
    PATIENCE,
    ROOT,
    E2eCluster,
    tenants_path,
)
from tests.e2e.support.clusters.kube import KubeCluster
from tests.e2e.support.clusters.processes import wait_until
from tests.e2e.support.http.https_client import Client
from tests.e2e.support.http.pace import Pace
from tests.e2e.support.http.raw_tls import RawTls
from tests.e2e.support.tenants import Object, Tenants
from tests.e2e.support.visibility import NAMESPACES

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
MISLEADING_HEADERS = ("X-Forwarded-Host: evil.example", "X-Forwarded-Proto: http", "X-Original-URL: //evil.example")
TARGETS = [
    "/",
    "//",
    "/apis",
    "/apis/",
    "/apis/apps.cozystack.io",
    "/apis/apps.cozystack.io/",
    GROUP_VERSION,
    f"{GROUP_VERSION}/",
    f"/{GROUP_VERSION}/tenants",
    f"{GROUP_VERSION}//tenants",
    f"{GROUP_VERSION}/./tenants",
    f"{GROUP_VERSION}/../v1alpha1/tenants",
    f"{GROUP_VERSION}/tenants/",
    f"{tenants_path(ROOT)}/",
    f"{tenants_path(ROOT, 'root')}/",
    f"{tenants_path(ROOT, 'root')}/..",
    f"{tenants_path(ROOT)}/%2e%2e/x",
    f"{tenants_path(ROOT)}/http:%2f%2fevil.example",
    "//evil.example/apis",
    "/\\evil.example",
    "/%0d%0aLocation:%20https://evil.example",
    f"{GROUP_VERSION}/tenants?next=https://evil.example",
    f"{GROUP_VERSION}/tenants#https://evil.example",
    "/openapi/v2",
    "/openapi/v3/",
    "/healthz/",
    "/metrics/",
    "/version/",
    "/logs",
    "/ui",
    CORE_GROUP_VERSION,
    f"{NAMESPACES}/",
]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.lasting("alice")
def test_the_server_never_redirects(replica: Replica, alice: TenantAdmin, target: str) -> None:
    """CVE-2022-3172: the aggregator would pass a redirect of an aggregated server on to its clients."""
    clients: list[tuple[Client, tuple[str, ...]]] = [
        (replica.client(), ("GET", "HEAD", "OPTIONS")),
        (replica.client(alice.user), ("GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "TRACE")),
        (replica.anonymous_client(), ("GET", "POST", "DELETE", "CONNECT")),
    ]
    for client, methods in clients:
        for method in methods:
            with RawTls(client) as connection:
                connection.send_request_lines(method, target, *MISLEADING_HEADERS)
                head = connection.read_until(b"\r\n\r\n").partition(b"\r\n\r\n")[0]
            assert not head.startswith(b"HTTP/1.1 3"), (method, target, head)
            assert b"\r\nlocation:" not in head.lower()
            assert b"evil.example" not in head


DISCOVERY = [
    pytest.param("/apis", AGGREGATED, id="aggregated"),
    pytest.param("/apis", "application/json", id="groups"),
    pytest.param("/apis/apps.cozystack.io", "application/json", id="group"),
    pytest.param(GROUP_VERSION, "application/json", id="resources"),
    pytest.param(CORE_GROUP_VERSION, "application/json", id="resources of core"),
    pytest.param("/openapi/v3", "application/json", id="OpenAPI index"),
    pytest.param("/version", "application/json", id="version"),
]


@pytest.mark.parametrize(("path", "accept"), DISCOVERY)
def test_discovery_is_served_from_memory(replica: Replica, path: str, accept: str) -> None:
    """Discovery takes less than 100 ms, sends no request to the cluster and works during an outage of the cluster:
    garbage collection and the deletion of namespaces stop if discovery fails."""
    client = replica.client()
    headers = {"Accept": accept}
    client.get(path, headers=headers).expect(200)

    def timed() -> float:
        started = time.perf_counter()
        client.get(path, headers=headers).expect(200)
        return time.perf_counter() - started

    before, pace = len(replica.proxy.requests), Pace(client)
    assert statistics.median(timed() for _ in range(15)) < pace.limit(0.1)
    sent = [each for each in tuple(replica.proxy.requests)[before:] if "watch=" not in each.target]
    assert [each for each in sent if each.method == "GET" and each.path.startswith("/apis/apps.cozystack.io")] == []
    replica.proxy.disconnect("replica")
    try:
        assert statistics.median(timed() for _ in range(15)) < pace.limit(0.1)
    finally:
        replica.proxy.reconnect("replica")


@pytest.mark.parametrize("group", ["apis/apps.cozystack.io/v1alpha1", "apis/core.cozystack.io/v1alpha1"])
def test_openapi_v3_has_no_untyped_objects_and_no_dangling_references(cluster: E2eCluster, group: str) -> None:
    """#2863: each untyped map is marked as such, each reference has a target, and the kinds are named.

    An ApplicationDefinition of another test has a schema of its own, with untyped maps as a CRD may have them.
    """
    document = cluster.client().get(f"/openapi/v3/{group}").expect(200)
    components = document["components"]["schemas"]
    assert find_untyped_objects({name: each for name, each in components.items() if not _is_application(each)}) == []
    assert find_dangling_references(document, "#/components/schemas/", components) == []
    assert {kind for each in components.values() for kind in _kinds(each)} & {"Tenant", "TenantNamespace"}


def _kinds(schema: Object) -> set[str]:
    """The kinds that a component is a schema of."""
    return {each["kind"] for each in schema.get("x-kubernetes-group-version-kind", ())}


def _is_application(schema: Object) -> bool:
    """True for the schema of a kind that an ApplicationDefinition declares."""
    groups = {each["group"] for each in schema.get("x-kubernetes-group-version-kind", ())}
    return groups == {"apps.cozystack.io"} and not any(each.startswith("Tenant") for each in _kinds(schema))


def test_openapi_v2_has_no_untyped_objects_and_no_dangling_references(replica: Replica) -> None:
    document = replica.client().get("/openapi/v2").expect(200)
    assert document["swagger"] == "2.0"
    assert find_untyped_objects(document["definitions"]) == []
    assert find_dangling_references(document, "#/definitions/", document["definitions"]) == []
    identifiers = [
        operation["operationId"]
        for methods in document["paths"].values()
        for operation in methods.values()
        if isinstance(operation, dict) and "operationId" in operation
    ]
    assert len(identifiers) == len(set(identifiers))


@pytest.mark.lasting("alice")
def test_kubectl_explain_and_api_resources_work(cluster: E2eCluster, alice: TenantAdmin) -> None:
    for arguments in (("explain", "tenant.spec.resourceQuotas"), ("explain", "tenant", "--recursive")):
        assert "FIELD" in cluster.kubectl(*arguments, as_user=alice.user).stdout
    listed = cluster.kubectl("api-resources", "--api-group=apps.cozystack.io", as_user=alice.user)
    assert "tenants" in listed.stdout


@pytest.mark.controller_manager
def test_a_namespace_is_deleted_after_an_outage_of_our_server(kube: KubeCluster, tenants: Tenants, unique: str) -> None:
    """kubernetes#119662, #108427: the deletion waits for the resources that cannot be listed, says so in a condition,
    and continues once they can."""
    namespace, client = f"e2e-{unique}", kube.client()
    client.request("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}}).expect(201)
    path = f"/api/v1/namespaces/{namespace}"
    kube.server.stop()
    try:
        client.request("DELETE", path).expect(200)
        wait_until("a condition names our API group", partial(_waits_for_discovery, client, path), seconds=2 * PATIENCE)
    finally:
        kube.restart()
    wait_until("the namespace is gone", lambda: client.get(path).status == 404, seconds=3 * PATIENCE)
    tenants.create()


def _waits_for_discovery(client: Client, path: str) -> bool:
    answer = client.get(path)
    conditions = answer.json().get("status", {}).get("conditions", ()) if answer.status == 200 else ()
    return any(each["status"] == "True" and "cozystack.io" in each.get("message", "") for each in conditions)


@pytest.mark.controller_manager
def test_a_deletion_continues_after_a_restart(cluster: E2eCluster, tenants: Tenants) -> None:
    """Our server is stopped during the deletion of a Tenant, and finishes it after its restart."""
    if cluster.kind == "external":
        pytest.skip("an external server cannot be restarted")
    namespace = tenants.create_with_namespace()
    name = namespace.removeprefix("tenant-")
    client = cluster.client()
    client.request("DELETE", tenants_path(ROOT, name)).expect(200)
    cluster.restart()
    tenants.wait_until_gone(tenants_path(ROOT, name))
    tenants.wait_until_gone(f"/api/v1/namespaces/{namespace}")
