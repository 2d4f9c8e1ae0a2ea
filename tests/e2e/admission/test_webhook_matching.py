"""Matching of webhooks, by kube-apiserver for ConfigMaps and by our server for Tenants."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from tests.e2e.support.admission.webhook_server import WebhookServer
from tests.e2e.support.admission.webhooks import (
    DENIAL_MESSAGE,
    DENIED,
    HOOK,
    AdmittedResource,
    Webhooks,
    configmap_resource,
    status_message,
    tenant_resource,
)
from tests.e2e.support.clusters.cluster import E2eCluster
from tests.e2e.support.clusters.processes import wait_until


@pytest.mark.parametrize(
    ("conditions", "status", "message"),
    [
        pytest.param(["object.metadata.name == 'other'"], 201, "", id="false"),
        pytest.param(["object.metadata.name == 'judged'", "true"], 400, DENIAL_MESSAGE, id="all true"),
        pytest.param(["object.nope == 1", "false"], 201, "", id="one false and one failing"),
        pytest.param(
            ["object.nope == 1"],
            403,
            "{} \"judged\" is forbidden: expression 'object.nope == 1' resulted in error: no such key: nope",
            id="one failing",
        ),
        pytest.param(
            ["object.nope == 1", "object.nix == 1"],
            403,
            "{} \"judged\" is forbidden: [expression 'object.nope == 1' resulted in error: no such key: nope, "
            "expression 'object.nix == 1' resulted in error: no such key: nix]",
            id="two failing",
        ),
        pytest.param(["namespaceObject == null && oldObject == null"], 400, DENIAL_MESSAGE, id="null variables"),
        pytest.param(
            ["authorizer.group('').resource('secrets').check('delete').allowed()"],
            400,
            DENIAL_MESSAGE,
            id="the authorizer",
        ),
        pytest.param(["request.dryRun && request.operation == 'CREATE'"], 400, DENIAL_MESSAGE, id="the request"),
    ],
)
@pytest.mark.parametrize("kind", ["Validating", "Mutating"])
def test_match_conditions_decide_whether_a_webhook_is_called(
    webhooks: Webhooks,
    hook_server: WebhookServer,
    admitted: AdmittedResource,
    kind: Any,
    conditions: Sequence[str],
    status: int,
    message: str,
) -> None:
    hook_server.respond_with(f"/{HOOK}", DENIED)
    named = [{"name": f"c{index}", "expression": text} for index, text in enumerate(conditions)]
    with webhooks.in_force(kind, webhooks.hook(HOOK, matchConditions=named)):
        answer = webhooks.create(admitted)
    assert (answer.status, status_message(answer)) == (status, message.format(admitted.qualified_name))


def test_a_failing_match_condition_skips_a_webhook_with_failure_policy_ignore(
    webhooks: Webhooks, hook_server: WebhookServer, admitted: AdmittedResource
) -> None:
    hook_server.respond_with(f"/{HOOK}", DENIED)
    failing = [{"name": "c", "expression": "object.nope == 1"}]
    with webhooks.in_force("Validating", webhooks.hook(HOOK, matchConditions=failing, failurePolicy="Ignore")):
        webhooks.create(admitted).expect(201)
    assert hook_server.calls(f"/{HOOK}") == []


@pytest.mark.parametrize(
    ("match", "called"),
    [
        pytest.param({"rules": None}, False, id="no rules"),
        pytest.param({"operations": ["UPDATE", "DELETE"]}, False, id="other operations"),
        pytest.param({"apiVersions": ["v9"]}, False, id="another version"),
        pytest.param({"resources": ["*"]}, True, id="all resources"),
        pytest.param({"resources": ["*/status"]}, False, id="subresources"),
        pytest.param({"scope": "Cluster"}, False, id="cluster scope"),
        pytest.param({"scope": "Namespaced"}, True, id="namespaced scope"),
        pytest.param(
            {"namespaceSelector": {"matchExpressions": [{"key": "kubernetes.io/metadata.name", "operator": "Exists"}]}},
            True,
            id="the namespace",
        ),
        pytest.param({"namespaceSelector": {"matchLabels": {"no": "such"}}}, False, id="another namespace"),
        pytest.param({"objectSelector": {"matchLabels": {"no": "such"}}}, False, id="other objects"),
    ],
)
def test_rules_and_selectors_decide_whether_a_webhook_is_called(
    webhooks: Webhooks, hook_server: WebhookServer, admitted: AdmittedResource, match: Mapping[str, Any], called: bool
) -> None:
    hook_server.respond_with(f"/{HOOK}", DENIED)
    fields = ("rules", "namespaceSelector", "objectSelector")
    own = {name: value for name, value in match.items() if name in fields}
    rule = {**admitted.rule, **{name: value for name, value in match.items() if name not in fields}}
    with webhooks.in_force("Validating", webhooks.hook(HOOK, **{"rules": [rule], **own})):
        assert webhooks.create(admitted).status == (400 if called else 201)


def test_webhooks_are_not_called_for_admission_configurations(
    cluster: E2eCluster, hook_server: WebhookServer, unique: str
) -> None:
    """Otherwise a faulty webhook could prevent its own deletion."""
    everything = [{"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*"]}]
    hook_server.respond_with(f"/{HOOK}", DENIED)
    webhooks = Webhooks(cluster, hook_server, tenant_resource())
    rules: dict[str, Any] = {"rules": everything, "objectSelector": {"matchLabels": {"own": unique}}}
    path = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
    policy = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": unique, "labels": {"own": unique}},
        "spec": {
            "matchConstraints": {"resourceRules": everything},
            "validations": [{"expression": "true"}],
        },
    }
    configmap = configmap_resource("default").body("judged", labels={"own": unique})
    with webhooks.in_force("Validating", webhooks.hook(HOOK, **rules)):
        create = configmap_resource("default").path
        wait_until(
            "the webhook is called", lambda: webhooks.send("POST", create, configmap, dryRun="All").status == 400
        )
        webhooks.send("POST", path, policy).expect(201)
        webhooks.send("DELETE", f"{path}/{unique}").expect(200)


def test_no_webhook_is_called_for_a_missing_namespace(
    cluster: E2eCluster, hook_server: WebhookServer, unique: str
) -> None:
    subjects = (configmap_resource("default"), tenant_resource())
    webhooks = Webhooks(cluster, hook_server, *subjects)
    hook_server.respond_with(f"/{HOOK}", DENIED)
    for kind in ("Validating", "Mutating"):
        with webhooks.in_force(kind, webhooks.hook(HOOK)):
            for each in subjects:
                answer = webhooks.send("POST", each.path.replace(each.namespace, unique), webhooks.body(each))
                assert (answer.status, status_message(answer)) == (404, f'namespaces "{unique}" not found')
    assert hook_server.calls(f"/{HOOK}") == []


@pytest.mark.usefixtures("embedded")
def test_match_conditions_that_do_not_compile_are_shown_in_readyz(
    cluster: E2eCluster, hook_server: WebhookServer
) -> None:
    webhooks = Webhooks(cluster, hook_server, tenant_resource())
    broken = [{"name": "c", "expression": "1 < 2.5"}]
    with webhooks.in_force("Validating", webhooks.hook(HOOK, matchConditions=broken)) as name:
        answer = webhooks.create(tenant_resource())
        assert (answer.status, answer.json()["reason"]) == (403, "Forbidden")
        shown = webhooks.client.get("/readyz", query={"verbose": ""}).content.decode()
    [line] = [each for each in shown.splitlines() if "admission-webhooks" in each]
    head, _, names = line.partition("[+]admission-webhooks ok: matchConditions that do not compile in: ")
    # there may be others, of earlier tests
    assert (head, f"{name}/{HOOK} (1)" in names.split(", ")) == ("", True), line


@pytest.mark.usefixtures("embedded")
@pytest.mark.parametrize(
    "fields",
    [
        {"rules": [{"operations": 5}]},
        {"rules": [{"resources": ["tenants", 5]}]},
        {"admissionReviewVersions": "v1"},
        {"matchConditions": [{"expression": "true"}]},
        {"timeoutSeconds": "x"},
    ],
    ids=str,
)
def test_a_webhook_configuration_with_wrong_types_is_rejected(cluster: E2eCluster, unique: str, fields: Any) -> None:
    body = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": unique},
        "webhooks": [{"name": HOOK, **fields}],
    }
    path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
    client = cluster.client()
    assert client.request("POST", path, body).status in (400, 422)
    assert client.get("/readyz").status == 200
