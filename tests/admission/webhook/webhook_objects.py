"""Webhook configurations and plugins over in-memory values, for tests."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from prometheus_client import CollectorRegistry

from admission.webhook.accessor import WebhookEndpoint
from admission.webhook.configuration_source import WebhookSource
from admission.webhook.dispatcher import WebhookDependencies
from admission.webhook.errors import CallFailed
from admission.webhook.metrics import WebhookMetrics
from admission.webhook.mutating import MutatingWebhooks
from admission.webhook.validating import ValidatingWebhooks
from apiserver.authorization.authorizer import Authorizer
from apiserver.meta.resource import Object
from tests.admission.policy.policy_objects import ROOT_NAMESPACE, StubAuthorizer, StubNamespaces
from tests.run_coroutine import run_coroutine

RULES = [{"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["tenants"]}]
ALLOWED: Mapping[str, Any] = {"allowed": True}
DENIED: Mapping[str, Any] = {"allowed": False, "status": {"message": "no"}}

Response = Mapping[str, Any] | CallFailed
"""An AdmissionResponse without its uid, or the failure of the call."""


def hook(name: str = "x.example.com", **fields: Any) -> Object:
    """A webhook whose URL is https://<name>/."""
    return {
        "name": name,
        "clientConfig": {"url": f"https://{name}/"},
        "rules": RULES,
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        **fields,
    }


def configuration(*hooks: Object, name: str = "c") -> Object:
    return {"metadata": {"name": name, "resourceVersion": "1"}, "webhooks": list(hooks)}


def patch_of(*operations: Mapping[str, Any]) -> Mapping[str, Any]:
    text = base64.b64encode(json.dumps(operations).encode()).decode()
    return {"allowed": True, "patchType": "JSONPatch", "patch": text}


class StubCaller:
    """A WebhookCaller that selects the response by the host of the URL, and records the calls."""

    def __init__(self, responses: Mapping[str, Response | Callable[[Mapping[str, Any]], Response]]) -> None:
        self._responses = responses
        self.calls: list[tuple[str, Mapping[str, Any]]] = []
        self.seconds: list[tuple[float, float]] = []

    @property
    def names(self) -> list[str]:
        return [name for name, _ in self.calls]

    async def post(self, endpoint: WebhookEndpoint, body: bytes, *, seconds: float, remaining: float) -> bytes:
        name, review = endpoint.url.removeprefix("https://").rstrip("/"), json.loads(body)
        self.calls.append((name, review))
        self.seconds.append((seconds, remaining))
        found = self._responses[name]
        response = found(review["request"]) if callable(found) else found
        # yields to the event loop, as a network call does
        await asyncio.sleep(0)
        if isinstance(response, CallFailed):
            raise response
        full_response = {"uid": review["request"]["uid"], **response}
        return json.dumps(
            {"apiVersion": review["apiVersion"], "kind": review["kind"], "response": full_response}
        ).encode()


def webhook_source(*configurations: Object) -> WebhookSource:
    source = WebhookSource()
    run_coroutine(source.configurations.replace(configurations, 1))
    return source


def webhook_dependencies(
    caller: StubCaller, *, registry: CollectorRegistry | None = None, authorizer: Authorizer | None = None
) -> WebhookDependencies:
    return WebhookDependencies(
        caller=caller,
        namespaces=StubNamespaces(ROOT_NAMESPACE),
        authorizer=authorizer or StubAuthorizer(),
        metrics=WebhookMetrics(registry or CollectorRegistry()),
    )


def validating(caller: StubCaller, *hooks: Object, **more: Any) -> ValidatingWebhooks:
    return ValidatingWebhooks(webhook_source(configuration(*hooks)), webhook_dependencies(caller, **more))


def mutating(caller: StubCaller, *hooks: Object, **more: Any) -> MutatingWebhooks:
    return MutatingWebhooks(webhook_source(configuration(*hooks)), webhook_dependencies(caller, **more))


def allowing(*names: str) -> StubCaller:
    return StubCaller(dict.fromkeys(names, ALLOWED))


def names_of(hooks: Sequence[Object]) -> list[str]:
    return [each["name"] for each in hooks]
