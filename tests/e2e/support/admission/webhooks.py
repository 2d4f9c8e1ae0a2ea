"""Webhook configurations for a test, and the resources that they admit."""

from __future__ import annotations

import base64
import json
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

from tests.e2e.support.admission.webhook_server import WebhookServer
from tests.e2e.support.clusters.cluster import ROOT, E2eCluster
from tests.e2e.support.http.https_client import Body, Client, Response

_ADMISSION = "/apis/admissionregistration.k8s.io/v1"
_LABEL = "webhooks"
_PROBE = "probe.example.com"
MERGE, JSON = "application/merge-patch+json", "application/json-patch+json"
APPLY = "application/apply-patch+yaml"

HOOK = "hook.example.com"
"""The name of the webhook in tests with a single one."""
ALLOWED: Mapping[str, Any] = {"allowed": True}
DENIED: Mapping[str, Any] = {"allowed": False, "status": {"message": "no"}}
DENIAL_MESSAGE = f'admission webhook "{HOOK}" denied the request: no'

Kind = Literal["Validating", "Mutating"]


@dataclass(frozen=True, slots=True)
class AdmittedResource:
    """A resource in one namespace whose requests are sent to webhooks."""

    group: str
    version: str
    kind: str
    plural: str
    namespace: str

    @property
    def path(self) -> str:
        root = f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"
        return f"{root}/namespaces/{self.namespace}/{self.plural}"

    @property
    def qualified_name(self) -> str:
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def rule(self) -> dict[str, Any]:
        return {
            "apiGroups": [self.group],
            "apiVersions": [self.version],
            "operations": ["*"],
            "resources": [self.plural],
        }

    def body(self, name: str = "", **metadata: Any) -> dict[str, Any]:
        api_version = f"{self.group}/{self.version}" if self.group else self.version
        named = {"name": name} if name else {}
        return {"apiVersion": api_version, "kind": self.kind, "metadata": {**named, **metadata}}


def tenant_resource() -> AdmittedResource:
    """Tenants: on both clusters our server calls the webhooks, since kube-apiserver only proxies the requests."""
    return AdmittedResource("apps.cozystack.io", "v1alpha1", "Tenant", "tenants", ROOT)


def configmap_resource(namespace: str) -> AdmittedResource:
    """ConfigMaps: a kube-apiserver calls the webhooks itself."""
    return AdmittedResource("", "v1", "ConfigMap", "configmaps", namespace)


def json_patch_response(*operations: Mapping[str, Any]) -> dict[str, Any]:
    """An AdmissionResponse that allows the request and patches its object."""
    text = base64.b64encode(json.dumps(operations).encode()).decode()
    return {"allowed": True, "patchType": "JSONPatch", "patch": text}


def status_message(answer: Response) -> str:
    found: str = answer.json().get("message", "")
    return found


def call_failure_message(name: str, why: str) -> str:
    """The error message for a webhook that cannot be called."""
    return f'Internal error occurred: failed calling webhook "{name}": failed to call webhook: {why}'


class Webhooks:
    """Creates webhooks for those objects of some resources that have a label of their own."""

    def __init__(self, cluster: E2eCluster, server: WebhookServer, *resources: AdmittedResource) -> None:
        self.cluster = cluster
        self.client: Client = cluster.client()
        self._server = server
        self._resources = resources
        self._value = uuid.uuid4().hex[:8]
        self._ca = base64.b64encode(server.ca).decode()

    @property
    def labels(self) -> dict[str, str]:
        return {_LABEL: self._value}

    def hook(self, name: str, path: str = "", **more: Any) -> dict[str, Any]:
        """A webhook that the server answers at `path`; a None in `more` omits the field."""
        hook = {
            "name": name,
            "clientConfig": {"url": f"{self._server.url}{path or f'/{name}'}", "caBundle": self._ca},
            "rules": [each.rule for each in self._resources],
            "objectSelector": {"matchLabels": self.labels},
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
            **more,
        }
        return {name: value for name, value in hook.items() if value is not None}

    def service(self, name: str, namespace: str, **more: Any) -> dict[str, Any]:
        """A clientConfig that names a Service."""
        return {"service": {"name": name, "namespace": namespace, **more}, "caBundle": self._ca}

    def url(self, url: str) -> dict[str, Any]:
        return {"url": url, "caBundle": self._ca}

    @contextmanager
    def in_force(self, kind: Kind, *hooks: Mapping[str, Any]) -> Iterator[str]:
        """Creates a configuration with these webhooks, and yields its name once they are called for each resource.

        They are called for none any more when `in_force` returns.
        """
        name = f"c{uuid.uuid4().hex[:8]}"
        probe = self.hook(_PROBE, f"/probe-{name}", objectSelector={"matchLabels": {"probe": name}})
        self._server.respond_with(f"/probe-{name}", {"allowed": False, "status": {"message": "probe"}})
        path = f"{_ADMISSION}/{kind.lower()}webhookconfigurations"
        body = {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": f"{kind}WebhookConfiguration",
            "metadata": {"name": name},
            "webhooks": [*hooks, probe],
        }
        self.client.request("POST", path, body).expect(201)
        try:
            self.cluster.wait_until(f"{kind} webhooks are called", lambda: all(self._calls(name)))
            yield name
        finally:
            self.client.request("DELETE", f"{path}/{name}").expect(200)
        self.cluster.wait_until(f"{kind} webhooks are not called any more", lambda: not any(self._calls(name)))

    def create(
        self, resource: AdmittedResource, name: str = "judged", *, dry: bool = True, **metadata: Any
    ) -> Response:
        query = {"dryRun": "All"} if dry else {}
        return self.client.request("POST", resource.path, self.body(resource, name, **metadata), query=query)

    def body(self, resource: AdmittedResource, name: str = "judged", **metadata: Any) -> dict[str, Any]:
        """An object that the webhooks match."""
        labels = {**self.labels, **metadata.pop("labels", {})}
        return resource.body(name, labels=labels, **metadata)

    def send(
        self, method: str, path: str, body: Body = None, *, content_type: str = "application/json", **query: str
    ) -> Response:
        return self.client.request(method, path, body, content_type=content_type, query=query)

    def _calls(self, name: str) -> list[bool]:
        """True for each resource for which the webhooks of this configuration are called."""
        return [self._is_called(each, name) for each in self._resources]

    def _is_called(self, resource: AdmittedResource, name: str) -> bool:
        body = resource.body("webhookprobe", labels={"probe": name})
        answer = self.client.request("POST", resource.path, body, query={"dryRun": "All"})
        return _PROBE in answer.content.decode()


def in_call_order(server: WebhookServer, paths: Sequence[str]) -> list[str]:
    """The paths in the order of their calls, once per call."""
    found = [(call, path) for path in paths for call in server.calls(path)]
    return [path for call, path in sorted(found, key=lambda each: each[0].number)]
