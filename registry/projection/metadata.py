"""The metadata of a projection, which is that of the object in the cluster without what is hidden. Pure.

managedFields are stored in an annotation: those of the cluster's object name its fields, not those of the projection.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from apiserver.json.values import deep_copy
from registry.application.release_metadata import managed_fields_json, parse_json_annotation, string_entries
from registry.names import MANAGED_FIELDS_ANNOTATION

_SHARED_FIELDS = (
    "name",
    "namespace",
    "generateName",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "ownerReferences",
    "finalizers",
)
_WRITABLE_LISTS = ("ownerReferences", "finalizers")


@dataclass(frozen=True, slots=True, kw_only=True)
class Hidden:
    """Metadata that clients neither see nor write: the label by which the projection selects, and annotations. A label
    of this key that a client sends is dropped. `kept_finalizer` is shown, and stays when a client leaves it out."""

    label: str
    annotations: frozenset[str] = frozenset()
    kept_finalizer: str = ""

    def hides(self, annotation: str) -> bool:
        return annotation == MANAGED_FIELDS_ANNOTATION or annotation in self.annotations


def shown_metadata(metadata: Mapping[str, Any], hidden: Hidden) -> dict[str, Any]:
    """The two share no values."""
    annotations = string_entries(metadata.get("annotations"))
    shown = {field: deep_copy(metadata[field]) for field in _SHARED_FIELDS if metadata.get(field) not in (None, "", [])}
    managed = parse_json_annotation(annotations, MANAGED_FIELDS_ANNOTATION)
    optional: dict[str, Any] = {
        "labels": {key: text for key, text in string_entries(metadata.get("labels")).items() if key != hidden.label},
        "annotations": {key: text for key, text in annotations.items() if not hidden.hides(key)},
        "managedFields": managed if isinstance(managed, list) else [],
    }
    return shown | {field: value for field, value in optional.items() if value}


def stored_metadata(wanted: Mapping[str, Any], current: Mapping[str, Any], hidden: Hidden) -> dict[str, Any]:
    """The metadata of the object in the cluster: `current`, with the fields of the projection taken from `wanted`, and
    the label by which it is selected."""
    metadata = {field: value for field, value in current.items() if field != "managedFields"}
    for field in ("name", "namespace", "generateName"):
        if wanted.get(field):
            metadata[field] = wanted[field]
    metadata["labels"] = {**string_entries(wanted.get("labels")), hidden.label: "true"}
    annotations = string_entries(current.get("annotations"))
    kept = {key: text for key, text in annotations.items() if key in hidden.annotations}
    sent = {key: text for key, text in string_entries(wanted.get("annotations")).items() if not hidden.hides(key)}
    metadata["annotations"] = sent | kept
    if text := managed_fields_json(wanted, metadata["annotations"]):
        metadata["annotations"][MANAGED_FIELDS_ANNOTATION] = text
    for field in _WRITABLE_LISTS:
        metadata[field] = deep_copy(list(wanted.get(field) or ()))
    finalizer = hidden.kept_finalizer
    if finalizer in (current.get("finalizers") or ()) and finalizer not in metadata["finalizers"]:
        metadata["finalizers"].append(finalizer)
    return {field: value for field, value in metadata.items() if value not in ([], {})}
