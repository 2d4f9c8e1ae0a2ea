"""Who can testify that admission saw a write: what it said of each, in the order in which it was asked.

A witness is put in front of the writes of one namespace and those below it; one more kind of it is one more class with
these two methods, and one more entry of RECORDERS.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol

from tests.e2e.support.clusters import E2eCluster, tenants_path
from tests.e2e.support.https_client import Response
from tests.e2e.support.policies import BINDINGS, POLICIES
from tests.e2e.support.processes import wait_until
from tests.e2e.support.tenants import manifest
from tests.e2e.support.webhook_server import AdmissionResponse, WebhookServer
from tests.e2e.support.webhooks import Webhooks, tenant_resource

ALL_TENANT_WRITES = {
    "apiGroups": ["apps.cozystack.io"],
    "apiVersions": ["*"],
    "operations": ["*"],
    "resources": ["tenants", "tenants/*"],
}
_DENIAL_MESSAGE = "refused by the witness"
_RECORDING, _DENYING = "sees.example.com", "refuses.example.com"


class AdmissionRecorder(Protocol):
    def recorded_operations(self, answer: Response) -> list[str]:
        """What it saw of the request that got this answer: an entry 'OPERATION name' for each object."""
        ...

    def denying(self) -> AbstractContextManager[None]:
        """While this lasts, it refuses all that it sees."""
        ...


class _WarningRecorder:
    """Tells of what it sees by a warning for each, in the answer itself."""

    def recorded_operations(self, answer: Response) -> list[str]:
        told = [warning.partition("witness: ")[2].rstrip('"') for warning in answer.warnings if "witness: " in warning]
        return [each.strip() for each in told]


class PolicyRecorder(_WarningRecorder):
    """A ValidatingAdmissionPolicy."""

    def __init__(self, cluster: E2eCluster, namespace: str) -> None:
        self._cluster = cluster
        self._namespace = namespace
        self._client = cluster.client()

    @contextmanager
    def recording(self) -> Iterator[None]:
        said = (
            "'witness: ' + request.operation + ' ' + (object == null ? oldObject : object).metadata.?name.orValue('')"
        )
        validation = {"expression": "false", "messageExpression": said, "message": "witness: "}
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
    def _configured(self, spec: Mapping[str, Any], action: str, holds: Callable[[Response], bool]) -> Iterator[None]:
        name = f"witness-{uuid.uuid4().hex[:8]}"
        whole = {"failurePolicy": "Fail", "matchConstraints": {"resourceRules": [ALL_TENANT_WRITES]}, **spec}
        selector = {"matchLabels": {"kubernetes.io/metadata.name": self._namespace}}
        bound = {
            "policyName": name,
            "validationActions": [action],
            "matchResources": {"namespaceSelector": selector},
        }
        try:
            self._create(POLICIES, name, whole)
            self._create(BINDINGS, name, bound)
            wait_until("the witness is there", lambda: holds(self._probe()), processes=self._cluster.processes)
            yield
        finally:
            for path in (BINDINGS, POLICIES):
                self._client.request("DELETE", f"{path}/{name}")
        wait_until("the witness has gone", lambda: not holds(self._probe()), processes=self._cluster.processes)

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
    """A validating webhook, for which a real server answers."""

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
        # all but the probe, by which it is known that the webhook is there
        others = {"matchExpressions": [{"key": "probe", "operator": "DoesNotExist"}]}
        hook = self._webhooks.hook(
            name, rules=[ALL_TENANT_WRITES], objectSelector=others, namespaceSelector=self._selector
        )
        return self._webhooks.in_force("Validating", hook)


def _respond_with_warning(request: Mapping[str, Any]) -> AdmissionResponse:
    name = (request["object"] or request["oldObject"])["metadata"].get("name", "")
    return {"allowed": True, "warnings": [f"witness: {request['operation']} {name}"]}


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
