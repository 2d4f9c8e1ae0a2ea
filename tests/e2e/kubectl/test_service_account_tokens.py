"""Tokens of ServiceAccounts: creation with kubectl, authentication and token reviews."""

from __future__ import annotations

import ssl
from typing import Any

import pytest

from tests.e2e.support.clusters import credentials
from tests.e2e.support.clusters.cluster import E2eCluster
from tests.e2e.support.http.https_client import Client


@pytest.fixture
def account_namespace(cluster: E2eCluster, namespace: str) -> str:
    """A namespace with a ServiceAccount `robot` that may view it."""
    cluster.kubectl("create", "serviceaccount", "robot", "-n", namespace)
    account = f"--serviceaccount={namespace}:robot"
    cluster.kubectl("create", "rolebinding", "robots", "--clusterrole=view", account, "-n", namespace)
    return namespace


def token_client(cluster: E2eCluster, token: str) -> Client:
    """A client for the same server that authenticates with a token only."""
    (ca,) = cluster.client().tls.get_ca_certs(binary_form=True)
    plain = credentials.tls_context(ssl.DER_cert_to_PEM_cert(ca))
    return Client(cluster.url, plain, {"Authorization": f"Bearer {token}"})


def review_token(cluster: E2eCluster, token: str, *audiences: str) -> Any:
    spec: dict[str, Any] = {"token": token, **({"audiences": audiences} if audiences else {})}
    path = "/apis/authentication.k8s.io/v1/tokenreviews"
    return cluster.client().request("POST", path, {"spec": spec}).expect(201)["status"]


def test_a_token_authenticates_its_service_account_until_that_is_deleted(
    cluster: E2eCluster, account_namespace: str
) -> None:
    token = cluster.kubectl("create", "token", "robot", "-n", account_namespace, "--duration=10m").stdout.strip()
    client = token_client(cluster, token)

    def is_allowed() -> bool:
        return client.get(f"/api/v1/namespaces/{account_namespace}/configmaps").status == 200

    cluster.wait_until("the binding is in effect", is_allowed)
    rejected = client.get(f"/api/v1/namespaces/{account_namespace}/secrets").expect(403)["message"]
    account = f"system:serviceaccount:{account_namespace}:robot"
    assert rejected.startswith(f'secrets is forbidden: User "{account}" cannot list resource "secrets"')
    cluster.kubectl("delete", "serviceaccount", "robot", "-n", account_namespace)

    def is_unauthorized() -> bool:
        return client.get(f"/api/v1/namespaces/{account_namespace}/configmaps").status == 401

    # kube-apiserver caches the result of token authentication for some seconds
    cluster.wait_until("the token is rejected", is_unauthorized)


def test_an_editor_may_create_tokens_and_a_viewer_may_not(cluster: E2eCluster, account_namespace: str) -> None:
    editor, viewer = f"editor-{account_namespace}", f"viewer-{account_namespace}"
    cluster.grant(editor, "edit", account_namespace)
    cluster.grant(viewer, "view", account_namespace)
    command = ("auth", "can-i", "create", "serviceaccounts/robot", "--subresource=token", "-n", account_namespace)

    def may_create_tokens() -> bool:
        return cluster.kubectl(*command, as_user=editor, status=None).stdout == "yes\n"

    cluster.wait_until("the binding is in effect", may_create_tokens)
    assert cluster.kubectl("create", "token", "robot", "-n", account_namespace, as_user=editor).stdout.count(".") == 2
    rejected = cluster.kubectl("create", "token", "robot", "-n", account_namespace, as_user=viewer, status=1).stderr
    assert 'cannot create resource "serviceaccounts/token" in API group ""' in rejected


@pytest.mark.controller_manager
def test_every_namespace_has_a_default_account(cluster: E2eCluster, namespace: str) -> None:
    account = f"/api/v1/namespaces/{namespace}/serviceaccounts/default"
    cluster.wait_until("the ServiceAccount exists", lambda: cluster.client().serves(account))
    assert review_token(cluster, cluster.kubectl("create", "token", "default", "-n", namespace).stdout.strip())[
        "authenticated"
    ]


def test_a_token_review_names_the_service_account(cluster: E2eCluster, account_namespace: str) -> None:
    token = cluster.kubectl("create", "token", "robot", "-n", account_namespace).stdout.strip()
    status = review_token(cluster, token)
    name = f"system:serviceaccount:{account_namespace}:robot"
    assert (status["authenticated"], status["user"]["username"]) == (True, name)
    assert status["user"]["groups"] == [
        "system:serviceaccounts",
        f"system:serviceaccounts:{account_namespace}",
        "system:authenticated",
    ]
    assert status["audiences"] == ["https://kubernetes.default.svc"]
    assert review_token(cluster, token, "elsewhere")["error"].endswith(
        'is invalid for the target audiences ["elsewhere"]]'
    )


def test_a_token_for_another_audience_does_not_authenticate(cluster: E2eCluster, account_namespace: str) -> None:
    token = cluster.kubectl("create", "token", "robot", "-n", account_namespace, "--audience=vault").stdout.strip()
    assert token_client(cluster, token).get("/api/v1/namespaces").status == 401
    assert review_token(cluster, token, "vault", "other")["audiences"] == ["vault"]


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        pytest.param(("none",), 'serviceaccounts "none" not found', id="a missing ServiceAccount"),
        pytest.param(
            ("robot", "--duration=1m"),
            "may not specify a duration less than 10 minutes",
            id="a duration below the minimum",
        ),
        pytest.param(
            ("robot", "--bound-object-kind=Secret", "--bound-object-name=x"),
            'secrets "x" not found',
            id="a missing bound object",
        ),
    ],
)
def test_an_invalid_token_request_is_rejected(
    cluster: E2eCluster, account_namespace: str, flags: tuple[str, ...], message: str
) -> None:
    rejected = cluster.kubectl("create", "token", *flags, "-n", account_namespace, status=1).stderr
    assert rejected.startswith("error: failed to create token: ")
    assert message in rejected
