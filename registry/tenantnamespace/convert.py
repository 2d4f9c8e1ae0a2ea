"""Converts the workload Namespace of a tenant to a TenantNamespace. Pure."""

from __future__ import annotations

from apiserver.meta.resource import Column, Object, Resource
from registry.names import ANCESTOR_LABEL_PREFIX

GROUP = "core.cozystack.io"
VERSION = "v1alpha1"
KIND = "TenantNamespace"
PLURAL = "tenantnamespaces"

_SHOWN = ("name", "uid", "resourceVersion", "creationTimestamp", "deletionTimestamp", "labels")


def is_tenant_namespace(namespace: Object) -> bool:
    """True if a Namespace has the ancestor label with its own name, which the platform sets on workload namespaces
    only."""
    metadata = namespace["metadata"]
    return f"{ANCESTOR_LABEL_PREFIX}{metadata['name']}" in (metadata.get("labels") or {})


def to_tenant_namespace(namespace: Object) -> Object:
    """The TenantNamespace of a Namespace. It depends on nothing else, so equal versions have equal content."""
    metadata = namespace["metadata"]
    return {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": KIND,
        "metadata": {field: metadata[field] for field in _SHOWN if metadata.get(field)},
    }


def tenant_namespace_resource() -> Resource:
    return Resource(
        group=GROUP,
        version=VERSION,
        kind=KIND,
        plural=PLURAL,
        singular="tenantnamespace",
        namespaced=False,
        description=(
            "TenantNamespace is a tenant's namespace that is visible to the caller, who may get Tenants in it or "
            "get the Namespace itself. It is read-only."
        ),
        columns=(Column("Status", description="Active, or Terminating while it is being deleted."),),
        cells=_cells,
    )


def _cells(obj: Object) -> tuple[str]:
    return ("Terminating" if obj["metadata"].get("deletionTimestamp") else "Active",)
