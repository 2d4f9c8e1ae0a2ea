"""ATTACK-06: a body, a patch or a subresource that is about something else than its URL."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from tests.attacks.two_tenants import TenantAdmin, without_controller_fields
from tests.e2e.support.applying import APPLY, MERGE, configuration
from tests.e2e.support.clusters import E2eCluster, tenants_path
from tests.e2e.support.https_client import Response
from tests.e2e.support.peer_lessons import JSON_PATCH
from tests.e2e.support.tenants import Object, Tenants, manifest

# that the object is another one is a conflict in Kubernetes' words, where the body brings the uid that it had
REJECTED_STATUSES = (400, 409, 422)


class AliceWrites:
    """Writes by alice to her own Tenant, which she may write."""

    def __init__(self, alice: TenantAdmin, bob: TenantAdmin, tenants: Tenants) -> None:
        self.alice, self.bob, self.tenants = alice, bob, tenants

    def put(self, change: Callable[[Object], object], path: str = "") -> Response:
        body = self.own_tenant()
        change(body)
        return self.alice.client.request("PUT", path or self.alice.child_path, body)

    def patch(self, kind: str, body: Any, path: str = "") -> Response:
        query = {"fieldManager": "alice", "force": "true"} if kind == APPLY else None
        return self.alice.client.request("PATCH", path or self.alice.child_path, body, query=query, content_type=kind)

    def own_tenant(self) -> Object:
        return self.tenants.get(self.alice.child, self.alice.namespace)

    def foreign_tenant(self) -> Object:
        return self.tenants.get(self.bob.child, self.bob.namespace)


@pytest.fixture
def alice_writes(alice: TenantAdmin, bob: TenantAdmin, tenants: Tenants) -> AliceWrites:
    for party in (alice, bob):
        tenants.wait("it has settled", partial(_has_conditions, tenants, party))
    return AliceWrites(alice, bob, tenants)


def _has_conditions(tenants: Tenants, party: TenantAdmin) -> bool:
    return bool(tenants.get(party.child, party.namespace)["status"].get("conditions"))


IDENTITY_FIELDS = ["name", "namespace", "uid"]


@pytest.mark.parametrize("fields", [["name"], ["namespace"], ["uid"], ["name", "namespace"], IDENTITY_FIELDS])
def test_a_body_with_a_foreign_identity_is_rejected(alice_writes: AliceWrites, fields: list[str]) -> None:
    foreign_tenant, before, own_tenant = (
        alice_writes.foreign_tenant()["metadata"],
        alice_writes.foreign_tenant(),
        alice_writes.own_tenant(),
    )
    wanted = {field: foreign_tenant[field] for field in fields}
    applied = configuration(alice_writes.alice.child, metadata=wanted, spec={"etcd": True})
    answers = {
        "PUT": alice_writes.put(lambda body: body["metadata"].update(wanted)),
        "PUT with its spec": alice_writes.put(
            lambda body: body.update({**before, "metadata": {**foreign_tenant, **wanted}})
        ),
        "merge patch": alice_writes.patch(MERGE, {"metadata": wanted, "spec": {"etcd": True}}),
        "JSON patch": alice_writes.patch(
            JSON_PATCH, [{"op": "replace", "path": f"/metadata/{field}", "value": wanted[field]} for field in fields]
        ),
        "JSON patch by add": alice_writes.patch(
            JSON_PATCH, [{"op": "add", "path": f"/metadata/{field}", "value": wanted[field]} for field in fields]
        ),
        "JSON patch of all": alice_writes.patch(
            JSON_PATCH, [{"op": "replace", "path": "/metadata", "value": {**own_tenant["metadata"], **wanted}}]
        ),
        "apply": alice_writes.patch(APPLY, applied),
    }
    assert {how: answer.status for how, answer in answers.items() if answer.status not in REJECTED_STATUSES} == {}
    assert without_controller_fields(alice_writes.foreign_tenant()) == without_controller_fields(before)
    assert alice_writes.own_tenant()["metadata"]["uid"] == own_tenant["metadata"]["uid"]
    assert alice_writes.own_tenant()["spec"] == own_tenant["spec"]


@pytest.mark.parametrize("field", IDENTITY_FIELDS)
def test_nothing_is_created_under_a_foreign_identity(alice_writes: AliceWrites, field: str) -> None:
    """By a create, and by an apply that would create."""
    wanted, fresh = (
        alice_writes.foreign_tenant()["metadata"][field],
        alice_writes.tenants.new_name(alice_writes.alice.namespace),
    )
    client, namespace = alice_writes.alice.client, alice_writes.alice.namespace
    made = client.request(
        "POST", alice_writes.alice.children, manifest(fresh, namespace) | {"metadata": {field: wanted}}
    )
    if field == "namespace":
        assert made.status in (400, 422), made.body
    elif field == "uid":
        # without a name there is nothing to make; with one, the uid is the server's to give
        assert made.status == 422, made.body
        named = manifest(fresh, namespace, uid=wanted)
        assert client.request("POST", alice_writes.alice.children, named).expect(201)["metadata"]["uid"] != wanted
    else:
        created = made.expect(201)["metadata"]
        # the same name in alice's own namespace is another Tenant
        assert (created["namespace"], created["uid"] != alice_writes.foreign_tenant()["metadata"]["uid"]) == (
            namespace,
            True,
        )
        client.request("DELETE", tenants_path(namespace, wanted))
    path = tenants_path(namespace, f"{fresh}x")
    applied = configuration(f"{fresh}x", metadata={field: wanted, **({} if field == "name" else {"name": f"{fresh}x"})})
    assert alice_writes.patch(APPLY, applied, path).status in REJECTED_STATUSES
    assert client.get(path).status == 404


def test_the_url_decides_which_tenant_is_written(alice_writes: AliceWrites) -> None:
    """CVE-2024-39690: what may be written is what the URL names, with its namespace."""
    elsewhere = alice_writes.bob.child_path
    assert alice_writes.put(lambda body: None, elsewhere).status == 403
    assert alice_writes.patch(MERGE, {"metadata": {"namespace": alice_writes.alice.namespace}}, elsewhere).status == 403
    mixed = tenants_path(alice_writes.alice.namespace, alice_writes.bob.child)
    assert alice_writes.put(lambda body: body["metadata"].update(name=alice_writes.bob.child), mixed).status in (
        404,
        409,
    )
    for path in (
        f"{alice_writes.alice.children}/../../{alice_writes.bob.namespace}/tenants/{alice_writes.bob.child}",
        f"{alice_writes.alice.children}/..%2f..%2f{alice_writes.bob.namespace}%2ftenants%2f{alice_writes.bob.child}",
        f"{alice_writes.alice.children}//{alice_writes.bob.child}",
        f"{alice_writes.alice.children}/{alice_writes.alice.child}%00{alice_writes.bob.child}",
    ):
        answer = alice_writes.alice.client.request("PATCH", path, {"spec": {"etcd": True}}, content_type=MERGE)
        assert answer.status in (301, 400, 403, 404, 405), answer.body
        assert answer.status != 301 or not answer.headers["Location"].startswith("http")
    assert alice_writes.foreign_tenant()["spec"]["etcd"] is False


FORGED_CHANGES: Object = {
    "spec": {"etcd": True},
    "metadata": {"labels": {"word": "stolen"}, "finalizers": ["example.org/stay"]},
}


@pytest.mark.parametrize("subresource", ["status", "finalize", "scale", "ephemeralcontainers", "approval", "binding"])
def test_subresources_cannot_change_the_tenant(
    cluster: E2eCluster, alice_writes: AliceWrites, subresource: str
) -> None:
    """GHSA-2ww6-hf35-mfjm. A Tenant's status is its reconciler's, and there is no other subresource: not for alice,
    and not for the administrator."""
    before = alice_writes.own_tenant()
    path = f"{alice_writes.alice.child_path}/{subresource}"
    body = {**before, **FORGED_CHANGES, "metadata": {**before["metadata"], **FORGED_CHANGES["metadata"]}}
    for client in (alice_writes.alice.client, cluster.client()):
        answers = [
            client.request("PUT", path, body),
            client.request("PATCH", path, FORGED_CHANGES, content_type=MERGE),
            client.request(
                "PATCH", path, [{"op": "replace", "path": "/spec/etcd", "value": True}], content_type=JSON_PATCH
            ),
            client.request(
                "PATCH",
                path,
                configuration(alice_writes.alice.child, **FORGED_CHANGES),
                content_type=APPLY,
                query={"fieldManager": "alice", "force": "true"},
            ),
            client.request("POST", path, body),
            client.request("DELETE", path),
        ]
        assert {answer.status for answer in answers} <= {403, 404, 405}, [answer.body for answer in answers]
    assert without_controller_fields(alice_writes.own_tenant()) == without_controller_fields(before)


def test_writes_of_a_tenant_do_not_change_its_status(alice_writes: AliceWrites) -> None:
    forged = {"namespace": alice_writes.bob.namespace, "host": "victim.example", "conditions": []}
    before = alice_writes.own_tenant()["status"]
    alice_writes.put(lambda body: body.update(status=forged)).expect(200)
    alice_writes.patch(MERGE, {"status": forged}).expect(200)
    alice_writes.patch(JSON_PATCH, [{"op": "replace", "path": "/status", "value": forged}]).expect(200)
    assert {key: alice_writes.own_tenant()["status"].get(key) for key in forged if key != "conditions"} == {
        "namespace": before["namespace"],
        "host": before["host"],
    }
    fresh = alice_writes.tenants.new_name(alice_writes.alice.namespace)
    body = {**manifest(fresh, alice_writes.alice.namespace), "status": forged}
    made = alice_writes.alice.client.request("POST", alice_writes.alice.children, body).expect(201)
    assert made["status"]["namespace"] == f"{alice_writes.alice.namespace}-{fresh}"


def test_a_host_change_is_judged_by_the_stored_and_the_resulting_object(
    cluster: E2eCluster, alice_writes: AliceWrites, tenants: Tenants, unique: str
) -> None:
    """Never the body: one that says nothing of the host, or says what it always was, is a change where it is stored
    otherwise; one that sets and takes back is none."""
    alice, owned = alice_writes.alice, f"{unique}.example.com"
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
