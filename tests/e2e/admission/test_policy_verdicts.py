"""The same policy decides the same write with the same code and message on both clusters, for every verb."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from tests.e2e.support.admission.policies import CONFIGMAPS, POLICIES, Policies, configmap
from tests.e2e.support.clusters.cluster import E2eCluster
from tests.e2e.support.clusters.processes import wait_until
from tests.e2e.support.http.https_client import Client, Response
from tests.e2e.support.tenants import Tenants

_ANY = {**CONFIGMAPS, "operations": ["*"]}


@pytest.fixture
def policies(cluster: E2eCluster, unique: str) -> Iterator[Policies]:
    client = cluster.client()
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": unique}}
    client.request("POST", "/api/v1/namespaces", namespace).expect(201)
    yield Policies(cluster, unique)
    client.request("DELETE", f"/api/v1/namespaces/{unique}")


def _denial(answer: Response, name: str) -> tuple[int, str, str]:
    """Code, reason and message of a denial, with the name of the policy replaced by P."""
    status = answer.json()
    message = status["message"].replace(name, "P")
    assert status["details"]["causes"][-1]["message"].replace(name, "P") in message
    return answer.status, status["reason"], message


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param(
            {"validations": [{"expression": "object.data.a == 'x'"}]},
            (422, "Invalid", "failed expression: object.data.a == 'x'"),
            id="the expression in the message",
        ),
        pytest.param(
            {"validations": [{"expression": "false", "message": "no", "reason": "Forbidden"}]},
            (403, "Forbidden", "no"),
            id="message and reason",
        ),
        pytest.param(
            {"validations": [{"expression": "false", "messageExpression": "object.metadata.name + '!'"}]},
            (422, "Invalid", "judged!"),
            id="messageExpression",
        ),
        pytest.param(
            {"validations": [{"expression": "object.nope == 1"}, {"expression": "false"}]},
            (422, "Invalid", "expression 'object.nope == 1' resulted in error: no such key: nope"),
            id="the first of two failures",
        ),
        pytest.param(
            {
                "variables": [{"name": "v", "expression": "object.nope"}],
                "validations": [{"expression": "variables.v == 1"}],
            },
            (
                422,
                "Invalid",
                (
                    "expression 'variables.v == 1' resulted in error: composited variable \"v\" fails to evaluate: "
                    "no such key: nope"
                ),
            ),
            id="a variable",
        ),
        pytest.param(
            {
                "matchConditions": [{"name": "c", "expression": "object.nope == 1"}],
                "validations": [{"expression": "true"}],
            },
            (422, "Invalid", "expression 'object.nope == 1' resulted in error: no such key: nope"),
            id="a matchCondition",
        ),
        pytest.param(
            {
                "validations": [{"expression": "true"}],
                "auditAnnotations": [{"key": "k", "valueExpression": "string(object.nope)"}],
            },
            (422, "Invalid", "expression 'string(object.nope)' resulted in error: no such key: nope"),
            id="an auditAnnotation",
        ),
    ],
)
def test_denials_have_the_same_text_on_both_clusters(
    policies: Policies, spec: Mapping[str, Any], expected: tuple[int, str, str]
) -> None:
    code, reason, text = expected
    with policies.in_force(spec, actions=["Deny"]) as name:
        answer = policies.write(configmap("judged", {"a": "b"}), dryRun="All")
        start = "configmaps \"judged\" is forbidden: ValidatingAdmissionPolicy 'P' with binding 'P' denied request: "
        assert _denial(answer, name) == (code, reason, start + text)


def _assert_denied(policies: Policies, name: str, method: str, path: str, body: Any = None, **more: Any) -> None:
    answer = policies.client.request(method, path, body, **more)
    assert answer.status == 422, f"{method} {path}: {answer.status} {answer.content!r}"
    assert name in answer.json()["message"]


@pytest.mark.parametrize("dry_run", [{}, {"dryRun": "All"}], ids=["real", "dry run"])
def test_every_write_is_checked(policies: Policies, dry_run: Mapping[str, str]) -> None:
    path = f"{policies.path}/kept"
    policies.write(configmap("kept")).expect(201)
    validation = {"expression": "request.operation == 'DELETE' ? false : !('bad' in object.?data.orValue({}))"}
    spec = {"matchConstraints": {"resourceRules": [_ANY]}, "validations": [validation]}
    bad = configmap("kept", {"bad": "1"})
    with policies.in_force(spec, wait=False) as name:
        wait_until(
            "the policy is enforced", lambda: policies.write(configmap("x", {"bad": "1"}), dryRun="All").status == 422
        )
        _assert_denied(policies, name, "POST", policies.path, configmap("new", {"bad": "1"}), query=dry_run)
        _assert_denied(policies, name, "PUT", path, bad, query=dry_run)
        patch = {"data": {"bad": "1"}}
        merged = "application/merge-patch+json"
        _assert_denied(policies, name, "PATCH", path, patch, query=dry_run, content_type=merged)
        operations = [{"op": "add", "path": "/data", "value": {"bad": "1"}}]
        _assert_denied(
            policies, name, "PATCH", path, operations, query=dry_run, content_type="application/json-patch+json"
        )
        applied = {"fieldManager": "e2e", **dry_run}
        for target in (path, f"{policies.path}/missing"):
            body = configmap(target.rpartition("/")[2], {"bad": "1"})
            _assert_denied(
                policies, name, "PATCH", target, body, query=applied, content_type="application/apply-patch+yaml"
            )
        _assert_denied(policies, name, "DELETE", path, query=dry_run)
        _assert_denied(policies, name, "DELETE", policies.path, query=dry_run)
    policies.client.get(path).expect(200)


def test_tenants_are_checked_by_our_server_on_both_clusters(cluster: E2eCluster, tenants: Tenants, unique: str) -> None:
    """kube-apiserver evaluates no policies for requests that it proxies, so our server does (R-018)."""
    namespace = "tenant-root"
    policies = Policies(cluster, namespace)
    rule = {"apiGroups": ["apps.cozystack.io"], "apiVersions": ["*"], "operations": ["*"], "resources": ["tenants"]}
    spec = {
        "matchConstraints": {"resourceRules": [rule]},
        "matchConditions": [{"name": "own", "expression": f"request.name.startsWith('{unique}')"}],
        "validations": [{"expression": "object == null || !object.metadata.name.endsWith('x')", "message": "no x"}],
    }
    body = {"apiVersion": "apps.cozystack.io/v1alpha1", "kind": "Tenant", "metadata": {"name": f"{unique}x"}}
    path = f"/apis/apps.cozystack.io/v1alpha1/namespaces/{namespace}/tenants"
    with policies.in_force(spec, wait=False) as name:

        def denied() -> Response | None:
            answer = policies.client.request("POST", path, body, query={"dryRun": "All"})
            return answer if answer.status == 422 else None

        answer = wait_until("the policy denies the request", denied, processes=cluster.processes)
        denial = f"ValidatingAdmissionPolicy '{name}' with binding '{name}' denied request: no x"
        assert answer.json()["message"] == f'tenants.apps.cozystack.io "{unique}x" is forbidden: {denial}'


def test_a_policy_with_params_returns_a_warning(policies: Policies) -> None:
    policies.write(configmap("limits", {"most": "a"}, labels={"limits": "yes"})).expect(201)
    spec = {
        "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
        "validations": [{"expression": "object.?data.a.orValue('') <= params.data.most", "message": "too much"}],
    }
    for ref in ({"name": "limits"}, {"selector": {"matchLabels": {"limits": "yes"}}}):
        binding = {"paramRef": {**ref, "parameterNotFoundAction": "Deny"}}
        with policies.in_force(spec, actions=["Warn"], binding=binding) as name:
            answer = policies.write(configmap("judged", {"a": "b"}), dryRun="All")
            answer.expect(201)
            text = f"Validation failed for ValidatingAdmissionPolicy '{name}' with binding '{name}': too much"
            assert answer.warnings == [f'299 - "{text}"']


_NOT_FOUND = "no params found for policy binding with `Deny` parameterNotFoundAction"


@pytest.mark.parametrize(
    ("kind", "ref", "text"),
    [
        pytest.param(
            "ConfigMap",
            {"name": "none"},
            f"' with binding 'P' denied request: failed to configure binding: {_NOT_FOUND}",
            id="a missing parameter",
        ),
        pytest.param(
            "Nothing", {"name": "none"},
            "' denied request: failed to configure policy: failed to find resource referenced by paramKind: "
            "'/v1, Kind=Nothing'",
            id="an unknown kind",
        ),
        pytest.param(
            "Namespace", {"name": "none", "namespace": "x"},
            "' with binding 'P' denied request: failed to configure binding: paramRef.namespace must not be provided "
            "for a cluster-scoped `paramKind`",
            id="a namespace for a cluster-scoped kind",
        ),
    ],
)  # fmt: skip
def test_configuration_errors_have_the_same_text_on_both_clusters(
    policies: Policies, kind: str, ref: Mapping[str, Any], text: str
) -> None:
    spec = {"paramKind": {"apiVersion": "v1", "kind": kind}, "validations": [{"expression": "true"}]}
    binding = {"paramRef": {**ref, "parameterNotFoundAction": "Deny"}}
    with policies.in_force(spec, binding=binding, wait=False) as name:

        def denied() -> Response | None:
            answer = policies.write(configmap("judged"), dryRun="All")
            synced = name in answer.content.decode() and "not yet synced" not in answer.content.decode()
            return answer if synced else None

        answer = wait_until("the policy is enforced", denied, processes=policies.cluster.processes)
        assert _denial(answer, name)[2].endswith(f"ValidatingAdmissionPolicy 'P{text}")


def _cpu_seconds(client: Client) -> float:
    """The processor time of the server so far."""
    found = re.search(r"^process_cpu_seconds_total (\S+)$", client.get("/metrics").content.decode(), re.MULTILINE)
    assert found is not None
    return float(found[1])


_LOOPS = "lists.range(99999).all(a, lists.range(99999).all(b, lists.range(99999).all(c, true)))"
_PATTERNS = "'" + "a" * 2000 + "!'.matches('(a+)+$') || '" + "a" * 2000 + "!'.find('(a+)+$') == 'x'"


@pytest.mark.usefixtures("embedded")
@pytest.mark.parametrize(
    ("expression", "least"),
    [
        pytest.param(_LOOPS, 0.9, id="loops"),
        # their time is linear, so that nothing has to be cut off
        pytest.param(_PATTERNS, 0.0, id="patterns"),
    ],
)
def test_an_expensive_expression_is_cut_off(policies: Policies, expression: str, least: float) -> None:
    with policies.in_force({"validations": [{"expression": expression}]}, actions=["Warn"]):
        client = policies.cluster.client()
        used = list[float]()
        # an evaluation has one second of processor time, whatever the clock says; the rest is other work of the server,
        # which at times is busy with what earlier tests left
        while len(used) < 5 and not (used and min(used) < 4):
            before = _cpu_seconds(client)
            policies.write(configmap("judged"), dryRun="All").expect(201)
            used.append(_cpu_seconds(client) - before)
        assert least <= min(used) < 4, used


def test_a_policy_with_expressions_that_do_not_compile_is_not_stored(policies: Policies) -> None:
    name = f"p{uuid.uuid4().hex[:8]}"
    policy: dict[str, Any] = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": name},
        "spec": {
            "matchConstraints": {"resourceRules": [dict(CONFIGMAPS)]},
            "matchConditions": [{"name": "c", "expression": "nobody == 1"}],
            "variables": [{"name": "v", "expression": "object.x >"}],
            "validations": [{"expression": "'text'", "messageExpression": "1 +"}],
            "auditAnnotations": [{"key": "k", "valueExpression": "1"}],
        },
    }
    refused = policies.client.request("POST", POLICIES, policy).expect(422)
    fields = {each["field"] for each in refused["details"]["causes"]}
    assert fields == {
        "spec.matchConditions[0].expression",
        "spec.variables[0].expression",
        "spec.validations[0].expression",
        "spec.validations[0].messageExpression",
        "spec.auditAnnotations[0].valueExpression",
    }
    assert "spec.variables[0].expression: Invalid value: " in refused["message"]
    assert "compilation failed: ERROR: <input>:1:" in refused["message"]
    assert policies.client.get(f"{POLICIES}/{name}").status == 404
