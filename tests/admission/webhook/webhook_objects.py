"""Webhook configurations and plugins over values, as tests need them."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from prometheus_client import CollectorRegistry

from admission.webhook.accessor import Endpoint
from admission.webhook.configuration_source import WebhookSource
from admission.webhook.dispatcher import WebhookDependencies
from admission.webhook.errors import CallFailed
from admission.webhook.metrics import WebhookMetrics
from admission.webhook.mutating import MutatingWebhooks
from admission.webhook.validating import ValidatingWebhooks
from apiserver.authorization.authorizer import Authorizer
from apiserver.meta.resource import Object
from tests.admission.policy.policy_objects import ROOT_NAMESPACE, Namespaces, Verdicts
from tests.run_coroutine import run_coroutine

RULES = [{"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["tenants"]}]
ALLOWED: Mapping[str, Any] = {"allowed": True}
DENIED: Mapping[str, Any] = {"allowed": False, "status": {"message": "no"}}

Response = Mapping[str, Any] | CallFailed
"""An AdmissionResponse without its uid, or what goes wrong instead."""


def hook(name: str = "x.example.com", **fields: Any) -> Object:
    """The `url` of a webhook is its name."""
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


class Caller:
    """A WebhookCaller that answers by the host of the URL, and keeps what it was asked."""

    def __init__(self, responses: Mapping[str, Response | Callable[[Mapping[str, Any]], Response]]) -> None:
        self._responses = responses
        self.asked: list[tuple[str, Mapping[str, Any]]] = []
        self.seconds: list[tuple[float, float]] = []

    @property
    def names(self) -> list[str]:
        return [name for name, _ in self.asked]

    async def post(self, endpoint: Endpoint, body: bytes, *, seconds: float, remaining: float) -> bytes:
        name, review = endpoint.url.removeprefix("https://").rstrip("/"), json.loads(body)
        self.asked.append((name, review))
        self.seconds.append((seconds, remaining))
        found = self._responses[name]
        response = found(review["request"]) if callable(found) else found
        # as on the network, others come in between
        await asyncio.sleep(0)
        if isinstance(response, CallFailed):
            raise response
        whole = {"uid": review["request"]["uid"], **response}
        return json.dumps({"apiVersion": review["apiVersion"], "kind": review["kind"], "response": whole}).encode()


def held(*configurations: Object, synced: bool = True) -> WebhookSource:
    event = asyncio.Event()
    if synced:
        event.set()
    found = WebhookSource(synced=event)
    run_coroutine(found.configurations.replace(configurations, 1))
    return found


def webhook_dependencies(
    caller: Caller, *, registry: CollectorRegistry | None = None, authorizer: Authorizer | None = None
) -> WebhookDependencies:
    return WebhookDependencies(
        caller=caller,
        namespaces=Namespaces(ROOT_NAMESPACE),
        authorizer=authorizer or Verdicts(),
        metrics=WebhookMetrics(registry or CollectorRegistry()),
    )


def validating(caller: Caller, *hooks: Object, **more: Any) -> ValidatingWebhooks:
    return ValidatingWebhooks(held(configuration(*hooks)), webhook_dependencies(caller, **more))


def mutating(caller: Caller, *hooks: Object, **more: Any) -> MutatingWebhooks:
    return MutatingWebhooks(held(configuration(*hooks)), webhook_dependencies(caller, **more))


def allowing(*names: str) -> Caller:
    return Caller(dict.fromkeys(names, ALLOWED))


def names_of(hooks: Sequence[Object]) -> list[str]:
    return [each["name"] for each in hooks]
