"""Requirements of filtered lists, R-324 to R-343 and API-26, that no other test covers."""

from __future__ import annotations

import pytest
import yaml

from tests.e2e.support.clusters.cluster import CORE_API_SERVICE, CORE_GROUP_VERSION, E2eCluster, tenants_path
from tests.e2e.support.clusters.kube import KubeCluster
from tests.e2e.support.clusters.processes import wait_until
from tests.e2e.support.peer_lessons import metric_value
from tests.e2e.support.tenants import Tenants

NAMESPACES = f"{CORE_GROUP_VERSION}/tenantnamespaces"


def list_names(cluster: E2eCluster, user: str) -> list[str]:
    return [item["metadata"]["name"] for item in cluster.client(user).get(NAMESPACES).expect(200)["items"]]


def test_a_plain_list_is_forbidden_and_the_filtered_one_is_not(
    cluster: E2eCluster, tenants: Tenants, unique: str
) -> None:
    """RBAC alone cannot restrict a list to the namespaces that a user may see (R-324, R-325)."""
    granted = tenants.create_with_namespace()
    tenants.create_with_namespace()
    cluster.grant(unique, "cozy:tenant:view", granted)
    wait_until("the namespace is visible", lambda: list_names(cluster, unique) == [granted])
    rejected = cluster.client(unique).get("/api/v1/namespaces").expect(403)
    wanted = 'cannot list resource "namespaces" in API group "" at the cluster scope'
    assert rejected["message"] == f'namespaces is forbidden: User "{unique}" {wanted}'


def test_kubectl_works_on_the_filtered_list(cluster: E2eCluster, tenants: Tenants, unique: str) -> None:
    """Table, YAML and watch work without permission to list namespaces (R-326)."""
    granted = tenants.create_with_namespace()
    cluster.grant(unique, "cozy:tenant:view", granted)
    wait_until("the namespace is visible", lambda: list_names(cluster, unique) == [granted])
    table = cluster.kubectl("get", "tenantnamespaces", as_user=unique).stdout.splitlines()
    assert [line.split()[:2] for line in table] == [["NAME", "STATUS"], [granted, "Active"]]
    shown = yaml.load(
        cluster.kubectl("get", "tenantnamespaces", "-o", "yaml", as_user=unique).stdout, Loader=yaml.CSafeLoader
    )
    assert (shown["kind"], [each["metadata"]["name"] for each in shown["items"]]) == ("List", [granted])
    assert shown["items"][0]["kind"] == "TenantNamespace"
    watching = cluster.start_kubectl("get", "tenantnamespaces", "-w", "--no-headers", as_user=unique)
    try:
        cluster.wait_until("kubectl shows a namespace", lambda: "\n" in watching.log())
    finally:
        watching.stop()
    assert {line.split()[0] for line in watching.log().splitlines()} == {granted}


@pytest.mark.parametrize("kind", ["labelSelector", "fieldSelector"])
def test_selectors_never_show_hidden_namespaces(cluster: E2eCluster, tenants: Tenants, unique: str, kind: str) -> None:
    """Not even selectors for the labels and fields of hidden namespaces (R-327, API-21)."""
    granted, second, hidden = (
        tenants.create_with_namespace(),
        tenants.create_with_namespace(),
        tenants.create_with_namespace(),
    )
    for namespace in (granted, second):
        cluster.grant(unique, "cozy:tenant:view", namespace)
    own = sorted((granted, second))
    wait_until("both namespaces are visible", lambda: list_names(cluster, unique) == own)
    key = {"labelSelector": "kubernetes.io/metadata.name", "fieldSelector": "metadata.name"}[kind]
    expected = {
        f"{key}={granted}": [granted],
        f"{key}!={granted}": [second],
        f"{key}={hidden}": [],
        f"{key}!={hidden}": own,
        f"{key}!=nothing": own,
    }
    if kind == "labelSelector":
        expected |= {f"{key} in ({hidden},{granted})": [granted], f"{key} notin ({granted})": [second], f"!{key}": []}
        expected |= {f"tenant.cozystack.io/{hidden}": [], "tenant.cozystack.io/tenant-root": own}
    client = cluster.client(unique)
    for selector, visible in expected.items():
        items = client.get(NAMESPACES, query={kind: selector}).expect(200)["items"]
        assert [each["metadata"]["name"] for each in items] == visible, selector


def test_the_filtered_collection_cannot_be_deleted(cluster: E2eCluster) -> None:
    """TenantNamespaces are read-only as a collection, too (R-330)."""
    assert cluster.client().request("DELETE", NAMESPACES).expect(405)["reason"] == "MethodNotAllowed"


def test_a_set_without_values_is_that_of_the_empty_value(cluster: E2eCluster, tenants: Tenants, unique: str) -> None:
    """As kube-apiserver does for its own kinds; in objects, `In` needs values (R-334)."""
    empty, other = (tenants.create(labels={unique: value})["metadata"]["name"] for value in ("", "x"))
    client = cluster.client()
    for path, expected in ((tenants_path(), [[empty], [other]]), ("/api/v1/namespaces", [[], []])):
        selectors = f"{unique} in ()", f"{unique},{unique} notin ()"
        found = [client.get(path, query={"labelSelector": each}).expect(200)["items"] for each in selectors]
        assert [[item["metadata"]["name"] for item in items] for items in found] == expected


def test_a_filtered_list_sends_no_requests_to_the_cluster(cluster: E2eCluster, tenants: Tenants, unique: str) -> None:
    """The peer lists all RoleBindings for each list (API-26). docs/performance.md has the duration of a list."""
    granted = tenants.create_with_namespace()
    cluster.grant(unique, "cozy:tenant:view", granted)
    wait_until("the namespace is visible", lambda: list_names(cluster, unique) == [granted])
    lists, client = 100, cluster.direct_client()
    assert metric_value(client, "rest_client_requests_total") > 0

    def requests_during_lists() -> float:
        before = metric_value(client, "rest_client_requests_total")
        for _ in range(lists):
            assert list_names(cluster, unique) == [granted]
        return metric_value(client, "rest_client_requests_total") - before

    # the process also sends requests in the background: first because of earlier tests, then only a few
    cluster.wait_until("lists send no requests", lambda: requests_during_lists() < lists / 4)


def test_tenants_are_served_without_the_filtered_namespaces(kube: KubeCluster, tenants: Tenants) -> None:
    """The Tenant API does not depend on the APIService of TenantNamespaces (R-343)."""
    client, services = kube.client(), "/apis/apiregistration.k8s.io/v1/apiservices"
    service = client.get(f"{services}/{CORE_API_SERVICE}").expect(200)
    client.request("DELETE", f"{services}/{CORE_API_SERVICE}").expect(200)
    try:
        wait_until("TenantNamespaces are not served", lambda: client.get(NAMESPACES).status == 404)
        name = tenants.create()["metadata"]["name"]
        assert name in [item["metadata"]["name"] for item in client.get(tenants_path()).expect(200)["items"]]
        tenants.wait_until_settled(name)
    finally:
        metadata = {"name": CORE_API_SERVICE, "labels": service["metadata"].get("labels", {})}
        body = {key: service[key] for key in ("apiVersion", "kind", "spec")}
        client.request("POST", services, {**body, "metadata": metadata}).expect(201)
        wait_until("TenantNamespaces are served again", lambda: client.get(NAMESPACES).status == 200)
