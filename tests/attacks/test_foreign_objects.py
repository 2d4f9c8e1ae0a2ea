"""ATTACK-12: foreign objects under the names that the controllers need, and text that tries to inject objects.

Objects without an owner are tested in tests/e2e/gateways/test_rules.py, the handover of an attached namespace in
tests/e2e/gateways/test_changes.py.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

from tests.attacks.support.two_tenants import TenantAdmin
from tests.e2e.support.clusters.cluster import E2eCluster
from tests.e2e.support.clusters.kube import KubeCluster
from tests.e2e.support.gateways import CERT_MANAGER, COLLECTIONS, DNS01, GATEWAY_API, LABEL, Gateways, Object, path
from tests.e2e.support.tenants import Tenants

APEX = "foo.example.com"
HARBOR = "cozystack-harbor-760d5a8a-tls"
_FOREIGN_CERTIFICATE: Object = {"secretName": "x", "dnsNames": ["x.example"], "issuerRef": {"name": "mine"}}
# plural, name and spec of a foreign object, and the fields of a TenantGateway that needs an object of that name
NEEDED_OBJECTS: list[tuple[str, str, Object, Object]] = [
    (
        "gateways",
        "cozystack",
        {"gatewayClassName": "mine", "listeners": [{"name": "x", "port": 80, "protocol": "HTTP"}]},
        {},
    ),
    ("httproutes", "cozystack-http-redirect", {"hostnames": ["a.example"]}, {}),
    ("issuers", "cozystack-gateway", {"selfSigned": {}}, {}),
    ("certificates", "cozystack-gateway-tls", _FOREIGN_CERTIFICATE, DNS01),
    ("certificates", HARBOR, _FOREIGN_CERTIFICATE, {}),
]


@pytest.fixture
def foo(gateways: Gateways) -> str:
    return gateways.create_owner()


def _with_our_labels(gateways: Gateways, foo: str) -> Object:
    ours = {"cozystack.io/gateway": foo, "cozystack.io/managed-by": "cozystack-controller"}
    return {"labels": {**ours, "cozystack.io/tenantgateway": "cozystack"}}


def _owned_by_another_gateway(gateways: Gateways, foo: str) -> Object:
    """The metadata of an object that belongs to another Gateway of the namespace."""
    listeners = [{"name": "x", "port": 80, "protocol": "HTTP"}]
    other = gateways.create("gateways", foo, "other", {"gatewayClassName": "mine", "listeners": listeners})
    owner = {key: other[key] for key in ("apiVersion", "kind")}
    return {"ownerReferences": [{**owner, "name": "other", "uid": other["metadata"]["uid"], "controller": True}]}


def _owned_by_a_configmap_of_the_same_name(gateways: Gateways, foo: str) -> Object:
    """The metadata of an object that belongs to an object of another kind with the name of our Gateway."""
    body = {"metadata": {"name": "cozystack"}}
    other = gateways.client.request("POST", f"/api/v1/namespaces/{foo}/configmaps", body).expect(201)
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "cozystack", "uid": other["metadata"]["uid"]}
    return {"ownerReferences": [{**owner, "controller": True}], **_with_our_labels(gateways, foo)}


@pytest.mark.parametrize("needed_object", NEEDED_OBJECTS, ids=lambda each: f"{each[0]} {each[1]}")
@pytest.mark.parametrize(
    "disguise", [_with_our_labels, _owned_by_another_gateway, _owned_by_a_configmap_of_the_same_name]
)
def test_a_foreign_object_that_looks_like_ours_is_not_taken_over(
    gateways: Gateways,
    foo: str,
    needed_object: tuple[str, str, Object, Object],
    disguise: Callable[[Gateways, str], Object],
) -> None:
    """The uid decides about ownership; names, labels and field managers do not (R-379)."""
    plural, name, spec, mode = needed_object
    version, kind = COLLECTIONS[plural]
    metadata = {"name": name, **disguise(gateways, foo)}
    body = {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec}
    query = {"fieldManager": "tenant-apiserver"}
    gateways.client.request("POST", path(plural, foo), body, query=query).expect(201)
    gateways.create_route(foo, "harbor", f"harbor.{APEX}", to=foo, port=443)
    before = gateways.get(plural, foo, name)
    gateways.create_tenantgateway(foo, APEX, **mode)
    gateways.wait_until("the conflict is reported", lambda: gateways.ready_reason(foo) == "ReconcileError")
    message = gateways.conditions(foo)["Ready"]["message"]
    assert f"{kind.lower()} {foo}/{name} exists but is not owned by TenantGateway {foo}/cozystack" in message
    gateways.wait_until("the other objects exist", lambda: _has_other_objects(gateways, foo, plural))
    assert gateways.get(plural, foo, name) == before


def _has_other_objects(gateways: Gateways, foo: str, plural: str) -> bool:
    others = {"gateways": "cozystack", "issuers": "cozystack-gateway", "httproutes": "cozystack-http-redirect"}
    return all(not gateways.is_gone(other, foo, name) for other, name in others.items() if other != plural)


def test_existing_secrets_with_names_of_certificates_are_not_touched(gateways: Gateways, foo: str) -> None:
    """Only cert-manager writes the Secrets of certificates; the controllers ignore existing ones."""
    secrets = f"/api/v1/namespaces/{foo}/secrets"
    created = {}
    for name in (HARBOR, "cozystack-gateway-tls", "cozystack-acme-account"):
        body = {"metadata": {"name": name}, "type": "Opaque", "data": {"mine": "eA=="}}
        created[name] = gateways.client.request("POST", secrets, body).expect(201)
    gateways.create_route(foo, "harbor", f"harbor.{APEX}", to=foo, port=443)
    gateways.create_tenantgateway(foo, APEX)
    gateways.wait_until("harbor has a listener", lambda: gateways.listener_hostnames(foo) == [f"harbor.{APEX}"])
    gateways.patch("tenantgateways", foo, "cozystack", {"spec": DNS01})
    gateways.wait_until("the wildcard has a listener", lambda: f"*.{APEX}" in gateways.listener_hostnames(foo))
    gateways.delete("tenantgateways", foo)
    for name, secret in created.items():
        assert gateways.client.get(f"{secrets}/{name}").expect(200) == secret


def test_foreign_secrets_in_a_workload_namespace_are_not_touched(
    cluster: E2eCluster, tenants: Tenants, alice: TenantAdmin
) -> None:
    """The reconciler writes its own objects, and no others with similar names."""
    client, secrets = cluster.client(), f"/api/v1/namespaces/{alice.namespace}/secrets"
    for name in ("cozystack-values2", "values", f"{alice.namespace}"):
        body = {"metadata": {"name": name}, "type": "Opaque", "data": {"mine": "eA=="}}
        client.request("POST", secrets, body).expect(201)
    values = f"{secrets}/cozystack-values"
    tenants.wait("the Secret with the values exists", lambda: client.get(values).status == 200)
    before = client.get(values).expect(200)["data"]
    tenants.patch(alice.tenant, {"spec": {"monitoring": True}})
    tenants.wait("the reconciler has updated it", lambda: client.get(values).expect(200)["data"] != before)
    for name in ("cozystack-values2", "values", f"{alice.namespace}"):
        assert client.get(f"{secrets}/{name}").expect(200)["data"] == {"mine": "eA=="}


def test_a_second_tenantgateway_does_not_contend_for_an_attached_namespace(gateways: Gateways, foo: str) -> None:
    """The first one keeps the namespace; the second one gets a condition, and writes nothing to the namespace."""
    rival = gateways.create_owner("tenant-rival", "rival.example")
    harbor = gateways.create_namespace("cozy-harbor")
    gateways.create_tenantgateway(foo, APEX, attachedNamespaces=[harbor])
    gateways.wait_until("harbor is attached", lambda: gateways.attachment(harbor) == (foo, foo))
    gateways.create_tenantgateway(rival, "rival.example", attachedNamespaces=[harbor])
    gateways.wait_until("the rival has its condition", lambda: "AttachedElsewhere" in gateways.conditions(rival))
    version = _version(gateways, harbor)
    for apex in ("b.rival.example", "c.rival.example"):
        gateways.patch("tenantgateways", rival, "cozystack", {"spec": {"apex": apex}})
        gateways.wait_until("the change is observed", partial(_is_observed, gateways, rival))
    assert gateways.attachment(harbor) == (foo, foo)
    assert _version(gateways, harbor) == version


def _version(gateways: Gateways, namespace: str) -> str:
    version: str = gateways.client.get(f"/api/v1/namespaces/{namespace}").expect(200)["metadata"]["resourceVersion"]
    return version


def _is_observed(gateways: Gateways, namespace: str) -> bool:
    found = gateways.get("tenantgateways", namespace)
    return bool(found.get("status", {}).get("observedGeneration") == found["metadata"]["generation"])


SECOND_DOCUMENT = (
    "x\n---\napiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: smuggled}\nrules: []\n"
)
TEXTS = [
    pytest.param(SECOND_DOCUMENT, id="a second YAML document"),
    pytest.param("&a [*a]", id="a YAML anchor"),
    pytest.param("x\nlabels: {a: b}", id="a line break"),
    pytest.param("{{ .Values }}", id="a template"),
    pytest.param("$(id)", id="a shell command"),
    pytest.param('", "kind": "ClusterRole", "x": "', id="a quote"),
    pytest.param("${HOST}", id="a variable"),
    pytest.param("../../kube-system/x", id="a path"),
]


def fields_with_text(text: str) -> Iterator[tuple[str, Object]]:
    """Yields each field that takes text, and a spec with the text in it."""
    yield "apex", {"apex": text}
    yield "issuerName", {"issuerName": text}
    yield "gatewayClassName", {"gatewayClassName": text}
    yield "attachedNamespaces", {"attachedNamespaces": [text]}
    yield "tlsPassthroughServices", {"tlsPassthroughServices": [text]}
    yield "wildcardSecretRef", {"certMode": "existingSecret", "wildcardSecretRef": {"name": text}}
    cloudflare = {"apiTokenSecretRef": {"name": text, "key": text}}
    yield "cloudflare", {"certMode": "dns01", "dns01": {"provider": "cloudflare", "cloudflare": cloudflare}}
    rfc2136 = {"nameserver": text, "tsigKeyName": text, "tsigAlgorithm": text}
    yield "rfc2136", {"certMode": "dns01", "dns01": {"provider": "rfc2136", "rfc2136": rfc2136}}


WRITTEN_KINDS = {
    (GATEWAY_API, "Gateway"),
    (GATEWAY_API, "HTTPRoute"),
    (CERT_MANAGER, "Issuer"),
    (CERT_MANAGER, "Certificate"),
}
CLUSTER_SCOPED = (
    "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
    "/apis/cert-manager.io/v1/clusterissuers",
)


@pytest.mark.parametrize("text", TEXTS)
def test_text_in_a_field_cannot_inject_objects(gateways: Gateways, foo: str, text: str) -> None:
    """CVE-2026-22872: whatever a field contains, it is one value of one object of the four kinds, in one namespace."""
    before = {each: _object_names(gateways, each) for each in CLUSTER_SCOPED}
    gateways.create_tenantgateway(foo, APEX)
    gateways.wait_until("the Gateway exists", lambda: not gateways.is_gone("gateways", foo))
    plain: Object = {"spec": {"apex": APEX, "certMode": "http01", "issuerName": "letsencrypt-prod"}}
    absent = ("dns01", "wildcardSecretRef", "attachedNamespaces", "tlsPassthroughServices", "gatewayClassName")
    for _, changed in fields_with_text(text):
        spec = {**dict.fromkeys(absent), **plain["spec"], **changed}
        body = {"spec": spec}
        target = path("tenantgateways", foo, "cozystack")
        answer = gateways.client.request("PATCH", target, body, content_type="application/merge-patch+json")
        assert answer.status in (200, 422), answer.body
        if answer.status == 200:
            gateways.wait_until("the change is observed", partial(_is_observed, gateways, foo))
        for plural in ("gateways", "issuers", "certificates", "httproutes"):
            _check_written_objects(gateways, plural, foo)
    assert {each: _object_names(gateways, each) for each in CLUSTER_SCOPED} == before


def _object_names(gateways: Gateways, collection: str) -> list[str]:
    items = gateways.client.get(collection).expect(200)["items"]
    return sorted(each["metadata"]["name"] for each in items if not each["metadata"]["name"].startswith("attack:"))


def _check_written_objects(gateways: Gateways, plural: str, foo: str) -> None:
    """All objects are of a kind that the controllers write, in the namespace of the owner, with clean metadata."""
    for each in gateways.client.get(path(plural, foo)).expect(200)["items"]:
        assert COLLECTIONS[plural] in WRITTEN_KINDS
        assert each["metadata"]["namespace"] == foo
        labels = json.dumps(each["metadata"].get("labels", {}))
        assert "\\n" not in labels
        assert "smuggled" not in json.dumps(each["metadata"])


def test_invalid_hostnames_of_routes_create_no_objects(gateways: Gateways, foo: str) -> None:
    """If the CRD of the cluster accepts any text as a hostname, it still reaches no name, label or certificate."""
    gateways.create_tenantgateway(foo, APEX)
    for number, text in enumerate(each.values[0] for each in TEXTS):
        spec = {
            "parentRefs": [{"namespace": foo, "name": "cozystack", "port": 443}],
            "hostnames": [f"{text}.{APEX}", f"{text}"],
        }
        body = {"apiVersion": GATEWAY_API, "kind": "HTTPRoute", "metadata": {"name": f"route{number}"}, "spec": spec}
        assert gateways.client.request("POST", path("httproutes", foo), body).status in (201, 422)
    gateways.create_route(foo, "good", f"good.{APEX}", to=foo, port=443)
    gateways.wait_until("the valid one has a listener", lambda: gateways.listener_hostnames(foo) == [f"good.{APEX}"])
    gateways.wait_until("it has a certificate", lambda: bool(gateways.names("certificates", foo)))
    assert len(gateways.names("certificates", foo)) == 1


def account_may(client: Any, verb: str, group: str, resource: str, namespace: str = "") -> bool:
    """True if our server's service account may do this, in all namespaces if none is named."""
    return bool(_review(client, verb, group, resource, namespace)["allowed"])


def _review(client: Any, verb: str, group: str, resource: str, namespace: str = "") -> Object:
    """Asks kube-apiserver for a verdict on a request of our server's service account."""
    attributes = {"verb": verb, "group": group, "resource": resource, "namespace": namespace}
    spec = {"user": "system:serviceaccount:cozy-system:tenant-apiserver", "resourceAttributes": attributes}
    groups = ["system:serviceaccounts", "system:serviceaccounts:cozy-system", "system:authenticated"]
    body = {"spec": {**spec, "groups": groups}}
    answer = client.request("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", body).expect(201)
    status: Object = answer["status"]
    return status


def test_the_service_account_may_write_only_what_the_controllers_need(kube: KubeCluster) -> None:
    """CVE-2026-65835: RBAC limits the damage of a bug in the controllers."""
    client = kube.client()
    for group, resource in (
        ("rbac.authorization.k8s.io", "clusterroles"),
        ("rbac.authorization.k8s.io", "clusterrolebindings"),
        ("cert-manager.io", "clusterissuers"),
        ("gateway.networking.k8s.io", "referencegrants"),
        ("gateway.networking.k8s.io", "gatewayclasses"),
        ("", "pods"),
        ("", "nodes"),
        ("", "configmaps"),
        ("apps", "deployments"),
        ("admissionregistration.k8s.io", "validatingadmissionpolicies"),
        ("apiextensions.k8s.io", "customresourcedefinitions"),
        ("apiregistration.k8s.io", "apiservices"),
    ):
        for verb in ("create", "update", "patch", "delete"):
            assert not account_may(client, verb, group, resource), (verb, resource)
    # without these, kube-apiserver compares the rules of a Role with the account's own
    for verb in ("escalate", "bind"):
        assert not account_may(client, verb, "rbac.authorization.k8s.io", "roles"), verb
    assert account_may(client, "create", "gateway.networking.k8s.io", "gateways", "tenant-x")


def test_the_service_account_reads_secrets_of_others_by_a_component_alone(kube: KubeCluster) -> None:
    """The tests' cluster has the component. Nothing that every installation has gives any of these rights."""
    client = kube.client()
    by_component = 'RBAC: allowed by ClusterRoleBinding "tenant-apiserver:tenantsecrets" of '
    for namespace in ("kube-system", "default", "tenant-x", ""):
        for verb in ("get", "list", "watch", "update", "delete"):
            found = _review(client, verb, "", "secrets", namespace)
            assert not found["allowed"] or found["reason"].startswith(by_component), (verb, namespace, found)
        for verb in ("patch", "deletecollection"):
            assert not account_may(client, verb, "", "secrets", namespace), (verb, namespace)


def test_a_tenantgateway_cannot_change_the_gateway_label_of_a_workload_namespace(
    gateways: Gateways, alice: TenantAdmin, tenants: Tenants, foo: str
) -> None:
    """The tree decides about the label: a TenantGateway that lists the namespace changes nothing."""
    tenants.patch(alice.tenant, {"spec": {"gateway": True}})
    gateways.wait_until(
        "alice's namespace has its own Gateway", lambda: gateways.attachment(alice.namespace)[0] == alice.namespace
    )
    gateways.create_tenantgateway(foo, APEX, attachedNamespaces=[alice.namespace])
    gateways.wait_until("it has its condition", lambda: "AttachedElsewhere" in gateways.conditions(foo))
    gateways.delete("tenantgateways", foo)
    gateways.wait_until("it is deleted", lambda: gateways.is_gone("tenantgateways", foo))
    assert gateways.attachment(alice.namespace) == (alice.namespace, None)
    labels = gateways.client.get(f"/api/v1/namespaces/{alice.namespace}").expect(200)["metadata"]["labels"]
    assert labels[LABEL] == alice.namespace
