"""Objects of built-in kinds with wrong content: the embedded cluster refuses them as a kube-apiserver does."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest

from tests.e2e.support.clusters.cluster import E2eCluster
from tests.e2e.support.clusters.embedded import EmbeddedCluster
from tests.e2e.support.http.https_client import Client

Object = dict[str, Any]
Place = tuple[str | int, ...]

ADMISSION = "/apis/admissionregistration.k8s.io/v1"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
ALL = {"dryRun": "All"}

POLICY: Object = {
    "apiVersion": "admissionregistration.k8s.io/v1",
    "kind": "ValidatingAdmissionPolicy",
    "metadata": {"name": "judged.example.org"},
    "spec": {
        "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
        "matchConstraints": {
            "resourceRules": [
                {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}
            ]
        },
        "matchConditions": [{"name": "m", "expression": "true"}],
        "variables": [{"name": "x", "expression": "1"}],
        "validations": [{"expression": "true", "message": "m", "messageExpression": "'m'", "reason": "Forbidden"}],
        "auditAnnotations": [{"key": "k", "valueExpression": "'a'"}],
    },
}
BINDING: Object = {
    "apiVersion": "admissionregistration.k8s.io/v1",
    "kind": "ValidatingAdmissionPolicyBinding",
    "metadata": {"name": "judged.example.org"},
    "spec": {
        "policyName": "judged.example.org",
        "validationActions": ["Deny"],
        "paramRef": {"name": "a", "namespace": "b", "parameterNotFoundAction": "Deny"},
        "matchResources": {"namespaceSelector": {"matchLabels": {"a": "b"}}},
    },
}
WEBHOOKS: Object = {
    "apiVersion": "admissionregistration.k8s.io/v1",
    "kind": "ValidatingWebhookConfiguration",
    "metadata": {"name": "judged.example.org"},
    "webhooks": [
        {
            "name": "judged.example.org",
            "clientConfig": {"service": {"namespace": "a", "name": "b", "path": "/p", "port": 443}},
            "rules": [
                {
                    "apiGroups": [""],
                    "apiVersions": ["v1"],
                    "operations": ["CREATE"],
                    "resources": ["pods"],
                    "scope": "*",
                }
            ],
            "failurePolicy": "Ignore",
            "sideEffects": "None",
            "timeoutSeconds": 5,
            "admissionReviewVersions": ["v1"],
            "matchConditions": [{"name": "m", "expression": "true"}],
        }
    ],
}
API_SERVICE: Object = {
    "apiVersion": "apiregistration.k8s.io/v1",
    "kind": "APIService",
    "metadata": {"name": "v1.judged.example.org"},
    "spec": {
        "group": "judged.example.org",
        "version": "v1",
        "groupPriorityMinimum": 100,
        "versionPriority": 10,
        "insecureSkipTLSVerify": True,
        "service": {"namespace": "a", "name": "b", "port": 443},
    },
}
QUOTA: Object = {
    "apiVersion": "v1",
    "kind": "ResourceQuota",
    "metadata": {"name": "judged"},
    "spec": {
        "scopeSelector": {
            "matchExpressions": [{"scopeName": "PriorityClass", "operator": "In", "values": ["a"]}],
        },
    },
}
JUDGED: dict[str, Object] = {
    f"{ADMISSION}/validatingadmissionpolicies": POLICY,
    f"{ADMISSION}/validatingadmissionpolicybindings": BINDING,
    f"{ADMISSION}/validatingwebhookconfigurations": WEBHOOKS,
    "/apis/apiregistration.k8s.io/v1/apiservices": API_SERVICE,
    "/api/v1/namespaces/default/resourcequotas": QUOTA,
}
NO_KEY = (
    "a valid label key must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
    "alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix and '/' "
    "(e.g. 'example.com/MyName')"
)
ADMISSION_KINDS = {each for each in JUDGED if each.startswith(ADMISSION)}
OTHERS: tuple[Any, ...] = ("text", 70_000, 1.5, True, [], {}, ["a"], {"a": "b"})


def places(value: Any, place: Place = ()) -> Iterator[Place]:
    """The places of all values inside `value`, but of the type and of metadata."""
    for key, each in value.items() if isinstance(value, dict) else enumerate(value):
        if place or key not in ("apiVersion", "kind", "metadata"):
            yield (*place, key)
            if isinstance(each, (dict, list)):
                yield from places(each, (*place, key))


def replaced(obj: Object, place: Place, value: Any) -> Object:
    changed = copy.deepcopy(obj)
    inside: Any = changed
    for key in place[:-1]:
        inside = inside[key]
    inside[place[-1]] = value
    return changed


def type_of(value: Any) -> str:
    return "number" if type(value) in (int, float) else type(value).__name__


@pytest.mark.parametrize("path", [pytest.param(each, id=each.rpartition("/")[2]) for each in JUDGED])
def test_a_value_of_another_type_is_refused(cluster: E2eCluster, path: str) -> None:
    """With 422 or, by a kube-apiserver, with 400 from its decoder."""
    client, obj = cluster.client(), JUDGED[path]
    assert status(client, path, obj) == 201
    accepted = [
        (place, other)
        for place in places(obj)
        for other in OTHERS
        if type_of(other) != type_of(at(obj, place))
        and status(client, path, replaced(obj, place, other)) not in REFUSED
    ]
    assert not accepted


REFUSED = (400, 422)


def at(obj: Any, place: Place) -> Any:
    for key in place:
        obj = obj[key]
    return obj


def status(client: Client, path: str, obj: Object) -> int:
    return client.request("POST", path, obj, query=ALL).status


TEXTS = ("", "A B!", "x" * 300, "a/b/c")
NUMBERS = (-1, 70_000)
UNCHECKED = {("webhooks", 0, "matchConditions", 0, "expression"), ("spec", "scopeSelector")}
"""Places that the embedded cluster judges less: it compiles the expressions of policies only."""


@pytest.mark.parametrize("path", [pytest.param(each, id=each.rpartition("/")[2]) for each in sorted(ADMISSION_KINDS)])
def test_both_clusters_refuse_the_same_values(embedded: EmbeddedCluster, kube_apiserver: Client, path: str) -> None:
    """With the same errors: each text and number of a valid object is replaced by others, and each value removed."""
    clients, obj = (embedded.client(), kube_apiserver), JUDGED[path]
    different = []
    for place in places(obj):
        if place in UNCHECKED:
            continue
        value = at(obj, place)
        others = TEXTS if isinstance(value, str) else NUMBERS if type(value) is int else ()
        for changed in (removed(obj, place), *(replaced(obj, place, each) for each in others)):
            ours, theirs = (errors_of(client, path, changed) for client in clients)
            if ours != theirs:
                different.append((place, ours, theirs))
    assert not different


def removed(obj: Object, place: Place) -> Object:
    changed = copy.deepcopy(obj)
    del at(changed, place[:-1])[place[-1]]
    return changed


def errors_of(client: Client, path: str, obj: Object) -> list[tuple[str, str]]:
    answer = client.request("POST", path, obj, query=ALL)
    if answer.status == 201:
        return []
    details = answer.expect(422)["details"]
    return sorted((each["field"], each["message"]) for each in details["causes"])


def test_a_policy_without_a_name_is_refused(embedded: EmbeddedCluster) -> None:
    """Also one with audit annotations, whose keys contain its name."""
    answer = embedded.client().request("POST", f"{ADMISSION}/validatingadmissionpolicies", {**POLICY, "metadata": {}})
    causes = answer.expect(422)["details"]["causes"]
    assert {each["field"] for each in causes} >= {"spec.auditAnnotations[0].key"}


@pytest.mark.parametrize(
    ("selector", "errors"),
    [
        pytest.param(
            {"matchLabels": {"a/b/c": "d"}},
            [
                (
                    "aggregationRule.clusterRoleSelectors[0].matchLabels",
                    f'Invalid value: "a/b/c": {NO_KEY}',
                ),
                ("aggregationRule.clusterRoleSelectors[0]", "Invalid value: null: invalid label selector."),
            ],
            id="a key with two slashes",
        ),
        pytest.param(
            {"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["b"]}]},
            [
                (
                    "aggregationRule.clusterRoleSelectors[0].matchExpressions[0].values",
                    "Forbidden: may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
                ),
                ("aggregationRule.clusterRoleSelectors[0]", "Invalid value: null: invalid label selector."),
            ],
            id="values of an existing key",
        ),
    ],
)
def test_the_selectors_of_a_cluster_role_are_judged(
    cluster: E2eCluster, selector: Object, errors: list[tuple[str, str]]
) -> None:
    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "judged"},
        "aggregationRule": {"clusterRoleSelectors": [selector]},
    }
    details = cluster.client().request("POST", f"{RBAC}/clusterroles", role, query=ALL).expect(422)["details"]
    assert [(each["field"], each["message"]) for each in details["causes"]] == errors
