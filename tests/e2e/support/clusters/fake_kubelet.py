"""The program of tests/e2e/proxy/kubelet as the kubelet of a Node, and Pods that run there as far as the API tells."""

from __future__ import annotations

from pathlib import Path

from tests.e2e.support.clusters.kube import KubeCluster
from tests.e2e.support.clusters.processes import Process, free_port
from tests.e2e.support.http.https_client import Client
from tests.e2e.support.pods import Pods

_MERGE = "application/merge-patch+json"
_NODES = "/api/v1/nodes"
# the controllers of tenants need one of every Node
_POD_NETWORK = "10.244.1.0/24"
_CONTAINER = "main"


class FakeKubelet:
    """Runs from construction to `stop`, which deletes the Node."""

    def __init__(self, kube: KubeCluster, program: str, node: str, directory: Path) -> None:
        self._kube = kube
        self._node = node
        self._port = free_port()
        certificate, key, ca = kube.kubelet_files(directory)
        self._process = Process(
            "kubelet", [program, str(self._port), certificate, key, ca], log=directory / "kubelet.log"
        )
        try:
            self._create_node()
        except BaseException:
            self._process.kill()
            raise

    def stop(self) -> None:
        self._client.request("DELETE", f"{_NODES}/{self._node}").expect(200)
        self._process.kill()

    def run_pod(self, namespace: str, name: str) -> None:
        """Creates a Pod on the Node with one container, and tells that it runs."""
        Pods(self._kube).wait_until_limited(namespace)
        path = f"/api/v1/namespaces/{namespace}/pods"
        container = {"name": _CONTAINER, "image": "example.org/none"}
        spec = {"nodeName": self._node, "automountServiceAccountToken": False, "containers": [container]}
        self._client.request("POST", path, {"metadata": {"name": name}, "spec": spec}).expect(201)
        state = {**container, "ready": True, "restartCount": 0, "imageID": "", "state": {"running": {}}}
        status = {"phase": "Running", "containerStatuses": [state]}
        self._patch(f"{path}/{name}/status", {"status": status})

    def calls(self, namespace: str, name: str) -> list[str]:
        """The calls for a Pod that have begun, such as `logs` and `exec`, and `end of logs`."""
        ending = f" {namespace}/{name}"
        return [line.removesuffix(ending) for line in self._process.log().splitlines() if line.endswith(ending)]

    @property
    def _client(self) -> Client:
        return self._kube.client()

    def _create_node(self) -> None:
        spec = {"podCIDR": _POD_NETWORK, "podCIDRs": [_POD_NETWORK]}
        self._client.request("POST", _NODES, {"metadata": {"name": self._node}, "spec": spec}).expect(201)
        status = {
            "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": self._port}},
        }
        self._patch(f"{_NODES}/{self._node}/status", {"status": status})

    def _patch(self, path: str, body: dict[str, object]) -> None:
        self._client.request("PATCH", path, body, content_type=_MERGE).expect(200)
