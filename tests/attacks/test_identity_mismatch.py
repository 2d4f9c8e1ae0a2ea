"""ATTACK-06: a body, a patch or a subresource that is about something else than its URL."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from tests.attacks.two_tenants import Party, written
from tests.e2e.support.applying import APPLY, MERGE, configuration
from tests.e2e.support.clusters import E2eCluster, tenants_path
from tests.e2e.support.https_client import Response
from tests.e2e.support.peer_lessons import JSON_PATCH
from tests.e2e.support.tenants import Object, Tenants, manifest

# that the object is another one is a conflict in Kubernetes' words, where the body brings the uid that it had
REFUSED = (400, 409, 422)


class Attempt:
    """Writes by alice to her own Tenant, which she may write."""

    def __init__(self, alice: Party, bob: Party, tenants: Tenants) -> None:
        self.alice, self.bob, self.tenants = alice, bob, tenants

    def put(self, change: Callable[[Object], object], path: str = "") -> Response:
        body = self.mine()
        change(body)
        return self.alice.client.request("PUT", path or self.alice.child_path, body)

    def patch(self, kind: str, body: Any, path: str = "") -> Response:
        query = {"fieldManager": "alice", "force": "true"} if kind == APPLY else None
        return self.alice.client.request("PATCH", path or self.alice.child_path, body, query=query, content_type=kind)

    def mine(self) -> Object:
        return self.tenants.get(self.alice.child, self.alice.namespace)

    def theirs(self) -> Object:
        return self.tenants.get(self.bob.child, self.bob.namespace)


@pytest.fixture
def attempt(alice: Party, bob: Party, tenants: Tenants) -> Attempt:
    for party in (alice, bob):
        tenants.wait("it has settled", partial(_has_conditions, tenants, party))
    return Attempt(alice, bob, tenants)


def _has_conditions(tenants: Tenants, party: Party) -> bool:
    return bool(tenants.get(party.child, party.namespace)["status"].get("conditions"))


FIELDS = ["name", "namespace", "uid"]


@pytest.mark.parametrize("fields", [["name"], ["namespace"], ["uid"], ["name", "namespace"], FIELDS])
def test_a_body_that_is_somebody_elses_is_refused(attempt: Attempt, fields: list[str]) -> None:
    theirs, before, mine = attempt.theirs()["metadata"], attempt.theirs(), attempt.mine()
    wanted = {field: theirs[field] for field in fields}
    applied = configuration(attempt.alice.child, metadata=wanted, spec={"etcd": True})
    answers = {
        "PUT": attempt.put(lambda body: body["metadata"].update(wanted)),
        "PUT with its spec": attempt.put(lambda body: body.update({**before, "metadata": {**theirs, **wanted}})),
        "merge patch": attempt.patch(MERGE, {"metadata": wanted, "spec": {"etcd": True}}),
        "JSON patch": attempt.patch(
            JSON_PATCH, [{"op": "replace", "path": f"/metadata/{field}", "value": wanted[field]} for field in fields]
        ),
        "JSON patch by add": attempt.patch(
            JSON_PATCH, [{"op": "add", "path": f"/metadata/{field}", "value": wanted[field]} for field in fields]
        ),
        "JSON patch of all": attempt.patch(
            JSON_PATCH, [{"op": "replace", "path": "/metadata", "value": {**mine["metadata"], **wanted}}]
        ),
        "apply": attempt.patch(APPLY, applied),
    }
    assert {how: answer.status for how, answer in answers.items() if answer.status not in REFUSED} == {}
    assert written(attempt.theirs()) == written(before)
    assert attempt.mine()["metadata"]["uid"] == mine["metadata"]["uid"]
    assert attempt.mine()["spec"] == mine["spec"]


@pytest.mark.parametrize("field", FIELDS)
def test_nothing_is_made_under_another_identity(attempt: Attempt, field: str) -> None:
    """By a create, and by an apply that would create."""
    wanted, fresh = attempt.theirs()["metadata"][field], attempt.tenants.new_name(attempt.alice.namespace)
    client, namespace = attempt.alice.client, attempt.alice.namespace
    made = client.request("POST", attempt.alice.children, manifest(fresh, namespace) | {"metadata": {field: wanted}})
    if field == "namespace":
        assert made.status in (400, 422), made.body
    elif field == "uid":
        # without a name there is nothing to make; with one, the uid is the server's to give
        assert made.status == 422, made.body
        named = manifest(fresh, namespace, uid=wanted)
        assert client.request("POST", attempt.alice.children, named).expect(201)["metadata"]["uid"] != wanted
    else:
        created = made.expect(201)["metadata"]
        # the same name in alice's own namespace is another Tenant
        assert (created["namespace"], created["uid"] != attempt.theirs()["metadata"]["uid"]) == (namespace, True)
        client.request("DELETE", tenants_path(namespace, wanted))
    path = tenants_path(namespace, f"{fresh}x")
    applied = configuration(f"{fresh}x", metadata={field: wanted, **({} if field == "name" else {"name": f"{fresh}x"})})
    assert attempt.patch(APPLY, applied, path).status in REFUSED
    assert client.get(path).status == 404


def test_a_name_in_the_url_is_the_name(attempt: Attempt) -> None:
    """CVE-2024-39690: what may be written is what the URL names, with its namespace."""
    elsewhere = attempt.bob.child_path
    assert attempt.put(lambda body: None, elsewhere).status == 403
    assert attempt.patch(MERGE, {"metadata": {"namespace": attempt.alice.namespace}}, elsewhere).status == 403
    mixed = tenants_path(attempt.alice.namespace, attempt.bob.child)
    assert attempt.put(lambda body: body["metadata"].update(name=attempt.bob.child), mixed).status in (404, 409)
    for path in (
        f"{attempt.alice.children}/../../{attempt.bob.namespace}/tenants/{attempt.bob.child}",
        f"{attempt.alice.children}/..%2f..%2f{attempt.bob.namespace}%2ftenants%2f{attempt.bob.child}",
        f"{attempt.alice.children}//{attempt.bob.child}",
        f"{attempt.alice.children}/{attempt.alice.child}%00{attempt.bob.child}",
    ):
        answer = attempt.alice.client.request("PATCH", path, {"spec": {"etcd": True}}, content_type=MERGE)
        assert answer.status in (301, 400, 403, 404, 405), answer.body
        assert answer.status != 301 or not answer.headers["Location"].startswith("http")
    assert attempt.theirs()["spec"]["etcd"] is False


LOADED: Object = {
    "spec": {"etcd": True},
    "metadata": {"labels": {"word": "stolen"}, "finalizers": ["example.org/stay"]},
}


@pytest.mark.parametrize("subresource", ["status", "finalize", "scale", "ephemeralcontainers", "approval", "binding"])
def test_a_subresource_changes_nothing_but_what_is_its_own(
    cluster: E2eCluster, attempt: Attempt, subresource: str
) -> None:
    """GHSA-2ww6-hf35-mfjm. A Tenant's status is its reconciler's, and there is no other subresource: not for alice,
    and not for the administrator."""
    before = attempt.mine()
    path = f"{attempt.alice.child_path}/{subresource}"
    body = {**before, **LOADED, "metadata": {**before["metadata"], **LOADED["metadata"]}}
    for client in (attempt.alice.client, cluster.client()):
        answers = [
            client.request("PUT", path, body),
            client.request("PATCH", path, LOADED, content_type=MERGE),
            client.request(
                "PATCH", path, [{"op": "replace", "path": "/spec/etcd", "value": True}], content_type=JSON_PATCH
            ),
            client.request(
                "PATCH",
                path,
                configuration(attempt.alice.child, **LOADED),
                content_type=APPLY,
                query={"fieldManager": "alice", "force": "true"},
            ),
            client.request("POST", path, body),
            client.request("DELETE", path),
        ]
        assert {answer.status for answer in answers} <= {403, 404, 405}, [answer.body for answer in answers]
    assert written(attempt.mine()) == written(before)


def test_nobody_writes_a_status_by_the_way(attempt: Attempt) -> None:
    forged = {"namespace": attempt.bob.namespace, "host": "victim.example", "conditions": []}
    before = attempt.mine()["status"]
    attempt.put(lambda body: body.update(status=forged)).expect(200)
    attempt.patch(MERGE, {"status": forged}).expect(200)
    attempt.patch(JSON_PATCH, [{"op": "replace", "path": "/status", "value": forged}]).expect(200)
    assert {key: attempt.mine()["status"].get(key) for key in forged if key != "conditions"} == {
        "namespace": before["namespace"],
        "host": before["host"],
    }
    fresh = attempt.tenants.new_name(attempt.alice.namespace)
    body = {**manifest(fresh, attempt.alice.namespace), "status": forged}
    made = attempt.alice.client.request("POST", attempt.alice.children, body).expect(201)
    assert made["status"]["namespace"] == f"{attempt.alice.namespace}-{fresh}"


def test_what_is_judged_is_what_is_stored_and_what_comes_of_it(
    cluster: E2eCluster, attempt: Attempt, tenants: Tenants, unique: str
) -> None:
    """Never the body: one that says nothing of the host, or says what it always was, is a change where it is stored
    otherwise; one that sets and takes back is none."""
    alice, owned = attempt.alice, f"{unique}.example.com"
    trusted = manifest(tenants.new_name(alice.namespace), alice.namespace, spec={"host": owned})
    name = cluster.client().request("POST", alice.children, trusted).expect(201)["metadata"]["name"]
    path = tenants_path(alice.namespace, name)
    bare = manifest(name, alice.namespace)
    replaced = [{"op": "replace", "path": "/spec", "value": {"etcd": True}}]
    moved = [{"op": "move", "from": "/spec/host", "path": "/spec/schedulingClass"}]
    refused = {
        "a PUT without it": alice.client.request("PUT", path, bare),
        "a spec that is null": alice.client.request("PATCH", path, {"spec": None}, content_type=MERGE),
        "a spec replaced": alice.client.request("PATCH", path, replaced, content_type=JSON_PATCH),
        "a host moved away": alice.client.request("PATCH", path, moved, content_type=JSON_PATCH),
    }
    assert {how: answer.status for how, answer in refused.items()} == dict.fromkeys(refused, 403)
    there_and_back = [
        {"op": "replace", "path": "/spec/host", "value": "victim.example"},
        {"op": "replace", "path": "/spec/host", "value": owned},
    ]
    alice.client.request("PATCH", path, there_and_back, content_type=JSON_PATCH).expect(200)
    whole = manifest(name, alice.namespace, spec={"host": owned, "etcd": True})
    assert alice.client.request("PUT", path, whole).expect(200)["spec"]["etcd"] is True
    assert tenants.get(name, alice.namespace)["spec"]["host"] == owned
