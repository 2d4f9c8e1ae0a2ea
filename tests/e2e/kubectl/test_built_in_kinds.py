"""kubectl with built-in kinds: apply, diff, edit, patch, prune and field ownership."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.e2e.support.built_in_kinds import document, get_object, service
from tests.e2e.support.clusters.cluster import RBAC, E2eCluster

STRATEGIC = "application/strategic-merge-patch+json"


def binding(*users: str) -> dict[str, Any]:
    subjects = [{"kind": "User", "apiGroup": RBAC, "name": user} for user in users]
    reference = {"apiGroup": RBAC, "kind": "ClusterRole", "name": "view"}
    return document(f"{RBAC}/v1", "RoleBinding", "readers", roleRef=reference, subjects=subjects)


def manifest(*documents: dict[str, Any]) -> str:
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": list(documents)})


@pytest.mark.parametrize(
    ("before", "after", "path", "expected"),
    [
        pytest.param(
            document("v1", "ConfigMap", "c", data={"a": "1", "b": "2"}),
            document("v1", "ConfigMap", "c", data={"a": "3"}),
            ("data",),
            {"a": "3"},
            id="configmap",
        ),
        pytest.param(
            document("v1", "Secret", "s", data={"a": "MQ==", "b": "Mg=="}),
            document("v1", "Secret", "s", data={"b": "Mw=="}),
            ("data",),
            {"b": "Mw=="},
            id="secret",
        ),
        pytest.param(
            binding("ann", "bob"),
            binding("ann", "eve"),
            ("subjects",),
            [{"kind": "User", "apiGroup": RBAC, "name": name} for name in ("ann", "eve")],
            id="rolebinding",
        ),
        pytest.param(
            document(
                f"{RBAC}/v1", "Role", "r", rules=[{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}]
            ),
            document(f"{RBAC}/v1", "Role", "r", rules=[{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]),
            ("rules",),
            [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}],
            id="role",
        ),
        pytest.param(
            service(80, 443),
            service(443, 8080),
            ("spec", "ports"),
            [{"name": f"p{port}", "port": port, "protocol": "TCP", "targetPort": port} for port in (443, 8080)],
            id="service",
        ),
        pytest.param(
            document("v1", "ServiceAccount", "robot", secrets=[{"name": "a"}, {"name": "b"}]),
            document("v1", "ServiceAccount", "robot", secrets=[{"name": "c"}, {"name": "b"}]),
            ("secrets",),
            [{"name": "c"}, {"name": "b"}],
            id="serviceaccount",
        ),
    ],
)
def test_a_second_apply_updates_the_object_and_leaves_no_diff(
    cluster: E2eCluster,
    namespace: str,
    before: dict[str, Any],
    after: dict[str, Any],
    path: tuple[str, ...],
    expected: Any,
) -> None:
    results = [cluster.kubectl("apply", "-n", namespace, "-f", "-", input=json.dumps(each)) for each in (before, after)]
    assert [each.stdout.split()[-1] for each in results] == ["created", "configured"]
    assert [each.stderr for each in results] == ["", ""]
    found = get_object(cluster, namespace, after["kind"], after["metadata"]["name"])
    for name in path:
        found = found[name]
    assert found == expected
    difference = cluster.kubectl("diff", "-n", namespace, "-f", "-", input=json.dumps(before), status=1)
    assert difference.stdout.startswith("diff -u")
    assert cluster.kubectl("diff", "-n", namespace, "-f", "-", input=json.dumps(after)).stdout == ""


def test_applying_the_same_objects_again_reports_unchanged(cluster: E2eCluster, namespace: str) -> None:
    objects = manifest(document("v1", "ConfigMap", "c", data={"a": "1"}), service(80, 443))
    cluster.kubectl("apply", "-n", namespace, "-f", "-", input=objects)
    output = cluster.kubectl("apply", "-n", namespace, "-f", "-", input=objects).stdout
    assert output == "configmap/c unchanged\nservice/web unchanged\n"


def strategic_patch(cluster: E2eCluster, path: str, body: dict[str, Any]) -> Any:
    return cluster.client().request("PATCH", path, body, content_type=STRATEGIC).expect(200)


@pytest.mark.parametrize(
    ("patch", "expected"),
    [
        pytest.param({"ports": [{"port": 90, "name": "new"}]}, [90, 80, 443, 8080], id="a new port comes first"),
        pytest.param({"ports": [{"port": 443, "$patch": "delete"}]}, [80, 8080], id="a port is deleted"),
        pytest.param({"ports": [{"$patch": "replace"}, {"port": 1, "name": "one"}]}, [1], id="all ports are replaced"),
        pytest.param(
            {"$setElementOrder/ports": [{"port": 8080}, {"port": 80}]}, [443, 8080, 80], id="two ports are reordered"
        ),
        pytest.param(
            {
                "$setElementOrder/ports": [{"port": 8080}, {"port": 90}, {"port": 80}],
                "ports": [{"port": 90, "name": "new"}],
            },
            [443, 8080, 90, 80],
            id="a new port at its position",
        ),
    ],
)
def test_ports_are_merged_by_number(
    cluster: E2eCluster, namespace: str, patch: dict[str, Any], expected: list[int]
) -> None:
    cluster.client().request("POST", f"/api/v1/namespaces/{namespace}/services", service(80, 443, 8080)).expect(201)
    found = strategic_patch(cluster, f"/api/v1/namespaces/{namespace}/services/web", {"spec": patch})
    assert [port["port"] for port in found["spec"]["ports"]] == expected


def test_finalizers_and_labels_are_merged(cluster: E2eCluster, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    metadata = {"name": "c", "finalizers": ["a.io/a", "b.io/b"], "labels": {"x": "1", "y": "2"}}
    cluster.client().request("POST", path, {"metadata": metadata}).expect(201)
    change = {"metadata": {"finalizers": ["c.io/c", "b.io/b"], "labels": {"x": None, "z": "3"}}}
    found = strategic_patch(cluster, f"{path}/c", change)["metadata"]
    assert (found["finalizers"], found["labels"]) == (["c.io/c", "a.io/a", "b.io/b"], {"y": "2", "z": "3"})
    deletion = {"metadata": {"$deleteFromPrimitiveList/finalizers": ["a.io/a", "b.io/b", "c.io/c"]}}
    assert "finalizers" not in strategic_patch(cluster, f"{path}/c", deletion)["metadata"]


def test_a_custom_kind_rejects_a_strategic_merge_patch(cluster: E2eCluster, namespace: str) -> None:
    path = f"/apis/cert-manager.io/v1/namespaces/{namespace}/certificates/x"
    assert cluster.client().request("PATCH", path, {}, content_type=STRATEGIC).status == 415


def test_edit_label_annotate_and_patch(cluster: E2eCluster, namespace: str) -> None:
    in_namespace = ("-n", namespace)
    cluster.kubectl("create", "configmap", "c", "--from-literal=colour=blue", *in_namespace)
    edited = cluster.kubectl("edit", "configmap", "c", *in_namespace, environment={"EDITOR": "sed -i s/blue/green/"})
    assert edited.stdout == "configmap/c edited\n"
    assert cluster.kubectl("label", "configmap", "c", "a=b", *in_namespace).stdout == "configmap/c labeled\n"
    assert cluster.kubectl("annotate", "configmap", "c", "d=e", *in_namespace).stdout == "configmap/c annotated\n"
    assert (
        cluster.kubectl("patch", "configmap", "c", "-p", '{"data":{"x":"y"}}', *in_namespace).stdout
        == "configmap/c patched\n"
    )
    found = get_object(cluster, namespace, "configmap", "c")
    assert found["data"] == {"colour": "green", "x": "y"}
    assert (found["metadata"]["labels"], found["metadata"]["annotations"]) == ({"a": "b"}, {"d": "e"})


def test_apply_prunes_objects_that_left_the_files(cluster: E2eCluster, namespace: str) -> None:
    kept, pruned = (document("v1", "ConfigMap", name) for name in ("kept", "gone"))
    for each in (kept, pruned):
        each["metadata"]["labels"] = {"part": "pruned"}
    command = (
        "apply",
        "-n",
        namespace,
        "-f",
        "-",
        "--prune",
        "-l",
        "part=pruned",
        "--prune-allowlist=core/v1/ConfigMap",
    )
    cluster.kubectl(*command, input=manifest(kept, pruned))
    assert cluster.kubectl(*command, input=manifest(kept)).stdout == "configmap/kept unchanged\nconfigmap/gone pruned\n"


def test_sent_and_defaulted_fields_are_owned_by_the_creator(cluster: E2eCluster, namespace: str) -> None:
    secret = document("v1", "Secret", "s", stringData={"a": "1"})
    cluster.kubectl("create", "-n", namespace, "-f", "-", input=json.dumps(secret))
    (managed,) = get_object(cluster, namespace, "secret", "s")["metadata"]["managedFields"]
    assert managed["fieldsV1"] == {"f:data": {".": {}, "f:a": {}}, "f:type": {}}
