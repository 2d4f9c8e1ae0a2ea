"""TenantGateways and routes for a test, in namespaces of its own that are deleted after it.

The status that Cilium and cert-manager would write is written here, since no test cluster runs them.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from tests.e2e.support.clusters import PATIENCE, E2eCluster

Object = dict[str, Any]
MERGE = "application/merge-patch+json"
GATEWAY_API, CERT_MANAGER = "gateway.networking.k8s.io/v1", "cert-manager.io/v1"
OURS = "gateway.cozystack.io/tenantgateway-controller"
CILIUM = "io.cilium/gateway-controller"
COLLECTIONS = {
    "tenantgateways": ("gateway.cozystack.io/v1alpha1", "TenantGateway"),
    "gateways": (GATEWAY_API, "Gateway"),
    "httproutes": (GATEWAY_API, "HTTPRoute"),
    "tlsroutes": (GATEWAY_API, "TLSRoute"),
    "issuers": (CERT_MANAGER, "Issuer"),
    "certificates": (CERT_MANAGER, "Certificate"),
}
LABEL, HOST_LABEL = "namespace.cozystack.io/gateway", "namespace.cozystack.io/host"
LABEL_PATH = r"jsonpath={.metadata.labels.namespace\.cozystack\.io/gateway}{'\n'}"
"""For kubectl, as in the issue that describes the feature."""
ANNOTATION = "cozystack.io/gateway-attached-by"
DNS01 = {
    "certMode": "dns01",
    "dns01": {
        "provider": "cloudflare",
        "cloudflare": {"apiTokenSecretRef": {"name": "cloudflare-api-token-secret", "key": "api-token"}},
    },
}
_TIME = "2026-01-01T00:00:00Z"


def path(plural: str, namespace: str, name: str = "", subresource: str = "") -> str:
    parts = [f"/apis/{COLLECTIONS[plural][0]}/namespaces/{namespace}/{plural}", name, subresource]
    return "/".join(part for part in parts if part)


class Gateways:
    """Creates and reads objects as the administrator."""

    def __init__(self, cluster: E2eCluster) -> None:
        self.cluster = cluster
        self.client = cluster.client()
        self._namespaces: list[str] = []

    def create_namespace(self, prefix: str = "gw", *, labels: Mapping[str, str] | None = None) -> str:
        """Creates a namespace with this prefix and returns its name."""
        name = f"{prefix}-{uuid.uuid4().hex[:8]}"
        self.create_named_namespace(name, labels=labels)
        return name

    def create_named_namespace(self, name: str, *, labels: Mapping[str, str] | None = None) -> None:
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": dict(labels or {})}}
        self.client.request("POST", "/api/v1/namespaces", body).expect(201)
        self._namespaces.append(name)

    def create_tenantgateway(self, namespace: str, apex: str, **spec: Any) -> Object:
        """Creates the TenantGateway `cozystack` of a namespace."""
        return self.create("tenantgateways", namespace, "cozystack", {"apex": apex, **spec})

    def create(self, plural: str, namespace: str, name: str, spec: Object) -> Object:
        version, kind = COLLECTIONS[plural]
        body = {"apiVersion": version, "kind": kind, "metadata": {"name": name}, "spec": spec}
        made: Object = self.client.request("POST", path(plural, namespace), body).expect(201)
        return made

    def create_route(
        self, namespace: str, name: str, *hostnames: str, to: str, plural: str = "httproutes", **parent: Any
    ) -> None:
        """Creates a route to the Gateway `cozystack` of the namespace `to`."""
        spec: Object = {"parentRefs": [{"namespace": to, "name": "cozystack", **parent}], "hostnames": list(hostnames)}
        if plural == "tlsroutes":
            spec["rules"] = [{"backendRefs": [{"name": "backend", "port": 443}]}]
        self.create(plural, namespace, name, spec)

    def get(self, plural: str, namespace: str, name: str = "cozystack") -> Object:
        found: Object = self.client.get(path(plural, namespace, name)).expect(200)
        return found

    def names(self, plural: str, namespace: str) -> list[str]:
        items = self.client.get(path(plural, namespace)).expect(200)["items"]
        return sorted(each["metadata"]["name"] for each in items)

    def patch(self, plural: str, namespace: str, name: str, body: Object, subresource: str = "") -> Object:
        answer = self.client.request("PATCH", path(plural, namespace, name, subresource), body, content_type=MERGE)
        edited: Object = answer.expect(200)
        return edited

    def delete(self, plural: str, namespace: str, name: str = "cozystack") -> None:
        self.client.request("DELETE", path(plural, namespace, name)).expect(200)

    def patch_labels(self, namespace: str, labels: Mapping[str, str | None]) -> None:
        body = {"metadata": {"labels": dict(labels)}}
        self.client.request("PATCH", f"/api/v1/namespaces/{namespace}", body, content_type=MERGE).expect(200)

    def attachment(self, namespace: str) -> tuple[str | None, str | None]:
        """The label and the annotation that an attached namespace has."""
        metadata = self.client.get(f"/api/v1/namespaces/{namespace}").expect(200)["metadata"]
        return metadata.get("labels", {}).get(LABEL), metadata.get("annotations", {}).get(ANNOTATION)

    def listener_hostnames(self, namespace: str) -> list[str]:
        """The sorted hostnames of the listeners on port 443, empty without a Gateway."""
        answer = self.client.get(path("gateways", namespace, "cozystack"))
        found = answer.json()["spec"]["listeners"] if answer.status == 200 else ()
        return sorted(each["hostname"] for each in found if each["port"] == 443)

    def has_listeners(self, namespace: str, *hostnames: str) -> bool:
        return set(hostnames) <= set(self.listener_hostnames(namespace))

    def conditions(self, namespace: str) -> dict[str, Object]:
        answer = self.client.get(path("tenantgateways", namespace, "cozystack"))
        status = answer.json().get("status", {}) if answer.status == 200 else {}
        return {each["type"]: each for each in status.get("conditions", ())}

    def ready_reason(self, namespace: str) -> str:
        """The reason of the condition Ready."""
        reason: str = self.conditions(namespace).get("Ready", {}).get("reason", "")
        return reason

    def parent_statuses(self, namespace: str, name: str, plural: str = "httproutes") -> list[Object]:
        """The entries of our controller in the status.parents of a route."""
        parents = self.get(plural, namespace, name).get("status", {}).get("parents", ())
        return [each for each in parents if each["controllerName"] == OURS]

    def conflict_message(self, namespace: str, name: str, plural: str = "httproutes") -> str:
        """The message of the HostnameConflict in the status of a route, empty if it is accepted."""
        for entry in self.parent_statuses(namespace, name, plural):
            for condition in entry["conditions"]:
                if (condition["type"], condition["status"]) == ("Accepted", "False"):
                    assert condition["reason"] == "HostnameConflict"
                    message: str = condition["message"]
                    return message
        return ""

    def mark_gateway_programmed(self, namespace: str) -> None:
        """Marks the Gateway and all its listeners as programmed, as Cilium does, and again if the controller has
        changed the Gateway meanwhile."""
        self.wait_until("the Gateway is programmed", lambda: self._mark_gateway_programmed(namespace))

    def _mark_gateway_programmed(self, namespace: str) -> bool:
        gateway = self.get("gateways", namespace)
        generation = gateway["metadata"]["generation"]
        listeners = [
            {
                "name": each["name"],
                "attachedRoutes": 0,
                "supportedKinds": each["allowedRoutes"]["kinds"],
                "conditions": _true(generation, "Accepted", "Programmed", "ResolvedRefs"),
            }
            for each in gateway["spec"]["listeners"]
        ]
        status = {"conditions": _true(generation, "Accepted", "Programmed"), "listeners": listeners}
        patched = self.patch("gateways", namespace, "cozystack", {"status": status}, "status")
        return bool(patched["metadata"]["generation"] == generation)

    def mark_certificates_ready(self, namespace: str, *names: str) -> None:
        """Marks these Certificates, by default all of the namespace, as ready, as cert-manager does."""
        for name in names or self.names("certificates", namespace):
            self.wait_until(f"{name} is ready", partial(self._mark_certificate_ready, namespace, name))

    def _mark_certificate_ready(self, namespace: str, name: str) -> bool:
        generation = self.get("certificates", namespace, name)["metadata"]["generation"]
        status = {"conditions": _true(generation, "Ready")}
        patched = self.patch("certificates", namespace, name, {"status": status}, "status")
        return bool(patched["metadata"]["generation"] == generation)

    def wait_until(self, what: str, check: Callable[[], object], seconds: float = PATIENCE) -> None:
        self.cluster.wait_until(what, check, seconds=seconds)

    def is_gone(self, plural: str, namespace: str, name: str = "cozystack") -> bool:
        return self.client.get(path(plural, namespace, name)).status == 404

    def clean_up(self) -> None:
        for namespace in self._namespaces:
            self.client.request("DELETE", f"/api/v1/namespaces/{namespace}")


def _true(generation: int, *types: str) -> Sequence[Object]:
    return [
        {
            "type": type_,
            "status": "True",
            "reason": type_,
            "message": "",
            "observedGeneration": generation,
            "lastTransitionTime": _TIME,
        }
        for type_ in types
    ]
