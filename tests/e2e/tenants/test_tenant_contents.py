"""What Tenants' Namespaces hold, and what they inherit, with the tenants and the commands of the seeds."""

from __future__ import annotations

import base64
import re
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import yaml

from tests.e2e.support.api_request_counts import count_requests, wait_until_quiet
from tests.e2e.support.clusters import RBAC, ROOT, ROOT_HOST, E2eCluster, KubeCluster, tenants_path
from tests.e2e.support.gateways import LABEL_PATH
from tests.e2e.support.tenants import Object, Tenants, manifest

LABEL = "namespace.cozystack.io/"
MERGE = "application/merge-patch+json"
TGW = "/apis/gateway.cozystack.io/v1alpha1"
LEVELS = ("view", "use", "admin", "super-admin")
CERTIFICATES = "count/certificates.cert-manager.io"


def secret_path(namespace: str) -> str:
    return f"/api/v1/namespaces/{namespace}/secrets/cozystack-values"


class Inside:
    """Looks into namespaces, and waits for what is to be seen there."""

    def __init__(self, cluster: E2eCluster, tenants: Tenants) -> None:
        self.cluster = cluster
        self.tenants = tenants
        self.client = cluster.client()

    def labels(self, namespace: str) -> dict[str, str]:
        found = self.client.get(f"/api/v1/namespaces/{namespace}").expect(200)
        labels: dict[str, str] = found["metadata"]["labels"]
        return labels

    def has(self, path: str) -> bool:
        return self.client.get(path).status == 200

    def values(self, namespace: str) -> dict[str, Any]:
        answer = self.client.get(secret_path(namespace))
        if answer.status == 404:
            return {"_cluster": {}, "_namespace": {}}
        text = base64.b64decode(answer.expect(200)["data"]["values.yaml"])
        document: dict[str, Any] = yaml.safe_load(text)
        return document

    def gateway(self, namespace: str) -> str:
        """As the seed looks it up."""
        return self.cluster.kubectl("get", "namespace", namespace, "-o", LABEL_PATH).stdout.strip()

    def tenantgateway(self, namespace: str) -> Object | None:
        answer = self.client.get(f"{TGW}/namespaces/{namespace}/tenantgateways/cozystack")
        return answer.expect(200) if answer.status != 404 else None

    def edit(self, path: str, body: Object) -> None:
        self.client.request("PATCH", path, body, content_type=MERGE).expect(200)

    def until(self, what: str, check: Callable[[], object]) -> None:
        self.tenants.wait(what, check)


@pytest.fixture
def inside(cluster: E2eCluster, tenants: Tenants) -> Inside:
    return Inside(cluster, tenants)


def test_tenants_use_their_own_services_or_those_of_their_ancestors(tenants: Tenants, inside: Inside) -> None:
    """R-054, R-055, R-059, R-060, R-063, R-064, R-065, R-067, R-075: the tenants of seed 001."""
    foo = tenants.create_with_namespace(spec={"etcd": True, "monitoring": True})
    bar = tenants.create_with_namespace(foo, spec={"etcd": True})
    expected = {"etcd": bar, "monitoring": foo, "ingress": ROOT, "seaweedfs": ROOT}
    labels = inside.labels(bar)
    assert {name: labels[LABEL + name] for name in expected} == expected
    inside.until("bar has its values", lambda: inside.values(bar)["_namespace"])
    values = inside.values(bar)["_namespace"]
    host = f"{bar.removeprefix(f'{foo}-')}.{foo.removeprefix('tenant-')}.{ROOT_HOST}"
    assert values == {**expected, "gateway": "", "host": host}
    assert labels[f"{LABEL}host"] == host
    assert inside.values(bar)["_cluster"] == inside.values(ROOT)["_cluster"]


def test_toggling_a_service_moves_every_tenant_that_inherits_it(tenants: Tenants, inside: Inside) -> None:
    """R-063, R-064."""
    foo = tenants.create_with_namespace()
    bar = tenants.create_with_namespace(foo)
    name = foo.removeprefix("tenant-")
    for wanted, owner in ((True, foo), (False, ROOT)):
        tenants.patch(name, {"spec": {"ingress": wanted}})
        for namespace in (foo, bar):
            inside.until(f"{namespace} is served by {owner}", partial(_is_served, inside, namespace, owner))


def _is_served(inside: Inside, namespace: str, owner: str) -> bool:
    """By the label, and by what charts read."""
    told = inside.values(namespace)["_namespace"].get("ingress")
    return bool(inside.labels(namespace)[f"{LABEL}ingress"] == told == owner)


def test_gateways_of_alice_acme_and_bob(cluster: E2eCluster, tenants: Tenants, inside: Inside) -> None:
    """The tenants of seed 000, as it writes them.

    R-066, R-067, R-068, R-069, R-070, R-071, R-072, R-073, R-074, R-082, R-083, R-084, R-085, R-086, R-087,
    R-088, R-093, R-094, R-095, R-096.
    """
    alice, acme, bob = (tenants.new_name() for _ in range(3))
    specs: dict[str, Object] = {alice: {}, acme: {"host": f"{acme}.example", "gateway": True}, bob: {"gateway": True}}
    documents = "---\n".join(yaml.safe_dump(manifest(name, spec=spec)) for name, spec in specs.items())
    cluster.kubectl("apply", "-f", "-", input=documents)
    for name, apex in ((acme, f"{acme}.example"), (bob, f"{bob}.{ROOT_HOST}")):
        inside.until(f"{name} has a TenantGateway", partial(inside.tenantgateway, f"tenant-{name}"))
        found = inside.tenantgateway(f"tenant-{name}")
        assert found is not None
        assert found["spec"]["apex"] == apex
        assert inside.gateway(f"tenant-{name}") == f"tenant-{name}"
    tenants.wait_until_settled(alice)
    assert inside.tenantgateway(f"tenant-{alice}") is None
    assert inside.gateway(f"tenant-{alice}") == ""
    for kind in ("tgw", "tenantgateway"):
        rows = cluster.kubectl("get", kind, "-A", "--no-headers").stdout
        assert re.search(rf"^tenant-{acme} +cozystack +{acme}\.example ", rows, re.MULTILINE)

    kid = tenants.create_with_namespace(f"tenant-{acme}")
    assert inside.gateway(kid) == f"tenant-{acme}"
    inside.until("the kid's charts know", lambda: inside.values(kid)["_namespace"].get("gateway") == f"tenant-{acme}")
    tenants.patch(acme, {"spec": {"gateway": False}})
    inside.until("acme's TenantGateway is gone", lambda: inside.tenantgateway(f"tenant-{acme}") is None)
    inside.until("the kid has no gateway", lambda: inside.gateway(kid) == "")
    tenants.patch(alice, {"spec": {"gateway": True}})
    inside.until("alice has one now", lambda: inside.gateway(f"tenant-{alice}") == f"tenant-{alice}")


def test_a_changed_host_reaches_all_descendants(tenants: Tenants, inside: Inside) -> None:
    """R-056, R-058, R-061, R-062."""
    foo = tenants.create_with_namespace(spec={"gateway": True})
    bar = tenants.create_with_namespace(foo)
    name = foo.removeprefix("tenant-")
    tenants.patch(name, {"spec": {"host": f"{name}.customer.example"}})
    below = f"{bar.removeprefix(f'{foo}-')}.{name}.customer.example"
    inside.until("the label below", lambda: inside.labels(bar)[f"{LABEL}host"] == below)
    inside.until("the charts below", lambda: inside.values(bar)["_namespace"].get("host") == below)
    inside.until(
        "the apex",
        lambda: (inside.tenantgateway(foo) or {"spec": {}})["spec"].get("apex") == f"{name}.customer.example",
    )


def test_the_parents_scheduling_class_wins(tenants: Tenants, inside: Inside) -> None:
    foo = tenants.create_with_namespace(spec={"schedulingClass": "theirs"})
    bar = tenants.create_with_namespace(foo, spec={"schedulingClass": "mine"})
    assert inside.labels(bar)["scheduler.cozystack.io/scheduling-class"] == "theirs"


def test_isolation_cannot_be_turned_off(cluster: E2eCluster, tenants: Tenants, inside: Inside) -> None:
    """The policies are the chart's, and no field of a Tenant reaches what they select by.

    R-009, R-076, R-077, R-078, R-079, R-080, R-081.
    """
    plain, asking = tenants.create_with_namespace(), tenants.new_name()
    body = manifest(asking, spec={"isolated": False}, labels={"tenant.cozystack.io/x": ""})
    cluster.client().request("POST", tenants_path(ROOT), body).expect(201)
    tenants.wait_for_namespace(f"tenant-{asking}")

    def shape(namespace: str) -> set[str]:
        return {key.replace(namespace, "SELF") for key in inside.labels(namespace)}

    assert shape(f"tenant-{asking}") == shape(plain)


def test_quotas_are_exactly_what_is_declared(tenants: Tenants, inside: Inside) -> None:
    """R-313, PEER-13, FACT-10. A real host writes 1000m as 1, and that is no difference."""
    foo = tenants.create_with_namespace(spec={"resourceQuotas": {CERTIFICATES: "10", "limits.cpu": "1000m"}})
    quota, limits = (
        f"/api/v1/namespaces/{foo}/{kind}"
        for kind in ("resourcequotas/tenant-quota", "limitranges/tenant-range-limits")
    )
    inside.until("the quota", lambda: inside.client.get(quota).status == 200)
    hard = inside.client.get(quota).expect(200)["spec"]["hard"]
    assert set(hard) == {CERTIFICATES, "limits.cpu"}
    assert hard[CERTIFICATES] == "10"
    [limit] = inside.client.get(limits).expect(200)["spec"]["limits"]
    assert limit["default"] == {"cpu": "250m", "memory": "128Mi", "ephemeral-storage": "2Gi"}
    assert limit["defaultRequest"] == {"cpu": "25m", "memory": "128Mi", "ephemeral-storage": "50Mi"}
    name = foo.removeprefix("tenant-")
    tenants.patch(name, {"spec": {"resourceQuotas": {CERTIFICATES: None}}})
    inside.until("one key is left", lambda: set(inside.client.get(quota).expect(200)["spec"]["hard"]) == {"limits.cpu"})
    tenants.patch(name, {"spec": {"resourceQuotas": {"limits.cpu": None}}})
    for path in (quota, limits):
        inside.tenants.wait_until_gone(path)


def test_a_quota_that_the_cluster_rejects_is_reported(kube: KubeCluster, tenants: Tenants, inside: Inside) -> None:
    name = tenants.create(spec={"resourceQuotas": {"nonsense": "1"}})["metadata"]["name"]
    inside.until(
        "the condition",
        lambda: any(each["type"] == "QuotaReady" for each in tenants.get(name)["status"].get("conditions", ())),
    )
    [found] = [each for each in tenants.get(name)["status"]["conditions"] if each["type"] == "QuotaReady"]
    assert (found["status"], found["reason"]) == ("False", "Refused")
    assert "nonsense" in found["message"]


def _has_all_bindings(inside: Inside, namespace: str) -> bool:
    path = f"/apis/{RBAC}/v1/namespaces/{namespace}/rolebindings"
    return len(inside.client.get(path).expect(200)["items"]) == 5


def test_the_role_bindings_of_a_tenant_namespace(cluster: E2eCluster, tenants: Tenants, inside: Inside) -> None:
    """R-024: in the tenant's own namespace, ClusterRoles cozy:tenant*."""
    foo = tenants.create_with_namespace()
    bar = tenants.create_with_namespace(foo)
    path = f"/apis/{RBAC}/v1/namespaces/{bar}/rolebindings"
    inside.until("all bindings", partial(_has_all_bindings, inside, bar))
    found = {each["metadata"]["name"]: each for each in inside.client.get(path).expect(200)["items"]}
    assert set(found) == {"cozy:tenant", *(f"cozy:tenant:{level}" for level in LEVELS)}
    assert all(each["roleRef"]["name"] == name for name, each in found.items())
    groups = [each["name"] for each in found["cozy:tenant:admin"]["subjects"] if each["kind"] == "Group"]
    assert groups == [f"{bar}-admin", f"{bar}-super-admin"]


def may(
    cluster: E2eCluster, user: str, groups: list[str], verb: str, group: str, resource: str, namespace: str
) -> bool:
    attributes = {"verb": verb, "group": group, "resource": resource, "namespace": namespace}
    body = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {"user": user, "groups": groups, "resourceAttributes": attributes},
    }
    answer = cluster.client().request("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", body).expect(201)
    return bool(answer["status"]["allowed"])


_GATEWAY_API = "gateway.networking.k8s.io"


@pytest.mark.parametrize(
    ("verb", "group", "resource"),
    [
        pytest.param("create", _GATEWAY_API, "httproutes", id="R-020 routes"),
        pytest.param("create", _GATEWAY_API, "gateways", id="R-020 gateways"),
        pytest.param("patch", "", "namespaces", id="R-021 namespaces"),
        pytest.param("update", "cozystack.io", "packages", id="R-022 packages"),
        pytest.param("create", "gateway.cozystack.io", "tenantgateways", id="R-023 tenantgateways"),
        pytest.param("patch", "", "secrets", id="values"),
        pytest.param("create", RBAC, "rolebindings", id="bindings"),
        pytest.param("delete", "", "resourcequotas", id="quotas"),
    ],
)
@pytest.mark.parametrize("level", ["admin", "super-admin"])
def test_no_access_level_grants_permissions_on_the_platform(
    cluster: E2eCluster, tenants: Tenants, inside: Inside, level: str, verb: str, group: str, resource: str
) -> None:
    foo = tenants.create_with_namespace()
    groups = [f"{foo}-{level}", "system:authenticated"]
    inside.until(
        "the people of the tenant are known",
        lambda: may(cluster, "someone", groups, "create", "apps.cozystack.io", "tenants", foo),
    )
    assert not may(cluster, "someone", groups, verb, group, resource, foo)


def test_access_levels_are_cumulative_and_limited_to_their_tenant(
    cluster: E2eCluster, tenants: Tenants, inside: Inside
) -> None:
    """R-025, PEER-25: an administrator makes sub-tenants; a viewer looks."""
    foo, aside = tenants.create_with_namespace(), tenants.create_with_namespace()
    for namespace in (foo, aside):
        inside.until("all bindings", partial(_has_all_bindings, inside, namespace))
    expected = {"view": (True, False), "use": (True, False), "admin": (True, True), "super-admin": (True, True)}
    found = {
        level: tuple(
            may(cluster, "someone", [f"{foo}-{level}"], verb, "apps.cozystack.io", "tenants", foo)
            for verb in ("list", "create")
        )
        for level in LEVELS
    }
    assert found == expected
    assert not may(cluster, "someone", [f"{foo}-super-admin"], "list", "apps.cozystack.io", "tenants", aside)
    mine = cluster.client(f"admin{foo}", [f"{foo}-admin"])
    mine.request("POST", tenants_path(foo), manifest(tenants.new_name(foo), foo)).expect(201)


def test_the_account_of_a_parent_reads_child_tenants_and_not_vice_versa(
    cluster: E2eCluster, tenants: Tenants, inside: Inside
) -> None:
    """R-026."""
    foo = tenants.create_with_namespace()
    bar = tenants.create_with_namespace(foo)

    def sees(account: str, namespace: str) -> bool:
        user = f"system:serviceaccount:{account}:{account}"
        return may(cluster, user, [], "get", "apps.cozystack.io", "tenants", namespace)

    inside.until("the accounts are bound", lambda: sees(foo, bar) and sees(bar, bar) and sees(foo, foo))
    assert sees(ROOT, bar)
    assert not sees(bar, foo)
    inside.client.get(f"/api/v1/namespaces/{bar}/serviceaccounts/{bar}").expect(200)


def test_edited_and_deleted_objects_are_restored(tenants: Tenants, inside: Inside) -> None:
    foo = tenants.create_with_namespace(spec={"gateway": True, "resourceQuotas": {"limits.cpu": "1"}})
    core, bindings = f"/api/v1/namespaces/{foo}", f"/apis/{RBAC}/v1/namespaces/{foo}/rolebindings"
    paths = [
        secret_path(foo),
        f"{core}/serviceaccounts/{foo}",
        f"{core}/limitranges/tenant-range-limits",
        f"{core}/resourcequotas/tenant-quota",
        f"{bindings}/cozy:tenant:use",
        f"{TGW}/namespaces/{foo}/tenantgateways/cozystack",
    ]
    for path in paths:
        inside.until(f"{path} is there", partial(inside.has, path))
    uids = {path: inside.client.get(path).expect(200)["metadata"]["uid"] for path in paths}
    for path in paths:
        inside.client.request("DELETE", path)

    def is_new(path: str) -> bool:
        answer = inside.client.get(path)
        return answer.status == 200 and answer.json()["metadata"]["uid"] != uids[path]

    for path in paths:
        inside.until(f"{path} is back", partial(is_new, path))
    inside.edit(
        secret_path(foo), {"data": {"values.yaml": ""}, "metadata": {"labels": {"reconcile.fluxcd.io/watch": "no"}}}
    )
    inside.until("its values are back", lambda: (inside.values(foo) or {}).get("_namespace"))
    inside.edit(paths[-1], {"spec": {"apex": "victim.example", "wildcardSecretRef": {"name": "x"}}})
    inside.until("its apex is back", lambda: _spec(inside, foo)["apex"].endswith(ROOT_HOST))
    assert "wildcardSecretRef" not in _spec(inside, foo)
    inside.edit(f"{bindings}/cozy:tenant:view", {"subjects": None})
    inside.until(
        "its people are back", lambda: inside.client.get(f"{bindings}/cozy:tenant:view").json().get("subjects")
    )
    inside.edit(core, {"metadata": {"labels": {f"{LABEL}gateway": "tenant-victim", f"{LABEL}etcd": None}}})
    inside.until("its labels are back", lambda: inside.labels(foo).get(f"{LABEL}etcd") == ROOT)
    inside.until("its gateway is its own", lambda: inside.gateway(foo) == foo)


def _spec(inside: Inside, namespace: str) -> Object:
    found = inside.tenantgateway(namespace)
    assert found is not None
    spec: Object = found["spec"]
    return spec


def _has_cluster_value(inside: Inside, namespace: str, key: str, value: str | None) -> bool:
    return bool(inside.values(namespace)["_cluster"].get(key) == value)


def test_platform_values_are_copied_down_the_tree(
    cluster: E2eCluster, tenants: Tenants, inside: Inside, unique: str
) -> None:
    foo = tenants.create_with_namespace()
    bar = tenants.create_with_namespace(foo)
    inside.until("bar has its values", lambda: inside.values(bar)["_namespace"])
    values = inside.values(ROOT)
    for wanted in ("yes", None):
        values["_cluster"].pop(unique, None)
        if wanted:
            values["_cluster"][unique] = wanted
        text = base64.b64encode(yaml.safe_dump(values).encode()).decode()
        inside.edit(secret_path(ROOT), {"data": {"values.yaml": text}})
        for namespace in (ROOT, foo, bar):
            inside.until(
                f"{namespace} has {wanted}",
                partial(_has_cluster_value, inside, namespace, unique, wanted),
            )


_COUNTED = {
    "namespaces",
    "secrets",
    "serviceaccounts",
    "rolebindings",
    "resourcequotas",
    "limitranges",
    "tenantgateways",
    "helmreleases",
}


def count_writes(cluster: E2eCluster) -> Counter[tuple[str, str]]:
    """What the host has accepted: our controllers create and patch, and what ends is taken away by others' too."""
    counted: Counter[tuple[str, str]] = Counter()
    for (asked, resource, code), count in count_requests(cluster, _COUNTED).items():
        verb = asked.replace("CREATE", "POST")
        if code.startswith("2") and verb in ("POST", "PATCH", "APPLY"):
            counted[verb, resource] += count
    return counted


def test_a_restart_writes_nothing_but_new_changes(own_cluster: E2eCluster) -> None:
    """A successor looks at every tenant there is, on a host that has filled in its defaults (WIRE-G20)."""
    host, tenants = own_cluster, Tenants(own_cluster)
    inside = Inside(host, tenants)
    foo = tenants.create_with_namespace(
        spec={"gateway": True, "resourceQuotas": {"limits.cpu": "1000m", "limits.memory": "0.5Gi"}}
    )
    tenants.create_with_namespace(foo, spec={"etcd": True, "schedulingClass": "gold"})
    inside.until("the last of it", lambda: inside.client.get(secret_path(foo)).status == 200)
    wait_until_quiet(host, count_writes)
    written = count_writes(host)
    host.restart()
    # an embedded host counts from the start of its process
    before = written if host.kind == "kube" else Counter[tuple[str, str]]()
    tenants.patch(foo.removeprefix("tenant-"), {"spec": {"ingress": True}})
    inside.until("the change is seen", lambda: inside.labels(foo)[f"{LABEL}ingress"] == foo)
    wait_until_quiet(host, count_writes)
    # this change's, of the tenant and its child, and the generation that the status is about; nothing else
    assert count_writes(host) - before == Counter(
        {("PATCH", "namespaces"): 2, ("PATCH", "secrets"): 2, ("PATCH", "helmreleases"): 1}
    )
