"""The requests of the page that reach the cluster."""

from __future__ import annotations

import pytest

from tenant_apiserver.ui.allowed_requests import is_allowed, is_well_formed, is_write

TENANTS = "/apis/apps.cozystack.io/v1alpha1"
REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/version"),
        ("GET", "/apis"),
        ("GET", "/openapi/v3"),
        ("GET", f"/openapi/v3{TENANTS}"),
        ("GET", TENANTS),
        ("GET", f"{TENANTS}/tenants"),
        ("GET", f"{TENANTS}/namespaces/tenant-a/tenants"),
        ("GET", f"{TENANTS}/namespaces/tenant-a/tenants/b"),
        ("GET", f"{TENANTS}/namespaces/tenant-a/tenants/b/explain"),
        ("GET", "/apis/core.cozystack.io/v1alpha1/tenantnamespaces"),
        ("GET", "/apis/core.cozystack.io/v1alpha1/tenantnamespaces/tenant-a"),
        ("GET", "/apis/core.cozystack.io/v1alpha1/namespaces/tenant-a/tenantmodules"),
        ("GET", "/apis/gateway.cozystack.io/v1alpha1/tenantgateways"),
        ("GET", "/apis/gateway.networking.k8s.io/v1/namespaces/tenant-a/httproutes"),
        ("GET", "/apis/gateway.networking.k8s.io/v1alpha2/namespaces/tenant-a/tlsroutes"),
        ("GET", "/apis/cert-manager.io/v1/namespaces/tenant-a/certificates/web"),
        ("GET", "/api/v1/namespaces"),
        ("GET", "/api/v1/namespaces/tenant-a"),
        ("GET", "/api/v1/namespaces/tenant-a/events"),
        ("GET", "/api/v1/resourcequotas"),
        ("POST", REVIEWS),
        ("POST", f"{TENANTS}/namespaces/tenant-a/tenants"),
        ("PUT", f"{TENANTS}/namespaces/tenant-a/tenants/b"),
        ("PATCH", f"{TENANTS}/namespaces/tenant-a/tenants/b"),
        ("DELETE", f"{TENANTS}/namespaces/tenant-a/tenants/b"),
    ],
)
def test_the_page_reads_its_kinds_and_writes_tenants(method: str, path: str) -> None:
    assert is_well_formed(path, "")
    assert is_allowed(method, path)


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/api/v1/secrets"),
        ("GET", "/api/v1/namespaces/tenant-a/secrets/db"),
        ("GET", "/api/v1/namespaces/tenant-a/pods"),
        ("GET", "/api/v1/namespaces/tenant-a/pods/web/exec"),
        ("GET", "/api/v1/namespaces/tenant-a/services/web/proxy/admin"),
        ("GET", "/api/v1/watch/namespaces/tenant-a/secrets"),
        ("GET", "/api/v1/watch/secrets"),
        ("GET", "/api/v1/namespaces/a/namespaces"),
        ("GET", "/api/v1/namespaces/a/namespaces/b"),
        ("GET", "/api/v1/"),
        ("GET", "/apis/core.cozystack.io/v1alpha1/tenantsecrets"),
        ("GET", "/apis/core.cozystack.io/v1alpha1/namespaces/tenant-a/tenantsecrets/db"),
        ("GET", f"{TENANTS}/namespaces/tenant-a/postgreses/db"),
        ("GET", f"{TENANTS}/namespaces/tenant-a/tenants/b/status"),
        ("GET", f"{TENANTS}/namespaces/tenant-a/tenants/b/explain/secrets"),
        ("GET", "/apis/rbac.authorization.k8s.io/v1/clusterroles"),
        ("GET", "/apis/apps/v1/deployments"),
        ("GET", "/apisfoo"),
        ("GET", "/openapi/v2"),
        ("GET", "/openapi/v3/apis/apps/v1"),
        ("GET", "/metrics"),
        ("GET", "/logs/kube-apiserver.log"),
        ("HEAD", f"{TENANTS}/tenants"),
        ("OPTIONS", f"{TENANTS}/tenants"),
        ("CONNECT", f"{TENANTS}/tenants"),
        ("POST", f"{TENANTS}/tenants"),
        ("POST", f"{TENANTS}/namespaces/tenant-a/tenants/b"),
        ("POST", f"{TENANTS}/namespaces/tenant-a/tenants/b/explain"),
        ("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews"),
        ("POST", "/apis/authentication.k8s.io/v1/tokenreviews"),
        ("POST", "/api/v1/namespaces"),
        ("PUT", f"{TENANTS}/namespaces/tenant-a/tenants/b/status"),
        ("PATCH", "/api/v1/namespaces/tenant-a"),
        ("DELETE", f"{TENANTS}/namespaces/tenant-a/tenants"),
        ("DELETE", f"{TENANTS}/tenants"),
        ("DELETE", "/api/v1/namespaces/tenant-a"),
        ("DELETE", "/apis/gateway.networking.k8s.io/v1/namespaces/tenant-a/httproutes/web"),
    ],
)
def test_nothing_else_reaches_the_cluster(method: str, path: str) -> None:
    assert not is_allowed(method, path)


@pytest.mark.parametrize(
    "path",
    [
        "/api/v1/namespaces/../secrets",
        "/api/v1/./namespaces",
        "/api/v1/namespaces/%2e%2e/secrets",
        "/api/v1/namespaces%2fkube-system",
        "/api/v1/namespaces/a%5csecrets",
        "/api/v1/namespaces\\..\\secrets",
        "//api/v1/namespaces",
        "/api//v1/namespaces",
        "/api/v1/namespaces/",
        "/api/v1/namespaces;x=/../secrets",
        "/api/v1/namespaces#/secrets",
        "/api/v1/näme",
    ],
)
def test_a_path_that_servers_read_in_several_ways_is_malformed(path: str) -> None:
    assert not is_well_formed(path, "")


def test_a_query_has_no_character_that_ends_the_request_line() -> None:
    assert is_well_formed("/version", "about=host/shop.example.org&labelSelector=a%3Db,c")
    assert not is_well_formed("/version", "a b")
    assert not is_well_formed("/version", 'a="b"')


def test_a_review_is_no_write() -> None:
    assert not is_write("POST", REVIEWS)
    assert not is_write("GET", f"{TENANTS}/tenants")
    assert is_write("POST", f"{TENANTS}/namespaces/a/tenants")
