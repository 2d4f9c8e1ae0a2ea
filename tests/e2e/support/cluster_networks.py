"""The objects that tell the networks of a cluster: a kube-apiserver without kubelets has none of them."""

from __future__ import annotations

from collections.abc import Mapping

from tests.e2e.support.http.https_client import Client

NODE, NODE_ADDRESS, API_SERVER_ADDRESS = "node", "192.0.2.10", "192.0.2.1"
POD_NETWORK, DNS_ADDRESS = "10.244.0.0/24", "10.244.0.2"
_SLICES = "/apis/discovery.k8s.io/v1/namespaces/{}/endpointslices"


def network_objects() -> dict[str, object]:
    """A Node, the EndpointSlice that kube-apiserver does not write for a loopback address, and that of a Pod in the
    network of the Node, as a List. Without them, no Tenant would be ready unless isolation.clusterCIDRs is set."""
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": NODE},
        "spec": {"podCIDR": POD_NETWORK, "podCIDRs": [POD_NETWORK]},
        "status": {"addresses": [{"type": "InternalIP", "address": NODE_ADDRESS}]},
    }
    api_server = _slice("default", "kubernetes", 6443, {"addresses": [API_SERVER_ADDRESS]})
    return {"apiVersion": "v1", "kind": "List", "items": [node, api_server, _of_pod("kube-system", "dns", DNS_ADDRESS)]}


def create_pod_endpoint(client: Client, namespace: str, name: str, address: str) -> None:
    """Creates the EndpointSlice of a Service with one Pod on the Node."""
    client.request("POST", _SLICES.format(namespace), _of_pod(namespace, name, address)).expect(201)


def delete_endpoints(client: Client, namespace: str, name: str) -> None:
    client.request("DELETE", f"{_SLICES.format(namespace)}/{name}").expect(200)


def _of_pod(namespace: str, name: str, address: str) -> dict[str, object]:
    pod = {"kind": "Pod", "namespace": namespace, "name": name}
    return _slice(namespace, name, 53, {"addresses": [address], "nodeName": NODE, "targetRef": pod})


def _slice(namespace: str, service: str, port: int, endpoint: Mapping[str, object]) -> dict[str, object]:
    return {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {"name": service, "namespace": namespace, "labels": {"kubernetes.io/service-name": service}},
        "addressType": "IPv4",
        "ports": [{"port": port, "protocol": "TCP"}],
        "endpoints": [endpoint],
    }
