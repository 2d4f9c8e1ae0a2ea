"""ATTACK-06: a body, a patch or a subresource that names another object than the URL."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.attacks.support.two_tenants import TenantAdmin, without_controller_fields
from tests.e2e.support.applying import APPLY, MERGE, configuration
from tests.e2e.support.clusters.cluster import E2eCluster, tenants_path
from tests.e2e.support.http.https_client import Response
from tests.e2e.support.peer_lessons import JSON_PATCH
from tests.e2e.support.tenants import Object, Tenants, manifest

# a body with another uid than the stored object is a 409 in Kubernetes
REJECTED_STATUSES = (400, 409, 422)


class TenantWriter:
    """Writes of alice to her own child Tenant, which she may write, or to another path."""

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
def writer(alice: TenantAdmin, bob: TenantAdmin, tenants: Tenants) -> TenantWriter:
    for admin in (alice, bob):
        tenants.wait_until_settled(admin.child, admin.namespace)
    return TenantWriter(alice, bob, tenants)


IDENTITY_FIELDS = ["name", "namespace", "uid"]


@pytest.mark.parametrize("fields", [["name"], ["namespace"], ["uid"], ["name", "namespace"], IDENTITY_FIELDS])
def test_a_body_with_a_foreign_identity_is_rejected(writer: TenantWriter, fields: list[str]) -> None:
    own, foreign = writer.own_tenant(), writer.foreign_tenant()
    wanted = {field: foreign["metadata"][field] for field in fields}
    applied = configuration(writer.alice.child, metadata=wanted, spec={"etcd": True})
    answers = {
        "PUT": writer.put(lambda body: body["metadata"].update(wanted)),
        "PUT with its spec": writer.put(
            lambda body: body.update({**foreign, "metadata": {**foreign["metadata"], **wanted}})
        ),
        "merge patch": writer.patch(MERGE, {"metadata": wanted, "spec": {"etcd": True}}),
        "JSON patch": writer.patch(
            JSON_PATCH, [{"op": "replace", "path": f"/metadata/{field}", "value": wanted[field]} for field in fields]
        ),
        "JSON patch by add": writer.patch(
            JSON_PATCH, [{"op": "add", "path": f"/metadata/{field}", "value": wanted[field]} for field in fields]
        ),
        "JSON patch of all": writer.patch(
            JSON_PATCH, [{"op": "replace", "path": "/metadata", "value": {**own["metadata"], **wanted}}]
        ),
        "apply": writer.patch(APPLY, applied),
    }
    assert {how: answer.status for how, answer in answers.items() if answer.status not in REJECTED_STATUSES} == {}
    assert without_controller_fields(writer.foreign_tenant()) == without_controller_fields(foreign)
    assert writer.own_tenant()["metadata"]["uid"] == own["metadata"]["uid"]
    assert writer.own_tenant()["spec"] == own["spec"]


@pytest.mark.parametrize("field", IDENTITY_FIELDS)
def test_nothing_is_created_under_a_foreign_identity(writer: TenantWriter, field: str) -> None:
    """Neither by a POST nor by an apply that would create the object."""
    client, namespace = writer.alice.client, writer.alice.namespace
    wanted, name = writer.foreign_tenant()["metadata"][field], writer.tenants.new_name(namespace)
    body = manifest(name, namespace) | {"metadata": {field: wanted}}
    answer = client.request("POST", writer.alice.children, body)
    if field == "namespace":
        assert answer.status in (400, 422), answer.body
    elif field == "uid":
        # without a name the body is invalid; with a name the server generates another uid
        assert answer.status == 422, answer.body
        named = manifest(name, namespace, uid=wanted)
        assert client.request("POST", writer.alice.children, named).expect(201)["metadata"]["uid"] != wanted
    else:
        created = answer.expect(201)["metadata"]
        # the same name in alice's own namespace is another Tenant
        assert (created["namespace"], created["uid"] != writer.foreign_tenant()["metadata"]["uid"]) == (
            namespace,
            True,
        )
        client.request("DELETE", tenants_path(namespace, wanted))
    path = tenants_path(namespace, f"{name}x")
    applied = configuration(f"{name}x", metadata={field: wanted, **({} if field == "name" else {"name": f"{name}x"})})
    assert writer.patch(APPLY, applied, path).status in REJECTED_STATUSES
    assert client.get(path).status == 404


def test_the_url_decides_which_tenant_is_written(writer: TenantWriter) -> None:
    """CVE-2024-39690: authorization and the write both use the name and the namespace of the URL."""
    elsewhere = writer.bob.child_path
    assert writer.put(lambda body: None, elsewhere).status == 403
    assert writer.patch(MERGE, {"metadata": {"namespace": writer.alice.namespace}}, elsewhere).status == 403
    mixed = tenants_path(writer.alice.namespace, writer.bob.child)
    assert writer.put(lambda body: body["metadata"].update(name=writer.bob.child), mixed).status in (
        404,
        409,
    )
    for path in (
        f"{writer.alice.children}/../../{writer.bob.namespace}/tenants/{writer.bob.child}",
        f"{writer.alice.children}/..%2f..%2f{writer.bob.namespace}%2ftenants%2f{writer.bob.child}",
        f"{writer.alice.children}//{writer.bob.child}",
        f"{writer.alice.children}/{writer.alice.child}%00{writer.bob.child}",
    ):
        answer = writer.alice.client.request("PATCH", path, {"spec": {"etcd": True}}, content_type=MERGE)
        assert answer.status in (301, 400, 403, 404, 405), answer.body
        assert answer.status != 301 or not answer.headers["Location"].startswith("http")
    assert writer.foreign_tenant()["spec"]["etcd"] is False


FORGED_CHANGES: Object = {
    "spec": {"etcd": True},
    "metadata": {"labels": {"word": "stolen"}, "finalizers": ["example.org/stay"]},
}


@pytest.mark.parametrize("subresource", ["status", "finalize", "scale", "ephemeralcontainers", "approval", "binding"])
def test_subresources_cannot_change_the_tenant(cluster: E2eCluster, writer: TenantWriter, subresource: str) -> None:
    """GHSA-2ww6-hf35-mfjm: only the reconciler writes the status, and other subresources do not exist, neither for
    alice nor for the administrator."""
    before = writer.own_tenant()
    path = f"{writer.alice.child_path}/{subresource}"
    body = {**before, **FORGED_CHANGES, "metadata": {**before["metadata"], **FORGED_CHANGES["metadata"]}}
    for client in (writer.alice.client, cluster.client()):
        answers = [
            client.request("PUT", path, body),
            client.request("PATCH", path, FORGED_CHANGES, content_type=MERGE),
            client.request(
                "PATCH", path, [{"op": "replace", "path": "/spec/etcd", "value": True}], content_type=JSON_PATCH
            ),
            client.request(
                "PATCH",
                path,
                configuration(writer.alice.child, **FORGED_CHANGES),
                content_type=APPLY,
                query={"fieldManager": "alice", "force": "true"},
            ),
            client.request("POST", path, body),
            client.request("DELETE", path),
        ]
        assert {answer.status for answer in answers} <= {403, 404, 405}, [answer.body for answer in answers]
    assert without_controller_fields(writer.own_tenant()) == without_controller_fields(before)


def test_writes_of_a_tenant_do_not_change_its_status(writer: TenantWriter) -> None:
    forged = {"namespace": writer.bob.namespace, "host": "victim.example", "conditions": []}
    before = writer.own_tenant()["status"]
    writer.alice.client.update(writer.alice.child_path, lambda tenant: {**tenant, "status": forged}).expect(200)
    writer.patch(MERGE, {"status": forged}).expect(200)
    writer.patch(JSON_PATCH, [{"op": "replace", "path": "/status", "value": forged}]).expect(200)
    assert {key: writer.own_tenant()["status"].get(key) for key in forged if key != "conditions"} == {
        "namespace": before["namespace"],
        "host": before["host"],
    }
    name = writer.tenants.new_name(writer.alice.namespace)
    body = {**manifest(name, writer.alice.namespace), "status": forged}
    created = writer.alice.client.request("POST", writer.alice.children, body).expect(201)
    assert created["status"]["namespace"] == f"{writer.alice.namespace}-{name}"


def test_a_host_change_is_judged_by_the_stored_and_the_resulting_object(
    cluster: E2eCluster, writer: TenantWriter, tenants: Tenants, unique: str
) -> None:
    """The host of the body does not count by itself: a body without the stored host removes it, which is denied, while
    a patch that sets another host and restores it changes nothing."""
    alice, owned = writer.alice, f"{unique}.example.com"
    trusted = manifest(tenants.new_name(alice.namespace), alice.namespace, spec={"host": owned})
    name = cluster.client().request("POST", alice.children, trusted).expect(201)["metadata"]["name"]
    path = tenants_path(alice.namespace, name)
    bare = manifest(name, alice.namespace)
    replaced = [{"op": "replace", "path": "/spec", "value": {"etcd": True}}]
    moved = [{"op": "move", "from": "/spec/host", "path": "/spec/schedulingClass"}]
    denied = {
        "a PUT without it": alice.client.request("PUT", path, bare),
        "a spec that is null": alice.client.request("PATCH", path, {"spec": None}, content_type=MERGE),
        "a spec replaced": alice.client.request("PATCH", path, replaced, content_type=JSON_PATCH),
        "a host moved away": alice.client.request("PATCH", path, moved, content_type=JSON_PATCH),
    }
    assert {how: answer.status for how, answer in denied.items()} == dict.fromkeys(denied, 403)
    there_and_back = [
        {"op": "replace", "path": "/spec/host", "value": "victim.example"},
        {"op": "replace", "path": "/spec/host", "value": owned},
    ]
    alice.client.request("PATCH", path, there_and_back, content_type=JSON_PATCH).expect(200)
    whole = manifest(name, alice.namespace, spec={"host": owned, "etcd": True})
    assert alice.client.request("PUT", path, whole).expect(200)["spec"]["etcd"] is True
    assert tenants.get(name, alice.namespace)["spec"]["host"] == owned
