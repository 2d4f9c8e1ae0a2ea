"""Converts the metadata of a HelmRelease to that of the application that it stores, and back. Pure.

The user's labels and annotations are stored under `apps.cozystack.io-<key>`. Those whose key would exceed the limit
are stored together in one JSON annotation, so that an application accepts every valid key.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from apiserver.json import deep as deepjson
from apiserver.json.values import MAX_OBJECT_NESTING, deep_copy, nests_deeper_than
from apiserver.meta.object_meta import ANNOTATIONS_LIMIT
from registry.names import (
    APP_VERSION_ANNOTATION,
    APPLICATION_STATUS_ANNOTATION,
    HIDDEN_FINALIZERS,
    LONG_KEYS_ANNOTATION,
    MANAGED_FIELDS_ANNOTATION,
    UNCONFIRMED_ANNOTATION,
    stored_key,
    user_key,
)

_SHARED_FIELDS = (
    "generateName",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "ownerReferences",
)


def string_entries(value: object) -> dict[str, str]:
    """The entries of a mapping whose key and value are strings."""
    if not isinstance(value, dict):
        return {}
    return {key: each for key, each in value.items() if isinstance(key, str) and isinstance(each, str)}


def parse_json_annotation(annotations: Mapping[str, str], key: str) -> Any:
    """The JSON value of a hidden annotation, None if it is missing, invalid, or nested deeper than objects may be."""
    text = annotations.get(key)
    if not text:
        # the usual case, without the cost of an exception
        return None
    try:
        value = orjson.loads(text)
    except ValueError:
        return None
    return None if deepjson.may_be_deep(text) and nests_deeper_than(value, MAX_OBJECT_NESTING) else value


def stored_status(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """The facts that the controllers have stored about an application; empty if there are none, or if malformed."""
    found = parse_json_annotation(string_entries(metadata.get("annotations")), APPLICATION_STATUS_ANNOTATION)
    return found if isinstance(found, dict) else {}


def _long_keys(annotations: Mapping[str, str]) -> Mapping[str, Any]:
    """The labels and annotations of the user whose keys are too long for a key of their own, by field."""
    entries = parse_json_annotation(annotations, LONG_KEYS_ANNOTATION)
    return entries if isinstance(entries, dict) else {}


def _user_entries(stored: Mapping[str, str], long_keys: Mapping[str, str]) -> dict[str, str]:
    shown = {key: value for each, value in stored.items() if (key := user_key(each)) is not None}
    return shown | {key: value for key, value in long_keys.items() if stored_key(key) is None}


def to_shown_metadata(metadata: Mapping[str, Any], *, name: str) -> dict[str, Any]:
    """The metadata of the application `name`, from the `metadata` of its HelmRelease. The two share no values."""
    stored = string_entries(metadata.get("annotations"))
    long_keys = _long_keys(stored)
    shown: dict[str, Any] = {"name": name, "namespace": metadata.get("namespace", "")}
    shown |= {
        field: deep_copy(metadata[field]) for field in _SHARED_FIELDS if metadata.get(field) not in (None, "", [])
    }
    finalizers = [each for each in metadata.get("finalizers") or () if each not in HIDDEN_FINALIZERS]
    managed = parse_json_annotation(stored, MANAGED_FIELDS_ANNOTATION)
    optional: dict[str, Any] = {
        "labels": _user_entries(string_entries(metadata.get("labels")), string_entries(long_keys.get("labels"))),
        "annotations": _user_entries(stored, string_entries(long_keys.get("annotations"))),
        "finalizers": finalizers,
        "managedFields": managed if isinstance(managed, list) else [],
    }
    return shown | {field: value for field, value in optional.items() if value}


def to_release_metadata(wanted: Mapping[str, Any], current: Mapping[str, Any], *, app_version: str) -> dict[str, Any]:
    """The metadata of a HelmRelease: `current`, with the fields of an application's metadata taken from `wanted`."""
    metadata = dict(current)
    labels, long_labels = _split_by_key_length(string_entries(wanted.get("labels")))
    annotations, long_annotations = _split_by_key_length(string_entries(wanted.get("annotations")))
    metadata["labels"] = _entries_of_others(current.get("labels")) | labels
    metadata["annotations"] = _entries_of_others(current.get("annotations")) | annotations
    both = (("annotations", long_annotations), ("labels", long_labels))
    long_keys = {field: dict(sorted(entries.items())) for field, entries in both if entries}
    _set(metadata["annotations"], LONG_KEYS_ANNOTATION, _to_json(long_keys))
    _set(metadata["annotations"], APP_VERSION_ANNOTATION, app_version)
    _set(metadata["annotations"], MANAGED_FIELDS_ANNOTATION, "")
    _set(metadata["annotations"], MANAGED_FIELDS_ANNOTATION, managed_fields_json(wanted, metadata["annotations"]))
    metadata["finalizers"] = _finalizers(wanted.get("finalizers") or (), current.get("finalizers") or ())
    metadata["ownerReferences"] = list(wanted.get("ownerReferences") or ())
    metadata["generateName"] = wanted.get("generateName") or ""
    for field in ("labels", "annotations", "finalizers", "ownerReferences", "generateName"):
        if not metadata[field]:
            del metadata[field]
    return metadata


def _entries_of_others(stored: object) -> dict[str, str]:
    return {key: value for key, value in string_entries(stored).items() if user_key(key) is None}


def _split_by_key_length(wanted: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """Splits entries into those stored under a prefixed key, and those whose key is too long for that."""
    short: dict[str, str] = {}
    long: dict[str, str] = {}
    for key, value in wanted.items():
        stored = stored_key(key)
        if stored is None:
            long[key] = value
        else:
            short[stored] = value
    return short, long


def _finalizers(wanted: Sequence[str], current: Sequence[str]) -> list[str]:
    """The finalizers of the application and the hidden ones of the HelmRelease, which clients cannot change."""
    visible = [each for each in wanted if each not in HIDDEN_FINALIZERS]
    if visible == [each for each in current if each not in HIDDEN_FINALIZERS]:
        return list(current)
    return [*(each for each in current if each in HIDDEN_FINALIZERS), *visible]


def managed_fields_json(wanted: Mapping[str, Any], annotations: Mapping[str, str]) -> str:
    """managedFields as JSON; empty if they would exceed the limit of annotations. Kubernetes drops them, too, rather
    than reject the write (WIRE-D74)."""
    text = _to_json(wanted.get("managedFields") or ())
    return text if _fits(annotations, MANAGED_FIELDS_ANNOTATION, text) else ""


def mark_unconfirmed(release: dict[str, Any], write_id: str) -> None:
    """Adds the mark of an unconfirmed write, unless it has no id, or the other annotations leave no room."""
    annotations = release["metadata"].get("annotations") or {}
    if write_id and _fits(annotations, UNCONFIRMED_ANNOTATION, write_id):
        release["metadata"]["annotations"] = {**annotations, UNCONFIRMED_ANNOTATION: write_id}


def _fits(annotations: Mapping[str, str], key: str, text: str) -> bool:
    """True if the cluster accepts `text` besides the other annotations."""
    used = sum(len(each.encode()) + len(value.encode()) for each, value in annotations.items() if each != key)
    return used + len(key) + len(text.encode()) <= ANNOTATIONS_LIMIT


def _to_json(value: Any) -> str:
    """Compact JSON, '' for an empty value."""
    return orjson.dumps(value).decode() if value else ""


def _set(annotations: dict[str, str], key: str, text: str) -> None:
    if text:
        annotations[key] = text
    else:
        annotations.pop(key, None)
