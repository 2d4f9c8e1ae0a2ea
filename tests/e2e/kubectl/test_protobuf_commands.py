"""kubectl commands without a file send built-in kinds as protobuf, which the cluster decodes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.e2e.support.built_in_kinds import get_object
from tests.e2e.support.clusters.cluster import RBAC, ROOT, E2eCluster, tenants_path

PROTOBUF = "application/vnd.kubernetes.protobuf"


@pytest.fixture
def namespace(cluster: E2eCluster, unique: str) -> Iterator[str]:
    """A namespace created by `kubectl create namespace`, and deleted after the test."""
    created = cluster.kubectl("create", "namespace", unique).stdout
    assert created == f"namespace/{unique} created\n"
    yield unique
    cluster.kubectl("delete", "namespace", unique, "--wait=false")


def select_fields(found: Any, wanted: Any) -> Any:
    """The part of `found` that has the keys of `wanted`."""
    if isinstance(wanted, dict) and isinstance(found, dict):
        return {name: select_fields(found.get(name), each) for name, each in wanted.items()}
    return found


def rbac_subject(kind: str, name: str) -> dict[str, str]:
    return {"kind": kind, "apiGroup": RBAC, "name": name}


@pytest.mark.parametrize(
    ("command", "wanted"),
    [
        pytest.param(
            "configmap settings --from-literal=colour=blue --from-literal=empty=",
            {"data": {"colour": "blue", "empty": ""}},
            id="configmap",
        ),
        pytest.param(
            "secret generic login --from-literal=user=admin",
            {"data": {"user": "YWRtaW4="}, "type": "Opaque"},
            id="secret generic",
        ),
        pytest.param("serviceaccount robot", {"metadata": {"name": "robot"}}, id="serviceaccount"),
        pytest.param(
            "role reader --verb=get,list --resource=configmaps,tenants.apps.cozystack.io --resource-name=settings",
            {
                "rules": [
                    {
                        "apiGroups": [group],
                        "resources": [resource],
                        "resourceNames": ["settings"],
                        "verbs": ["get", "list"],
                    }
                    for group, resource in (("", "configmaps"), ("apps.cozystack.io", "tenants"))
                ]
            },
            id="role",
        ),
        pytest.param(
            "rolebinding readers --clusterrole=view --user=ann --group=staff",
            {
                "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": "view"},
                "subjects": [rbac_subject("User", "ann"), rbac_subject("Group", "staff")],
            },
            id="rolebinding",
        ),
        pytest.param(
            "quota small --hard=cpu=500m,pods=2 --scopes=NotTerminating",
            {"spec": {"hard": {"cpu": "500m", "pods": "2"}, "scopes": ["NotTerminating"]}},
            id="quota",
        ),
        pytest.param(
            "service clusterip web --clusterip=None --tcp=80:http",
            {"spec": {"type": "ClusterIP", "clusterIP": "None", "selector": {"app": "web"}}},
            id="service clusterip",
        ),
        pytest.param(
            "service externalname away --external-name=example.org",
            {"spec": {"type": "ExternalName", "externalName": "example.org"}},
            id="service externalname",
        ),
    ],
)
def test_create_in_a_namespace(cluster: E2eCluster, namespace: str, command: str, wanted: dict[str, Any]) -> None:
    created = cluster.kubectl("create", *command.split(), f"--namespace={namespace}", "-o", "name").stdout.strip()
    resource, _, name = created.partition("/")
    found = get_object(cluster, namespace, resource, name)
    assert select_fields(found, wanted) == wanted


def test_fields_are_owned_by_the_command(cluster: E2eCluster, namespace: str) -> None:
    cluster.kubectl("create", "configmap", "settings", "--from-literal=colour=blue", "-n", namespace)
    (managed,) = get_object(cluster, namespace, "configmap", "settings")["metadata"]["managedFields"]
    assert (managed["manager"], managed["operation"]) == ("kubectl-create", "Update")
    assert managed["fieldsV1"] == {"f:data": {".": {}, "f:colour": {}}}


def test_a_service_keeps_its_ports(cluster: E2eCluster, namespace: str) -> None:
    cluster.kubectl("create", "service", "clusterip", "web", "--tcp=80:8080", "--tcp=443:https", "-n", namespace)
    ports = get_object(cluster, namespace, "service", "web")["spec"]["ports"]
    assert [(port["name"], port["port"], port["targetPort"], port["protocol"]) for port in ports] == [
        ("80-8080", 80, 8080, "TCP"),
        ("443-https", 443, "https", "TCP"),
    ]


def test_create_for_the_whole_cluster(cluster: E2eCluster, unique: str) -> None:
    try:
        cluster.kubectl("create", "clusterrole", unique, "--verb=get", "--non-resource-url=/healthz")
        cluster.kubectl("create", "clusterrole", f"{unique}-sum", "--aggregation-rule=part=sum")
        cluster.kubectl("create", "clusterrolebinding", unique, f"--clusterrole={unique}", "--user=ann")
        assert get_object(cluster, "", "clusterrole", unique)["rules"] == [
            {"nonResourceURLs": ["/healthz"], "verbs": ["get"]}
        ]
        summed = get_object(cluster, "", "clusterrole", f"{unique}-sum")["aggregationRule"]
        assert summed == {"clusterRoleSelectors": [{"matchLabels": {"part": "sum"}}]}
        binding = get_object(cluster, "", "clusterrolebinding", unique)
        assert binding["subjects"] == [rbac_subject("User", "ann")]
        assert binding["roleRef"]["name"] == unique
    finally:
        cluster.kubectl("delete", "clusterrolebinding", unique, "--ignore-not-found")
        cluster.kubectl("delete", "clusterrole", unique, f"{unique}-sum", "--ignore-not-found")


def test_creating_an_existing_object_fails_with_already_exists(cluster: E2eCluster, namespace: str) -> None:
    rejected = cluster.kubectl("create", "namespace", namespace, status=1).stderr
    assert rejected == f'Error from server (AlreadyExists): namespaces "{namespace}" already exists\n'


def test_a_dry_run_creates_nothing(cluster: E2eCluster, unique: str) -> None:
    output = cluster.kubectl("create", "namespace", unique, "--dry-run=server").stdout
    assert output == f"namespace/{unique} created (server dry run)\n"
    assert "NotFound" in cluster.kubectl("get", "namespace", unique, status=1).stderr


def test_an_invalid_name_is_reported_by_field(cluster: E2eCluster) -> None:
    long = "x" * 64
    rejected = cluster.kubectl("create", "namespace", long, status=1).stderr
    assert rejected.startswith(f'The Namespace "{long}" is invalid: ')
    assert f'metadata.name: Invalid value: "{long}": ' in rejected


def test_auth_can_i(cluster: E2eCluster, namespace: str) -> None:
    assert cluster.kubectl("auth", "can-i", "delete", "tenants.apps.cozystack.io", "-n", namespace).stdout == "yes\n"
    user = f"user-{namespace}"
    rejected = cluster.kubectl("auth", "can-i", "get", "configmaps", "-n", namespace, as_user=user, status=1)
    assert rejected.stdout.startswith("no")
    cluster.grant(user, "view", namespace)
    command = ("auth", "can-i", "get", "configmaps/settings", "-n", namespace)
    assert cluster.kubectl(*command, as_user=user, status=None).stdout.startswith("yes")
    assert cluster.kubectl("auth", "can-i", "get", "/version", as_user=user).stdout == "yes\n"


def test_auth_can_i_list(cluster: E2eCluster, namespace: str) -> None:
    user = f"user-{namespace}"
    cluster.kubectl("create", "role", "maker", "--verb=create", "--resource=configmaps", "-n", namespace)
    cluster.kubectl("create", "rolebinding", "maker", "--role=maker", f"--user={user}", "-n", namespace)
    cluster.wait_until_allowed(user, namespace, verb="create", resource="configmaps")
    listed = cluster.kubectl("auth", "can-i", "--list", "-n", namespace, as_user=user).stdout.splitlines()
    assert ["configmaps", "[]", "[]", "[create]"] in [line.split() for line in listed]


def test_auth_whoami(cluster: E2eCluster, unique: str) -> None:
    output = cluster.kubectl("auth", "whoami", "-o", "json", as_user=unique, groups=("staff",)).stdout
    info = json.loads(output)["status"]["userInfo"]
    assert info["username"] == unique
    assert {"staff", "system:authenticated"} <= set(info["groups"])


def role_and_binding(namespace: str, verbs: list[str], role: str) -> str:
    metadata = {"name": "kept", "namespace": namespace}
    rule = {"apiGroups": [""], "resources": ["configmaps"], "verbs": verbs}
    documents = [
        {"apiVersion": f"{RBAC}/v1", "kind": "Role", "metadata": metadata, "rules": [rule]},
        {
            "apiVersion": f"{RBAC}/v1",
            "kind": "RoleBinding",
            "metadata": metadata,
            "roleRef": {"apiGroup": RBAC, "kind": "Role", "name": role},
            "subjects": [rbac_subject("User", "ann")],
        },
    ]
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": documents})


def test_reconcile_updates_roles_and_replaces_bindings(cluster: E2eCluster, namespace: str) -> None:
    """kubectl PUTs a Role with all of its metadata, and deletes and recreates a binding, whose roleRef is immutable."""
    cluster.kubectl("auth", "reconcile", "-f", "-", input=role_and_binding(namespace, ["get"], "kept"))
    before = get_object(cluster, namespace, "rolebinding", "kept")
    cluster.kubectl("create", "role", "other", "--verb=list", "--resource=secrets", "-n", namespace)
    cluster.kubectl("auth", "reconcile", "-f", "-", input=role_and_binding(namespace, ["get", "list"], "other"))
    verbs = {verb for rule in get_object(cluster, namespace, "role", "kept")["rules"] for verb in rule["verbs"]}
    assert verbs == {"get", "list"}
    after = get_object(cluster, namespace, "rolebinding", "kept")
    assert after["roleRef"]["name"] == "other"
    assert after["metadata"]["uid"] != before["metadata"]["uid"]


@pytest.mark.parametrize("body", [pytest.param(b"k8s\x00\x0a\xff", id="truncated"), pytest.param(b"{}", id="JSON")])
def test_a_malformed_body_is_a_bad_request(cluster: E2eCluster, body: bytes) -> None:
    answer = cluster.client().request("POST", "/api/v1/namespaces", body, content_type=PROTOBUF)
    assert answer.expect(400)["reason"] == "BadRequest"


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE"])
def test_tenants_are_not_served_as_protobuf(cluster: E2eCluster, method: str) -> None:
    path = tenants_path(ROOT, "" if method == "POST" else "none-such")
    answer = cluster.client().request(method, path, b"k8s\x00", content_type=PROTOBUF)
    assert answer.expect(415)["reason"] == "UnsupportedMediaType"
