"""Server-side apply of Tenants in the root namespace, and the resulting managedFields."""

from __future__ import annotations

from typing import Any

from tests.e2e.support.clusters.cluster import ROOT, E2eCluster, tenants_path
from tests.e2e.support.http.https_client import Response
from tests.e2e.support.tenants import Object

APPLY = "application/apply-patch+yaml"
MERGE = "application/merge-patch+json"
API_VERSION = "apps.cozystack.io/v1alpha1"


def configuration(name: str, **fields: Any) -> Object:
    """A Tenant to apply; `metadata` is merged with the name."""
    metadata = {"name": name, **fields.pop("metadata", {})}
    return {"apiVersion": API_VERSION, "kind": "Tenant", "metadata": metadata, **fields}


def apply(cluster: E2eCluster, name: str, manager: str, config: Object | str, **query: str) -> Response:
    path = tenants_path(ROOT, name)
    parameters = {"fieldManager": manager, **query}
    return cluster.client().request("PATCH", path, config, query=parameters, content_type=APPLY)


def managed_fields(tenant: Object) -> dict[tuple[str, str], Object]:
    """The entries of managedFields, keyed by manager and operation."""
    managed = tenant["metadata"].get("managedFields", [])
    return {(entry["manager"], entry["operation"]): entry for entry in managed}
