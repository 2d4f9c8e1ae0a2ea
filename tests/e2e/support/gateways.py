"""TenantGateways and routes for a test, in namespaces of its own that are deleted after it.

The status that Cilium and cert-manager would write is written here, since no test cluster runs them.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from tests.e2e.support.clusters.cluster import PATIENCE, E2eCluster

Object = dict[str, Any]
MERGE = "application/merge-patch+json"
GATEWAY_API, CERT_MANAGER = "gateway.networking.k8s.io/v1", "cert-manager.io/v1"
OURS = "gateway.cozystack.io/tenantgateway-controller"
CILIUM = "io.cilium/gateway-controller"
COLLECTIONS = {
    "tenantgateways": ("gateway.cozystack.io/v1alpha1", "TenantGateway"),
    "gateways": (GATEWAY_API, "Gateway"),
    "listenersets": (GATEWAY_API, "ListenerSet"),
    "httproutes": (GATEWAY_API, "HTTPRoute"),
    "grpcroutes": (GATEWAY_API, "GRPCRoute"),
    "tlsroutes": (GATEWAY_API, "TLSRoute"),
    "referencegrants": ("gateway.networking.k8s.io/v1beta1", "ReferenceGrant"),
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
        self._classes: list[str] = []

    def create_namespace(self, prefix: str = "gw", *, labels: Mapping[str, str] | None = None) -> str:
        """Creates a namespace with this prefix and returns its name."""
        name = f"{prefix}-{uuid.uuid4().hex[:8]}"
        self.create_named_namespace(name, labels=labels)
        return name

    def create_owner(self, prefix: str = "tenant-foo", host: str = "foo.example.com") -> str:
        """Creates a namespace as a tenant with this host has it, where TenantGateways are served."""
        return self.create_namespace(prefix, labels={HOST_LABEL: host})

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

    def create_service(self, namespace: str, name: str) -> None:
        body = {"metadata": {"name": name}, "spec": {"ports": [{"port": 80}]}}
        self.client.request("POST", f"/api/v1/namespaces/{namespace}/services", body).expect(201)

    def create_grant(
        self, namespace: str, name: str, kind: str, guest: str, target: str, target_name: str = ""
    ) -> None:
        """Lets objects of `kind` in the namespace `guest` refer to core objects of the kind `target` in `namespace`,
        to one of them or to all."""
        to = {"group": "", "kind": target, **({"name": target_name} if target_name else {})}
        referrer = {"group": "gateway.networking.k8s.io", "kind": kind, "namespace": guest}
        self.create("referencegrants", namespace, name, {"from": [referrer], "to": [to]})

    def create_root(
        self,
        namespace: str,
        name: str,
        hostname: str,
        path_: str,
        *targets: str,
        owner: str = "",
        plural: str = "httproutes",
    ) -> None:
        """Creates a route that delegates a path of a hostname to routes of its kind, each given as namespace/name. The
        hostname is on the TenantGateway of `owner`, by default of its own namespace."""
        parent = {"group": "gateway.cozystack.io", "kind": "TenantGateway", "name": "cozystack"}
        parent["namespace"] = owner or namespace
        named = [each.partition("/") for each in targets]
        backends = [
            {"group": "gateway.networking.k8s.io", "kind": COLLECTIONS[plural][1], "namespace": guest, "name": target}
            for guest, _, target in named
        ]
        rule = {**_matches(plural, path_), "backendRefs": backends}
        self.create(plural, namespace, name, {"parentRefs": [parent], "hostnames": [hostname], "rules": [rule]})

    def create_vertex(
        self, namespace: str, name: str, path_: str, *hostnames: str, parent: str, plural: str = "httproutes"
    ) -> None:
        """Creates a route that serves a path below what the route `parent`, namespace/name, delegates to it. A TLSRoute
        has hostnames instead."""
        owner, _, above = parent.partition("/")
        rule = {**_matches(plural, path_), "backendRefs": [{"name": "web", "port": 80}]}
        parents = [{"kind": COLLECTIONS[plural][1], "namespace": owner, "name": above}]
        listed = {"hostnames": list(hostnames)} if hostnames else {}
        self.create(plural, namespace, name, {**listed, "parentRefs": parents, "rules": [rule]})

    def create_delegation_grant(
        self, namespace: str, guest: str, route: str, name: str = "delegation", *, plural: str = "httproutes"
    ) -> None:
        """Lets routes of the namespace `guest` delegate to a route of their kind, and refer to the Service web."""
        kind = COLLECTIONS[plural][1]
        referrer = {"group": "gateway.networking.k8s.io", "kind": kind, "namespace": guest}
        to = [
            {"group": "gateway.networking.k8s.io", "kind": kind, "name": route},
            {"group": "", "kind": "Service", "name": "web"},
        ]
        self.create("referencegrants", namespace, name, {"from": [referrer], "to": to})

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

    def rejection_reason(self, namespace: str, name: str, plural: str = "httproutes") -> str:
        """The reason why our controller does not accept a route; empty if it does, or has not decided yet."""
        conditions = [each for entry in self.parent_statuses(namespace, name, plural) for each in entry["conditions"]]
        reasons = [each["reason"] for each in conditions if (each["type"], each["status"]) == ("Accepted", "False")]
        return reasons[0] if reasons else ""

    def resolved_refs(self, namespace: str, name: str, plural: str = "httproutes") -> tuple[str, str]:
        """Status and reason of our condition ResolvedRefs on a route; empty if there is none."""
        for entry in self.parent_statuses(namespace, name, plural):
            for each in entry["conditions"]:
                if each["type"] == "ResolvedRefs":
                    return each["status"], each["reason"]
        return "", ""

    def conflict_message(self, namespace: str, name: str, plural: str = "httproutes") -> str:
        """The message of the HostnameConflict in the status of a route, empty if it is accepted. Another rejection is
        returned with its reason: a route whose namespace the controller has not seen yet is not admitted for a
        moment."""
        for entry in self.parent_statuses(namespace, name, plural):
            for condition in entry["conditions"]:
                if (condition["type"], condition["status"]) == ("Accepted", "False"):
                    reason, message = condition["reason"], condition["message"]
                    return message if reason == "HostnameConflict" else f"{reason}: {message}"
        return ""

    def has_conflict(self, namespace: str, name: str, plural: str = "httproutes") -> bool:
        return self.rejection_reason(namespace, name, plural) == "HostnameConflict"

    def mark_gateway_programmed(self, namespace: str) -> None:
        """Marks the Gateway and all its listeners as programmed, as Cilium does, and again if the controller has
        changed the Gateway meanwhile."""
        self.wait_until("the Gateway is programmed", lambda: self._mark_gateway_programmed(namespace))

    def mark_set_programmed(self, namespace: str, name: str) -> None:
        """The same for a ListenerSet."""
        mark = partial(self._mark_gateway_programmed, namespace, "listenersets", name)
        self.wait_until("the ListenerSet is programmed", mark)

    def create_gateway_class(self, name: str, *features: str) -> None:
        """Creates a GatewayClass whose controller says that it supports these features."""
        collection = f"/apis/{GATEWAY_API}/gatewayclasses"
        body = {
            "apiVersion": GATEWAY_API,
            "kind": "GatewayClass",
            "metadata": {"name": name},
            "spec": {"controllerName": "example.org/controller"},
        }
        self.client.request("POST", collection, body).expect(201)
        self._classes.append(f"{collection}/{name}")
        status = {"supportedFeatures": [{"name": each} for each in features]}
        self.client.request("PATCH", f"{collection}/{name}/status", {"status": status}, content_type=MERGE).expect(200)

    def _mark_gateway_programmed(self, namespace: str, plural: str = "gateways", name: str = "cozystack") -> bool:
        gateway = self.get(plural, namespace, name)
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
        patched = self.patch(plural, namespace, name, {"status": status}, "status")
        return bool(patched["metadata"]["generation"] == generation)

    def mark_certificates_ready(self, namespace: str, *names: str) -> None:
        """Marks these Certificates as ready, as cert-manager does; by default all of the namespace, once each listener
        of the Gateway has one: the controller writes the Gateway before them."""
        if not names:
            self.wait_until("each listener has a Certificate", lambda: self._has_certificates(namespace))
        for name in names or self.names("certificates", namespace):
            self.wait_until(f"{name} is ready", partial(self._mark_certificate_ready, namespace, name))

    def _has_certificates(self, namespace: str) -> bool:
        listeners = self.get("gateways", namespace, "cozystack")["spec"]["listeners"]
        references = {found["name"] for each in listeners for found in each.get("tls", {}).get("certificateRefs", ())}
        certificates = self.client.get(path("certificates", namespace)).expect(200)["items"]
        return references <= {each["spec"]["secretName"] for each in certificates}

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
        for each in self._classes:
            self.client.request("DELETE", each)
        for namespace in self._namespaces:
            self.client.request("DELETE", f"/api/v1/namespaces/{namespace}")


def _matches(plural: str, path_: str) -> Object:
    """The matches of a rule about a path, a service of gRPC, or a whole hostname."""
    if plural == "tlsroutes":
        return {}
    service: Object = {"method": {"service": path_.strip("/")}}
    return {"matches": [service if plural == "grpcroutes" else {"path": {"type": "PathPrefix", "value": path_}}]}


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
