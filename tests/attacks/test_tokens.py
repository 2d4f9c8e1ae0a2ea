"""ATTACK-02: empty tokens, failed reviews, impersonation, and service accounts of one name in two namespaces."""

from __future__ import annotations

import json
import ssl
from typing import Any

import pytest
from multidict import CIMultiDict

from tests.attacks.support.proxied_replica import ClusterRequest, FakeResponse, Replica
from tests.attacks.support.two_tenants import ROLE, TenantAdmin
from tests.e2e.support.clusters.cluster import ROOT, E2eCluster, tenants_path
from tests.e2e.support.clusters.processes import wait_until
from tests.e2e.support.http.https_client import Client
from tests.e2e.support.tenants import Tenants
from tests.e2e.support.visibility import RbacObjects, wait_until_listed

ROOT_TENANT = tenants_path(ROOT, "root")
ANONYMOUS = 'User "system:anonymous" cannot get'
ADMIN = {"username": "admin", "groups": ["system:masters"], "uid": "1"}


def client_with_authorization(cluster: E2eCluster, *values: str) -> Client:
    """A client that connects directly to our server with these Authorization headers as its only credentials."""
    headers = CIMultiDict(("Authorization", value) for value in values)
    return Client(cluster.direct_url, ssl._create_unverified_context(), headers)


MISSING_TOKENS = [
    "",
    "Bearer",
    "Bearer ",
    "Bearer\t",
    "Bearer     ",
    "bearer ",
    "Bearer\u00a0",
    "Basic YWRtaW46",
    "Token x",
]
INVALID_TOKENS = ["null", "undefined", "none", "nil", "0", "false", "''", '""', "{}", "%20", "..", "e30.e30.", "\u00ff"]


@pytest.mark.parametrize("value", MISSING_TOKENS, ids=repr)
def test_a_missing_token_authenticates_nobody(cluster: E2eCluster, value: str) -> None:
    """CVE-2023-48312: the request is anonymous, and never that of the server itself."""
    answer = client_with_authorization(cluster, value).get(ROOT_TENANT)
    assert answer.status in (401, 403)
    assert answer.status == 401 or ANONYMOUS in answer.json()["message"]


@pytest.mark.parametrize("token", INVALID_TOKENS, ids=repr)
def test_an_invalid_bearer_token_is_rejected(cluster: E2eCluster, token: str) -> None:
    assert (
        client_with_authorization(cluster, f"Bearer {token}").get(ROOT_TENANT).expect(401)["reason"] == "Unauthorized"
    )


def test_a_second_authorization_header_does_not_help(cluster: E2eCluster, unique: str) -> None:
    for values in (("Bearer ", f"Bearer {unique}"), (f"Bearer {unique}", "Bearer "), ("Bearer null", "Basic eDp5")):
        assert client_with_authorization(cluster, *values).get(ROOT_TENANT).status in (400, 401, 403)


def token_review(**status: Any) -> dict[str, Any]:
    return {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "status": status}


FAILED_REVIEWS = [
    pytest.param(FakeResponse(body=token_review(authenticated=False, user=ADMIN)), id="not authenticated, with a user"),
    pytest.param(FakeResponse(body=token_review(user=ADMIN)), id="no verdict, with a user"),
    pytest.param(FakeResponse(body=token_review(authenticated="true", user=ADMIN)), id="authenticated as text"),
    pytest.param(FakeResponse(body=token_review(authenticated=1, user=ADMIN)), id="authenticated as a number"),
    pytest.param(
        FakeResponse(body=token_review(authenticated=True, error="broken", user=ADMIN)), id="an error, with a user"
    ),
    pytest.param(
        FakeResponse(body=token_review(authenticated=True, user={"groups": ["system:masters"]})), id="no name"
    ),
    pytest.param(
        FakeResponse(body=token_review(authenticated=True, user={"username": "", "groups": ["a"]})), id="empty name"
    ),
    pytest.param(FakeResponse(body=token_review(authenticated=True)), id="no user"),
    pytest.param(FakeResponse(body={}), id="an empty object"),
    pytest.param(FakeResponse(status=401, body={"kind": "Status", "code": 401}), id="401"),
    pytest.param(FakeResponse(status=403, body={"kind": "Status", "code": 403}), id="403"),
    pytest.param(FakeResponse(status=500, body={"kind": "Status", "code": 500}), id="500"),
    pytest.param(FakeResponse(status=503, body={"kind": "Status", "code": 503}), id="503"),
    pytest.param(FakeResponse(body=token_review(authenticated=True, user=ADMIN), seconds=60.0), id="too late"),
]


@pytest.mark.parametrize("response", FAILED_REVIEWS)
def test_a_failed_token_review_authenticates_nobody(replica: Replica, unique: str, response: FakeResponse) -> None:
    def respond(request: ClusterRequest) -> FakeResponse | None:
        return response if request.path.endswith("/tokenreviews") else None

    client = Client(replica.url, replica.anonymous_client().tls, {"Authorization": f"Bearer {unique}"})
    with replica.with_fake_responses(respond):
        answer = client.get(ROOT_TENANT)
        assert replica.requests_to("/tokenreviews")
        assert answer.status in (401, 500, 503, 504), answer.body
        assert answer.json()["kind"] == "Status"
    # the failure is not cached as a success
    assert client.get(ROOT_TENANT).status in (401, 500, 503, 504)


def test_a_successful_token_review_authenticates(replica: Replica, unique: str) -> None:
    """Proves that the fake reviews of the tests above reach the authenticator."""

    def respond(request: ClusterRequest) -> FakeResponse | None:
        return (
            FakeResponse(body=token_review(authenticated=True, user=ADMIN))
            if request.path.endswith("/tokenreviews")
            else None
        )

    with replica.with_fake_responses(respond):
        client = Client(replica.url, replica.anonymous_client().tls, {"Authorization": f"Bearer {unique}"})
        client.get(ROOT_TENANT).expect(200)


def access_review(**status: Any) -> dict[str, Any]:
    return {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "status": status}


FAILED_ACCESS_REVIEWS = [
    pytest.param(FakeResponse(body=access_review(allowed=False)), id="not allowed"),
    pytest.param(FakeResponse(body=access_review(allowed="true")), id="allowed as text"),
    pytest.param(FakeResponse(body=access_review(allowed=1)), id="allowed as a number"),
    pytest.param(FakeResponse(body=access_review(allowed=True, denied=True)), id="allowed and denied"),
    pytest.param(FakeResponse(body=access_review()), id="no verdict"),
    pytest.param(FakeResponse(body={}), id="an empty object"),
    pytest.param(FakeResponse(status=403, body={"kind": "Status", "code": 403}), id="403"),
    pytest.param(FakeResponse(status=500, body={"kind": "Status", "code": 500}), id="500"),
]


@pytest.mark.parametrize("response", FAILED_ACCESS_REVIEWS)
def test_a_failed_access_review_allows_nothing(replica: Replica, unique: str, response: FakeResponse) -> None:
    def respond(request: ClusterRequest) -> FakeResponse | None:
        return response if request.path.endswith("/subjectaccessreviews") else None

    client = replica.client(unique)
    with replica.with_fake_responses(respond):
        answer = client.get(ROOT_TENANT)
        assert replica.requests_to("/subjectaccessreviews")
        assert answer.status in (403, 500, 503), answer.body
        assert answer.json()["kind"] == "Status"


def service_account_client(cluster: E2eCluster, namespace: str) -> Client:
    """A client of the cluster's API with a token of a new ServiceAccount `owner` in this namespace."""
    client, path = cluster.client(), f"/api/v1/namespaces/{namespace}/serviceaccounts"
    client.request("POST", path, {"metadata": {"name": "owner"}}).expect(201)
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    token = client.request("POST", f"{path}/owner/token", body).expect(201)["status"]["token"]
    return Client(cluster.url, ssl._create_unverified_context(), {"Authorization": f"Bearer {token}"})


def test_a_service_account_of_the_same_name_in_another_namespace_has_no_access(
    cluster: E2eCluster, alice: TenantAdmin, bob: TenantAdmin, tenants: Tenants, access: RbacObjects
) -> None:
    """CVE-2023-46254: service accounts are told apart by their namespace, too."""
    own, foreign = service_account_client(cluster, alice.namespace), service_account_client(cluster, bob.namespace)
    subject = {"kind": "ServiceAccount", "name": "owner", "namespace": alice.namespace}
    access.bind("owner", alice.namespace, subject, ROLE)
    wait_until_listed(own, tenants_path(), [alice.child])
    # the cluster's authorizer may see the binding after our server
    tenants.wait("the account may read the Tenant", lambda: own.get(alice.child_path).status == 200)
    message = f'User "system:serviceaccount:{bob.namespace}:owner" cannot'
    for method, path in (("GET", alice.child_path), ("DELETE", alice.child_path), ("POST", alice.children)):
        assert message in foreign.request(method, path, {}).expect(403)["message"]
    assert foreign.get(tenants_path()).expect(200)["items"] == []
    # user names that resemble that of the account
    for name in ("owner", f"{alice.namespace}:owner", f"system:serviceaccount:{alice.namespace}"):
        assert cluster.client(name).get(alice.child_path).status == 403


IMPERSONATIONS = [
    pytest.param([("Impersonate-User", "admin"), ("Impersonate-Group", "system:masters")], id="plain"),
    pytest.param([("impersonate-USER", "admin"), ("IMPERSONATE-group", "system:masters")], id="mixed case"),
    pytest.param([("Impersonate-Group", "system:masters")], id="a group alone"),
    pytest.param([("Impersonate-Uid", "1")], id="a uid alone"),
    pytest.param([("Impersonate-Extra-Scopes", "x")], id="an extra alone"),
    pytest.param([("Impersonate-User", ""), ("Impersonate-Group", "system:masters")], id="an empty user"),
    pytest.param([("Impersonate-User", "a"), ("Impersonate-User", "admin")], id="two users"),
]


@pytest.mark.parametrize("fields", IMPERSONATIONS)
def test_our_server_allows_no_impersonation(replica: Replica, unique: str, fields: list[tuple[str, str]]) -> None:
    """The aggregator in front handles impersonation; our server rejects it, even of an administrator."""
    headers = CIMultiDict(fields)
    for client in (replica.client(), replica.client(unique)):
        assert client.get(ROOT_TENANT, headers=headers).status in (400, 403)
    replica.client().get(ROOT_TENANT).expect(200)
    assert replica.anonymous_client().get(ROOT_TENANT, headers=headers).status in (400, 401, 403)


@pytest.mark.parametrize("fields", IMPERSONATIONS)
def test_impersonation_needs_permission(cluster: E2eCluster, unique: str, fields: list[tuple[str, str]]) -> None:
    if cluster.kind == "external":
        pytest.skip("all users of an external cluster are impersonated already")
    answer = cluster.client(unique).get(ROOT_TENANT, headers=CIMultiDict(fields))
    assert answer.status in (400, 403), answer.body


def test_impersonation_headers_with_underscores_are_ignored(cluster: E2eCluster, unique: str) -> None:
    headers = {"Impersonate_User": "admin", "Impersonate_Group": "system:masters"}
    assert (
        f'User "{unique}" cannot get' in cluster.client(unique).get(ROOT_TENANT, headers=headers).expect(403)["message"]
    )


def test_tokens_appear_in_no_log_and_no_answer(replica: Replica, unique: str) -> None:
    token = f"sesame-{unique}"
    client = Client(replica.url, replica.anonymous_client().tls, {"Authorization": f"Bearer {token}"})
    wait_until("the token is rejected", lambda: client.get(ROOT_TENANT).status == 401)
    assert [each for each in replica.requests_to("/tokenreviews") if json.loads(each.body)["spec"]["token"] == token]
    assert token not in replica.process.log()
    assert token not in client.get(ROOT_TENANT).body.decode()
