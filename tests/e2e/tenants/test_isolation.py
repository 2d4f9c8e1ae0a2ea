"""Network policies of tenants, as users of the cluster see them: there before anybody gets access, restored, and
moved between Kubernetes' and Cilium's kind."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import pytest

from tests.e2e.support import cluster_networks
from tests.e2e.support.admission.policies import BINDINGS, POLICIES
from tests.e2e.support.cilium import CILIUM_CRDS, CRDS
from tests.e2e.support.clusters.cluster import RBAC, ROOT, E2eCluster, tenants_path
from tests.e2e.support.clusters.kube import KubeCluster
from tests.e2e.support.gateways import MERGE
from tests.e2e.support.namespace_content import NamespaceContent
from tests.e2e.support.tenants import Object, Tenants, manifest

NETWORKING, CILIUM = "/apis/networking.k8s.io/v1", "/apis/cilium.io/v2"
ALWAYS = {"tenant-isolation", "tenant-ingress", "tenant-apiserver", "tenant-to-etcd"}
ETCD = "tenant-services-etcd"
TO_API_SERVER = {"policy.cozystack.io/allow-to-apiserver": "true"}
TO_ETCD = {"policy.cozystack.io/allow-to-etcd": "true"}


class Policies:
    """The policies in the Namespaces of tenants, of one kind."""

    def __init__(self, cluster: E2eCluster, api: str = NETWORKING, plural: str = "networkpolicies") -> None:
        self.client = cluster.client()
        self._api, self._plural = api, plural

    def path(self, namespace: str, name: str = "") -> str:
        return f"{self._api}/namespaces/{namespace}/{self._plural}" + (f"/{name}" if name else "")

    def names(self, namespace: str) -> set[str]:
        answer = self.client.get(self.path(namespace))
        return {each["metadata"]["name"] for each in answer.json()["items"]} if answer.status == 200 else set()

    def rules(self, namespace: str, name: str) -> tuple[object, object] | None:
        answer = self.client.get(self.path(namespace, name))
        return (answer.json().get("spec"), answer.json().get("specs")) if answer.status == 200 else None

    def has_rules(self, namespace: str, name: str, rules: object) -> bool:
        return self.rules(namespace, name) == rules

    def patch(self, namespace: str, name: str, body: Object) -> None:
        self.client.request("PATCH", self.path(namespace, name), body, content_type=MERGE).expect(200)


@pytest.fixture
def plain(cluster: E2eCluster) -> Policies:
    return Policies(cluster)


def isolation_ready(tenants: Tenants, name: str) -> tuple[str, str] | None:
    return condition(tenants, name, "IsolationReady")


def condition(tenants: Tenants, name: str, type_: str) -> tuple[str, str] | None:
    conditions = tenants.get(name)["status"].get("conditions", ())
    found = [(each["status"], each["reason"]) for each in conditions if each["type"] == type_]
    return found[0] if found else None


def has_access(content: NamespaceContent, namespace: str) -> bool:
    return content.exists(f"/apis/{RBAC}/v1/namespaces/{namespace}/rolebindings/cozy:tenant:admin")


def test_a_tenant_is_isolated_by_network_policies(
    cluster: E2eCluster, tenants: Tenants, content: NamespaceContent, plain: Policies
) -> None:
    """R-076, R-078, R-079, R-080, R-081: closed in both directions; one policy opens the API server and one etcd, each
    for the Pods with its label. The policy of the tenant's own etcd exists as long as the tenant has one."""
    foo = tenants.create_with_namespace(spec={"etcd": True})
    name = foo.removeprefix("tenant-")
    content.wait_until("foo is isolated", lambda: {*ALWAYS, ETCD} == plain.names(foo))
    content.wait_until("foo is ready", lambda: isolation_ready(tenants, name) == ("True", "NetworkPolicies"))
    found = {each: plain.rules(foo, each) for each in plain.names(foo)}
    specs: dict[str, Any] = {each: rules[0] for each, rules in found.items() if rules is not None}
    assert specs["tenant-isolation"]["podSelector"] == {}
    assert set(specs["tenant-isolation"]["policyTypes"]) == {"Ingress", "Egress"}
    assert "ingress" not in specs["tenant-isolation"]
    assert specs["tenant-apiserver"]["podSelector"] == {"matchLabels": TO_API_SERVER}
    assert specs["tenant-apiserver"]["egress"][0]["to"], "the addresses of the API server are known"
    assert specs["tenant-to-etcd"]["podSelector"] == {"matchLabels": TO_ETCD}
    assert all(each.get("podSelector") for each in specs[ETCD]["ingress"][0]["from"][:2]), "not for every Pod"
    blocks = [
        each["ipBlock"] for rule in specs["tenant-isolation"]["egress"] for each in rule["to"] if "ipBlock" in each
    ]
    families = {"0.0.0.0/0", "::/0"} if cluster.kind == "embedded" else {"0.0.0.0/0"}
    assert {each["cidr"] for each in blocks} == families
    assert all(each["except"] for each in blocks)
    api_server = specs["tenant-apiserver"]["egress"][0]["to"][0]["ipBlock"]["cidr"]
    excepted = {network for each in blocks for network in each.get("except", ())}
    assert api_server in excepted or cluster.kind == "embedded", "the world does not contain the API server"
    tenants.patch(name, {"spec": {"etcd": False}})
    content.wait_until("the policy of etcd is gone", lambda: plain.names(foo) == ALWAYS)


def test_edited_and_deleted_policies_are_restored(tenants: Tenants, content: NamespaceContent, plain: Policies) -> None:
    """R-077."""
    foo = tenants.create_with_namespace()
    content.wait_until("foo is isolated", lambda: plain.names(foo) == ALWAYS)
    before = {name: plain.rules(foo, name) for name in ALWAYS}
    plain.patch(foo, "tenant-isolation", {"spec": {"ingress": [{}], "egress": [{}]}})
    plain.patch(foo, "tenant-apiserver", {"spec": {"podSelector": None}})
    plain.client.request("DELETE", plain.path(foo, "tenant-ingress")).expect(200)
    for name in ALWAYS:
        content.wait_until(f"{name} is restored", partial(plain.has_rules, foo, name, before[name]))


def test_no_field_of_a_tenant_changes_its_policies(
    tenants: Tenants, content: NamespaceContent, plain: Policies
) -> None:
    """R-077."""
    foo = tenants.create_with_namespace()
    odd = tenants.new_name()
    annotations = {"tenants.isolation": "off", "policy.cozystack.io/isolated": "false"}
    body = manifest(odd, spec={"isolated": False}, labels={"isolated": "false"}, annotations=annotations)
    plain.client.request("POST", tenants_path(ROOT), body).expect(201)
    unisolated = f"tenant-{odd}"
    content.wait_until("both are isolated", lambda: plain.names(foo) == plain.names(unisolated) == ALWAYS)
    for name in ALWAYS:
        assert str(plain.rules(unisolated, name)).replace(unisolated, foo) == str(plain.rules(foo, name))


def test_nobody_gets_access_before_the_namespace_is_isolated(
    cluster: E2eCluster, tenants: Tenants, content: NamespaceContent, plain: Policies, unique: str
) -> None:
    """A policy of the platform refuses the network policies of one tenant, for a while."""
    name = tenants.new_name()
    namespace = f"tenant-{name}"
    refuse(cluster, content, unique, namespace)
    plain.client.request("POST", tenants_path(ROOT), manifest(name)).expect(201)
    content.wait_until("it is told", lambda: isolation_ready(tenants, name) == ("False", "Refused"))
    assert condition(tenants, name, "Ready") == ("False", "Refused")
    assert condition(tenants, name, "AccessReady") == ("False", "WaitsForIsolation")
    assert not has_access(content, namespace)
    plain.client.request("DELETE", f"{BINDINGS}/{unique}")
    plain.client.request("DELETE", f"{POLICIES}/{unique}")
    content.wait_until("it is isolated", lambda: plain.names(namespace) == ALWAYS)
    content.wait_until("access is given", lambda: has_access(content, namespace))
    content.wait_until("it is ready", lambda: condition(tenants, name, "Ready") == ("True", "Reconciled"))


def refuse(cluster: E2eCluster, content: NamespaceContent, name: str, namespace: str) -> None:
    """Refuses network policies in a namespace, and waits until that is enforced."""
    rule = {
        "apiGroups": ["networking.k8s.io"],
        "apiVersions": ["*"],
        "operations": ["CREATE"],
        "resources": ["networkpolicies"],
    }
    expression = f"request.namespace != '{namespace}' && object.metadata.name != 'probe'"
    spec: Mapping[str, Any] = {
        "matchConstraints": {"resourceRules": [rule]},
        "validations": [{"expression": expression, "message": "not yet"}],
    }
    client = cluster.client()
    client.request("POST", POLICIES, {"metadata": {"name": name}, "spec": spec}).expect(201)
    binding = {"policyName": name, "validationActions": ["Deny"]}
    client.request("POST", BINDINGS, {"metadata": {"name": name}, "spec": binding}).expect(201)
    probe = {"metadata": {"name": "probe"}, "spec": {"podSelector": {}}}
    path = f"{NETWORKING}/namespaces/default/networkpolicies"
    content.wait_until(
        "the policy is enforced", lambda: client.request("POST", path, probe, query={"dryRun": "All"}).status == 422
    )


@pytest.mark.every_tenant
def test_pods_outside_of_the_networks_that_nodes_tell_close_the_world(kube: KubeCluster, unique: str) -> None:
    """A network plugin that manages addresses itself ignores spec.podCIDRs."""
    tenants, client = Tenants(kube), kube.client()
    content, plain = NamespaceContent(kube, tenants), Policies(kube)
    namespace = tenants.create_with_namespace()
    name = namespace.removeprefix("tenant-")
    content.wait_until("it is isolated", lambda: isolation_ready(tenants, name) == ("True", "NetworkPolicies"))
    assert "0.0.0.0/0" in str(plain.rules(namespace, "tenant-isolation"))
    cluster_networks.create_pod_endpoint(client, "kube-system", unique, "10.99.0.7")
    try:
        unknown = ("False", "ClusterNetworksUnknown")
        content.wait_until("it is told", lambda: isolation_ready(tenants, name) == unknown)
        assert "0.0.0.0/0" not in str(plain.rules(namespace, "tenant-isolation"))
        assert plain.names(namespace) == ALWAYS
    finally:
        cluster_networks.delete_endpoints(client, "kube-system", unique)
    content.wait_until("the world is open", lambda: isolation_ready(tenants, name) == ("True", "NetworkPolicies"))


class WithCilium:
    """A cluster of the test's own, and a tenant on it that is isolated by CiliumNetworkPolicies."""

    def __init__(self, cluster: E2eCluster) -> None:
        self.client = cluster.client()
        self.tenants = Tenants(cluster)
        self.content = NamespaceContent(cluster, self.tenants)
        self.plain = Policies(cluster)
        self.cilium = Policies(cluster, CILIUM, "ciliumnetworkpolicies")
        self.namespace = self.tenants.create_with_namespace()
        self.name = self.namespace.removeprefix("tenant-")

    def install(self) -> None:
        for each in CILIUM_CRDS:
            self.client.request("POST", CRDS, each).expect(201)

    def uninstall(self) -> None:
        for each in CILIUM_CRDS:
            one = f"{CRDS}/{each['metadata']['name']}"
            self.client.request("DELETE", one).expect(200)
            self.tenants.wait_until_gone(one)

    def wait_for(self, kind: Policies, other: Policies) -> None:
        self.content.wait_until(
            "one kind of policies isolates the tenant",
            lambda: kind.names(self.namespace) >= ALWAYS and not other.names(self.namespace) & ALWAYS,
        )

    def wait_for_condition(self, *expected: str) -> None:
        self.content.wait_until(
            f"the condition is {expected}", lambda: isolation_ready(self.tenants, self.name) == expected
        )


def test_cilium_policies_are_written_restored_and_replaced_when_the_kind_is_gone(own_cluster: E2eCluster) -> None:
    """R-076, R-078 to R-080: where the cluster serves Cilium's kind."""
    world = WithCilium(own_cluster)
    world.wait_for(world.plain, world.cilium)
    world.install()
    world.wait_for(world.cilium, world.plain)
    world.wait_for_condition("True", "CiliumPolicies")
    namespace, cilium = world.namespace, world.cilium
    before = {name: cilium.rules(namespace, name) for name in ALWAYS}
    for name, edit in (
        ("tenant-isolation", {"spec": {"enableDefaultDeny": {"egress": False}}}),
        ("tenant-ingress", {"specs": [{"endpointSelector": {}, "ingress": [{"fromEntities": ["all"]}]}]}),
    ):
        cilium.patch(namespace, name, edit)
        world.content.wait_until(f"{name} is restored", partial(cilium.has_rules, namespace, name, before[name]))
    cilium.client.request("DELETE", cilium.path(namespace, "tenant-apiserver")).expect(200)
    is_back = partial(cilium.has_rules, namespace, "tenant-apiserver", before["tenant-apiserver"])
    world.content.wait_until("the policy is written again", is_back)
    world.uninstall()
    world.wait_for(world.plain, world.cilium)
    world.wait_for_condition("True", "NetworkPolicies")


def test_a_policy_of_the_charts_release_is_named_and_left(own_cluster: E2eCluster) -> None:
    world = WithCilium(own_cluster)
    world.install()
    world.wait_for(world.cilium, world.plain)
    metadata = {
        "name": f"{world.namespace}-egress",
        "labels": {"app.kubernetes.io/managed-by": "Helm"},
        "annotations": {"meta.helm.sh/release-namespace": ROOT, "meta.helm.sh/release-name": world.namespace},
    }
    collection = f"{CILIUM}/ciliumclusterwidenetworkpolicies"
    body = {"apiVersion": "cilium.io/v2", "kind": "CiliumClusterwideNetworkPolicy", "metadata": metadata, "spec": {}}
    created = world.client.request("POST", collection, body).expect(201)
    world.wait_for_condition("False", "ChartPoliciesRemain")
    found = world.client.get(f"{collection}/{metadata['name']}").expect(200)
    assert found["metadata"]["resourceVersion"] == created["metadata"]["resourceVersion"]
    conditions = world.tenants.get(world.name)["status"]["conditions"]
    [message] = [each["message"] for each in conditions if each["type"] == "IsolationReady"]
    assert metadata["name"] in message
    world.client.request("DELETE", f"{collection}/{metadata['name']}").expect(200)
    world.wait_for_condition("True", "CiliumPolicies")
