"""The services of the platform in end-to-end tests: plays their charts, and Cilium, and counts who is served."""

from __future__ import annotations

from controller.publishing.services import SERVICES
from tests.e2e.support.clusters.cluster import ROOT, ROOT_HOST, E2eCluster
from tests.e2e.support.gateways import CILIUM, Gateways, Object

_INGRESSES = "/apis/networking.k8s.io/v1{}/ingresses"


class PlatformCharts:
    """Creates and deletes the objects of the services' charts. The class of their Ingresses is tenant-root."""

    def __init__(self, cluster: E2eCluster) -> None:
        self._cluster = cluster
        self._client = cluster.client()

    def install(self, service: str) -> None:
        """Creates the Service, in a namespace that may exist."""
        found = SERVICES[service]
        body: Object = {"metadata": {"name": found.namespace}}
        assert self._client.request("POST", "/api/v1/namespaces", body).status in (201, 409)
        body = {"metadata": {"name": found.backend}, "spec": {"ports": [{"name": "http", "port": found.port}]}}
        path = f"/api/v1/namespaces/{found.namespace}/services"
        # a real cluster has the Service of its API
        assert self._client.request("POST", path, body).status in (201, 409)

    def create_ingress(self, service: str) -> None:
        found = SERVICES[service]
        backend = {"service": {"name": found.backend, "port": {"number": found.port}}}
        path = {"path": "/", "pathType": "Prefix", "backend": backend}
        rule = {"host": found.hostname(ROOT_HOST), "http": {"paths": [path]}}
        body = {"metadata": {"name": service}, "spec": {"ingressClassName": ROOT, "rules": [rule]}}
        self._client.request("POST", _ingresses(found.namespace), body).expect(201)

    def delete_ingress(self, service: str) -> None:
        path = f"{_ingresses(SERVICES[service].namespace)}/{service}"
        self._client.request("DELETE", path).expect(200)


def _ingresses(namespace: str = "") -> str:
    return _INGRESSES.format(f"/namespaces/{namespace}" if namespace else "")


def accept_route(gateways: Gateways, service: str) -> None:
    """Writes the status of a service's route for its present generation, as the controller of the GatewayClass does."""
    found = SERVICES[service]
    plural = f"{found.kind.lower()}s"

    def is_accepted() -> bool:
        route = gateways.get(plural, found.namespace, found.route)
        generation = route["metadata"]["generation"]
        entry = {
            "parentRef": route["spec"]["parentRefs"][0],
            "controllerName": CILIUM,
            "conditions": [_true(each, generation) for each in ("Accepted", "ResolvedRefs")],
        }
        others = [each for each in route.get("status", {}).get("parents", ()) if each["controllerName"] != CILIUM]
        status = {"status": {"parents": [*others, entry]}}
        patched = gateways.patch(plural, found.namespace, found.route, status, "status")
        return bool(patched["metadata"]["generation"] == generation)

    gateways.wait_until(f"the route of {service} is accepted", is_accepted)


def _true(type_: str, generation: int) -> Object:
    return {
        "type": type_,
        "status": "True",
        "reason": type_,
        "message": "",
        "observedGeneration": generation,
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }


class Hostnames:
    """The hostnames of the platform's services that are served, by an Ingress or by the Gateway of tenant-root. Found
    without our server: from the objects that a controller of Ingresses or Gateways reads and writes."""

    def __init__(self, cluster: E2eCluster) -> None:
        self._client = cluster.client()

    def unserved(self) -> list[str]:
        """The services whose hostname nobody serves."""
        served = self._by_ingress() | self._by_gateway()
        return [each.name for each in SERVICES.values() if each.hostname(ROOT_HOST) not in served]

    def _list(self, path: str) -> list[Object]:
        items: list[Object] = self._client.get(path).expect(200)["items"]
        return items

    def _by_ingress(self) -> set[str]:
        specs = [each["spec"] for each in self._list(_ingresses())]
        return {rule["host"] for spec in specs if spec["ingressClassName"] == ROOT for rule in spec["rules"]}

    def _by_gateway(self) -> set[str]:
        api = "/apis/gateway.networking.k8s.io/v1"
        answer = self._client.get(f"{api}/namespaces/{ROOT}/gateways/cozystack")
        if answer.status == 404:
            return set()
        gateway = answer.expect(200)
        programmed = {
            each["name"]
            for each in gateway.get("status", {}).get("listeners", ())
            if any((found["type"], found["status"]) == ("Programmed", "True") for found in each["conditions"])
        }
        secured = {each["spec"]["secretName"] for each in self._list(_CERTIFICATES) if _is_ready(each)}
        listening = {
            each["hostname"]
            for each in gateway["spec"]["listeners"]
            if each["name"] in programmed and "hostname" in each and _has_certificate(each, secured)
        }
        routes = [each for plural in ("httproutes", "tlsroutes") for each in self._list(f"{api}/{plural}")]
        routed = {host for each in routes if _is_accepted(each) for host in each["spec"].get("hostnames", ())}
        return listening & routed


_CERTIFICATES = f"/apis/cert-manager.io/v1/namespaces/{ROOT}/certificates"


def _is_ready(certificate: Object) -> bool:
    conditions = certificate.get("status", {}).get("conditions", ())
    return any((each["type"], each["status"]) == ("Ready", "True") for each in conditions)


def _has_certificate(listener: Object, secured: set[str]) -> bool:
    references = listener["tls"].get("certificateRefs", ())
    return all(each["name"] in secured for each in references)


def _is_accepted(route: Object) -> bool:
    entries = [each for each in route.get("status", {}).get("parents", ()) if each["controllerName"] == CILIUM]
    conditions = [each for entry in entries for each in entry["conditions"]]
    return any((each["type"], each["status"]) == ("Accepted", "True") for each in conditions)
