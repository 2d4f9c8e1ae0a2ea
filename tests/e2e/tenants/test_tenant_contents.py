"""Objects in the Namespaces of Tenants and their inherited settings, with the tenants of the feature descriptions."""

from __future__ import annotations

import base64
import re
from collections import Counter
from functools import partial
from pathlib import Path

import yaml

from tests.e2e.support.clusters.cluster import RBAC, ROOT, ROOT_HOST, E2eCluster, tenants_path
from tests.e2e.support.http.api_request_counts import count_requests, wait_until_quiet
from tests.e2e.support.namespace_content import TENANTGATEWAY_API, NamespaceContent, secret_path
from tests.e2e.support.peer_lessons import helmrelease_path
from tests.e2e.support.tenants import Object, Tenants, manifest

LABEL = "namespace.cozystack.io/"
CERTIFICATES = "count/certificates.cert-manager.io"


def test_tenants_use_their_own_services_or_those_of_their_ancestors(
    tenants: Tenants, content: NamespaceContent
) -> None:
    """The tenants of seed 001; R-054, R-055, R-059, R-060, R-063, R-064, R-065, R-067, R-075."""
    foo = tenants.create_with_namespace(spec={"etcd": True, "monitoring": True})
    bar = tenants.create_with_namespace(foo, spec={"etcd": True})
    expected = {"etcd": bar, "monitoring": foo, "ingress": ROOT, "seaweedfs": ROOT}
    labels = content.labels(bar)
    assert {name: labels[LABEL + name] for name in expected} == expected
    content.wait_until("bar has its chart values", lambda: content.values(bar)["_namespace"])
    values = content.values(bar)["_namespace"]
    host = f"{bar.removeprefix(f'{foo}-')}.{foo.removeprefix('tenant-')}.{ROOT_HOST}"
    assert values == {**expected, "gateway": "", "host": host}
    assert labels[f"{LABEL}host"] == host
    content.wait_until(
        "bar has the cluster values of the root",
        lambda: content.values(bar)["_cluster"] == content.values(ROOT)["_cluster"] != {},
    )


def test_toggling_a_service_moves_every_tenant_that_inherits_it(tenants: Tenants, content: NamespaceContent) -> None:
    """A tenant without the service uses that of the nearest ancestor (R-063, R-064)."""
    foo = tenants.create_with_namespace()
    bar = tenants.create_with_namespace(foo)
    name = foo.removeprefix("tenant-")
    for wanted, owner in ((True, foo), (False, ROOT)):
        tenants.patch(name, {"spec": {"ingress": wanted}})
        for namespace in (foo, bar):
            content.wait_until(f"{namespace} is served by {owner}", partial(_is_served, content, namespace, owner))


def _is_served(content: NamespaceContent, namespace: str, owner: str) -> bool:
    """True if the label and the chart values both name this owner."""
    value = content.values(namespace)["_namespace"].get("ingress")
    return bool(content.labels(namespace)[f"{LABEL}ingress"] == value == owner)


def test_gateways_of_alice_acme_and_bob(cluster: E2eCluster, tenants: Tenants, content: NamespaceContent) -> None:
    """The tenants of seed 000, as written there.

    R-066, R-067, R-068, R-069, R-070, R-071, R-072, R-073, R-074, R-082, R-083, R-084, R-085, R-086, R-087,
    R-088, R-093, R-094, R-095, R-096.
    """
    alice, acme, bob = (tenants.new_name() for _ in range(3))
    specs: dict[str, Object] = {alice: {}, acme: {"host": f"{acme}.example", "gateway": True}, bob: {"gateway": True}}
    documents = "---\n".join(yaml.safe_dump(manifest(name, spec=spec)) for name, spec in specs.items())
    cluster.kubectl("apply", "-f", "-", input=documents)
    for name, apex in ((acme, f"{acme}.example"), (bob, f"{bob}.{ROOT_HOST}")):
        content.wait_until(f"{name} has a TenantGateway", partial(content.tenantgateway, f"tenant-{name}"))
        found = content.tenantgateway(f"tenant-{name}")
        assert found is not None
        assert found["spec"]["apex"] == apex
        assert content.gateway_label(f"tenant-{name}") == f"tenant-{name}"
    tenants.wait_until_settled(alice)
    assert content.tenantgateway(f"tenant-{alice}") is None
    assert content.gateway_label(f"tenant-{alice}") == ""
    for kind in ("tgw", "tenantgateway"):
        rows = cluster.kubectl("get", kind, "-A", "--no-headers").stdout
        assert re.search(rf"^tenant-{acme} +cozystack +{acme}\.example ", rows, re.MULTILINE)

    child = tenants.create_with_namespace(f"tenant-{acme}")
    assert content.gateway_label(child) == f"tenant-{acme}"
    content.wait_until(
        "the chart values of the child name the Gateway",
        lambda: content.values(child)["_namespace"].get("gateway") == f"tenant-{acme}",
    )
    tenants.patch(acme, {"spec": {"gateway": False}})
    content.wait_until("the TenantGateway of acme is deleted", lambda: content.tenantgateway(f"tenant-{acme}") is None)
    content.wait_until("the child has no Gateway", lambda: content.gateway_label(child) == "")
    tenants.patch(alice, {"spec": {"gateway": True}})
    content.wait_until("alice has a Gateway", lambda: content.gateway_label(f"tenant-{alice}") == f"tenant-{alice}")


def test_a_changed_host_reaches_all_descendants(tenants: Tenants, content: NamespaceContent) -> None:
    """The label, the chart values and the TenantGateway follow the host (R-056, R-058, R-061, R-062)."""
    foo = tenants.create_with_namespace(spec={"gateway": True})
    bar = tenants.create_with_namespace(foo)
    name = foo.removeprefix("tenant-")
    tenants.patch(name, {"spec": {"host": f"{name}.customer.example"}})
    below = f"{bar.removeprefix(f'{foo}-')}.{name}.customer.example"
    content.wait_until("the label of the child follows", lambda: content.labels(bar)[f"{LABEL}host"] == below)
    content.wait_until(
        "the chart values of the child follow", lambda: content.values(bar)["_namespace"].get("host") == below
    )
    content.wait_until(
        "the apex follows",
        lambda: (content.tenantgateway(foo) or {"spec": {}})["spec"].get("apex") == f"{name}.customer.example",
    )


def test_the_parents_scheduling_class_wins(tenants: Tenants, content: NamespaceContent) -> None:
    foo = tenants.create_with_namespace(spec={"schedulingClass": "theirs"})
    bar = tenants.create_with_namespace(foo, spec={"schedulingClass": "mine"})
    assert content.labels(bar)["scheduler.cozystack.io/scheduling-class"] == "theirs"


def test_isolation_cannot_be_turned_off(cluster: E2eCluster, tenants: Tenants, content: NamespaceContent) -> None:
    """No field of a Tenant changes the labels that network policies select (R-009, R-077)."""
    plain, unisolated = tenants.create_with_namespace(), tenants.new_name()
    body = manifest(unisolated, spec={"isolated": False}, labels={"tenant.cozystack.io/x": ""})
    cluster.client().request("POST", tenants_path(ROOT), body).expect(201)
    tenants.wait_for_namespace(f"tenant-{unisolated}")

    def label_keys(namespace: str) -> set[str]:
        return {key.replace(namespace, "SELF") for key in content.labels(namespace)}

    assert label_keys(f"tenant-{unisolated}") == label_keys(plain)


def test_quotas_are_exactly_what_is_declared(tenants: Tenants, content: NamespaceContent) -> None:
    """kube-apiserver normalizes 1000m to 1, which is no difference (R-313, PEER-13, FACT-10)."""
    foo = tenants.create_with_namespace(spec={"resourceQuotas": {CERTIFICATES: "10", "limits.cpu": "1000m"}})
    quota, limits = (
        f"/api/v1/namespaces/{foo}/{kind}"
        for kind in ("resourcequotas/tenant-quota", "limitranges/tenant-range-limits")
    )
    content.wait_until("the quota exists", lambda: content.client.get(quota).status == 200)
    hard = content.client.get(quota).expect(200)["spec"]["hard"]
    assert set(hard) == {CERTIFICATES, "limits.cpu"}
    assert hard[CERTIFICATES] == "10"
    [limit] = content.client.get(limits).expect(200)["spec"]["limits"]
    assert limit["default"] == {"cpu": "250m", "memory": "128Mi", "ephemeral-storage": "2Gi"}
    assert limit["defaultRequest"] == {"cpu": "25m", "memory": "128Mi", "ephemeral-storage": "50Mi"}
    name = foo.removeprefix("tenant-")
    tenants.patch(name, {"spec": {"resourceQuotas": {CERTIFICATES: None}}})
    content.wait_until(
        "the quota has one key left",
        lambda: set(content.client.get(quota).expect(200)["spec"]["hard"]) == {"limits.cpu"},
    )
    tenants.patch(name, {"spec": {"resourceQuotas": {"limits.cpu": None}}})
    for path in (quota, limits):
        content.tenants.wait_until_gone(path)


def test_a_key_of_an_old_tenant_that_kubernetes_does_not_know_is_reported_and_takes_no_other_with_it(
    tenants: Tenants, content: NamespaceContent
) -> None:
    tenant = tenants.create(spec={"resourceQuotas": {"pods": "1"}})
    name, namespace = tenant["metadata"]["name"], tenant["status"]["namespace"]
    content.patch(helmrelease_path(name), {"spec": {"values": {"resourceQuotas": {"nonsense": "1"}}}})
    content.wait_until(
        "the condition is set",
        lambda: any(
            (each["type"], each["reason"]) == ("QuotaReady", "InvalidQuantity")
            for each in tenants.get(name)["status"].get("conditions", ())
        ),
    )
    [found] = [each for each in tenants.get(name)["status"]["conditions"] if each["type"] == "QuotaReady"]
    assert (found["status"], found["reason"]) == ("False", "InvalidQuantity")
    assert "nonsense" in found["message"]
    quota = content.client.get(f"/api/v1/namespaces/{namespace}/resourcequotas/tenant-quota").expect(200)
    assert quota["spec"]["hard"] == {"pods": "1"}


def test_edited_and_deleted_objects_are_restored(tenants: Tenants, content: NamespaceContent) -> None:
    foo = tenants.create_with_namespace(spec={"gateway": True, "resourceQuotas": {"limits.cpu": "1"}})
    core, bindings = f"/api/v1/namespaces/{foo}", f"/apis/{RBAC}/v1/namespaces/{foo}/rolebindings"
    paths = [
        secret_path(foo),
        f"{core}/serviceaccounts/{foo}",
        f"{core}/limitranges/tenant-range-limits",
        f"{core}/resourcequotas/tenant-quota",
        f"{bindings}/cozy:tenant:use",
        f"{TENANTGATEWAY_API}/namespaces/{foo}/tenantgateways/cozystack",
    ]
    for path in paths:
        content.wait_until(f"{path} exists", partial(content.exists, path))
    uids = {path: content.client.get(path).expect(200)["metadata"]["uid"] for path in paths}
    for path in paths:
        content.client.request("DELETE", path)

    def is_new(path: str) -> bool:
        answer = content.client.get(path)
        return answer.status == 200 and answer.json()["metadata"]["uid"] != uids[path]

    for path in paths:
        content.wait_until(f"{path} is restored", partial(is_new, path))
    content.patch(
        secret_path(foo), {"data": {"values.yaml": ""}, "metadata": {"labels": {"reconcile.fluxcd.io/watch": "no"}}}
    )
    content.wait_until("the chart values are restored", lambda: (content.values(foo) or {}).get("_namespace"))
    content.patch(paths[-1], {"spec": {"apex": "victim.example", "wildcardSecretRef": {"name": "x"}}})
    content.wait_until("the apex is restored", lambda: _tenantgateway_spec(content, foo)["apex"].endswith(ROOT_HOST))
    assert "wildcardSecretRef" not in _tenantgateway_spec(content, foo)
    content.patch(f"{bindings}/cozy:tenant:view", {"subjects": None})
    content.wait_until(
        "the subjects are restored", lambda: content.client.get(f"{bindings}/cozy:tenant:view").json().get("subjects")
    )
    content.patch(core, {"metadata": {"labels": {f"{LABEL}gateway": "tenant-victim", f"{LABEL}etcd": None}}})
    content.wait_until("the labels are restored", lambda: content.labels(foo).get(f"{LABEL}etcd") == ROOT)
    content.wait_until("the Gateway label is restored", lambda: content.gateway_label(foo) == foo)


def _tenantgateway_spec(content: NamespaceContent, namespace: str) -> Object:
    found = content.tenantgateway(namespace)
    assert found is not None
    spec: Object = found["spec"]
    return spec


def _has_cluster_value(content: NamespaceContent, namespace: str, key: str, value: str | None) -> bool:
    return bool(content.values(namespace)["_cluster"].get(key) == value)


def test_platform_values_are_copied_down_the_tree(
    cluster: E2eCluster, tenants: Tenants, content: NamespaceContent, unique: str
) -> None:
    foo = tenants.create_with_namespace()
    bar = tenants.create_with_namespace(foo)
    content.wait_until("bar has its chart values", lambda: content.values(bar)["_namespace"])
    values = content.values(ROOT)
    for wanted in ("yes", None):
        values["_cluster"].pop(unique, None)
        if wanted:
            values["_cluster"][unique] = wanted
        text = base64.b64encode(yaml.safe_dump(values).encode()).decode()
        content.patch(secret_path(ROOT), {"data": {"values.yaml": text}})
        for namespace in (ROOT, foo, bar):
            content.wait_until(
                f"{namespace} has the value {wanted}",
                partial(_has_cluster_value, content, namespace, unique, wanted),
            )


_COUNTED = {
    "namespaces",
    "secrets",
    "serviceaccounts",
    "roles",
    "rolebindings",
    "resourcequotas",
    "limitranges",
    "networkpolicies",
    "tenantgateways",
    "helmreleases",
}


def count_writes(cluster: E2eCluster) -> Counter[tuple[str, str]]:
    """Counts the successful creates and patches; deletions are not counted, since other controllers delete as well."""
    counts: Counter[tuple[str, str]] = Counter()
    for (counted_verb, resource, code), count in count_requests(cluster, _COUNTED).items():
        verb = counted_verb.replace("CREATE", "POST")
        if code.startswith("2") and verb in ("POST", "PATCH", "APPLY"):
            counts[verb, resource] += count
    return counts


def test_a_restart_writes_nothing_but_new_changes(own_cluster: E2eCluster, tmp_path: Path) -> None:
    """The restarted server reconciles every tenant, and the cluster has applied its defaults (WIRE-G20)."""
    cluster, tenants = own_cluster, Tenants(own_cluster)
    content = NamespaceContent(cluster, tenants)
    # nobody is waited for to install the services: a minute later, their conditions would change
    (tmp_path / "platform.yaml").write_text("tenants: {release: suspended}\n")
    cluster.flags = (f"--config={tmp_path / 'platform.yaml'}",)
    cluster.restart()
    foo = tenants.create_with_namespace(
        spec={"gateway": True, "resourceQuotas": {"limits.cpu": "1000m", "limits.memory": "0.5Gi"}}
    )
    bar = tenants.create_with_namespace(foo, spec={"etcd": True, "schedulingClass": "gold"})
    parent, child = foo.removeprefix("tenant-"), bar.removeprefix(f"{foo}-")
    tenants.wait_until_settled(parent)
    tenants.wait_until_settled(child, foo)
    wait_until_quiet(cluster, count_writes)
    earlier = count_writes(cluster)
    cluster.restart()
    # the embedded cluster counts from the start of its process
    before = earlier if cluster.kind == "kube" else Counter[tuple[str, str]]()
    tenants.patch(parent, {"spec": {"ingress": True}})
    for namespace in (foo, bar):
        content.wait_until("the change is reconciled", partial(_is_served, content, namespace, foo))
    tenants.wait_until_settled(parent)
    wait_until_quiet(cluster, count_writes)
    # only the writes of this change: the tenant, its child, and the status of both
    change = {("PATCH", "namespaces"): 2, ("PATCH", "secrets"): 2, ("PATCH", "helmreleases"): 2}
    # with restart() comes a dry run of a create, which waits for our server
    ingress = {("POST", "networkpolicies"): 1}
    assert count_writes(cluster) - before == Counter({**change, **ingress, ("POST", "helmreleases"): 1})
