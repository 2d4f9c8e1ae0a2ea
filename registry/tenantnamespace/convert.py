"""Converts the workload Namespace of a tenant to a TenantNamespace. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from apiserver.meta.resource import Column, Key, Object, Resource, fields_at
from registry.names import (
    ANCESTOR_LABEL_PREFIX,
    HOST_LABEL,
    RELEASE_NAME_ANNOTATION,
    RELEASE_NAMESPACE_ANNOTATION,
    ROOT_NAME,
    ROOT_NAMESPACE,
    TENANT_ANNOTATION,
    tenant_name,
)

GROUP = "core.cozystack.io"
VERSION = "v1alpha1"
KIND = "TenantNamespace"
PLURAL = "tenantnamespaces"

_SHOWN = ("name", "uid", "resourceVersion", "creationTimestamp", "deletionTimestamp", "labels")


_STATUS: Object = {
    "type": "object",
    "description": "The Tenant of the namespace.",
    "properties": {
        "tenant": {"type": "string", "description": "The name of the Tenant."},
        "parent": {
            "type": "string",
            "description": "The namespace of the parent, which contains the Tenant. The root has none.",
        },
        "host": {"type": "string", "description": "The effective host of the Tenant."},
    },
}


def is_tenant_namespace(namespace: Object) -> bool:
    """True if a Namespace has the ancestor label with its own name, which the platform sets on workload namespaces
    only."""
    metadata = namespace["metadata"]
    return f"{ANCESTOR_LABEL_PREFIX}{metadata['name']}" in (metadata.get("labels") or {})


def to_tenant_namespace(namespace: Object) -> Object:
    """The TenantNamespace of a Namespace. It depends on nothing else, so equal versions have equal content."""
    metadata = namespace["metadata"]
    tenant = _tenant(metadata)
    parent = "" if tenant.namespace == metadata["name"] else tenant.namespace
    status = {"tenant": tenant.name, "parent": parent, "host": (metadata.get("labels") or {}).get(HOST_LABEL)}
    return {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": KIND,
        "metadata": {field: metadata[field] for field in _SHOWN if metadata.get(field)},
        "status": {field: value for field, value in status.items() if value},
    }


def to_visible_namespace(namespace: Object) -> Object:
    """The Namespace of a tenant as lists show it to people who may see it: what a TenantNamespace shows of it, its spec
    and its phase. Annotations can hold what only administrators should read."""
    metadata = namespace["metadata"]
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {field: metadata[field] for field in _SHOWN if metadata.get(field)},
        "spec": namespace.get("spec") or {},
        "status": {"phase": (namespace.get("status") or {}).get("phase", "")},
    }


def _tenant(metadata: Object) -> Key:
    """The Tenant of a Namespace, as its annotations name it: ours, or those of its chart. Empty if they do not."""
    if metadata["name"] == ROOT_NAMESPACE:
        return Key(ROOT_NAMESPACE, ROOT_NAME)
    annotations = metadata.get("annotations") or {}
    namespace, slash, name = annotations.get(TENANT_ANNOTATION, "").partition("/")
    if slash:
        return Key(namespace, name)
    found = tenant_name(annotations.get(RELEASE_NAME_ANNOTATION, ""))
    return Key(annotations.get(RELEASE_NAMESPACE_ANNOTATION, ""), found) if found else Key("", "")


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
        properties={"status": _STATUS},
        columns=(
            Column("Status", description="Active, or Terminating while it is being deleted."),
            Column("Tenant", description="The name of the Tenant.", priority=1),
            Column("Host", description="The effective host of the Tenant.", priority=1),
            Column("Parent", description="The namespace of the parent, which contains the Tenant.", priority=1),
        ),
        cells=_cells,
    )


def visible_namespace_resource() -> Resource:
    """Namespaces as kube-apiserver serves them, in lists and watches."""
    return Resource(
        group="",
        version="v1",
        kind="Namespace",
        plural="namespaces",
        singular="namespace",
        namespaced=False,
        short_names=("ns",),
        properties={
            "spec": {
                "type": "object",
                "properties": {"finalizers": {"type": "array", "items": {"type": "string"}}},
            },
            "status": {"type": "object", "properties": {"phase": {"type": "string"}}},
        },
        columns=(Column("Status", description="The status of the namespace"),),
        cells=lambda obj: ((obj.get("status") or {}).get("phase", ""),),
        selectable_fields=fields_at("status.phase"),
        metadata_fields=("metadata.name",),
    )


def _cells(obj: Object) -> Sequence[str]:
    status = obj.get("status") or {}
    phase = "Terminating" if obj["metadata"].get("deletionTimestamp") else "Active"
    return phase, *(status.get(field, "") for field in ("tenant", "host", "parent"))
