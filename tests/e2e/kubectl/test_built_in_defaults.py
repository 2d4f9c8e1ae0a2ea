"""Defaults and validation of built-in kinds are those of Kubernetes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.e2e.support.built_in_kinds import document, service
from tests.e2e.support.clusters.cluster import E2eCluster

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
    # what is finer than a thousandth is rounded up, also in bytes and counts
    hard |= {"limits.memory": "9500m", "requests.x.io/a": "1n", "requests.ephemeral-storage": "1500u", "pods": "0.9999"}
    body = document("v1", "ResourceQuota", "q", spec={"hard": hard})
    made = cluster.client().request("POST", f"/api/v1/namespaces/{namespace}/resourcequotas", body).expect(201)
    assert made["spec"]["hard"] == {
        "cpu": "2",
        "memory": "1Gi",
        "limits.cpu": "1500m",
        "requests.storage": "500m",
        "count/a.io": "1k",
        "limits.memory": "9500m",
        "requests.x.io/a": "1m",
        "requests.ephemeral-storage": "2m",
        "pods": "1",
    }
    limits = [
        {
            "type": "Container",
            "default": {"cpu": "1000m", "memory": "1500u"},
            "defaultRequest": {"cpu": "0.5", "memory": 0},
        }
    ]
    body = document("v1", "LimitRange", "l", spec={"limits": limits})
    made = cluster.client().request("POST", f"/api/v1/namespaces/{namespace}/limitranges", body).expect(201)
    assert made["spec"]["limits"] == [
        {
            "type": "Container",
            "default": {"cpu": "1", "memory": "2m"},
            "defaultRequest": {"cpu": "500m", "memory": "0"},
        }
    ]


@pytest.mark.parametrize(
    ("hard", "why"),
    [
        pytest.param({"storage": "1"}, "must be a standard resource for quota", id="storage"),
        pytest.param({"foo": "1"}, "must be a standard resource type or fully qualified", id="an unknown name"),
        pytest.param({"cpu": "-1"}, "must be greater than or equal to 0", id="a negative quantity"),
        pytest.param({"count/secrets": "1500m"}, "must be an integer", id="a part of an object"),
        pytest.param({"count/secrets": "10Pi"}, "must be an integer", id="more than can be counted"),
    ],
)
def test_an_invalid_quota_is_rejected(cluster: E2eCluster, namespace: str, hard: dict[str, str], why: str) -> None:
    body = document("v1", "ResourceQuota", "q", spec={"hard": hard})
    rejected = cluster.client().request("POST", f"/api/v1/namespaces/{namespace}/resourcequotas", body).expect(422)
    assert why in rejected["message"]


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
    rejected = cluster.client().request("POST", f"/api/v1/namespaces/{namespace}/secrets", body).expect(422)
    assert [cause["field"] for cause in rejected["details"]["causes"]] == missing


def test_unknown_fields_are_rejected(cluster: E2eCluster, namespace: str) -> None:
    body = service(80)
    body["spec"]["selektor"] = {}
    body["spec"]["ports"][0]["portName"] = "x"
    rejected = cluster.kubectl("create", "-n", namespace, "-f", "-", input=json.dumps(body), status=1).stderr
    assert 'unknown field "spec.ports[0].portName", unknown field "spec.selektor"' in rejected
