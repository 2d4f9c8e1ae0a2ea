"""The Resource that the subresource `tenants/diff` returns, and takes with POST."""

from __future__ import annotations

from apiserver.meta.resource import Object, Resource, Schema
from registry.names import GROUP, VERSION

FORMAT = 1
"""The version of the answers: a client that knows it understands each of their fields."""
KIND = "TenantDiff"
_OBJECT: Schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def _text(description: str) -> Schema:
    return {"type": "string", "description": description}


_HIDDEN = "Objects of visible tenants that are left out, but for those of hostnames."


def diff_resource() -> Resource:
    identity = {name: _text(f"Its {name}.") for name in ("apiVersion", "kind", "namespace", "name")}
    change: Schema = {
        "type": "object",
        "properties": {
            "object": {"type": "object", "description": "The object that is written.", "properties": identity},
            "action": _text("create, update or delete."),
            "before": {**_OBJECT, "description": "The object as it is, without status. Missing if it does not exist."},
            "after": {**_OBJECT, "description": "The object as it would be. Missing if it would be deleted."},
        },
    }
    spec: Schema = {
        "type": "object",
        "description": "The question.",
        "properties": {
            "tenant": {**_OBJECT, "description": "The whole Tenant as it would be; a new one needs no defaults."}
        },
    }
    status: Schema = {
        "type": "object",
        "description": "The answer.",
        "properties": {
            "format": {"type": "integer", "description": "The version of the answer."},
            "changes": {"type": "array", "description": "The objects that differ.", "items": change},
            "hidden": {"type": "integer", "description": _HIDDEN},
            "truncated": {"type": "boolean", "description": "True if further tenants below were not looked at."},
            "problems": {
                "type": "array",
                "description": "What keeps an object of the tenant from being written.",
                "items": {"type": "string"},
            },
        },
    }
    return Resource(
        group=GROUP,
        version=VERSION,
        kind=KIND,
        plural="tenants",
        singular="tenant",
        namespaced=True,
        description="TenantDiff is what the controllers would change for a tenant.",
        properties={"spec": spec, "status": status},
    )


def diff_object(namespace: str, name: str, status: Object) -> Object:
    """The answer, without apiVersion and kind."""
    return {"metadata": {"name": name, "namespace": namespace}, "status": {"format": FORMAT, **status}}
