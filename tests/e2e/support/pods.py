"""Pods that use the quotas of tenants. No kubelet runs them: they are counted as soon as they exist."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.e2e.support.clusters.cluster import E2eCluster
from tests.e2e.support.http.https_client import Response
from tests.e2e.support.tenants import Object


class Pods:
    """Creates Pods as the administrator."""

    def __init__(self, cluster: E2eCluster) -> None:
        self._cluster = cluster

    def create(self, namespace: str, name: str, **limits: Any) -> Response:
        """The answer to a Pod with these limits; a tenth of the cores is requested, and all of the rest."""
        requests = {**limits, **({"cpu": f"{limits['cpu'] * 100}m"} if "cpu" in limits else {})}
        resources = {"limits": _texts(limits), "requests": _texts(requests)}
        body = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": namespace},
            "spec": {
                "automountServiceAccountToken": False,
                "containers": [{"name": "main", "image": "example.org/none", "resources": resources}],
            },
        }
        return self._cluster.client().request("POST", f"/api/v1/namespaces/{namespace}/pods", body)

    def delete(self, namespace: str, name: str) -> None:
        path = f"/api/v1/namespaces/{namespace}/pods/{name}"
        self._cluster.client().request("DELETE", path, query={"gracePeriodSeconds": "0"}).expect(200)

    def count(self, namespace: str) -> int:
        return len(self._cluster.client().get(f"/api/v1/namespaces/{namespace}/pods").expect(200)["items"])

    def wait_until_limited(self, namespace: str, *quotas: str) -> None:
        """Waits until Pods can be created, and until these ResourceQuotas are in effect: a new one limits nothing
        before the quota controller has seen it."""
        client, core = self._cluster.client(), f"/api/v1/namespaces/{namespace}"

        def is_ready() -> bool:
            if client.get(f"{core}/serviceaccounts/default").status != 200:
                return False
            found = [client.get(f"{core}/resourcequotas/{name}") for name in quotas]
            return all(each.status == 200 and _is_in_effect(each.json()) for each in found)

        self._cluster.wait_until(f"the quotas of {namespace} are in effect", is_ready)


def _is_in_effect(quota: Object) -> bool:
    status = quota.get("status") or {}
    return bool(status.get("hard") == quota["spec"]["hard"] and status.get("used", {}).keys() == status["hard"].keys())


def _texts(amounts: Mapping[str, Any]) -> Mapping[str, str]:
    return {key: str(value) for key, value in amounts.items()}
