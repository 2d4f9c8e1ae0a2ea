"""kubectl through the proxy, with the kubeconfig of a tenant's user whose server is the proxy."""

from __future__ import annotations

import json

import pytest

from tests.e2e.support.clusters.audit_log import own_requests_of_proxy
from tests.e2e.support.clusters.cluster import E2eCluster
from tests.e2e.support.clusters.kube import KubeCluster
from tests.e2e.support.clusters.tenant_proxy import TenantProxy
from tests.e2e.support.http.https_client import Client
from tests.e2e.support.http.raw_tls import RawTls
from tests.e2e.support.tenants import Tenants
from tests.e2e.support.visibility import RbacObjects, user_subject

NAMESPACES = "/api/v1/namespaces"
OWN_REQUESTS = {
    ("create", "selfsubjectreviews"),
    ("create", "selfsubjectaccessreviews"),
    ("create", "subjectaccessreviews"),
    ("create", "tokenreviews"),
    # discovery: the kinds of the settings
    ("get", ""),
    *((verb, plural) for verb in ("list", "watch") for plural in ("namespaces", "configmaps", "persistentvolumes")),
    *(
        (verb, plural)
        for verb in ("list", "watch")
        for plural in ("roles", "rolebindings", "clusterroles", "clusterrolebindings")
    ),
    # a kind that the settings of this proxy select by a label, as other tests of the cluster list it
    *((verb, "nodes") for verb in ("list", "watch")),
}


def test_a_day_of_a_tenants_user(
    cluster: E2eCluster, proxy: TenantProxy, tenants: Tenants, access: RbacObjects, unique: str
) -> None:
    """Their own objects are listed, read, written and described as without the proxy; others are refused in the
    cluster's words."""
    own, foreign = tenants.create_with_namespace(), tenants.create_with_namespace()
    access.bind(unique, own, user_subject(unique), "cozy:tenant:admin")
    cluster.wait_until("the list is answered", lambda: proxy.client(unique).get(NAMESPACES).status == 200)
    cluster.wait_until_allowed(unique, own, verb="create", group="apps.cozystack.io", resource="tenants")

    def kubectl(*arguments: str, status: int = 0) -> str:
        done = proxy.kubectl(*arguments, user=unique, status=status)
        return done.stdout + done.stderr

    assert kubectl("get", "namespaces", "-o", "name") == f"namespace/{own}\n"
    assert own in kubectl("describe", "namespace", own)
    assert f'namespaces "{foreign}" is forbidden' in kubectl("get", "namespace", foreign, status=1)
    assert unique in kubectl("auth", "whoami")
    assert kubectl("auth", "can-i", "get", "tenants", "-n", own) == "yes\n"
    # SelfSubjectAccessReviews are the cluster's: it does refuse the list
    assert "no\n" in kubectl("auth", "can-i", "list", "namespaces", status=1)
    tenant = {"apiVersion": "apps.cozystack.io/v1alpha1", "kind": "Tenant", "metadata": {"name": "sub"}}
    proxy.client(unique).request("POST", f"/apis/apps.cozystack.io/v1alpha1/namespaces/{own}/tenants", tenant).expect(
        201
    )
    assert "sub" in kubectl("get", "tenants", "-n", own)
    assert "labeled" in kubectl("label", "tenant", "sub", "-n", own, "a=b")
    assert "deleted" in kubectl("delete", "tenant", "sub", "-n", own, "--wait=false")
    assert "cannot impersonate" in kubectl("get", "namespaces", "--as=admin", status=1)


def test_an_administrator_is_refused(cluster: E2eCluster, proxy: TenantProxy) -> None:
    done = proxy.kubectl("get", "namespaces", user="root-user", groups=("system:masters",), status=1)
    assert 'the proxy serves no members of the group "system:masters"' in done.stderr


def test_a_service_account_keeps_its_groups(
    kube: KubeCluster, proxy: TenantProxy, tenants: Tenants, access: RbacObjects, unique: str
) -> None:
    """capsule-proxy#349: with a token, by TokenReview."""
    namespace = tenants.create_with_namespace()
    kube.kubectl("create", "serviceaccount", unique, "-n", namespace)
    token = kube.kubectl("create", "token", unique, "-n", namespace).stdout.strip()
    anonymous = proxy.client()
    client = Client(proxy.url, anonymous.tls, {"Authorization": f"Bearer {token}"})
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    found = client.request("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", review).expect(201)
    token_review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}}
    expected = kube.client().request("POST", "/apis/authentication.k8s.io/v1/tokenreviews", token_review).expect(201)
    assert found["status"]["userInfo"] == expected["status"]["user"]
    invalid = Client(proxy.url, anonymous.tls, {"Authorization": f"Bearer {token[:-8]}AAAAAAAA"})
    assert invalid.get("/version").expect(401)["reason"] == "Unauthorized"
    group = {"kind": "Group", "apiGroup": "rbac.authorization.k8s.io", "name": f"system:serviceaccounts:{namespace}"}
    access.bind(unique, namespace, group)
    kube.wait_until("the list is answered", lambda: client.get(NAMESPACES).status == 200)
    assert [each["metadata"]["name"] for each in client.get(NAMESPACES).json()["items"]] == [namespace]


def test_the_account_of_the_proxy_asks_for_itself_only_reviews_and_watches(
    kube: KubeCluster, proxy: TenantProxy, tenants: Tenants, access: RbacObjects, unique: str
) -> None:
    """Of everything that the tests before have sent through the proxy, too: the cluster's audit log has it."""
    namespace = tenants.create_with_namespace()
    access.bind(unique, namespace, user_subject(unique))
    client = proxy.client(unique)
    kube.wait_until("the list is answered", lambda: client.get(NAMESPACES).status == 200)
    # the cluster learns of the binding at another time than the proxy
    pods = f"/api/v1/namespaces/{namespace}/pods"
    kube.wait_until("the cluster allows the list", lambda: client.get(pods).status == 200)
    kube.wait_until("the merged list is answered", lambda: client.get("/api/v1/pods").status == 200)
    client.get("/api/v1/nodes").expect(403)
    client.get(NAMESPACES, headers={"Impersonate-User": "admin"}).expect(403)
    found = own_requests_of_proxy(kube.audit_log)
    assert found <= OWN_REQUESTS
    assert ("watch", "namespaces") in found


@pytest.mark.parametrize(("method", "protocol"), [("POST", "SPDY/3.1"), ("GET", "websocket")])
def test_an_upgrade_that_the_cluster_refuses_is_answered_in_its_words(
    kube: KubeCluster, proxy: TenantProxy, unique: str, method: str, protocol: str
) -> None:
    """Over TLS to a real kube-apiserver."""
    path = f"{NAMESPACES}/default/pods/{unique}/exec?command=sh&stdout=true"
    lines = ["Connection: Upgrade", f"Upgrade: {protocol}", "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: eA=="]
    answers = []
    for client in (proxy.client(unique), kube.client(unique)):
        with RawTls(client) as connection:
            connection.send_request_lines(method, path, *lines)
            answers.append(connection.read_response().expect(403))
    assert answers[0] == answers[1]
    assert f'User \\"{unique}\\" cannot' in json.dumps(answers[0]["message"])
