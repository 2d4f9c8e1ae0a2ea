"""Records which writes admission sees, by a policy or by a webhook, and denies them on demand.

A recorder covers the Tenants of one namespace. A new kind of recorder is one more class with the two methods of
AdmissionRecorder and one more entry in RECORDERS.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol

from tests.e2e.support.admission.policies import BINDINGS, POLICIES
from tests.e2e.support.admission.webhook_server import AdmissionResponse, WebhookServer
from tests.e2e.support.admission.webhooks import Webhooks, tenant_resource
from tests.e2e.support.clusters.cluster import E2eCluster, tenants_path
from tests.e2e.support.clusters.processes import wait_until
from tests.e2e.support.http.https_client import Response
from tests.e2e.support.tenants import manifest

ALL_TENANT_WRITES = {
    "apiGroups": ["apps.cozystack.io"],
    "apiVersions": ["*"],
    "operations": ["*"],
    "resources": ["tenants", "tenants/*"],
}
_PREFIX = "recorder: "
_DENIAL_MESSAGE = "denied by the recorder"
_RECORDING, _DENYING = "record.example.com", "deny.example.com"


class AdmissionRecorder(Protocol):
    def recorded_operations(self, answer: Response) -> list[str]:
        """Returns 'OPERATION name' for each object that admission saw in the request with this response."""
        ...

    def denying(self) -> AbstractContextManager[None]:
        """Denies every write inside the context."""
        ...


class _WarningRecorder:
    """Reads the recorded operations from the warnings of the response, one per operation."""

    def recorded_operations(self, answer: Response) -> list[str]:
        found = [each.partition(_PREFIX)[2].rstrip('"') for each in answer.warnings if _PREFIX in each]
        return [each.strip() for each in found]


class PolicyRecorder(_WarningRecorder):
    """Records by a ValidatingAdmissionPolicy that only warns."""

    def __init__(self, cluster: E2eCluster, namespace: str) -> None:
        self._cluster = cluster
        self._namespace = namespace
        self._client = cluster.client()

    @contextmanager
    def recording(self) -> Iterator[None]:
        name = "(object == null ? oldObject : object).metadata.?name.orValue('')"
        message = f"'{_PREFIX}' + request.operation + ' ' + {name}"
        validation = {"expression": "false", "messageExpression": message, "message": _PREFIX}
        with self._configured(
            {"validations": [validation]}, "Warn", lambda answer: bool(self.recorded_operations(answer))
        ):
            yield

    @contextmanager
    def denying(self) -> Iterator[None]:
        validation = {"expression": "false", "message": _DENIAL_MESSAGE}
        with self._configured({"validations": [validation]}, "Deny", is_denied_by_recorder):
            yield

    @contextmanager
    def _configured(
        self, spec: Mapping[str, Any], action: str, is_enforced: Callable[[Response], bool]
    ) -> Iterator[None]:
        name = f"recorder-{uuid.uuid4().hex[:8]}"
        policy = {"failurePolicy": "Fail", "matchConstraints": {"resourceRules": [ALL_TENANT_WRITES]}, **spec}
        selector = {"matchLabels": {"kubernetes.io/metadata.name": self._namespace}}
        binding = {
            "policyName": name,
            "validationActions": [action],
            "matchResources": {"namespaceSelector": selector},
        }
        try:
            self._create(POLICIES, name, policy)
            self._create(BINDINGS, name, binding)
            wait_until("the policy is enforced", lambda: is_enforced(self._probe()), processes=self._cluster.processes)
            yield
        finally:
            for path in (BINDINGS, POLICIES):
                self._client.request("DELETE", f"{path}/{name}")
        wait_until(
            "the policy has no effect", lambda: not is_enforced(self._probe()), processes=self._cluster.processes
        )

    def _create(self, path: str, name: str, spec: Mapping[str, Any]) -> None:
        self._client.request("POST", path, {"metadata": {"name": name}, "spec": dict(spec)}).expect(201)

    def _probe(self) -> Response:
        body = manifest("probe", self._namespace)
        return self._client.request("POST", tenants_path(self._namespace), body, query={"dryRun": "All"})


def is_denied_by_recorder(answer: Response) -> bool:
    return answer.status in (403, 422) and _DENIAL_MESSAGE in answer.content.decode()


@contextmanager
def policy_recorder(cluster: E2eCluster, namespace: str) -> Iterator[AdmissionRecorder]:
    recorder = PolicyRecorder(cluster, namespace)
    with recorder.recording():
        yield recorder


class WebhookRecorder(_WarningRecorder):
    """Records by a validating webhook on a real server."""

    def __init__(self, cluster: E2eCluster, namespace: str, server: WebhookServer) -> None:
        self._webhooks = Webhooks(cluster, server, replace(tenant_resource(), namespace=namespace))
        self._selector = {"matchLabels": {"kubernetes.io/metadata.name": namespace}}
        server.respond_with(f"/{_RECORDING}", _respond_with_warning)
        server.respond_with(f"/{_DENYING}", {"allowed": False, "status": {"message": _DENIAL_MESSAGE, "code": 403}})

    @contextmanager
    def recording(self) -> Iterator[None]:
        with self._configured(_RECORDING):
            yield

    @contextmanager
    def denying(self) -> Iterator[None]:
        with self._configured(_DENYING):
            yield

    def _configured(self, name: str) -> AbstractContextManager[str]:
        # `Webhooks.in_force` probes with labelled objects, which are not recorded
        others = {"matchExpressions": [{"key": "probe", "operator": "DoesNotExist"}]}
        hook = self._webhooks.hook(
            name, rules=[ALL_TENANT_WRITES], objectSelector=others, namespaceSelector=self._selector
        )
        return self._webhooks.in_force("Validating", hook)


def _respond_with_warning(request: Mapping[str, Any]) -> AdmissionResponse:
    name = (request["object"] or request["oldObject"])["metadata"].get("name", "")
    return {"allowed": True, "warnings": [f"{_PREFIX}{request['operation']} {name}"]}


@contextmanager
def webhook_recorder(cluster: E2eCluster, namespace: str) -> Iterator[AdmissionRecorder]:
    with TemporaryDirectory() as directory:
        server = WebhookServer(Path(directory))
        try:
            recorder = WebhookRecorder(cluster, namespace, server)
            with recorder.recording():
                yield recorder
        finally:
            server.stop()


RECORDERS: Mapping[str, Callable[[E2eCluster, str], AbstractContextManager[AdmissionRecorder]]] = {
    "policy": policy_recorder,
    "webhook": webhook_recorder,
}
