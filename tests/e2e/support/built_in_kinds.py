"""Objects of built-in kinds, as kubectl reads and writes them."""

from __future__ import annotations

import json
from typing import Any

from tests.e2e.support.clusters.cluster import E2eCluster

AS_STORED = ("-o", "json", "--show-managed-fields")


def document(api_version: str, kind: str, name: str, **content: Any) -> dict[str, Any]:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, **content}


def service(*ports: int, **spec: Any) -> dict[str, Any]:
    named = [{"name": f"p{port}", "port": port} for port in ports]
    return document("v1", "Service", "web", spec={"selector": {"app": "web"}, "ports": named, **spec})


def get_object(cluster: E2eCluster, namespace: str, resource: str, name: str) -> Any:
    return json.loads(cluster.kubectl("get", resource, name, f"--namespace={namespace}", *AS_STORED).stdout)
