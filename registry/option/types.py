"""The Resource of Options: names, schema and columns. Data only."""

from __future__ import annotations

from collections.abc import Sequence

from apiserver.encoding.table import NAME
from apiserver.meta.resource import Column, Object, Resource, Schema

GROUP = "core.cozystack.io"
VERSION = "v1alpha1"
KIND = "Option"
PLURAL = "options"

_ITEM: Schema = {
    "type": "object",
    "description": "Something to choose.",
    "required": ["value"],
    "properties": {
        "value": {"type": "string", "description": "What is written into the field."},
        "label": {"type": "string", "description": "The text to show, the value by default."},
        "description": {"type": "string", "description": "An explanation."},
        "default": {"type": "boolean", "description": "True for the choice to begin with."},
    },
}


def option_resource() -> Resource:
    return Resource(
        group=GROUP,
        version=VERSION,
        kind=KIND,
        plural=PLURAL,
        singular="option",
        namespaced=True,
        description="Option has what a form offers for a field, such as the storage classes. It is read-only.",
        properties={
            "spec": {
                "type": "object",
                "description": "What the field may have.",
                "properties": {
                    "items": {"type": "array", "description": "The choices, sorted by value.", "items": _ITEM}
                },
            }
        },
        columns=(NAME, Column("Items", "integer", description="The number of choices.")),
        cells=_cells,
        replaces_default_columns=True,
    )


def _cells(obj: Object) -> Sequence[object]:
    return obj["metadata"].get("name", ""), len((obj.get("spec") or {}).get("items") or ())
