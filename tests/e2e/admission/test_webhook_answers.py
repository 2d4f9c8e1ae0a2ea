"""Responses of webhooks: kube-apiserver (for ConfigMaps) and our server (for Tenants) handle them alike."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.e2e.support.admission.webhook_cases import CASES, WebhookCase
from tests.e2e.support.admission.webhook_server import WebhookServer
from tests.e2e.support.admission.webhooks import AdmittedResource, Webhooks, configmap_resource, tenant_resource
from tests.e2e.support.clusters.cluster import E2eCluster

_UID = re.compile(r"[0-9a-f]{8}-[0-9a-f-]{27}")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebhookServer]:
    running = WebhookServer(tmp_path_factory.mktemp("webhooks"))
    yield running
    running.stop()


@pytest.fixture(scope="module")
def webhooks(cluster: E2eCluster, server: WebhookServer) -> Iterator[Webhooks]:
    """The webhooks of all cases, each matching the objects with the label of its case."""
    made = Webhooks(cluster, server, configmap_resource("default"), tenant_resource())
    hooks: dict[str, list[dict[str, Any]]] = {"Validating": [], "Mutating": []}
    for number, case in enumerate(CASES):
        name = f"c{number}.example.com"
        server.respond_with(f"/{name}", case.answer)
        selector = {"matchLabels": {**made.labels, "case": str(number)}}
        hooks[case.kind].append(made.hook(name, objectSelector=selector, **case.hook))
    with made.in_force("Validating", *hooks["Validating"]), made.in_force("Mutating", *hooks["Mutating"]):
        yield made


@pytest.mark.parametrize(
    "admitted", [configmap_resource("default"), tenant_resource()], ids=lambda admitted: admitted.plural
)
@pytest.mark.parametrize(("number", "case"), list(enumerate(CASES)), ids=[case.id for case in CASES])
def test_a_webhook_response_has_the_same_effect_as_on_kube_apiserver(
    webhooks: Webhooks, number: int, case: WebhookCase, admitted: AdmittedResource
) -> None:
    answer = webhooks.create(admitted, labels={"case": str(number)})
    # a kube-apiserver names the scheme by the path of a source file, which depends on how it was built
    text = answer.content.decode().replace("k8s.io/apiserver/pkg/", "pkg/")
    status = json.loads(_UID.sub("UID", text))
    expected = json.loads(json.dumps(case.status).replace("{hook}", f"c{number}.example.com"))
    assert status == {"kind": "Status", "apiVersion": "v1", **expected}
    assert answer.status == expected["code"]


def test_the_retry_delay_of_a_denial_becomes_a_header(webhooks: Webhooks) -> None:
    [number] = [number for number, case in enumerate(CASES) if case.id == "a whole Status"]
    for admitted in (configmap_resource("default"), tenant_resource()):
        answer = webhooks.create(admitted, labels={"case": str(number)})
        assert answer.headers["Retry-After"] == "7"
