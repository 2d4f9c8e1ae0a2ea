"""A CRD with the schema of Tenants in another group: kube-apiserver applies policies to it, but not to aggregated
resources."""

from __future__ import annotations

from apiserver.meta.resource import Object
from registry.tenant.types import tenant_resource

STAND_IN_GROUP = "stand-in.cozystack.io"


def stand_in_crd() -> Object:
    tenants = tenant_resource()
    names = {
        "plural": tenants.plural,
        "singular": tenants.singular,
        "kind": tenants.kind,
        "listKind": tenants.list_kind,
    }
    schema = {"type": "object", "properties": {"spec": {**tenants.published["spec"], "default": {}}}}
    version = {"name": tenants.version, "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{tenants.plural}.{STAND_IN_GROUP}"},
        "spec": {"group": STAND_IN_GROUP, "scope": "Namespaced", "names": names, "versions": [version]},
    }
