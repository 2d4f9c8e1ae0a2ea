"""The objects that the controller keeps in the Namespaces of Tenants."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

import yaml

from tests.e2e.support.clusters.cluster import E2eCluster
from tests.e2e.support.gateways import LABEL_PATH, MERGE
from tests.e2e.support.tenants import Object, Tenants

TENANTGATEWAY_API = "/apis/gateway.cozystack.io/v1alpha1"


def secret_path(namespace: str) -> str:
    return f"/api/v1/namespaces/{namespace}/secrets/cozystack-values"


class NamespaceContent:
    """Reads the objects of namespaces and waits for changes."""

    def __init__(self, cluster: E2eCluster, tenants: Tenants) -> None:
        self.cluster = cluster
        self.tenants = tenants
        self.client = cluster.client()

    def labels(self, namespace: str) -> dict[str, str]:
        found = self.client.get(f"/api/v1/namespaces/{namespace}").expect(200)
        labels: dict[str, str] = found["metadata"]["labels"]
        return labels

    def exists(self, path: str) -> bool:
        return self.client.get(path).status == 200

    def values(self, namespace: str) -> dict[str, Any]:
        answer = self.client.get(secret_path(namespace))
        if answer.status == 404:
            return {"_cluster": {}, "_namespace": {}}
        text = base64.b64decode(answer.expect(200)["data"]["values.yaml"])
        document: dict[str, Any] = yaml.load(text, Loader=yaml.CSafeLoader)
        return document

    def gateway_label(self, namespace: str) -> str:
        """The label that names the owner of the Gateway, read with kubectl."""
        return self.cluster.kubectl("get", "namespace", namespace, "-o", LABEL_PATH).stdout.strip()

    def tenantgateway(self, namespace: str) -> Object | None:
        answer = self.client.get(f"{TENANTGATEWAY_API}/namespaces/{namespace}/tenantgateways/cozystack")
        return answer.expect(200) if answer.status != 404 else None

    def patch(self, path: str, body: Object) -> None:
        self.client.request("PATCH", path, body, content_type=MERGE).expect(200)

    def wait_until(self, what: str, check: Callable[[], object]) -> None:
        self.tenants.wait(what, check)
