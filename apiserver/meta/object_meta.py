"""ObjectMeta: generated names, UIDs and times, and validation on create and update (WIRE-D39 to WIRE-D48)."""

from __future__ import annotations

import json
import secrets
import uuid
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from apiserver.meta import errors
from apiserver.meta.errors import FieldError
from apiserver.meta.label_validation import label_value_errors, qualified_name_errors
from apiserver.meta.name_validation import dns1123_label_errors, dns1123_subdomain_errors
from apiserver.meta.resource import Object, Resource

__all__ = [
    "ANNOTATIONS_LIMIT",
    "dedup_owner_references",
    "dns1123_label_errors",
    "dns1123_subdomain_errors",
    "generate_name",
    "label_value_errors",
    "new_uid",
    "now_rfc3339",
    "qualified_name_errors",
    "validate_metadata",
    "validate_metadata_update",
]

ANNOTATIONS_LIMIT = 256 * 1024
"""The maximum total size of annotation keys and values in bytes."""

_SUFFIX_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
_SUFFIX_LENGTH = 5
_MAX_GENERATED_NAME = 63
_IMMUTABLE = ("name", "namespace", "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds")


def now_rfc3339() -> str:
    """Returns the current time in UTC, in whole seconds (WIRE-D24)."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def new_uid() -> str:
    return str(uuid.uuid4())


def generate_name(base: str) -> str:
    """Appends five random characters to `base`, which is truncated if necessary (WIRE-D39)."""
    suffix = "".join(secrets.choice(_SUFFIX_ALPHABET) for _ in range(_SUFFIX_LENGTH))
    return base[: _MAX_GENERATED_NAME - _SUFFIX_LENGTH] + suffix


def dedup_owner_references(obj: Object, *, admitted: bool = False) -> str | None:
    """Removes duplicate owner references in place, and returns the warning about them, if any (WIRE-D45). `admitted`
    selects the text for duplicates after mutating admission."""
    references = obj["metadata"].get("ownerReferences")
    if not isinstance(references, list):
        return None
    unique: dict[str, Any] = {}
    duplicate_uids: dict[str, None] = {}
    for reference in references:
        # compared as text, which is linear in the number of references (ATTACK-13)
        text = json.dumps(reference, sort_keys=True)
        if text in unique:
            duplicate_uids[str(reference.get("uid", ""))] = None
        else:
            unique[text] = reference
    if not duplicate_uids:
        return None
    obj["metadata"]["ownerReferences"] = list(unique.values())
    after = " after mutating admission happens" if admitted else ""
    return (
        f".metadata.ownerReferences contains duplicate entries{after}; API server dedups owner references in 1.20+, "
        "and may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: "
        f"{', '.join(duplicate_uids)}"
    )


def validate_metadata(obj: Object, resource: Resource, *, name_errors: Sequence[FieldError] = ()) -> list[FieldError]:
    """Returns all errors in the metadata of an object after its name was generated, including the `name_errors` of the
    kind. The types must be valid."""
    metadata = obj["metadata"]
    problems = list(name_errors)
    if not metadata.get("name"):
        problems.append(errors.required("metadata.name", "name or generateName is required"))
    problems += _namespace_errors(metadata.get("namespace") or "", resource)
    problems += label_errors(metadata.get("labels") or {})
    problems += annotation_errors(metadata.get("annotations") or {})
    problems += _owner_errors(metadata.get("ownerReferences") or [])
    problems += _finalizer_errors(metadata.get("finalizers") or [])
    return problems


def validate_metadata_update(new: Object, old: Object) -> list[FieldError]:
    """Returns an error for every metadata change that an update must not make (WIRE-D47, WIRE-D48)."""
    now, before = new["metadata"], old["metadata"]
    problems: list[FieldError] = []
    if before.get("deletionTimestamp"):
        problems += _new_finalizer_errors(now.get("finalizers") or [], before.get("finalizers") or [])
    for field in _IMMUTABLE:
        if (now.get(field) or None) != (before.get(field) or None):
            problems.append(errors.invalid(f"metadata.{field}", now.get(field), "field is immutable"))
    return problems


def _namespace_errors(namespace: str, resource: Resource) -> Iterator[FieldError]:
    field = "metadata.namespace"
    if not resource.namespaced:
        if namespace:
            yield errors.forbidden(field, "not allowed on this type")
    elif not namespace:
        yield errors.required(field)
    else:
        yield from (errors.invalid(field, namespace, text) for text in dns1123_label_errors(namespace))


def label_errors(labels: Mapping[str, str]) -> Iterator[FieldError]:
    """The errors of labels, whose path is metadata.labels."""
    field = "metadata.labels"
    for key, value in labels.items():
        yield from (errors.invalid(field, key, text) for text in qualified_name_errors(key))
        yield from (errors.invalid(field, value, text) for text in label_value_errors(value))


def annotation_errors(annotations: Mapping[str, str]) -> Iterator[FieldError]:
    """The errors of annotations, whose path is metadata.annotations."""
    field = "metadata.annotations"
    for key in annotations:
        # the prefix of an annotation key may contain capitals
        yield from (errors.invalid(field, key, text) for text in qualified_name_errors(key.lower()))
    if sum(len(key.encode()) + len(value.encode()) for key, value in annotations.items()) > ANNOTATIONS_LIMIT:
        yield errors.too_long(field, ANNOTATIONS_LIMIT)


def _owner_errors(references: Sequence[Mapping[str, Any]]) -> Iterator[FieldError]:
    field = "metadata.ownerReferences"
    controller = ""
    for reference in references:
        version = reference.get("apiVersion") or ""
        if not _has_version(version):
            yield errors.invalid(f"{field}.apiVersion", version, "version must not be empty")
        for part in ("kind", "name", "uid"):
            if not reference.get(part):
                yield errors.invalid(f"{field}.{part}", "", "must not be empty")
        if (version, reference.get("kind")) == ("v1", "Event"):
            yield errors.invalid(field, dict(reference), "/v1, Kind=Event is disallowed from being an owner")
        if not reference.get("controller"):
            continue
        name = f"{reference.get('kind', '')}/{reference.get('name', '')}"
        if controller:
            yield errors.invalid(
                field,
                references,
                "Only one reference can have Controller set to true. "
                f'Found "true" in references for {controller} and {name}',
            )
        else:
            controller = name


def _has_version(api_version: str) -> bool:
    return bool(api_version) and api_version.count("/") <= 1 and not api_version.endswith("/")


def _finalizer_errors(finalizers: Sequence[str]) -> Iterator[FieldError]:
    field = "metadata.finalizers"
    for finalizer in finalizers:
        yield from (errors.invalid(field, finalizer, text) for text in qualified_name_errors(finalizer))
    if {"orphan", "foregroundDeletion"} <= set(finalizers):
        why = "finalizer orphan and foregroundDeletion cannot be both set"
        yield errors.invalid(field, list(finalizers), why)


def _new_finalizer_errors(now: Sequence[str], before: Sequence[str]) -> Iterator[FieldError]:
    added = sorted(set(now) - set(before))
    if added:
        quoted = ", ".join(json.dumps(finalizer, ensure_ascii=False) for finalizer in added)
        yield errors.forbidden(
            "metadata.finalizers",
            f"no new finalizers can be added if the object is being deleted, found new finalizers []string{{{quoted}}}",
        )
