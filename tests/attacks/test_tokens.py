"""ATTACK-02: empty tokens, reviews that fail, and accounts of one name in two places."""

from __future__ import annotations

import json
import ssl
from typing import Any

import pytest
from multidict import CIMultiDict

from tests.attacks.proxied_replica import Asked, Lie, Replica
from tests.attacks.two_tenants import ROLE, Party
from tests.e2e.support.clusters import ROOT, E2eCluster, tenants_path
from tests.e2e.support.https_client import Client
from tests.e2e.support.processes import wait_until
from tests.e2e.support.tenants import Tenants
from tests.e2e.support.visibility import RbacObjects, wait_until_listed

ONE = tenants_path(ROOT, "root")
ANONYMOUS = 'User "system:anonymous" cannot get'
ADMIN = {"username": "admin", "groups": ["system:masters"], "uid": "1"}


def bearing(cluster: E2eCluster, *values: str) -> Client:
    """Straight at our server with these Authorization headers and no other credential."""
    headers = CIMultiDict(("Authorization", value) for value in values)
    return Client(cluster.direct_url, ssl._create_unverified_context(), headers)


NO_TOKEN = ["", "Bearer", "Bearer ", "Bearer\t", "Bearer     ", "bearer ", "Bearer\u00a0", "Basic YWRtaW46", "Token x"]
BAD_TOKEN = ["null", "undefined", "none", "nil", "0", "false", "''", '""', "{}", "%20", "..", "e30.e30.", "\u00ff"]


@pytest.mark.parametrize("value", NO_TOKEN, ids=repr)
def test_no_token_is_nobody(cluster: E2eCluster, value: str) -> None:
    """CVE-2023-48312: never the owner of what is asked for, nor the server itself."""
    answer = bearing(cluster, value).get(ONE)
    assert answer.status in (401, 403)
    assert answer.status == 401 or ANONYMOUS in answer.json()["message"]


@pytest.mark.parametrize("token", BAD_TOKEN, ids=repr)
def test_a_word_for_nothing_is_a_bad_token(cluster: E2eCluster, token: str) -> None:
    assert bearing(cluster, f"Bearer {token}").get(ONE).expect(401)["reason"] == "Unauthorized"


def test_a_second_header_does_not_help_the_first(cluster: E2eCluster, unique: str) -> None:
    for values in (("Bearer ", f"Bearer {unique}"), (f"Bearer {unique}", "Bearer "), ("Bearer null", "Basic eDp5")):
        assert bearing(cluster, *values).get(ONE).status in (400, 401, 403)


def review(**status: Any) -> dict[str, Any]:
    return {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "status": status}


LIES = [
    pytest.param(Lie(body=review(authenticated=False, user=ADMIN)), id="not authenticated, with a user"),
    pytest.param(Lie(body=review(user=ADMIN)), id="nothing said, with a user"),
    pytest.param(Lie(body=review(authenticated="true", user=ADMIN)), id="authenticated in words"),
    pytest.param(Lie(body=review(authenticated=1, user=ADMIN)), id="authenticated by number"),
    pytest.param(Lie(body=review(authenticated=True, error="broken", user=ADMIN)), id="an error, with a user"),
    pytest.param(Lie(body=review(authenticated=True, user={"groups": ["system:masters"]})), id="no name"),
    pytest.param(Lie(body=review(authenticated=True, user={"username": "", "groups": ["a"]})), id="empty name"),
    pytest.param(Lie(body=review(authenticated=True)), id="no user"),
    pytest.param(Lie(body={}), id="an empty answer"),
    pytest.param(Lie(status=401, body={"kind": "Status", "code": 401}), id="401"),
    pytest.param(Lie(status=403, body={"kind": "Status", "code": 403}), id="403"),
    pytest.param(Lie(status=500, body={"kind": "Status", "code": 500}), id="500"),
    pytest.param(Lie(status=503, body={"kind": "Status", "code": 503}), id="503"),
    pytest.param(Lie(body=review(authenticated=True, user=ADMIN), seconds=60.0), id="too late"),
]


@pytest.mark.parametrize("lie", LIES)
def test_a_review_that_fails_lets_nobody_in(replica: Replica, unique: str, lie: Lie) -> None:
    def liar(asked: Asked) -> Lie | None:
        return lie if asked.path.endswith("/tokenreviews") else None

    client = Client(replica.url, replica.nobody().tls, {"Authorization": f"Bearer {unique}"})
    with replica.lied_to(liar):
        answer = client.get(ONE)
        assert replica.asked("/tokenreviews")
        assert answer.status in (401, 500, 503, 504), answer.body
        assert answer.json()["kind"] == "Status"
    # nor is the failure kept for a yes
    assert client.get(ONE).status in (401, 500, 503, 504)


def test_a_review_that_says_yes_is_needed(replica: Replica, unique: str) -> None:
    """The lies above are told where it counts."""

    def liar(asked: Asked) -> Lie | None:
        return Lie(body=review(authenticated=True, user=ADMIN)) if asked.path.endswith("/tokenreviews") else None

    with replica.lied_to(liar):
        client = Client(replica.url, replica.nobody().tls, {"Authorization": f"Bearer {unique}"})
        client.get(ONE).expect(200)


def verdict(**status: Any) -> dict[str, Any]:
    return {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "status": status}


ACCESS_LIES = [
    pytest.param(Lie(body=verdict(allowed=False)), id="no"),
    pytest.param(Lie(body=verdict(allowed="true")), id="yes in words"),
    pytest.param(Lie(body=verdict(allowed=1)), id="yes by number"),
    pytest.param(Lie(body=verdict(allowed=True, denied=True)), id="yes and no"),
    pytest.param(Lie(body=verdict()), id="nothing said"),
    pytest.param(Lie(body={}), id="an empty answer"),
    pytest.param(Lie(status=403, body={"kind": "Status", "code": 403}), id="403"),
    pytest.param(Lie(status=500, body={"kind": "Status", "code": 500}), id="500"),
]


@pytest.mark.parametrize("lie", ACCESS_LIES)
def test_an_access_review_that_fails_allows_nothing(replica: Replica, unique: str, lie: Lie) -> None:
    def liar(asked: Asked) -> Lie | None:
        return lie if asked.path.endswith("/subjectaccessreviews") else None

    client = replica.client(unique)
    with replica.lied_to(liar):
        answer = client.get(ONE)
        assert replica.asked("/subjectaccessreviews")
        assert answer.status in (403, 500, 503), answer.body
        assert answer.json()["kind"] == "Status"


def account(cluster: E2eCluster, namespace: str) -> Client:
    """The ServiceAccount `owner` of a namespace, by its token, at whatever stands in front."""
    client, path = cluster.client(), f"/api/v1/namespaces/{namespace}/serviceaccounts"
    client.request("POST", path, {"metadata": {"name": "owner"}}).expect(201)
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    token = client.request("POST", f"{path}/owner/token", body).expect(201)["status"]["token"]
    return Client(cluster.url, ssl._create_unverified_context(), {"Authorization": f"Bearer {token}"})


def test_an_account_of_the_same_name_elsewhere_is_somebody_else(
    cluster: E2eCluster, alice: Party, bob: Party, tenants: Tenants, access: RbacObjects
) -> None:
    """CVE-2023-46254."""
    ours, theirs = account(cluster, alice.namespace), account(cluster, bob.namespace)
    subject = {"kind": "ServiceAccount", "name": "owner", "namespace": alice.namespace}
    access.bind("owner", alice.namespace, subject, ROLE)
    wait_until_listed(ours, tenants_path(), [alice.child])
    ours.get(alice.child_path).expect(200)
    full = f'User "system:serviceaccount:{bob.namespace}:owner" cannot'
    for method, path in (("GET", alice.child_path), ("DELETE", alice.child_path), ("POST", alice.children)):
        assert full in theirs.request(method, path, {}).expect(403)["message"]
    assert theirs.get(tenants_path()).expect(200)["items"] == []
    # a name that only looks like the account's
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
def test_nobody_is_impersonated_at_our_door(replica: Replica, unique: str, fields: list[tuple[str, str]]) -> None:
    """Behind an aggregator, which has done it, not even by an administrator."""
    headers = CIMultiDict(fields)
    for client in (replica.client(), replica.client(unique)):
        assert client.get(ONE, headers=headers).status in (400, 403)
    replica.client().get(ONE).expect(200)
    assert replica.nobody().get(ONE, headers=headers).status in (400, 401, 403)


@pytest.mark.parametrize("fields", IMPERSONATIONS)
def test_nobody_impersonates_without_the_right(cluster: E2eCluster, unique: str, fields: list[tuple[str, str]]) -> None:
    if cluster.kind == "external":
        pytest.skip("there, everybody is an impersonation already")
    answer = cluster.client(unique).get(ONE, headers=CIMultiDict(fields))
    assert answer.status in (400, 403), answer.body


def test_underscores_make_no_header_of_impersonation(cluster: E2eCluster, unique: str) -> None:
    headers = {"Impersonate_User": "admin", "Impersonate_Group": "system:masters"}
    assert f'User "{unique}" cannot get' in cluster.client(unique).get(ONE, headers=headers).expect(403)["message"]


def test_tokens_are_in_no_log_and_no_answer(replica: Replica, unique: str) -> None:
    token = f"sesame-{unique}"
    client = Client(replica.url, replica.nobody().tls, {"Authorization": f"Bearer {token}"})
    wait_until("the token is refused", lambda: client.get(ONE).status == 401)
    assert [each for each in replica.asked("/tokenreviews") if json.loads(each.body)["spec"]["token"] == token]
    assert token not in replica.process.log()
    assert token not in client.get(ONE).body.decode()
