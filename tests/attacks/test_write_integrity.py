"""ATTACK-14: writes that store what they must not, or that bypass admission.

tests/e2e/tenants/test_peer_lessons.py tests dry runs, preconditions, lost updates, foreign finalizers and quotas by
their answers (API-1 to API-4, API-18, API-28); these tests look at the stored objects.
"""

from __future__ import annotations

import json
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from typing import Any

import pytest

from registry.application.kept_forms import NAME as KEPT_FORMS
from tests.attacks.support.admission_recorder import RECORDERS, AdmissionRecorder, is_denied_by_recorder
from tests.attacks.support.proxied_replica import ClusterRequest, Replica
from tests.attacks.support.two_tenants import TenantAdmin, create_tenant_admin, without_controller_fields
from tests.e2e.support.admission.policies import Policies
from tests.e2e.support.applying import APPLY, MERGE, configuration
from tests.e2e.support.clusters.cluster import E2eCluster, tenants_path
from tests.e2e.support.clusters.processes import wait_until
from tests.e2e.support.http.https_client import Client, Response
from tests.e2e.support.peer_lessons import JSON_PATCH
from tests.e2e.support.tenants import Object, Tenants, manifest

ENABLE_ETCD = [{"op": "replace", "path": "/spec/etcd", "value": True}]
_WRITES = ("POST", "PUT", "PATCH", "DELETE")
_REVIEWS = ("tokenreviews", "subjectaccessreviews")
Write = Callable[[Client, str, str], Response]


def _write(method: str, body: Callable[[str, str], Any], kind: str, **query: str) -> Write:
    def send(client: Client, namespace: str, name: str) -> Response:
        collection = method == "POST" or (method == "DELETE" and "labelSelector" in query)
        parameters = {key: value.replace("NAME", name) for key, value in query.items()}
        path = tenants_path(namespace) if collection else tenants_path(namespace, name)
        return client.request(method, path, body(namespace, name), query=parameters, content_type=kind)

    return send


def _no_body(namespace: str, name: str) -> None:
    return None


_JSON = "application/json"
_APPLY_QUERY = {"fieldManager": "attacker", "force": "true"}
UPDATES: dict[str, Write] = {
    "PUT": _write("PUT", lambda namespace, name: manifest(name, namespace, spec={"etcd": True}), _JSON),
    "merge patch": _write("PATCH", lambda *_: {"spec": {"etcd": True}}, MERGE),
    "JSON patch": _write("PATCH", lambda *_: ENABLE_ETCD, JSON_PATCH),
    "apply": _write("PATCH", lambda _, name: configuration(name, spec={"etcd": True}), APPLY, **_APPLY_QUERY),
}
CREATES: dict[str, Write] = {
    "create": _write("POST", lambda namespace, name: manifest(f"{name}c", namespace), _JSON),
    "create with generateName": _write("POST", lambda *_: {"metadata": {"generateName": "generated"}}, _JSON),
    "create by apply": lambda client, namespace, name: client.request(
        "PATCH",
        tenants_path(namespace, f"{name}a"),
        configuration(f"{name}a"),
        query=_APPLY_QUERY,
        content_type=APPLY,
    ),
}
DELETES: dict[str, Write] = {
    "delete": _write("DELETE", _no_body, _JSON),
    "delete in the foreground": _write("DELETE", _no_body, _JSON, propagationPolicy="Foreground"),
    "delete a collection": _write("DELETE", _no_body, _JSON, labelSelector="apps.cozystack.io/application.name=NAME"),
}
VERBS = {**CREATES, **UPDATES, **DELETES}


def as_dry_run(verb: Write) -> Write:
    def send(client: Client, namespace: str, name: str) -> Response:
        return verb(_DryRunClient(client.url, client.tls, client.headers), namespace, name)

    return send


class _DryRunClient(Client):
    """Sends every request as a dry run."""

    def request(self, method: str, path: str, body: Any = None, *, query: Any = None, **more: Any) -> Response:
        return super().request(method, path, body, query={**(query or {}), "dryRun": "All"}, **more)


def writes_at_cluster(replica: Replica, since: int) -> list[ClusterRequest]:
    """The requests of our server that store something in the cluster, from the request number `since` on, without those
    for the forms of kinds, which one replica keeps whatever is asked of it."""
    requests = tuple(replica.proxy.requests)[since:]
    writes = [each for each in requests if each.method in _WRITES and not each.dry_run]
    return [each for each in writes if not each.path.endswith(_REVIEWS) and not _is_about_forms(each)]


def _is_about_forms(request: ClusterRequest) -> bool:
    return KEPT_FORMS in request.path or KEPT_FORMS.encode() in request.body


@pytest.mark.parametrize("verb", VERBS)
def test_a_dry_run_writes_nothing_to_the_cluster(
    replica: Replica, alice: TenantAdmin, tenants: Tenants, verb: str
) -> None:
    """The server sends no write to the cluster, whatever the verb."""
    # a status write in between would cost the write below a conflict and a second try
    before = tenants.wait_until_settled(alice.child, alice.namespace)
    client = replica.client(alice.user)
    # and so would an older Tenant in the replica's cache
    version = int(before["metadata"]["resourceVersion"])
    wait_until("the replica has synced", lambda: _version(client, alice.child_path) >= version)
    since = len(replica.proxy.requests)
    answer = as_dry_run(VERBS[verb])(client, alice.namespace, alice.child)
    assert answer.status in (200, 201), answer.body
    assert writes_at_cluster(replica, since) == []
    assert without_controller_fields(tenants.get(alice.child, alice.namespace)) == without_controller_fields(before)
    # without dry run, the same count is one
    answer = UPDATES["merge patch"](client, alice.namespace, alice.child)
    assert answer.status == 200, answer.body
    assert len(writes_at_cluster(replica, since)) == 1


def _version(client: Client, path: str) -> int:
    """The resourceVersion of an object, 0 if it does not exist."""
    answer = client.get(path)
    return int(answer.json()["metadata"]["resourceVersion"]) if answer.status == 200 else 0


@pytest.mark.lasting("alice")
def test_wrong_preconditions_and_versions_are_conflicts(alice: TenantAdmin, tenants: Tenants) -> None:
    """The response is Kubernetes' 409, and the object is unchanged."""
    tenant = tenants.wait_until_settled(alice.child, alice.namespace)
    metadata, path, client = tenant["metadata"], alice.child_path, alice.client
    wrong: list[Object] = [{"uid": "x"}, {"resourceVersion": "1"}, {"uid": metadata["uid"], "resourceVersion": "1"}]
    for each in wrong:
        for target in (path, f"{alice.children}?labelSelector=apps.cozystack.io/application.name={alice.child}"):
            conflict = client.request("DELETE", target, {"preconditions": each}).expect(409)
            assert "precondition" in conflict["message"]
    stale = {**tenant, "metadata": {**metadata, "resourceVersion": "1"}, "spec": {"etcd": True}}
    for answer in (
        client.request("PUT", path, stale),
        client.request(
            "PATCH", path, {"metadata": {"resourceVersion": "1"}, "spec": {"etcd": True}}, content_type=MERGE
        ),
        client.request(
            "PATCH",
            path,
            [{"op": "replace", "path": "/metadata/resourceVersion", "value": "1"}, *ENABLE_ETCD],
            content_type=JSON_PATCH,
        ),
        client.request(
            "PATCH",
            path,
            configuration(alice.child, metadata={"resourceVersion": "1"}, spec={"etcd": True}),
            query=_APPLY_QUERY,
            content_type=APPLY,
        ),
    ):
        assert answer.expect(409)["reason"] == "Conflict"
    assert tenants.get(alice.child, alice.namespace)["spec"] == tenant["spec"]
    assert "deletionTimestamp" not in tenants.get(alice.child, alice.namespace)["metadata"]


def test_a_quota_is_exact_under_concurrent_writes(cluster: E2eCluster, tenants: Tenants) -> None:
    """Concurrent creations, applies and updates never exceed the quota, not even by one."""
    namespace = tenants.create_with_namespace(spec={"resourceQuotas": {"cpu": "6"}})
    names = [tenants.new_name(namespace) for _ in range(24)]
    client = cluster.client()

    def request_cpu(number: int) -> int:
        name = names[number]
        if number % 3 == 0:
            body = manifest(name, namespace, spec={"resourceQuotas": {"cpu": "1"}})
            return client.request("POST", tenants_path(namespace), body).status
        path = tenants_path(namespace, name)
        if number % 3 == 1:
            applied = configuration(name, spec={"resourceQuotas": {"cpu": "1"}})
            return client.request("PATCH", path, applied, query=_APPLY_QUERY, content_type=APPLY).status
        client.request("POST", tenants_path(namespace), manifest(name, namespace)).expect(201)
        grown = {"spec": {"resourceQuotas": {"cpu": "1"}}}
        return client.request("PATCH", path, grown, content_type=MERGE).status

    with ThreadPoolExecutor(12) as pool:
        statuses = Counter(pool.map(request_cpu, range(24)))
    assert statuses[200] + statuses[201] == 6, statuses
    assert statuses[422] == 18
    items = client.get(tenants_path(namespace)).expect(200)["items"]
    assert sum(item["spec"]["resourceQuotas"].get("cpu") == "1" for item in items) == 6


def test_finalizers_of_others_on_the_helmrelease_are_not_dropped(
    cluster: E2eCluster, alice: TenantAdmin, tenants: Tenants
) -> None:
    """Writes that omit finalizers, or empty them, remove neither foreign finalizers nor ours."""
    admin = cluster.client()
    tenants.wait_until_settled(alice.child, alice.namespace)
    path = f"/apis/helm.toolkit.fluxcd.io/v2/namespaces/{alice.namespace}/helmreleases/tenant-{alice.child}"
    before = admin.get(path).expect(200)["metadata"].get("finalizers", [])
    expected = sorted([*before, "finalizers.fluxcd.io"])
    admin.request("PATCH", path, {"metadata": {"finalizers": expected}}, content_type=MERGE).expect(200)
    try:
        emptied: list[tuple[Any, str]] = [
            ({"metadata": {"finalizers": []}}, MERGE),
            ({"metadata": {"finalizers": None}}, MERGE),
            ([{"op": "add", "path": "/metadata/finalizers", "value": []}], JSON_PATCH),
        ]
        for body, kind in emptied:
            alice.client.request("PATCH", alice.child_path, body, content_type=kind).expect(200)
        for verb in UPDATES.values():
            answer = verb(alice.client, alice.namespace, alice.child)
            assert answer.status == 200, answer.body
        assert sorted(admin.get(path).expect(200)["metadata"]["finalizers"]) == expected
    finally:
        admin.request("PATCH", path, {"metadata": {"finalizers": before}}, content_type=MERGE)


@pytest.fixture(params=RECORDERS)
def recorder(request: pytest.FixtureRequest, cluster: E2eCluster, alice: TenantAdmin) -> Iterator[AdmissionRecorder]:
    with RECORDERS[request.param](cluster, alice.namespace) as running:
        yield running


def create_settled_tenant(tenants: Tenants, namespace: str, **metadata: Any) -> str:
    """A write that conflicts with a status write is tried again, and admission sees it again."""
    name: str = tenants.create(namespace, **metadata)["metadata"]["name"]
    tenants.wait_until_settled(name, namespace)
    return name


def test_admission_sees_every_write_once(alice: TenantAdmin, tenants: Tenants, recorder: AdmissionRecorder) -> None:
    """Admission is called once per write, also for a dry run, but not for reads and for writes of missing objects."""
    namespace = alice.namespace
    for how, verb in CREATES.items():
        for write in (as_dry_run(verb), verb):
            answer = write(alice.client, namespace, alice.child)
            assert answer.status == 201, (how, answer.body)
            assert recorder.recorded_operations(answer) == [f"CREATE {answer.json()['metadata']['name']}"], how
    for how, verb in UPDATES.items():
        name = create_settled_tenant(tenants, namespace)
        for write in (as_dry_run(verb), verb):
            answer = write(alice.client, namespace, name)
            assert answer.status == 200, (how, answer.body)
            assert recorder.recorded_operations(answer) == [f"UPDATE {name}"], how
    for how, verb in DELETES.items():
        name = create_settled_tenant(tenants, namespace)
        for write in (as_dry_run(verb), verb):
            answer = write(alice.client, namespace, name)
            assert answer.status == 200, (how, answer.body)
            assert recorder.recorded_operations(answer) == [f"DELETE {name}"], how
    assert recorder.recorded_operations(alice.client.get(alice.child_path)) == []
    missing = alice.client.request("PATCH", f"{alice.child_path}x", {"spec": {}}, content_type=MERGE)
    assert (missing.status, recorder.recorded_operations(missing)) == (404, [])


def test_admission_sees_each_deletion_of_a_collection(
    alice: TenantAdmin, tenants: Tenants, recorder: AdmissionRecorder, unique: str
) -> None:
    names = sorted(create_settled_tenant(tenants, alice.namespace, labels={"bulk": unique}) for _ in range(5))
    query = {"labelSelector": f"bulk={unique}"}
    answer = alice.client.request("DELETE", alice.children, query=query)
    assert answer.status == 200, answer.body
    assert sorted(recorder.recorded_operations(answer)) == [f"DELETE {name}" for name in names]


@pytest.fixture(scope="module", params=RECORDERS)
def denied(request: pytest.FixtureRequest, cluster: E2eCluster) -> Iterator[TenantAdmin]:
    """An administrator in whose namespace admission denies every write."""
    created = Tenants(cluster)
    admin = create_tenant_admin(cluster, created, f"denied-{uuid.uuid4().hex[:8]}")
    created.wait_until_settled(admin.child, admin.namespace)
    with RECORDERS[request.param](cluster, admin.namespace) as recorder, recorder.denying():
        yield admin
    created.clean_up()


@pytest.mark.parametrize("verb", VERBS)
def test_a_write_denied_by_admission_is_not_stored(denied: TenantAdmin, tenants: Tenants, verb: str) -> None:
    alice, before = denied, tenants.get(denied.child, denied.namespace)
    for write in (VERBS[verb], as_dry_run(VERBS[verb])):
        assert is_denied_by_recorder(write(alice.client, alice.namespace, alice.child)), verb
    assert without_controller_fields(tenants.get(alice.child, alice.namespace)) == without_controller_fields(before)
    listed = tenants.client.get(alice.children).expect(200)["items"]
    assert [item["metadata"]["name"] for item in listed] == [alice.child]


def test_no_subresource_or_spelling_bypasses_admission(denied: TenantAdmin) -> None:
    """A request in another spelling of the path, or to a subresource, either fails or is denied by admission."""
    body, query = manifest(denied.child, denied.namespace, spec={"etcd": True}), {"fieldManager": "x"}
    for path in (
        f"{denied.child_path}/status",
        f"{denied.child_path}/",
        denied.child_path.replace("/tenants/", "/tenants//"),
        denied.child_path.replace("v1alpha1", "v1"),
        denied.child_path.replace("tenants/", "Tenants/"),
        denied.child_path.replace("apps.cozystack.io", "APPS.cozystack.io"),
    ):
        for method, kind in (("PUT", _JSON), ("PATCH", MERGE), ("PATCH", APPLY), ("DELETE", _JSON)):
            answer = denied.client.request(method, path, body, query=query, content_type=kind)
            assert answer.status >= 300, (method, path, answer.body)


def test_admission_sees_writes_of_our_controllers(cluster: E2eCluster, alice: TenantAdmin, tenants: Tenants) -> None:
    """A policy on Secrets applies to our controllers as well: they do not bypass the cluster's admission."""
    client = cluster.client()
    tenants.wait_until_settled(alice.tenant)
    secret = f"/api/v1/namespaces/{alice.namespace}/secrets/cozystack-values"
    tenants.wait("the Secret with the values exists", lambda: client.get(secret).status == 200)
    with _secrets_denied(cluster, alice.namespace):
        before = client.get(secret).expect(200)
        tenants.patch(alice.tenant, {"spec": {"monitoring": True}})
        tenants.wait(
            "the status has the denial", lambda: "no secrets" in json.dumps(tenants.get(alice.tenant)["status"])
        )
        assert client.get(secret).expect(200)["data"] == before["data"]
    tenants.wait("the Secret is updated afterwards", lambda: client.get(secret).expect(200)["data"] != before["data"])


def _secrets_denied(cluster: E2eCluster, namespace: str) -> AbstractContextManager[str]:
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"], "resources": ["secrets"]}
    configmaps = {**rule, "operations": ["CREATE"], "resources": ["configmaps"]}
    spec = {
        "matchConstraints": {"resourceRules": [rule, configmaps]},
        "validations": [{"expression": "request.resource.resource != 'secrets'", "message": "no secrets"}],
    }
    return Policies(cluster, namespace).in_force(spec)
