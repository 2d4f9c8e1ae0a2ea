"""Converts the HelmRelease of a module to a TenantModule. Pure; malformed parts are omitted."""

from __future__ import annotations

from typing import Any

from apiserver.encoding.table import NAME
from apiserver.meta.resource import Column, Object, Resource
from registry import names
from registry.application.convert import to_application_status
from registry.application.release_metadata import string_entries
from registry.application.types import STATUS, application_cells

GROUP = "core.cozystack.io"
VERSION = "v1alpha1"
KIND = "TenantModule"
PLURAL = "tenantmodules"
MODULE_LABEL = "internal.cozystack.io/tenantmodule"

_SHOWN = ("name", "namespace", "uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp")
# Our own annotations are hidden from the clients of applications, too.
_OWN_ANNOTATIONS = frozenset(
    (
        names.MANAGED_FIELDS_ANNOTATION,
        names.FINDINGS_ANNOTATION,
        names.LONG_KEYS_ANNOTATION,
        names.APP_VERSION_ANNOTATION,
        names.DELETION_MARK_ANNOTATION,
        names.UNCONFIRMED_ANNOTATION,
    )
)
# It has the whole object with its values, which not everybody who may read modules may read.
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def is_module(release: Object) -> bool:
    return string_entries(release["metadata"].get("labels")).get(MODULE_LABEL) == "true"


def to_tenant_module(release: Object) -> Object:
    """The TenantModule of a HelmRelease. Labels and annotations keep their keys, by which consoles find the module."""
    metadata = release["metadata"]
    shown = {field: metadata[field] for field in _SHOWN if metadata.get(field)}
    labels = {key: value for key, value in string_entries(metadata.get("labels")).items() if key != MODULE_LABEL}
    annotations = string_entries(metadata.get("annotations"))
    optional = {
        "labels": labels,
        "annotations": {key: value for key, value in annotations.items() if _is_shown(key)},
    }
    module: Object = {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": KIND,
        "metadata": shown | {field: value for field, value in optional.items() if value},
    }
    if version := _chart_version(release):
        module["appVersion"] = version
    return module | {"status": to_application_status(release)}


def _is_shown(annotation: str) -> bool:
    return annotation not in _OWN_ANNOTATIONS and not annotation.endswith(_LAST_APPLIED)


def _chart_version(release: Object) -> str:
    """`spec.chart.spec.version`, which a HelmRelease with a chartRef does not have."""
    found: Any = release.get("spec")
    for field in ("chart", "spec", "version"):
        found = found.get(field) if isinstance(found, dict) else None
    return found if isinstance(found, str) else ""


def tenant_module_resource() -> Resource:
    return Resource(
        group=GROUP,
        version=VERSION,
        kind=KIND,
        plural=PLURAL,
        singular="tenantmodule",
        namespaced=True,
        description="TenantModule is a part of the platform that a tenant has of its own, such as its etcd. It is "
        "read-only: modules are enabled in the spec of the Tenant.",
        properties={
            "appVersion": {"type": "string", "description": "The version of the chart, if the release names one."},
            "status": STATUS,
        },
        columns=(
            NAME,
            Column("Ready", description="Status of the condition Ready."),
            Column("Age", description="The time since the object was created."),
            Column("Version", description="Build of the last attempted chart release."),
        ),
        cells=application_cells,
        replaces_default_columns=True,
    )
