"""Whatever a webhook answers: a kube-apiserver for ConfigMaps, and this server for Tenants, say the same of it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.e2e.support.clusters import E2eCluster
from tests.e2e.support.webhook_cases import CASES, Case
from tests.e2e.support.webhook_server import WebhookServer
from tests.e2e.support.webhooks import Subject, Webhooks, configmaps, tenants

_UID = re.compile(r"[0-9a-f]{8}-[0-9a-f-]{27}")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebhookServer]:
    running = WebhookServer(tmp_path_factory.mktemp("webhooks"))
    yield running
    running.stop()


@pytest.fixture(scope="module")
def webhooks(cluster: E2eCluster, server: WebhookServer) -> Iterator[Webhooks]:
    """All cases, each for the objects with its label."""
    made = Webhooks(cluster, server, configmaps("default"), tenants())
    hooks: dict[str, list[dict[str, Any]]] = {"Validating": [], "Mutating": []}
    for number, case in enumerate(CASES):
        name = f"c{number}.example.com"
        server.on(f"/{name}", case.answer)
        selector = {"matchLabels": {**made.labels, "case": str(number)}}
        hooks[case.kind].append(made.hook(name, objectSelector=selector, **case.hook))
    with made.in_force("Validating", *hooks["Validating"]), made.in_force("Mutating", *hooks["Mutating"]):
        yield made


@pytest.mark.parametrize("subject", [configmaps("default"), tenants()], ids=lambda subject: subject.plural)
@pytest.mark.parametrize(("number", "case"), list(enumerate(CASES)), ids=[case.id for case in CASES])
def test_an_answer_comes_to_what_kubernetes_makes_of_it(
    webhooks: Webhooks, number: int, case: Case, subject: Subject
) -> None:
    answer = webhooks.create(subject, labels={"case": str(number)})
    status = json.loads(_UID.sub("UID", answer.content.decode()))
    expected = json.loads(json.dumps(case.status).replace("{hook}", f"c{number}.example.com"))
    assert status == {"kind": "Status", "apiVersion": "v1", **expected}
    assert answer.status == expected["code"]


def test_a_delay_that_a_webhook_asks_for_is_a_header(webhooks: Webhooks) -> None:
    [number] = [number for number, case in enumerate(CASES) if case.id == "a whole Status"]
    for subject in (configmaps("default"), tenants()):
        answer = webhooks.create(subject, labels={"case": str(number)})
        assert answer.headers["Retry-After"] == "7"
