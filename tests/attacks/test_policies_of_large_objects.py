"""ATTACK-17: an object with ten thousand entries gets the verdict of the policies, not that of a limit of our own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.attacks.support.load_probe import Bystander, measure_impact
from tests.attacks.support.two_tenants import TenantAdmin
from tests.e2e.support.admission.policies import Policies, configmap
from tests.e2e.support.admission.webhook_server import WebhookServer
from tests.e2e.support.admission.webhooks import (
    DENIAL_MESSAGE,
    DENIED,
    HOOK,
    Webhooks,
    configmap_resource,
    tenant_resource,
)
from tests.e2e.support.clusters.cluster import PATIENCE, ROOT, E2eCluster, tenants_path
from tests.e2e.support.clusters.kube import KubeCluster
from tests.e2e.support.clusters.processes import wait_until
from tests.e2e.support.http.https_client import Response
from tests.e2e.support.tenants import manifest


def _harmless(entries: int) -> dict[str, str]:
    return {f"k{number:x}": "v" for number in range(entries)}


# the CEL library ends an evaluation after 9,999 iterations; annotations have at most 256 KiB
ENTRIES = 10_100
HARMLESS = _harmless(ENTRIES)
BAD = {**HARMLESS, "bad": "v"}
# for a kube-apiserver, which takes time quadratic in the length of a list that `map` builds
FEWER = _harmless(500)
_KEYS = "object.metadata.annotations"

EXPRESSIONS = [
    pytest.param(f"{_KEYS}.all(k, k != 'bad')", id="all"),
    pytest.param(f"!{_KEYS}.exists(k, k == 'bad')", id="exists"),
    pytest.param(f"!{_KEYS}.exists_one(k, k == 'bad')", id="exists_one"),
    pytest.param(f"{_KEYS}.filter(k, k.startsWith('b')).size() == 0", id="filter"),
    pytest.param(f"!('bad' in {_KEYS}.map(k, k))", id="map"),
    pytest.param(f"{_KEYS}.map(k, k != 'k1', k).all(k, k != 'bad')", id="one after another"),
    pytest.param(f"{_KEYS}.all(k, v, k != 'bad' && v == 'v')", id="two variables of a map"),
    pytest.param(f"{_KEYS}.map(k, k).all(i, k, i >= 0 && i < 10101 && k != 'bad')", id="two variables of a list"),
    pytest.param(f"{_KEYS}.transformList(k, v, k.startsWith('b'), v) == []", id="transformList"),
    pytest.param(f"{_KEYS}.all(k, ['bad', 'worse'].all(each, k != each))", id="a short loop in a long one"),
    pytest.param(f"['bad', 'worse'].all(each, {_KEYS}.all(k, k != each))", id="a long loop in a short one"),
    pytest.param(f"['bad'].all(each, {_KEYS}.filter(k, k == each).size() == 0)", id="a long list in a loop"),
    pytest.param("variables.keys.all(k, k != 'bad')", id="a variable"),
]
VARIABLES = [{"name": "keys", "expression": f"{_KEYS}.map(k, k)"}]


@pytest.fixture
def policies(cluster: E2eCluster, unique: str) -> Iterator[Policies]:
    client = cluster.client()
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": unique}}
    client.request("POST", "/api/v1/namespaces", namespace).expect(201)
    yield Policies(cluster, unique)
    client.request("DELETE", f"/api/v1/namespaces/{unique}")


@pytest.fixture
def hook_server(tmp_path: Path) -> Iterator[WebhookServer]:
    running = WebhookServer(tmp_path)
    yield running
    running.stop()


def _write(policies: Policies, annotations: Mapping[str, str]) -> Response:
    return policies.write(configmap("judged", annotations=dict(annotations)), dryRun="All")


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_an_object_with_ten_thousand_entries_gets_the_verdict_of_the_policy(
    cluster: E2eCluster, policies: Policies, expression: str
) -> None:
    """A kube-apiserver judges the ConfigMap of one cluster, with fewer entries, our server that of the other: bad is
    refused, harmless admitted. An error would admit both, because it is ignored."""
    harmless = FEWER if isinstance(cluster, KubeCluster) else HARMLESS
    spec = {"failurePolicy": "Ignore", "variables": VARIABLES, "validations": [{"expression": expression}]}
    with policies.in_force(spec):
        assert _write(policies, harmless).status == 201
        denied = _write(policies, {**harmless, "bad": "v"})
        assert denied.status == 422, denied.body
        assert "denied request: " in denied.json()["message"]


TENANTS = {"apiGroups": ["apps.cozystack.io"], "apiVersions": ["*"], "operations": ["*"], "resources": ["tenants"]}


@contextmanager
def tenant_policy(cluster: E2eCluster, spec: Mapping[str, Any], enforced: Callable[[], bool]) -> Iterator[str]:
    """A policy for Tenants of the root namespace, which our server evaluates on both clusters."""
    policies = Policies(cluster, ROOT)
    with policies.in_force({"matchConstraints": {"resourceRules": [TENANTS]}, **spec}, wait=False) as name:
        wait_until("the policy is enforced", enforced, seconds=PATIENCE, processes=cluster.processes)
        yield name


def _create(cluster: E2eCluster, name: str, annotations: Mapping[str, str]) -> Response:
    body = manifest(name, annotations=dict(annotations))
    return cluster.client().request("POST", tenants_path(ROOT), body, query={"dryRun": "All"})


@pytest.mark.parametrize("failure_policy", ["Ignore", "Fail"])
def test_a_tenant_with_ten_thousand_annotations_gets_the_verdict_of_the_policy(
    cluster: E2eCluster, unique: str, failure_policy: str
) -> None:
    spec = {
        "failurePolicy": failure_policy,
        "matchConditions": [
            {"name": "own", "expression": f"request.name == '{unique}'"},
            {"name": "long", "expression": f"{_KEYS}.all(k, {_KEYS}.size() > 0 || k != '')"},
        ],
        "validations": [
            {
                "expression": f"{_KEYS}.all(k, k != 'bad')",
                "messageExpression": f"'of ' + string({_KEYS}.map(k, k).size()) + ' is bad'",
            }
        ],
        "auditAnnotations": [{"key": "size", "valueExpression": f"string({_KEYS}.filter(k, k != '').size())"}],
    }
    with tenant_policy(cluster, spec, lambda: _create(cluster, unique, {"bad": ""}).status == 422):
        assert _create(cluster, unique, HARMLESS).status == 201
        denied = _create(cluster, unique, BAD).expect(422)
        assert denied["message"].endswith(f"denied request: of {ENTRIES + 1} is bad")


@pytest.mark.parametrize("failure_policy", ["Ignore", "Fail"])
@pytest.mark.parametrize("plural", ["configmaps", "tenants"])
def test_a_webhook_is_called_for_an_object_with_ten_thousand_annotations(
    cluster: E2eCluster, hook_server: WebhookServer, plural: str, failure_policy: str
) -> None:
    """Its matchConditions say that it has to be: a kube-apiserver evaluates those of ConfigMaps on one cluster, our
    server all others."""
    admitted = tenant_resource() if plural == "tenants" else configmap_resource("default")
    webhooks = Webhooks(cluster, hook_server, admitted)
    hook_server.respond_with(f"/{HOOK}", DENIED)
    condition = {"name": "long", "expression": f"{_KEYS}.exists(k, k == 'bad')"}
    hook = webhooks.hook(HOOK, matchConditions=[condition], failurePolicy=failure_policy)
    with webhooks.in_force("Validating", hook):
        assert webhooks.create(admitted, annotations=HARMLESS).status == 201
        denied = webhooks.create(admitted, annotations=BAD)
        assert (denied.status, denied.json()["message"]) == (400, DENIAL_MESSAGE)


_ENDLESS = f"{_KEYS}.all(a, {_KEYS}.all(b, {_KEYS}.all(c, a != b || b != c || a == c)))"


def test_a_policy_that_would_take_too_long_admits_nothing_and_delays_nobody(
    cluster: E2eCluster, bob: TenantAdmin, unique: str
) -> None:
    """The limit is ours, so the failurePolicy does not decide. Two clients that send such objects do not slow down the
    reads of another one."""
    own = {"name": "own", "expression": f"request.name == '{unique}'"}
    spec = {
        "failurePolicy": "Ignore",
        "matchConditions": [own],
        "validations": [{"expression": f"!('bad' in {_KEYS}) && {_ENDLESS}"}],
    }
    with tenant_policy(cluster, spec, lambda: _create(cluster, unique, {"bad": ""}).status == 422):
        assert _create(cluster, unique, {"a": ""}).status == 201
        bystander = Bystander(bob.client, tenants_path())
        found = measure_impact(bystander, lambda: _create(cluster, unique, HARMLESS).status)
        bystander.close()
        assert set(found.codes) <= {429, 500}, found
        assert found.is_acceptable, found
        refused = _create(cluster, unique, HARMLESS).expect(500)
        assert "could not be evaluated: it takes more than 1 s of CPU time" in refused["message"]


def test_a_text_with_a_nul_character_is_not_taken_for_its_first_part(cluster: E2eCluster, unique: str) -> None:
    """The CEL library ends a text at a NUL character."""
    spec = {
        "failurePolicy": "Ignore",
        "matchConditions": [{"name": "own", "expression": f"request.name == '{unique}'"}],
        "validations": [{"expression": f"{_KEYS}.team in ['good', 'better']"}],
    }
    with tenant_policy(cluster, spec, lambda: _create(cluster, unique, {"team": "x"}).status == 422):
        assert _create(cluster, unique, {"team": "good"}).status == 201
        assert _create(cluster, unique, {"team": "good\0evil"}).status in (422, 500)
