"""Admission requirements of Tenants, R-018 and R-241 to R-273, that no other test covers."""

from __future__ import annotations

from typing import Any

import pytest

from tests.e2e.support.admission.policies import Policies
from tests.e2e.support.applying import APPLY, MERGE, configuration
from tests.e2e.support.clusters.cluster import ROOT, E2eCluster, tenants_path
from tests.e2e.support.clusters.processes import wait_until
from tests.e2e.support.gateways import Gateways
from tests.e2e.support.http.https_client import Client, Response
from tests.e2e.support.peer_lessons import JSON_PATCH, create_settled_tenant
from tests.e2e.support.tenants import Object, Tenants, manifest

HOST_DENIAL = "tenant.spec.host can only be set or changed by"
HOST_LABEL = "namespace.cozystack.io/host"
UNTRUSTED_CALLERS = [
    pytest.param("", ["system:serviceaccounts"], id="all service accounts"),
    pytest.param("", ["system:serviceaccounts:cozy-flux"], id="a namespace with a similar name"),
    pytest.param("", ["cozystack-cluster-admin"], id="the administrators of cozystack-api"),
    pytest.param("", ["SYSTEM:MASTERS"], id="a group in upper case"),
    pytest.param("system:serviceaccount:cozy-system:", [], id="a user name like that of a service account"),
]


def root_admin_client(cluster: E2eCluster, name: str, groups: list[str]) -> Client:
    cluster.grant(name, "cozy:tenant:super-admin", ROOT)
    return cluster.client(name, groups)


def test_a_policy_of_the_cluster_checks_every_verb(cluster: E2eCluster, tenants: Tenants, unique: str) -> None:
    """Our server checks it, since kube-apiserver admits nothing that it proxies (R-018, FACT-11, API-28)."""
    tenant = create_settled_tenant(tenants, labels={"r018": unique})
    name, policies, client = tenant["metadata"]["name"], Policies(cluster, ROOT), cluster.client()
    path, missing = tenants_path(ROOT, name), tenants.new_name()
    spec: Object = {
        "matchConstraints": {
            "resourceRules": [_resource_rule("CREATE"), _resource_rule("UPDATE"), _resource_rule("DELETE")]
        },
        # the request that deletes a collection names none of its objects
        "matchConditions": [
            {
                "name": "own",
                "expression": f"(object == null ? oldObject : object).metadata.name in ['{name}', '{missing}']",
            }
        ],
        "validations": [{"expression": "false", "messageExpression": "'denied ' + request.operation"}],
    }
    applied = {"fieldManager": "r018", "force": "true"}

    def patched(kind: str, body: Any, to: str = path) -> Response:
        query = applied if kind == APPLY else None
        return client.request("PATCH", to, body, content_type=kind, query=query)

    with policies.in_force(spec, wait=False):
        dry = {"dryRun": "All"}
        wait_until("the policy is enforced", lambda: client.request("DELETE", path, query=dry).status == 422)
        responses = {
            "create": (client.request("POST", tenants_path(ROOT), manifest(missing)), "CREATE"),
            "create by apply": (patched(APPLY, configuration(missing), tenants_path(ROOT, missing)), "CREATE"),
            "update": (client.request("PUT", path, manifest(name, spec={"etcd": True})), "UPDATE"),
            "merge patch": (patched(MERGE, {"spec": {"etcd": True}}), "UPDATE"),
            "JSON patch": (patched(JSON_PATCH, [{"op": "replace", "path": "/spec/etcd", "value": True}]), "UPDATE"),
            "apply": (patched(APPLY, configuration(name, spec={"etcd": True})), "UPDATE"),
            "delete": (client.request("DELETE", path), "DELETE"),
            "delete a collection": (
                client.request("DELETE", tenants_path(ROOT), query={"labelSelector": f"r018={unique}"}),
                "DELETE",
            ),
        }
        for verb, (answer, operation) in responses.items():
            assert answer.expect(422)["message"].endswith(f"denied request: denied {operation}"), verb
    assert not tenants.exists(missing)
    after = tenants.get(name)
    assert (after["spec"], "deletionTimestamp" in after["metadata"]) == (tenant["spec"], False)


def _resource_rule(operation: str) -> Object:
    resources = {"apiGroups": ["apps.cozystack.io"], "apiVersions": ["v1alpha1"], "resources": ["tenants"]}
    return {**resources, "operations": [operation]}


def test_a_rejected_host_reaches_no_namespace(cluster: E2eCluster, tenants: Tenants, unique: str) -> None:
    """The host of a Tenant becomes a label of its Namespace, so it is rejected with a reason (R-241, R-242, R-251)."""
    user, name, wanted = root_admin_client(cluster, unique, []), tenants.new_name(), f"dashboard{unique}.example.org"
    rejected = user.request("POST", tenants_path(ROOT), manifest(name, spec={"host": wanted})).expect(403)
    assert HOST_DENIAL in rejected["message"]
    assert "cozystack-tenant-host-policy" in rejected["message"]
    assert not tenants.exists(name)
    # a later write has been reconciled, so no earlier one is pending
    tenants.create_with_namespace()
    query = {"labelSelector": f"{HOST_LABEL}={wanted}"}
    assert cluster.client().get("/api/v1/namespaces", query=query).expect(200)["items"] == []


@pytest.mark.parametrize(("prefix", "groups"), UNTRUSTED_CALLERS)
def test_callers_similar_to_trusted_ones_may_not_set_a_host(
    cluster: E2eCluster, tenants: Tenants, unique: str, prefix: str, groups: list[str]
) -> None:
    """Only the listed groups and users are trusted (R-249)."""
    client = root_admin_client(cluster, f"{prefix}{unique}", groups)
    body = manifest(tenants.new_name(), spec={"host": f"{unique}.example.com"})
    assert HOST_DENIAL in client.request("POST", tenants_path(ROOT), body).expect(403)["message"]
    # only the host is rejected: the same user may create a Tenant without one
    client.request("POST", tenants_path(ROOT), manifest(tenants.new_name())).expect(201)


def test_tenant_namespaces_may_be_listed_for_attachment(gateways: Gateways) -> None:
    """The reconciler, not admission, decides which owner a namespace keeps (R-269)."""
    namespace = gateways.create_namespace()
    named = ["tenant-alice", "cozy-harbor"]
    made = gateways.create_tenantgateway(namespace, f"{namespace}.example", attachedNamespaces=named)
    assert made["spec"]["attachedNamespaces"] == named


def test_a_wrong_host_set_by_an_administrator_leaves_only_the_certificate_pending(
    cluster: E2eCluster, tenants: Tenants
) -> None:
    """The host is admitted and every object rendered; only the Certificate never becomes ready (R-270, R-273)."""
    name = tenants.new_name()
    spec = {"host": f"{name}.nobodys.example", "gateway": True}
    created = cluster.client().request("POST", tenants_path(ROOT), manifest(name, spec=spec)).expect(201)
    namespace, gateways = created["status"]["namespace"], Gateways(cluster)
    gateways.wait_until("the Gateway exists", lambda: "cozystack" in gateways.names("gateways", namespace))
    gateways.create_route(namespace, "shop", f"shop.{spec['host']}", to=namespace, port=443)
    gateways.wait_until("the Certificate exists", lambda: len(gateways.names("certificates", namespace)) == 1)
    gateways.mark_gateway_programmed(namespace)
    gateways.wait_until("the Gateway is programmed", lambda: gateways.ready_reason(namespace) == "Reconciled")
    [certificate] = gateways.names("certificates", namespace)
    assert "status" not in gateways.get("certificates", namespace, certificate)
    [listener] = [
        each
        for each in gateways.get("tenantgateways", namespace)["status"]["listeners"]
        if each.get("hostname", "").startswith("shop.")
    ]
    assert (listener["ready"], listener["reason"]) == (False, "CertificateNotReady")
    assert [each for each in gateways.conditions(namespace).values() if each["status"] == "False"] == []
