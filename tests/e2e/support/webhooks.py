"""Webhook configurations for a test: made, in force, and removed with it; and objects that they are about."""

from __future__ import annotations

import base64
import json
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

from tests.e2e.support.clusters import ROOT, E2eCluster
from tests.e2e.support.https_client import Body, Client, Response
from tests.e2e.support.processes import wait_until
from tests.e2e.support.webhook_server import WebhookServer

_ADMISSION = "/apis/admissionregistration.k8s.io/v1"
_LABEL = "webhooks"
_PROBE = "probe.example.com"
MERGE, JSON = "application/merge-patch+json", "application/json-patch+json"
APPLY = "application/apply-patch+yaml"

HOOK = "hook.example.com"
"""The name of a webhook where there is one."""
ALLOWED: Mapping[str, Any] = {"allowed": True}
DENIED: Mapping[str, Any] = {"allowed": False, "status": {"message": "no"}}
DENIAL_MESSAGE = f'admission webhook "{HOOK}" denied the request: no'

Kind = Literal["Validating", "Mutating"]


@dataclass(frozen=True, slots=True)
class AdmittedResource:
    """A resource that webhooks judge, in one namespace."""

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
    """What a kube-apiserver never judges: on both hosts it is this server that does."""
    return AdmittedResource("apps.cozystack.io", "v1alpha1", "Tenant", "tenants", ROOT)


def configmap_resource(namespace: str) -> AdmittedResource:
    """What a kube-apiserver judges itself."""
    return AdmittedResource("", "v1", "ConfigMap", "configmaps", namespace)


def json_patch_response(*operations: Mapping[str, Any]) -> dict[str, Any]:
    """The parts of an AdmissionResponse that change the object."""
    text = base64.b64encode(json.dumps(operations).encode()).decode()
    return {"allowed": True, "patchType": "JSONPatch", "patch": text}


def status_message(answer: Response) -> str:
    found: str = answer.json().get("message", "")
    return found


def call_failure_message(name: str, why: str) -> str:
    """What is said of a webhook that cannot be called."""
    return f'Internal error occurred: failed calling webhook "{name}": failed to call webhook: {why}'


class Webhooks:
    """In force for objects of `subjects` with one label."""

    def __init__(self, cluster: E2eCluster, server: WebhookServer, *subjects: AdmittedResource) -> None:
        self.cluster = cluster
        self.client: Client = cluster.client()
        self._server = server
        self._resources = subjects
        self._value = uuid.uuid4().hex[:8]
        self._ca = base64.b64encode(server.ca).decode()

    @property
    def labels(self) -> dict[str, str]:
        return {_LABEL: self._value}

    def hook(self, name: str, path: str = "", **more: Any) -> dict[str, Any]:
        """One webhook, which `path` of the server answers; None in `more` leaves a field out."""
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
        """A clientConfig by Service."""
        return {"service": {"name": name, "namespace": namespace, **more}, "caBundle": self._ca}

    def url(self, url: str) -> dict[str, Any]:
        return {"url": url, "caBundle": self._ca}

    @contextmanager
    def in_force(self, kind: Kind, *hooks: Mapping[str, Any]) -> Iterator[str]:
        """A configuration of these; its name is given. It is waited for until each subject is judged by it."""
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
            for each in self._resources:
                wait_until(
                    f"{kind} webhooks in force for {each.plural}",
                    lambda each=each: self._probed(each, name),  # type: ignore[misc]
                    processes=self.cluster.processes,
                )
            yield name
        finally:
            self.client.request("DELETE", f"{path}/{name}").expect(200)

    def create(self, subject: AdmittedResource, name: str = "judged", *, dry: bool = True, **metadata: Any) -> Response:
        query = {"dryRun": "All"} if dry else {}
        return self.client.request("POST", subject.path, self.body(subject, name, **metadata), query=query)

    def body(self, subject: AdmittedResource, name: str = "judged", **metadata: Any) -> dict[str, Any]:
        """An object that the webhooks are about."""
        labels = {**self.labels, **metadata.pop("labels", {})}
        return subject.body(name, labels=labels, **metadata)

    def send(
        self, method: str, path: str, body: Body = None, *, content_type: str = "application/json", **query: str
    ) -> Response:
        return self.client.request(method, path, body, content_type=content_type, query=query)

    def _probed(self, subject: AdmittedResource, name: str) -> bool:
        body = subject.body("webhookprobe", labels={"probe": name})
        answer = self.client.request("POST", subject.path, body, query={"dryRun": "All"})
        return _PROBE in answer.content.decode()


def in_call_order(server: WebhookServer, paths: Sequence[str]) -> list[str]:
    """These paths in the order in which they were called."""
    found = [(call, path) for path in paths for call in server.calls(path)]
    return [path for call, path in sorted(found, key=lambda each: each[0].number)]
