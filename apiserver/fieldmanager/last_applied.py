"""The last-applied annotation of client-side `kubectl apply`: server-side apply takes over its fields and keeps it up
to date (WIRE-G29)."""

from __future__ import annotations

import json

from apiserver.fieldmanager.field_set import EMPTY, FieldSet
from apiserver.fieldmanager.typed.compare import compare
from apiserver.fieldmanager.typed.field_set import to_field_set
from apiserver.fieldmanager.typed.types import Atom
from apiserver.fieldmanager.typed.validate import validate
from apiserver.json.values import MAX_OBJECT_NESTING, deep_copy, nests_deeper_than
from apiserver.meta.object_meta import ANNOTATIONS_LIMIT
from apiserver.meta.resource import Object

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def last_applied_fields(atom: Atom, live: Object) -> FieldSet:
    """Returns the unchanged fields of the last client-side `kubectl apply`, which kubectl may take over."""
    annotation = (live["metadata"].get("annotations") or {}).get(LAST_APPLIED)
    try:
        config = json.loads(annotation or "")
    except (ValueError, RecursionError):
        return EMPTY
    if not isinstance(config, dict) or config.get("apiVersion") != live["apiVersion"]:
        return EMPTY
    if nests_deeper_than(config, MAX_OBJECT_NESTING) or validate(atom, config) or validate(atom, live):
        return EMPTY
    comparison = compare(atom, config, live)
    return to_field_set(atom, config) - comparison.modified_or_added - comparison.removed


def refresh_last_applied(applied: Object, config: Object) -> Object:
    """Sets an existing annotation to `config`, and removes it if the annotations would become too large."""
    metadata = applied.get("metadata") or {}
    annotations = dict(metadata.get("annotations") or {})
    if not annotations.get(LAST_APPLIED):
        return applied
    last_applied = deep_copy(config)
    (last_applied["metadata"].get("annotations") or {}).pop(LAST_APPLIED, None)
    annotations[LAST_APPLIED] = (
        json.dumps(last_applied, ensure_ascii=False, separators=(",", ":"), sort_keys=True) + "\n"
    )
    if sum(len(key.encode()) + len(value.encode()) for key, value in annotations.items()) > ANNOTATIONS_LIMIT:
        del annotations[LAST_APPLIED]
    return {**applied, "metadata": {**metadata, "annotations": annotations}}
