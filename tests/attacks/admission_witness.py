"""Who can testify that admission saw a write: what it said of each, in the order in which it was asked.

A witness is put in front of the writes of one namespace and those below it; one more kind of it is one more class with
these two methods, and one more entry of WITNESSES.
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

EVERYTHING = {
    "apiGroups": ["apps.cozystack.io"],
    "apiVersions": ["*"],
    "operations": ["*"],
    "resources": ["tenants", "tenants/*"],
}
_REFUSED = "refused by the witness"
_SEES, _REFUSES = "sees.example.com", "refuses.example.com"


class Witness(Protocol):
    def seen(self, answer: Response) -> list[str]:
        """What it saw of the request that got this answer: an entry 'OPERATION name' for each object."""
        ...

    def refusing(self) -> AbstractContextManager[None]:
        """While this lasts, it refuses all that it sees."""
        ...


class _Warns:
    """Tells of what it sees by a warning for each, in the answer itself."""

    def seen(self, answer: Response) -> list[str]:
        told = [warning.partition("witness: ")[2].rstrip('"') for warning in answer.warnings if "witness: " in warning]
        return [each.strip() for each in told]


class PolicyWitness(_Warns):
    """A ValidatingAdmissionPolicy."""

    def __init__(self, cluster: E2eCluster, namespace: str) -> None:
        self._cluster = cluster
        self._namespace = namespace
        self._client = cluster.client()

    @contextmanager
    def testifying(self) -> Iterator[None]:
        said = (
            "'witness: ' + request.operation + ' ' + (object == null ? oldObject : object).metadata.?name.orValue('')"
        )
        validation = {"expression": "false", "messageExpression": said, "message": "witness: "}
        with self._in_force({"validations": [validation]}, "Warn", lambda answer: bool(self.seen(answer))):
            yield

    @contextmanager
    def refusing(self) -> Iterator[None]:
        validation = {"expression": "false", "message": _REFUSED}
        with self._in_force({"validations": [validation]}, "Deny", is_refused):
            yield

    @contextmanager
    def _in_force(self, spec: Mapping[str, Any], action: str, holds: Callable[[Response], bool]) -> Iterator[None]:
        name = f"witness-{uuid.uuid4().hex[:8]}"
        whole = {"failurePolicy": "Fail", "matchConstraints": {"resourceRules": [EVERYTHING]}, **spec}
        selector = {"matchLabels": {"kubernetes.io/metadata.name": self._namespace}}
        bound = {
            "policyName": name,
            "validationActions": [action],
            "matchResources": {"namespaceSelector": selector},
        }
        try:
            self._make(POLICIES, name, whole)
            self._make(BINDINGS, name, bound)
            wait_until("the witness is there", lambda: holds(self._probe()), processes=self._cluster.processes)
            yield
        finally:
            for path in (BINDINGS, POLICIES):
                self._client.request("DELETE", f"{path}/{name}")
        wait_until("the witness has gone", lambda: not holds(self._probe()), processes=self._cluster.processes)

    def _make(self, path: str, name: str, spec: Mapping[str, Any]) -> None:
        self._client.request("POST", path, {"metadata": {"name": name}, "spec": dict(spec)}).expect(201)

    def _probe(self) -> Response:
        body = manifest("probe", self._namespace)
        return self._client.request("POST", tenants_path(self._namespace), body, query={"dryRun": "All"})


def is_refused(answer: Response) -> bool:
    return answer.status in (403, 422) and _REFUSED in answer.content.decode()


@contextmanager
def policy_witness(cluster: E2eCluster, namespace: str) -> Iterator[Witness]:
    witness = PolicyWitness(cluster, namespace)
    with witness.testifying():
        yield witness


class WebhookWitness(_Warns):
    """A validating webhook, for which a real server answers."""

    def __init__(self, cluster: E2eCluster, namespace: str, server: WebhookServer) -> None:
        self._webhooks = Webhooks(cluster, server, replace(tenant_resource(), namespace=namespace))
        self._selector = {"matchLabels": {"kubernetes.io/metadata.name": namespace}}
        server.respond_with(f"/{_SEES}", _tell)
        server.respond_with(f"/{_REFUSES}", {"allowed": False, "status": {"message": _REFUSED, "code": 403}})

    @contextmanager
    def testifying(self) -> Iterator[None]:
        with self._in_force(_SEES):
            yield

    @contextmanager
    def refusing(self) -> Iterator[None]:
        with self._in_force(_REFUSES):
            yield

    def _in_force(self, name: str) -> AbstractContextManager[str]:
        # all but the probe, by which it is known that the webhook is there
        others = {"matchExpressions": [{"key": "probe", "operator": "DoesNotExist"}]}
        hook = self._webhooks.hook(name, rules=[EVERYTHING], objectSelector=others, namespaceSelector=self._selector)
        return self._webhooks.in_force("Validating", hook)


def _tell(request: Mapping[str, Any]) -> AdmissionResponse:
    name = (request["object"] or request["oldObject"])["metadata"].get("name", "")
    return {"allowed": True, "warnings": [f"witness: {request['operation']} {name}"]}


@contextmanager
def webhook_witness(cluster: E2eCluster, namespace: str) -> Iterator[Witness]:
    with TemporaryDirectory() as directory:
        server = WebhookServer(Path(directory))
        try:
            witness = WebhookWitness(cluster, namespace, server)
            with witness.testifying():
                yield witness
        finally:
            server.stop()


WITNESSES: Mapping[str, Callable[[E2eCluster, str], AbstractContextManager[Witness]]] = {
    "policy": policy_witness,
    "webhook": webhook_witness,
}
