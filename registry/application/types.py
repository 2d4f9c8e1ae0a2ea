"""The Resource that is served for a kind: its names, schemas and columns. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from apiserver.encoding.encoded_object import epoch
from apiserver.encoding.table import NAME
from apiserver.meta.resource import Age, Column, Object, Resource, Schema
from registry.application.definition import ApplicationDefinition
from registry.application.schema import published_schema
from registry.application.values import reject_internal_keys
from registry.names import GROUP, VERSION

_OPEN: Schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
_CONDITION: Schema = {
    "type": "object",
    "description": "One aspect of the observed state.",
    "required": ["type", "status"],
    "properties": {
        "type": {"type": "string", "description": "Type of the condition."},
        "status": {"type": "string", "description": "Status of the condition.", "enum": ["True", "False", "Unknown"]},
        "lastTransitionTime": {
            "type": "string",
            "format": "date-time",
            "description": "The time of the last change of the status.",
        },
        "reason": {"type": "string", "description": "The reason of the last change, in CamelCase."},
        "message": {"type": "string", "description": "A human-readable explanation."},
    },
}
STATUS: Schema = {
    "type": "object",
    "description": "The observed state, as Flux reports it.",
    "properties": {
        "version": {"type": "string", "description": "Revision of the last attempted chart release."},
        "conditions": {
            "type": "array",
            "description": "Ready and Released of the HelmRelease, and WorkloadsReady of WorkloadMonitors.",
            "items": _CONDITION,
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["type"],
        },
    },
}
_COLUMNS = (
    NAME,
    Column("Ready", description="Status of the condition Ready."),
    Column("Age", description="The time since the object was created."),
    Column("Version", description="Build of the last attempted chart release."),
)


def application_resource(definition: ApplicationDefinition) -> Resource:
    """Writes are decoded with an open schema: nothing is pruned, and no default is added to what a client sends."""
    return Resource(
        group=GROUP,
        version=VERSION,
        kind=definition.kind,
        plural=definition.plural,
        singular=definition.singular,
        namespaced=True,
        description=f"{definition.kind} is an application of the platform, which Flux installs from a chart.",
        properties={
            "appVersion": {"type": "string", "description": "Accepted for compatibility, and not stored."},
            "spec": {**_OPEN, "description": "The values of the chart."},
            "status": STATUS,
        },
        published={"spec": {"description": "The values of the chart.", **published_schema(definition.schema)}},
        columns=_COLUMNS,
        cells=application_cells,
        replaces_default_columns=True,
        precheck=reject_internal_keys,
    )


def application_cells(obj: Object) -> Sequence[object]:
    """Name, Ready, Age and Version."""
    metadata, status = obj["metadata"], obj.get("status") or {}
    created = epoch(metadata.get("creationTimestamp"))
    return metadata.get("name", ""), _ready(status), Age(created), _build(status.get("version", ""))


def _ready(status: dict[str, Any]) -> str:
    for condition in status.get("conditions") or ():
        if condition.get("type") == "Ready":
            return str(condition.get("status", "Unknown"))
    return "Unknown"


def _build(version: str) -> str:
    """The part after the last plus sign; the whole version if there is none."""
    return version.rpartition("+")[2] or version or "<unknown>"
