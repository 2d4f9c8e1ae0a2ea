"""kubectl with built-in kinds: apply, edit, patch, events, field selectors and tokens."""

from __future__ import annotations

import json
import ssl
from collections.abc import Iterator
from typing import Any

import pytest

from tests.e2e.support import credentials
from tests.e2e.support.clusters import PATIENCE, RBAC, E2eCluster
from tests.e2e.support.https_client import Client
from tests.e2e.support.processes import wait_until

STRATEGIC = "application/strategic-merge-patch+json"
AS_STORED = ("-o", "json", "--show-managed-fields")


@pytest.fixture
def namespace(cluster: E2eCluster, unique: str) -> Iterator[str]:
    cluster.kubectl("create", "namespace", unique)
    yield unique
    cluster.kubectl("delete", "namespace", unique, "--wait=false")


def document(api_version: str, kind: str, name: str, **content: Any) -> dict[str, Any]:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, **content}


def binding(*users: str) -> dict[str, Any]:
    subjects = [{"kind": "User", "apiGroup": RBAC, "name": user} for user in users]
    reference = {"apiGroup": RBAC, "kind": "ClusterRole", "name": "view"}
    return document(f"{RBAC}/v1", "RoleBinding", "readers", roleRef=reference, subjects=subjects)


def service(*ports: int, **spec: Any) -> dict[str, Any]:
    named = [{"name": f"p{port}", "port": port} for port in ports]
    return document("v1", "Service", "web", spec={"selector": {"app": "web"}, "ports": named, **spec})


def manifest(*documents: dict[str, Any]) -> str:
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": list(documents)})


def get_object(cluster: E2eCluster, namespace: str, resource: str, name: str) -> Any:
    return json.loads(cluster.kubectl("get", resource, name, f"--namespace={namespace}", *AS_STORED).stdout)


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


RULE = {"apiGroups": ["x"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["nothings"]}
WEBHOOK: dict[str, Any] = {
    "name": "a.example.org",
    "admissionReviewVersions": ["v1"],
    "sideEffects": "None",
    "clientConfig": {"service": {"name": "s", "namespace": "n"}},
    "rules": [RULE],
}
MATCHING = {"matchPolicy": "Equivalent", "namespaceSelector": {}, "objectSelector": {}}


@pytest.mark.parametrize(("kind", "more"), [("Validating", {}), ("Mutating", {"reinvocationPolicy": "Never"})])
def test_webhooks_have_kubernetes_defaults(cluster: E2eCluster, unique: str, kind: str, more: dict[str, str]) -> None:
    plural = f"{kind.lower()}webhookconfigurations"
    body = {"metadata": {"name": unique}, "webhooks": [WEBHOOK]}
    path = f"/apis/admissionregistration.k8s.io/v1/{plural}"
    made = cluster.client().request("POST", path, body, query={"dryRun": "All"}).expect(201)
    assert made["webhooks"] == [
        {
            **WEBHOOK,
            **MATCHING,
            **more,
            "failurePolicy": "Fail",
            "timeoutSeconds": 10,
            "clientConfig": {"service": {"name": "s", "namespace": "n", "port": 443}},
            "rules": [{**RULE, "scope": "*"}],
        }
    ]


def test_admission_policies_have_kubernetes_defaults(cluster: E2eCluster, unique: str) -> None:
    spec: dict[str, Any] = {
        "matchConstraints": {"resourceRules": [RULE]},
        "validations": [{"expression": "true"}],
    }
    path = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
    made = cluster.client().request("POST", path, {"metadata": {"name": unique}, "spec": spec}, query={"dryRun": "All"})
    rules = [{**RULE, "scope": "*"}]
    assert made.expect(201)["spec"] == {
        **spec,
        "failurePolicy": "Fail",
        "matchConstraints": {**MATCHING, "resourceRules": rules},
    }


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({}, {"type": "ClusterIP"}, id="ClusterIP"),
        pytest.param({"type": "NodePort"}, {"externalTrafficPolicy": "Cluster"}, id="NodePort"),
        pytest.param(
            {"type": "LoadBalancer"},
            {"externalTrafficPolicy": "Cluster", "allocateLoadBalancerNodePorts": True},
            id="LoadBalancer",
        ),
        pytest.param({"clusterIP": "None"}, {"clusterIP": "None"}, id="headless"),
    ],
)
def test_services_have_kubernetes_defaults(
    cluster: E2eCluster, namespace: str, spec: dict[str, Any], expected: dict[str, Any]
) -> None:
    path = f"/api/v1/namespaces/{namespace}/services"
    made = cluster.client().request("POST", path, service(80, **spec)).expect(201)["spec"]
    common = {
        "internalTrafficPolicy": "Cluster",
        "ipFamilies": ["IPv4"],
        "ipFamilyPolicy": "SingleStack",
        "sessionAffinity": "None",
    }
    wanted = {**common, **expected}
    assert {name: made.get(name) for name in wanted} == wanted


def test_quantities_are_stored_in_canonical_form(cluster: E2eCluster, namespace: str) -> None:
    hard = {"cpu": 2, "memory": "1024Mi", "limits.cpu": "1500m", "requests.storage": "0.5", "count/a.io": "1000"}
    body = document("v1", "ResourceQuota", "q", spec={"hard": hard})
    made = cluster.client().request("POST", f"/api/v1/namespaces/{namespace}/resourcequotas", body).expect(201)
    assert made["spec"]["hard"] == {
        "cpu": "2",
        "memory": "1Gi",
        "limits.cpu": "1500m",
        "requests.storage": "500m",
        "count/a.io": "1k",
    }
    limits = [{"type": "Container", "default": {"cpu": "1000m"}, "defaultRequest": {"cpu": "0.5"}}]
    body = document("v1", "LimitRange", "l", spec={"limits": limits})
    made = cluster.client().request("POST", f"/api/v1/namespaces/{namespace}/limitranges", body).expect(201)
    assert made["spec"]["limits"] == [{"type": "Container", "default": {"cpu": "1"}, "defaultRequest": {"cpu": "500m"}}]


@pytest.mark.parametrize(
    ("hard", "why"),
    [
        pytest.param({"storage": "1"}, "must be a standard resource for quota", id="storage"),
        pytest.param({"foo": "1"}, "must be a standard resource type or fully qualified", id="an unknown name"),
        pytest.param({"cpu": "-1"}, "must be greater than or equal to 0", id="a negative quantity"),
    ],
)
def test_an_invalid_quota_is_rejected(cluster: E2eCluster, namespace: str, hard: dict[str, str], why: str) -> None:
    body = document("v1", "ResourceQuota", "q", spec={"hard": hard})
    refused = cluster.client().request("POST", f"/api/v1/namespaces/{namespace}/resourcequotas", body).expect(422)
    assert why in refused["message"]


@pytest.mark.parametrize(
    ("type_", "missing"),
    [
        pytest.param("kubernetes.io/basic-auth", ["data[username]", "data[password]"], id="basic-auth"),
        pytest.param("kubernetes.io/ssh-auth", ["data[ssh-privatekey]"], id="ssh-auth"),
        pytest.param("kubernetes.io/dockerconfigjson", ["data[.dockerconfigjson]"], id="dockerconfigjson"),
        pytest.param("kubernetes.io/tls", ["data[tls.crt]", "data[tls.key]"], id="tls"),
    ],
)
def test_a_secret_must_have_the_keys_of_its_type(
    cluster: E2eCluster, namespace: str, type_: str, missing: list[str]
) -> None:
    body = document("v1", "Secret", "s", type=type_)
    refused = cluster.client().request("POST", f"/api/v1/namespaces/{namespace}/secrets", body).expect(422)
    assert [cause["field"] for cause in refused["details"]["causes"]] == missing


def event(namespace: str, name: str, about: str, **content: Any) -> dict[str, Any]:
    subject = {"kind": "ConfigMap", "apiVersion": "v1", "namespace": namespace, "name": about}
    return document(
        "v1",
        "Event",
        name,
        involvedObject=subject,
        source={"component": "tester"},
        firstTimestamp="2026-01-01T00:00:00Z",
        lastTimestamp="2026-01-01T00:00:00Z",
        **content,
    )


@pytest.fixture
def events(cluster: E2eCluster, namespace: str) -> str:
    """A namespace with the Events `a` (Warning, Broken) of the ConfigMap `x` and `b` (Normal, Fine) of `y`."""
    client, path = cluster.client(), f"/api/v1/namespaces/{namespace}"
    made = client.request("POST", f"{path}/configmaps", document("v1", "ConfigMap", "x")).expect(201)
    for each in (
        event(namespace, "a", "x", type="Warning", reason="Broken", message="it broke"),
        event(namespace, "b", "y", type="Normal", reason="Fine", message="it holds"),
    ):
        each["involvedObject"]["uid"] = made["metadata"]["uid"]
        client.request("POST", f"{path}/events", each).expect(201)
    return namespace


def test_describe_shows_events(cluster: E2eCluster, events: str) -> None:
    description = cluster.kubectl("describe", "configmap", "x", "-n", events).stdout
    (line,) = [line.split() for line in description.splitlines() if "it broke" in line]
    assert (line[:2], line[-3:]) == (["Warning", "Broken"], ["tester", "it", "broke"])
    assert "it holds" not in description
    listed = cluster.kubectl("events", "-n", events, "--for=configmap/x").stdout
    assert ("it broke" in listed, "it holds" in listed) == (True, False)


@pytest.mark.parametrize(
    ("group", "selector", "expected"),
    [
        pytest.param("", "involvedObject.name=x,involvedObject.kind=ConfigMap", ["a"], id="by object"),
        pytest.param("", "type!=Warning", ["b"], id="by another type"),
        pytest.param("", "reason=Fine,source=tester", ["b"], id="by reason and source"),
        pytest.param("", "reportingComponent=tester", [], id="by reporting component"),
        pytest.param("", "metadata.name=a,type=Normal", [], id="by name and type"),
        pytest.param("events.k8s.io", "regarding.name=y", ["b"], id="events.k8s.io by regarding"),
        pytest.param("events.k8s.io", "type=Warning,reason=Broken", ["a"], id="events.k8s.io by type"),
        pytest.param("events.k8s.io", "reportingController=", ["a", "b"], id="events.k8s.io by an empty value"),
    ],
)
def test_events_are_selected_by_field(
    cluster: E2eCluster, events: str, group: str, selector: str, expected: list[str]
) -> None:
    base = f"/apis/{group}/v1" if group else "/api/v1"
    found = cluster.client().get(f"{base}/namespaces/{events}/events", query={"fieldSelector": selector}).expect(200)
    assert [each["metadata"]["name"] for each in found["items"]] == expected


def test_a_watch_by_field_follows_changes_of_the_field(cluster: E2eCluster, events: str) -> None:
    client, path = cluster.client(), f"/api/v1/namespaces/{events}/events"
    version = client.get(path).expect(200)["metadata"]["resourceVersion"]
    query = {"watch": "1", "fieldSelector": "type=Warning", "resourceVersion": version}
    for kind in ("Warning", "Normal"):
        client.request("PATCH", f"{path}/b", {"type": kind}, content_type="application/merge-patch+json").expect(200)
    with client.stream(path, query=query) as frames:
        seen = [next(frames) for _ in range(2)]
    assert [(frame["type"], frame["object"]["metadata"]["name"]) for frame in seen] == [
        ("ADDED", "b"),
        ("DELETED", "b"),
    ]


@pytest.mark.parametrize(
    ("path", "selector", "message"),
    [
        pytest.param("/api/v1/events", "foo=x", "field label not supported: foo", id="events"),
        pytest.param(
            "/api/v1/events",
            "regarding.name=x",
            "field label not supported: regarding.name",
            id="a field of events.k8s.io",
        ),
        pytest.param("/api/v1/secrets", "data=x", "field label not supported: data", id="secrets"),
        pytest.param(
            "/api/v1/configmaps",
            "type=x",
            '"type" is not a known field selector: only "metadata.name", "metadata.namespace"',
            id="configmaps",
        ),
    ],
)
def test_unsupported_field_selectors_are_rejected(cluster: E2eCluster, path: str, selector: str, message: str) -> None:
    assert cluster.client().get(path, query={"fieldSelector": selector}).expect(400)["message"].endswith(message)


def test_secrets_services_and_namespaces_have_their_own_selectable_fields(cluster: E2eCluster, namespace: str) -> None:
    client, path = cluster.client(), f"/api/v1/namespaces/{namespace}"
    client.request("POST", f"{path}/services", service(80, clusterIP="None")).expect(201)
    for name, type_ in (("s", "example.org/x"), ("t", "Opaque")):
        client.request("POST", f"{path}/secrets", document("v1", "Secret", name, type=type_)).expect(201)

    def names(path: str, selector: str) -> list[str]:
        items = client.get(path, query={"fieldSelector": selector}).expect(200)["items"]
        return [each["metadata"]["name"] for each in items]

    assert names(f"{path}/secrets", "type=example.org/x") == ["s"]
    assert names(f"{path}/services", "spec.clusterIP=None,spec.type=ClusterIP") == ["web"]
    assert namespace in names("/api/v1/namespaces", "status.phase=Active")
    assert names("/api/v1/namespaces", f"status.phase=Terminating,metadata.name={namespace}") == []


@pytest.mark.parametrize(
    ("resource", "heading"),
    [
        pytest.param("events", "LAST SEEN   TYPE      REASON   OBJECT        MESSAGE", id="events"),
        pytest.param("roles", "NAME   CREATED AT", id="roles"),
        pytest.param("limitranges", "NAME   CREATED AT", id="limitranges"),
        pytest.param("serviceaccounts", "NAME", id="serviceaccounts"),
    ],
)
def test_tables_have_the_usual_columns_of_kubectl(
    cluster: E2eCluster, events: str, resource: str, heading: str
) -> None:
    path = f"/api/v1/namespaces/{events}"
    client = cluster.client()
    client.request("POST", f"{path}/limitranges", document("v1", "LimitRange", "l", spec={"limits": []})).expect(201)
    roles = f"/apis/{RBAC}/v1/namespaces/{events}/roles"
    client.request("POST", roles, document(f"{RBAC}/v1", "Role", "r", rules=[])).expect(201)
    client.request("POST", f"{path}/serviceaccounts", document("v1", "ServiceAccount", "sa")).expect(201)
    first = cluster.kubectl("get", resource, "-n", events).stdout.splitlines()[0]
    assert first.split() == (heading.split() if resource != "serviceaccounts" else ["NAME", "AGE"])


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


def test_a_token_authenticates_its_service_account_until_that_is_deleted(
    cluster: E2eCluster, account_namespace: str
) -> None:
    token = cluster.kubectl("create", "token", "robot", "-n", account_namespace, "--duration=10m").stdout.strip()
    client = token_client(cluster, token)

    def is_allowed() -> bool:
        return client.get(f"/api/v1/namespaces/{account_namespace}/configmaps").status == 200

    wait_until("the binding is in effect", is_allowed, seconds=20, processes=cluster.processes)
    refused = client.get(f"/api/v1/namespaces/{account_namespace}/secrets").expect(403)["message"]
    account = f"system:serviceaccount:{account_namespace}:robot"
    assert refused.startswith(f'secrets is forbidden: User "{account}" cannot list resource "secrets"')
    cluster.kubectl("delete", "serviceaccount", "robot", "-n", account_namespace)

    def is_unauthorized() -> bool:
        return client.get(f"/api/v1/namespaces/{account_namespace}/configmaps").status == 401

    # kube-apiserver caches the result of token authentication for some seconds
    wait_until("the token is rejected", is_unauthorized, seconds=30, processes=cluster.processes)


def test_an_editor_may_create_tokens_and_a_viewer_may_not(cluster: E2eCluster, account_namespace: str) -> None:
    editor, viewer = f"editor-{account_namespace}", f"viewer-{account_namespace}"
    cluster.grant(editor, "edit", account_namespace)
    cluster.grant(viewer, "view", account_namespace)
    command = ("auth", "can-i", "create", "serviceaccounts/robot", "--subresource=token", "-n", account_namespace)

    def may_create_tokens() -> bool:
        return cluster.kubectl(*command, as_user=editor, status=None).stdout == "yes\n"

    wait_until("the binding is in effect", may_create_tokens, seconds=20, processes=cluster.processes)
    assert cluster.kubectl("create", "token", "robot", "-n", account_namespace, as_user=editor).stdout.count(".") == 2
    refused = cluster.kubectl("create", "token", "robot", "-n", account_namespace, as_user=viewer, status=1).stderr
    assert 'cannot create resource "serviceaccounts/token" in API group ""' in refused


@pytest.mark.controller_manager
def test_every_namespace_has_a_default_account(cluster: E2eCluster, namespace: str) -> None:
    def has_account() -> bool:
        return cluster.client().get(f"/api/v1/namespaces/{namespace}/serviceaccounts/default").status == 200

    wait_until("the ServiceAccount exists", has_account, seconds=PATIENCE, processes=cluster.processes)
    assert review_token(cluster, cluster.kubectl("create", "token", "default", "-n", namespace).stdout.strip())[
        "authenticated"
    ]


def test_unknown_fields_are_rejected(cluster: E2eCluster, namespace: str) -> None:
    body = service(80)
    body["spec"]["selektor"] = {}
    body["spec"]["ports"][0]["portName"] = "x"
    refused = cluster.kubectl("create", "-n", namespace, "-f", "-", input=json.dumps(body), status=1).stderr
    assert 'unknown field "spec.ports[0].portName", unknown field "spec.selektor"' in refused


def review_token(cluster: E2eCluster, token: str, *audiences: str) -> Any:
    spec: dict[str, Any] = {"token": token, **({"audiences": audiences} if audiences else {})}
    path = "/apis/authentication.k8s.io/v1/tokenreviews"
    return cluster.client().request("POST", path, {"spec": spec}).expect(201)["status"]


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
    refused = cluster.kubectl("create", "token", *flags, "-n", account_namespace, status=1).stderr
    assert refused.startswith("error: failed to create token: ")
    assert message in refused
