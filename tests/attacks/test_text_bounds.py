"""ATTACK-16: text of a user reaches the cluster only in forms that its recipients handle.

A kube-apiserver that parses the quantity 1e999999999 computes for good. Users write quantities into Tenants, and into
HelmReleases, which do not pass our admission.
"""

from __future__ import annotations

import time

import pytest

from tests.attacks.support.two_tenants import TenantAdmin
from tests.e2e.support.admission.policies import Policies
from tests.e2e.support.applying import MERGE
from tests.e2e.support.clusters.cluster import ROOT, E2eCluster, tenants_path
from tests.e2e.support.http.https_client import Client, Response
from tests.e2e.support.http.pace import is_within
from tests.e2e.support.peer_lessons import helmrelease_path
from tests.e2e.support.tenants import Object, Tenants, manifest

# for any of these writes
SECONDS = 10.0
HOSTILE = {
    "a large exponent": "1e999999999",
    "a small exponent": "1e-999999999",
    "zero with an exponent": "0e999999999",
    "an exponent of more than 32 bits": "1e4294967296",
    "an exponent of 100,000 digits": f"1e{'9' * 100_000}",
    "100,000 digits": "9" * 100_000,
    "100,000 zeros": f"1.{'0' * 100_000}",
    "more than 64 bits": "9223372036854775808",
    "more than 64 bits with a suffix": "1000E",
    "a sign": "-1",
    "no number": "NaN",
    "infinity": "Infinity",
    "a hexadecimal number": "0x10",
    "a suffix alone": "Ki",
}
NUMBERS = {
    "a number of more than 64 bits": 2**64,
    "a number with an exponent": 1e41,
    "a negative number of more than 64 bits": -(2**63) - 1,
}


@pytest.mark.parametrize("quantity", [pytest.param(each, id=id_) for id_, each in {**HOSTILE, **NUMBERS}.items()])
def test_a_quantity_that_kubernetes_does_not_handle_is_invalid(
    alice: TenantAdmin, tenants: Tenants, quantity: str | float
) -> None:
    spec = {"resourceQuotas": {"cpu": quantity}}
    started = time.monotonic()
    answers = {
        "create": alice.client.request(
            "POST", alice.children, manifest(tenants.new_name(alice.namespace), alice.namespace, spec=spec)
        ),
        "merge patch": alice.client.request("PATCH", alice.child_path, {"spec": spec}, content_type=MERGE),
        "apply": _apply(alice, spec),
    }
    assert is_within(SECONDS, time.monotonic() - started, tenants.client)
    for how, answer in answers.items():
        assert answer.status == 422, (how, answer.content[:500])
        [cause] = answer.json()["details"]["causes"]
        assert cause["field"] == "spec.resourceQuotas[cpu]", how
        assert len(cause["message"]) < 1000, how
    assert tenants.get(alice.child, alice.namespace)["spec"]["resourceQuotas"] == {}


def _apply(alice: TenantAdmin, spec: Object) -> Response:
    body = {**manifest(alice.child, alice.namespace, spec=spec)}
    query = {"fieldManager": "attack", "force": "true"}
    return alice.client.request(
        "PATCH", alice.child_path, body, content_type="application/apply-patch+yaml", query=query
    )


@pytest.mark.parametrize(
    ("written", "stored"),
    [
        pytest.param("1024Mi", "1Gi", id="a larger suffix"),
        pytest.param("00500m", "500m", id="leading zeros"),
        pytest.param("+2", "2", id="a sign"),
        pytest.param("1.5", "1500m", id="a fraction"),
        pytest.param("3000e-3", "3", id="an exponent"),
        pytest.param(7, "7", id="a number"),
    ],
)
def test_a_resourcequota_has_quantities_in_canonical_form(
    cluster: E2eCluster, tenants: Tenants, written: str | int, stored: str
) -> None:
    namespace = tenants.create_with_namespace(spec={"resourceQuotas": {"limits.memory": written}})
    client = cluster.client()
    tenants.wait("the quota is written", lambda: _hard(client, namespace) == {"limits.memory": stored})


def _hard(client: Client, namespace: str) -> Object | None:
    answer = client.get(f"/api/v1/namespaces/{namespace}/resourcequotas/tenant-quota")
    hard: Object | None = answer.expect(200)["spec"]["hard"] if answer.status != 404 else None
    return hard


def test_quantities_written_to_the_helmrelease_are_written_nowhere_else(
    cluster: E2eCluster, tenants: Tenants, bob: TenantAdmin
) -> None:
    """The ResourceQuota gets only the valid quantities of a HelmRelease, a condition and an Event name the others, and
    the cluster and other Tenants are not affected."""
    client, name = cluster.client(), tenants.create()["metadata"]["name"]
    namespace = tenants.wait_until_settled(name)["status"]["namespace"]
    hostile = {f"requests.example.org/x{number}": each for number, each in enumerate(HOSTILE.values())}
    quotas = {**hostile, "limits.cpu": "00500m", "limits.memory": 0.5, "requests.cpu": 1e300, "pods": "7"}
    _write_quotas(client, name, quotas)
    expected = {"limits.cpu": "500m", "limits.memory": "500m", "pods": "7"}
    tenants.wait("the valid quantities are written", lambda: _hard(client, namespace) == expected)

    def condition() -> Object | None:
        found = tenants.get(name)["status"].get("conditions") or ()
        return next((each for each in found if each["type"] == "QuotaReady"), None)

    tenants.wait("a condition says so", lambda: (condition() or {}).get("status") == "False")
    invalid = condition()
    assert invalid is not None
    assert invalid["reason"] == "InvalidQuantity"
    assert "spec.resourceQuotas[requests.cpu]" in invalid["message"]
    assert len(invalid["message"]) < 4096
    tenants.wait("an Event says so", lambda: _events(client, name, "InvalidQuantity"))
    # the parent's and the children's quotas are still computed
    started = time.monotonic()
    tenants.patch(bob.child, {"spec": {"resourceQuotas": {"cpu": "1"}}}, bob.namespace)
    tenants.create(namespace, spec={"resourceQuotas": {"pods": "7"}})
    refused = manifest(tenants.new_name(namespace), namespace, spec={"resourceQuotas": {"pods": "1"}})
    assert client.request("POST", tenants_path(namespace), refused).status == 422
    # the Tenant itself can be changed and read, with the values as they are stored
    assert tenants.patch(name, {"spec": {"etcd": True}})["spec"]["resourceQuotas"].items() >= hostile.items()
    assert is_within(SECONDS, time.monotonic() - started, client)
    _write_quotas(client, name, dict.fromkeys([*hostile, "requests.cpu"]))
    harmless = ("Reconciled", "NotEnforced")
    tenants.wait("the condition changes with its cause", lambda: (condition() or {}).get("reason") in harmless)


def _write_quotas(client: Client, name: str, quotas: Object) -> None:
    values = {"spec": {"values": {"resourceQuotas": quotas}}}
    client.request("PATCH", helmrelease_path(name), values, content_type=MERGE).expect(200)


def _events(client: Client, name: str, reason: str) -> list[Object]:
    found = client.get(f"/apis/events.k8s.io/v1/namespaces/{ROOT}/events").expect(200)["items"]
    events = [each for each in found if each["regarding"]["name"] == name and each["reason"] == reason]
    assert all(len(each["note"].encode()) <= 1024 for each in events)
    return events


RULE = {"apiGroups": ["apps.cozystack.io"], "apiVersions": ["*"], "operations": ["*"], "resources": ["tenants"]}


def test_a_policy_that_parses_quantities_decides_at_once(cluster: E2eCluster, tenants: Tenants, unique: str) -> None:
    """Expressions run in our process, on texts of any length."""
    policies = Policies(cluster, ROOT)
    spec = {
        "matchConstraints": {"resourceRules": [RULE]},
        "matchConditions": [{"name": "own", "expression": f"object != null && '{unique}' in object.metadata.labels"}],
        "validations": [{"expression": "quantity(object.metadata.annotations.q).isLessThan(quantity('5'))"}],
    }

    def is_admitted(quantity: str) -> bool:
        body = manifest(f"q{unique}", labels={unique: ""}, annotations={"q": quantity})
        answer = policies.client.request("POST", tenants_path(ROOT), body, query={"dryRun": "All"})
        assert answer.status in (201, 422), answer.content[:500]
        return answer.status == 201

    with policies.in_force(spec, wait=False):
        tenants.wait("the policy is enforced", lambda: not is_admitted("6"))
        started = time.monotonic()
        admitted = {what for what, quantity in HOSTILE.items() if is_admitted(quantity)}
        assert admitted == {"a small exponent", "zero with an exponent", "100,000 zeros", "a sign"}
        assert is_within(SECONDS, time.monotonic() - started, tenants.client)


LONG_HOST = "a" * 300_000


def test_a_long_host_written_to_a_helmrelease_reaches_no_other_object(
    cluster: E2eCluster, tenants: Tenants, bob: TenantAdmin
) -> None:
    """Descendants derive their hosts from it, and each status is stored in an annotation of limited size."""
    client, name = cluster.client(), tenants.create()["metadata"]["name"]
    namespace = tenants.wait_until_settled(name)["status"]["namespace"]
    child = tenants.create(namespace)["metadata"]["name"]
    host = {"spec": {"values": {"host": LONG_HOST}}}
    client.request("PATCH", helmrelease_path(name), host, content_type=MERGE).expect(200)

    def invalid(name: str, namespace: str) -> Object | None:
        found = tenants.get(name, namespace)["status"].get("conditions") or ()
        return next((each for each in found if each["type"] == "HostInvalid"), None)

    for tenant, parent in ((name, ROOT), (child, namespace)):
        condition = tenants.wait(f"{tenant} says so", lambda key=(tenant, parent): invalid(*key))
        assert len(condition["message"]) <= 2048
        status = tenants.get(tenant, parent)["status"]
        assert len(status.get("host", {}).get("value", "")) <= 253
        labels = client.get(f"/api/v1/namespaces/{status['namespace']}").expect(200)["metadata"]["labels"]
        assert "namespace.cozystack.io/host" not in labels
    tenants.patch(bob.child, {"spec": {"etcd": True}}, bob.namespace)
    tenants.patch(child, {"spec": {"etcd": True}}, namespace)


def test_annotations_to_the_limit_do_not_take_the_place_of_the_status(cluster: E2eCluster, tenants: Tenants) -> None:
    client, name = cluster.client(), tenants.new_name()
    body = manifest(name, annotations={"a": "x" * (254 * 1024)})
    client.request("POST", tenants_path(ROOT), body).expect(201)
    conditions = tenants.wait_until_settled(name)["status"]["conditions"]
    assert {"type": "Ready", "status": "True"}.items() <= next(e for e in conditions if e["type"] == "Ready").items()


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        pytest.param({"appVersion": "1" * 300_000}, "appVersion", id="the version"),
        pytest.param({"metadata": {"generateName": "x" * 300_000}}, "metadata.generateName", id="the generated name"),
    ],
)
def test_a_text_that_no_other_rule_bounds_is_invalid(
    alice: TenantAdmin, tenants: Tenants, fields: Object, field: str
) -> None:
    body = manifest(tenants.new_name(alice.namespace), alice.namespace)
    body["metadata"] |= fields.get("metadata", {})
    answer = alice.client.request("POST", alice.children, {**fields, **body})
    assert [cause["field"] for cause in answer.expect(422)["details"]["causes"]] == [field]
    assert len(answer.content) < 2000
