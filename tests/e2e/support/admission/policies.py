"""ValidatingAdmissionPolicies for a test: created, waited for until enforced, and deleted after it."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from tests.e2e.support.clusters.cluster import E2eCluster
from tests.e2e.support.http.https_client import Response

_ADMISSION = "/apis/admissionregistration.k8s.io/v1"
POLICIES = f"{_ADMISSION}/validatingadmissionpolicies"
BINDINGS = f"{_ADMISSION}/validatingadmissionpolicybindings"
CONFIGMAPS: Mapping[str, Any] = {
    "apiGroups": [""],
    "apiVersions": ["v1"],
    "operations": ["CREATE"],
    "resources": ["configmaps"],
}
_PROBE = "policy-probe"
_PROBE_VALIDATION = {"expression": f"object.metadata.name != '{_PROBE}'", "message": "probe"}


def configmap(name: str, data: Mapping[str, str] | None = None, **metadata: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **metadata}, "data": dict(data or {})}


class Policies:
    """Policies for one namespace, which bindings select by its label `kubernetes.io/metadata.name`."""

    def __init__(self, cluster: E2eCluster, namespace: str) -> None:
        self.cluster = cluster
        self.namespace = namespace
        self.client = cluster.client()

    @property
    def path(self) -> str:
        return f"/api/v1/namespaces/{self.namespace}/configmaps"

    def write(self, body: Mapping[str, Any], **query: str) -> Response:
        return self.client.request("POST", self.path, dict(body), query=query)

    @contextmanager
    def in_force(
        self,
        spec: Mapping[str, Any],
        *,
        actions: Sequence[str] = ("Deny",),
        binding: Mapping[str, Any] | None = None,
        wait: bool = True,
    ) -> Iterator[str]:
        """Creates a policy with this spec and a binding for the namespace, and yields the name of both.

        With `wait`, the policy gets one more validation. The block starts once that validation is enforced, and the
        policy is forgotten when `in_force` returns.
        """
        name = f"p{uuid.uuid4().hex[:8]}"
        validations = [*spec.get("validations", ()), *([_PROBE_VALIDATION] if wait else ())]
        whole = {"matchConstraints": {"resourceRules": [dict(CONFIGMAPS)]}, **spec, "validations": validations}
        selector = {"matchLabels": {"kubernetes.io/metadata.name": self.namespace}}
        bound = {
            "policyName": name,
            "validationActions": list(actions),
            "matchResources": {"namespaceSelector": selector},
            **(binding or {}),
        }
        self._create(POLICIES, "ValidatingAdmissionPolicy", name, whole)
        self._create(BINDINGS, "ValidatingAdmissionPolicyBinding", name, bound)
        try:
            if wait:
                self.cluster.wait_until(f"policy {name} is enforced", lambda: self._is_enforced(name))
            yield name
        finally:
            self.client.request("DELETE", f"{BINDINGS}/{name}")
            self.client.request("DELETE", f"{POLICIES}/{name}")
        if wait:
            self.cluster.wait_until(f"policy {name} is forgotten", lambda: not self._is_enforced(name))

    def _create(self, path: str, kind: str, name: str, spec: Mapping[str, Any]) -> None:
        body = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": {"name": name}}
        self.client.request("POST", path, {**body, "spec": dict(spec)}).expect(201)

    def _is_enforced(self, name: str) -> bool:
        answer = self.write(configmap(_PROBE), dryRun="All")
        text = "".join([*answer.warnings, answer.content.decode()])
        # a kube-apiserver rejects everything until it has listed the parameters of the policy
        return name in text and "not yet synced" not in text
