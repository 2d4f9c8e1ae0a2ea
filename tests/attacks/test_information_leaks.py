"""ATTACK-15: information that answers reveal by text, status or duration; and names that share a namespace."""

from __future__ import annotations

import re
import ssl
from collections.abc import Iterator

import pytest

from tests.attacks.support.two_tenants import ROLE, TenantAdmin
from tests.e2e.support.admission.policies import Policies
from tests.e2e.support.applying import APPLY, MERGE, configuration
from tests.e2e.support.clusters.cluster import PATIENCE, ROOT, E2eCluster, tenants_path
from tests.e2e.support.clusters.processes import wait_until
from tests.e2e.support.http.durations import measure_until_equal, take_equally_long
from tests.e2e.support.http.https_client import Client, Response
from tests.e2e.support.tenants import Object, Tenants, manifest
from tests.e2e.support.visibility import NAMESPACES, TABLE

PARTIAL = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
APPLY_QUERY = {"fieldManager": "attacker", "force": "true"}


def is_same_answer(one: Response, other: Response, name: str, other_name: str) -> bool:
    """True if status, body and headers are equal except for the two requested names."""
    hidden = one.content.replace(name.encode(), b"X"), other.content.replace(other_name.encode(), b"X")
    return (one.status, hidden[0], _head(one)) == (other.status, hidden[1], _head(other))


def _head(answer: Response) -> dict[str, str]:
    varying = ("audit-id", "date", "content-length")
    return {key.lower(): value for key, value in answer.headers.items() if key.lower() not in varying}


def missing_name(unique: str) -> str:
    """A name that no object has, as long as an existing one."""
    return f"m{unique[1:]}"


def missing_namespace(unique: str) -> str:
    return f"tenant-n{unique[1:]}"


def hidden_and_missing_paths(bob: TenantAdmin, unique: str) -> Iterator[tuple[str, str, str, str]]:
    """Yields a verb, the path of a hidden and that of a missing object, and whether they differ in the namespace or in
    the name of the Tenant."""
    hidden, nowhere = bob.namespace, missing_namespace(unique)
    yield "GET", f"{NAMESPACES}/{hidden}", f"{NAMESPACES}/{nowhere}", "namespace"
    child, missing = bob.child, missing_name(unique)
    yield "GET", tenants_path(hidden, child), tenants_path(hidden, missing), "tenant"
    yield "GET", tenants_path(hidden, child, "status"), tenants_path(hidden, missing, "status"), "tenant"
    yield "DELETE", tenants_path(hidden, child), tenants_path(hidden, missing), "tenant"
    yield "GET", tenants_path(hidden, child), tenants_path(nowhere, child), "namespace"


@pytest.mark.lasting("alice", "bob")
def test_hidden_and_missing_objects_get_the_same_answer(alice: TenantAdmin, bob: TenantAdmin, unique: str) -> None:
    """Status, body and all headers are equal in every representation, which `kubectl apply` needs, too
    (capsule-proxy#203)."""
    nowhere, missing = missing_namespace(unique), missing_name(unique)
    for method, hidden_path, missing_path, difference in hidden_and_missing_paths(bob, unique):
        name, other = (bob.namespace, nowhere) if difference == "namespace" else (bob.child, missing)
        for accept in ("application/json", TABLE, PARTIAL):
            one, two = (
                alice.client.request(method, path, headers={"Accept": accept}) for path in (hidden_path, missing_path)
            )
            assert one.status in (403, 404)
            assert is_same_answer(one, two, name, other), (method, hidden_path, one.body, two.body)
    for method, kind in (("PUT", "application/json"), ("PATCH", MERGE), ("PATCH", APPLY)):
        one, two = (
            alice.client.request(
                method,
                tenants_path(bob.namespace, name),
                configuration(name),
                query=APPLY_QUERY if kind == APPLY else None,
                content_type=kind,
            )
            for name in (bob.child, missing)
        )
        assert is_same_answer(one, two, bob.child, missing)
    # a creation under a hidden name, and under a missing one
    for namespace in (bob.namespace, nowhere):
        bodies = [manifest(name, namespace) for name in (bob.child, missing)]
        one, two = (alice.client.request("POST", tenants_path(namespace), body) for body in bodies)
        assert (one.status, two.status) == (403, 403)
        assert is_same_answer(one, two, bob.child, missing)
    lists = [alice.client.get(tenants_path(each)) for each in (bob.namespace, nowhere)]
    texts = [_without_version(answer) for answer in lists]
    assert texts[0] == texts[1]


@pytest.mark.parametrize("path", ["/livez", "/readyz", "/healthz"])
def test_anonymous_users_see_only_the_names_of_checks(cluster: E2eCluster, unique: str, path: str) -> None:
    strangers = Client(cluster.direct_url, ssl._create_unverified_context(), {}), cluster.direct_client(unique)
    for stranger in strangers:
        lines = stranger.get(path, query={"verbose": ""}).content.decode().splitlines()
        assert [line for line in lines[:-1] if not re.fullmatch(r"\[\+\][\w/-]+ ok", line)] == []
        assert lines[-1] == f"{path[1:]} check passed"


@pytest.mark.usefixtures("kube")
def test_readyz_names_policies_only_to_who_may_get_metrics(cluster: E2eCluster, unique: str) -> None:
    """A policy that does not compile is not stored, so only a kube-apiserver, which compiles more, can have one. Ours
    compiles those about its own kinds."""
    policies = Policies(cluster, "default")
    tenants = {
        "apiGroups": ["apps.cozystack.io"],
        "apiVersions": ["*"],
        "operations": ["CREATE"],
        "resources": ["tenants"],
    }
    spec = {"matchConstraints": {"resourceRules": [tenants]}, "validations": [{"expression": "1 < 2.5"}]}
    with policies.in_force(spec, wait=False) as name:

        def shown(client: Client) -> str:
            return client.get("/readyz", query={"verbose": ""}).content.decode()

        wait_until("the administrator sees it", lambda: name in shown(cluster.direct_client()))
        assert name not in shown(Client(cluster.direct_url, ssl._create_unverified_context(), {}))
        assert name not in shown(cluster.direct_client(unique))


def _without_version(answer: Response) -> Object:
    body: Object = answer.expect(200)
    return {**body, "metadata": {key: value for key, value in body["metadata"].items() if key != "resourceVersion"}}


@pytest.mark.lasting("alice", "bob")
def test_hidden_and_missing_objects_take_equally_long(alice: TenantAdmin, bob: TenantAdmin, unique: str) -> None:
    """The quickest requests of both kinds take equally long. A lookup that tells the two apart delays these, too."""
    for method, hidden, missing, _ in hidden_and_missing_paths(bob, unique):
        if method != "GET":
            continue
        durations = measure_until_equal(alice.client, method, hidden, missing)
        assert take_equally_long(*durations), (hidden, missing, durations)


@pytest.mark.lasting("bob")
def test_a_name_conflict_is_reported_only_in_the_callers_namespace(
    alice: TenantAdmin, bob: TenantAdmin, tenants: Tenants, unique: str
) -> None:
    """A name that exists in bob's namespace is neither reported to alice nor taken in her namespace."""
    conflict = alice.client.request("POST", alice.children, manifest(alice.child, alice.namespace)).expect(409)
    assert conflict["reason"] == "AlreadyExists"
    assert bob.namespace not in str(conflict)
    body = manifest(bob.child, alice.namespace)
    created = alice.client.request("POST", alice.children, body).expect(201)
    try:
        assert created["status"]["namespace"] == f"{alice.namespace}-{bob.child}"
        assert created["metadata"]["uid"] != tenants.get(bob.child, bob.namespace)["metadata"]["uid"]
    finally:
        alice.client.request("DELETE", tenants_path(alice.namespace, bob.child)).expect(200)


def test_a_host_conflict_does_not_name_the_other_tenant(
    cluster: E2eCluster, alice: TenantAdmin, bob: TenantAdmin, tenants: Tenants, unique: str
) -> None:
    """The error for a host that is taken names neither the other Tenant nor its namespace."""
    owned = f"{unique}.example"
    tenants.patch(bob.child, {"spec": {"host": owned}}, bob.namespace)
    trusted = cluster.client(f"flux-{unique}", ["system:serviceaccounts:cozy-fluxcd"])
    cluster.grant(f"flux-{unique}", ROLE, alice.namespace)
    own = tenants.new_name(alice.namespace)
    body = manifest(own, alice.namespace, spec={"host": owned})

    def create() -> Response | None:
        answer = trusted.request("POST", alice.children, body)
        return None if answer.status == 403 else answer

    answer = wait_until("the role takes effect", create, seconds=PATIENCE)
    assert answer.status == 422, answer.body
    text = answer.content.decode()
    assert "another tenant has this host" in text
    assert not any(word in text for word in (bob.namespace, bob.child, bob.tenant, bob.user))


def test_a_deletion_does_not_name_children_that_the_caller_may_not_get(
    alice: TenantAdmin, tenants: Tenants, cluster: E2eCluster
) -> None:
    """Alice may delete her child Tenant, but not get its children until she is granted that."""
    inner = tenants.get(alice.child, alice.namespace)["status"]["namespace"]
    tenants.wait_for_namespace(inner)
    hidden = [tenants.create(inner)["metadata"]["name"] for _ in range(2)]
    refused = alice.client.request("DELETE", alice.child_path).expect(409)
    assert "the tenant has sub-tenants that you may not see; delete them first" in refused["message"]
    assert not any(name in str(refused) for name in hidden)
    cluster.grant(alice.user, ROLE, inner)

    def named() -> bool:
        message: str = alice.client.request("DELETE", alice.child_path).expect(409)["message"]
        return all(name in message for name in hidden)

    wait_until("the children are named", named, seconds=PATIENCE)


def test_a_quota_refusal_tells_what_is_left_only_to_who_may_get_the_parent(
    alice: TenantAdmin, tenants: Tenants, unique: str
) -> None:
    """Alice may not get her own Tenant, which is in the root namespace, so she does not learn what her other children
    leave of its quota; the administrator does."""
    tenants.patch(alice.tenant, {"spec": {"resourceQuotas": {"cpu": "10"}}})
    tenants.patch(alice.child, {"spec": {"resourceQuotas": {"cpu": "7"}}}, alice.namespace)
    body = manifest(missing_name(unique), alice.namespace, spec={"resourceQuotas": {"cpu": "5"}})
    refused, told = (
        client.request("POST", alice.children, body, query={"dryRun": "All"}).expect(422)["message"]
        for client in (alice.client, tenants.client)
    )
    assert "5 is more than what is left of the quota of the parent tenant" in refused
    assert "5 is more than the 3 that are left of the parent's 10" in told


AMBIGUOUS_NAMES = [
    "a-b",
    "a--b",
    "-a",
    "a-",
    "A",
    "aB",
    "\u00e4",
    "a\u0300",
    "\uff41",
    "a.b",
    "a_b",
    "a/b",
    "a\u00adb",
    "1a",
    "",
]


@pytest.mark.parametrize("name", AMBIGUOUS_NAMES, ids=ascii)
@pytest.mark.lasting("alice")
def test_names_that_could_share_a_namespace_are_rejected(cluster: E2eCluster, alice: TenantAdmin, name: str) -> None:
    """GHSA-8h6m-wv39-239m: `a-b` of one namespace and `b` of its tenant `a` would share a namespace. So names have no
    dashes and no characters that normalization could map to other ones."""
    for client, namespace in ((alice.client, alice.namespace), (cluster.client(), ROOT)):
        answer = client.request("POST", tenants_path(namespace), manifest(name, namespace))
        assert answer.status == 422, answer.body
        if name and "/" not in name and name.isascii():
            applied = client.request(
                "PATCH", tenants_path(namespace, name), configuration(name), query=APPLY_QUERY, content_type=APPLY
            )
            assert applied.status == 422, applied.body
    generated = {"metadata": {"generateName": name}}
    if name:
        assert alice.client.request("POST", alice.children, generated).status == 422
        children = alice.client.get(alice.children).expect(200)["items"]
        assert all(item["metadata"]["name"].isascii() and "-" not in item["metadata"]["name"] for item in children)


def test_every_tenant_has_a_namespace_of_its_own(alice: TenantAdmin, tenants: Tenants) -> None:
    """Over all Tenants, each pair of parent namespace and name has a workload namespace of its own."""
    inner = tenants.create_with_namespace(alice.namespace)
    for namespace in (alice.namespace, inner):
        for name in ("a", "aa", "ab", "b"):
            tenants.client.request("POST", tenants_path(namespace), manifest(name, namespace)).expect(201)
    items = tenants.client.get(tenants_path()).expect(200)["items"]
    workload_namespaces = [item["status"]["namespace"] for item in items]
    assert len(workload_namespaces) == len(set(workload_namespaces))
    for item in items:
        parent, name = item["metadata"]["namespace"], item["metadata"]["name"]
        if (parent, name) != (ROOT, "root"):
            assert item["status"]["namespace"] == (f"tenant-{name}" if parent == ROOT else f"{parent}-{name}")
