"""Front-proxy headers, client certificates, tokens and impersonation at our own server."""

from __future__ import annotations

import http.client
from urllib.parse import urlsplit

import pytest

from tests.e2e.support.clusters.cluster import ROOT, E2eCluster, tenants_path
from tests.e2e.support.clusters.control_plane import TOKEN, TOKEN_USER
from tests.e2e.support.clusters.kube import KubeCluster
from tests.e2e.support.http.https_client import Client

SPOOF = {"X-Remote-User": "admin", "X-Remote-Group": "system:masters"}
ONE = tenants_path(ROOT, "root")


def response_status(client: Client, headers: list[tuple[str, str]]) -> int:
    """The status of a request with exactly these headers, which may repeat."""
    parts = urlsplit(client.url)
    assert parts.hostname is not None
    connection = http.client.HTTPSConnection(parts.hostname, parts.port, context=client.tls, timeout=30)
    try:
        connection.putrequest("GET", ONE)
        for name, value in headers:
            connection.putheader(name, value)
        connection.endheaders()
        return connection.getresponse().status
    finally:
        connection.close()


def test_the_front_proxy_names_the_user(kube: KubeCluster) -> None:
    assert kube.front_proxy_client().get(ONE, headers=SPOOF).status == 200
    status = kube.front_proxy_client().get(ONE, headers={"X-Remote-User": "some-user"}).expect(403)
    assert 'User "some-user" cannot get' in status["message"]


def test_each_group_has_a_header_of_its_own(kube: KubeCluster) -> None:
    headers = [("X-Remote-User", "u"), ("X-Remote-Group", "one"), ("X-Remote-Group", "system:masters")]
    assert response_status(kube.front_proxy_client(), headers) == 200
    assert (
        response_status(kube.front_proxy_client(), [("X-Remote-User", "u"), ("X-Remote-Group", "one,system:masters")])
        == 403
    )


def test_front_proxy_headers_without_a_certificate_are_unauthorized(kube: KubeCluster) -> None:
    """Only a client with a front-proxy certificate may name a user (R-252)."""
    assert kube.anonymous_client().get(ONE, headers=SPOOF).expect(401)["reason"] == "Unauthorized"


def test_front_proxy_headers_beside_other_credentials_are_ignored(cluster: E2eCluster, unique: str) -> None:
    client = cluster.direct_client(unique)
    assert f'User "{unique}" cannot get' in client.get(ONE, headers=SPOOF).expect(403)["message"]


def test_two_user_headers_are_a_bad_request(kube: KubeCluster) -> None:
    assert response_status(kube.front_proxy_client(), [("X-Remote-User", "a"), ("X-Remote-User", "b")]) == 400


def test_a_hop_by_hop_header_cannot_strip_the_identity(kube: KubeCluster) -> None:
    headers = [("X-Remote-User", "u"), ("X-Remote-Group", "system:masters"), ("Connection", "X-Remote-User")]
    assert response_status(kube.front_proxy_client(), headers) == 400


def test_a_token_is_reviewed_by_the_cluster(kube: KubeCluster) -> None:
    client = kube.anonymous_client()
    status = client.get(ONE, headers={"Authorization": f"Bearer {TOKEN}"}).expect(403)
    assert f'User "{TOKEN_USER}" cannot get' in status["message"]
    assert client.get(ONE, headers={"Authorization": "Bearer wrong"}).status == 401


def test_a_service_account_is_authenticated_by_its_token(kube: KubeCluster, unique: str) -> None:
    kube.kubectl("create", "serviceaccount", unique, "-n", ROOT)
    token = kube.kubectl("create", "token", unique, "-n", ROOT).stdout.strip()
    status = kube.anonymous_client().get(ONE, headers={"Authorization": f"Bearer {token}"}).expect(403)
    assert f'User "system:serviceaccount:{ROOT}:{unique}" cannot get' in status["message"]


def test_a_client_certificate_of_the_cluster_is_accepted(kube: KubeCluster, unique: str) -> None:
    assert kube.direct_client().get(ONE).status == 200
    assert unique in kube.direct_client(unique).get(ONE).expect(403)["message"]


def test_impersonation_past_the_aggregator_is_forbidden(kube: KubeCluster) -> None:
    """Our server rejects impersonation headers; only kube-apiserver handles them (R-338)."""
    assert kube.direct_client().get(ONE, headers={"Impersonate-User": "somebody"}).expect(403)["reason"] == "Forbidden"


def test_kubectl_impersonates_on_both_clusters(cluster: E2eCluster, unique: str) -> None:
    command = ("get", "tenants", "root", "-n", ROOT, f"--as={unique}")
    rejected = cluster.kubectl(*command, status=1)
    assert f'User "{unique}" cannot get resource "tenants"' in rejected.stderr
    cluster.grant(unique, "cozy:tenant:view", ROOT)
    # a server may remember for some seconds that it was denied
    cluster.wait_until("the user may read it", lambda: cluster.kubectl(*command, status=None).returncode == 0)


def test_impersonation_requires_the_permission(cluster: E2eCluster, unique: str) -> None:
    """A user without the verb impersonate is rejected (R-338)."""
    rejected = cluster.kubectl(
        "get", "tenants", "root", "-n", ROOT, "--as=admin", "--as-group=system:masters", as_user=unique, status=1
    )
    assert f'User "{unique}" cannot impersonate' in rejected.stderr


@pytest.mark.parametrize("header", ["X-Remote-User", "X-Remote-Extra-Scopes", "X-Remote-Group"])
def test_the_aggregator_replaces_front_proxy_headers_of_users(kube: KubeCluster, unique: str, header: str) -> None:
    """A user cannot send front-proxy headers through the aggregator (R-252)."""
    answer = kube.client(unique).get(ONE, headers={header: "system:masters"})
    assert unique in answer.expect(403)["message"]
