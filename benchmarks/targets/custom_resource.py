"""Custom resources of a kube-apiserver with the same bytes as served Tenants, in a group whose name is as long."""

from __future__ import annotations

from collections.abc import Mapping

import orjson

from apiserver.meta.resource import Column, Object
from benchmarks.objects import slot
from benchmarks.targets.target import NAMESPACE
from registry.tenant.types import tenant_resource

GROUP = "apps.benchmark.io"
VERSION = "v1alpha1"
_READY = '.status.conditions[?(@.type=="Ready")].status'
_PATHS = {
    "Ready": _READY,
    "Namespace": ".status.namespace",
    "Host": ".status.host.value",
    "Gateway": ".status.gateway.namespace",
    "Version": ".status.version",
    "Services": ".status.services.etcd",
    "Quota": ".spec.resourceQuotas",
}


def collection() -> str:
    return f"/apis/{GROUP}/{VERSION}/namespaces/{NAMESPACE}/{tenant_resource().plural}"


def rule() -> Mapping[str, list[str]]:
    """The RBAC rule that lets a user do everything with them."""
    plural = tenant_resource().plural
    return {"apiGroups": [GROUP], "resources": [plural, f"{plural}/status"], "verbs": ["*"]}


def definition() -> Object:
    """The CustomResourceDefinition with the schema and the columns of Tenant."""
    tenant = tenant_resource()
    names = {
        "kind": tenant.kind,
        "listKind": tenant.list_kind,
        "plural": tenant.plural,
        "singular": tenant.singular,
    }
    version = {
        "name": VERSION,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {**tenant.properties, **tenant.published}}},
        "subresources": {"status": {}},
        "additionalPrinterColumns": [_column(each) for each in tenant.columns] + [_AGE],
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{tenant.plural}.{GROUP}"},
        "spec": {"group": GROUP, "names": names, "scope": "Namespaced", "versions": [version]},
    }


_AGE = {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}


def _column(column: Column) -> Mapping[str, object]:
    path = _PATHS.get(column.name, f".spec.{column.name.lower()}")
    return {"name": column.name, "type": column.type, "jsonPath": path, "priority": column.priority}


def renamed(sample: Object, name: str) -> Object:
    """Returns a copy of `sample` with another name, which must be as long as the old one."""
    old = sample["metadata"]["name"]
    if len(name) != len(old):
        raise ValueError(f"{name!r} is not as long as {old!r}")
    found: Object = orjson.loads(orjson.dumps(sample).replace(old.encode(), name.encode()))
    found["metadata"]["labels"]["slot"] = slot(name)
    return found


def as_sent(tenant: Object, api_version: str, kind: str) -> Object:
    """Returns the body with which a client creates an object like the served Tenant."""
    metadata = {key: tenant["metadata"][key] for key in ("name", "namespace", "labels")}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": tenant["spec"]}


NO_MANAGED_FIELDS: Object = {"metadata": {"managedFields": [{}]}}
"""A merge patch that removes managedFields: Tenants that are seeded as HelmReleases have none either."""
