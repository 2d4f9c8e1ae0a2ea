"""The rules of ObjectMeta: what the server fills in, what clients may set, what never changes (WIRE-D39 to
WIRE-D48)."""

from __future__ import annotations

import json
import secrets
import uuid
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from apiserver.meta import errors
from apiserver.meta import label_validation as labels
from apiserver.meta.errors import FieldError
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
"""Bytes that the keys and values of an object's annotations may have together."""

_SUFFIX_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
_SUFFIX_LENGTH = 5
_MAX_GENERATED_NAME = 63
_IMMUTABLE = ("name", "namespace", "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds")


def now_rfc3339() -> str:
    """The time in whole seconds, in UTC (WIRE-D24)."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def new_uid() -> str:
    return str(uuid.uuid4())


def generate_name(base: str) -> str:
    """A name that begins with `base`, cut where needed, and ends in five random characters (WIRE-D39)."""
    suffix = "".join(secrets.choice(_SUFFIX_ALPHABET) for _ in range(_SUFFIX_LENGTH))
    return base[: _MAX_GENERATED_NAME - _SUFFIX_LENGTH] + suffix


def qualified_name_errors(name: str) -> list[str]:
    """What keeps `name` from being the key of a label, or the name of a finalizer (WIRE-D43, WIRE-D46)."""
    return labels.qualified_name_errors(name)


def label_value_errors(value: str) -> list[str]:
    return labels.label_value_errors(value)


def dedup_owner_references(obj: Object, *, admitted: bool = False) -> str | None:
    """Drop, in place, owner references that are there twice. The warning to send, if there were any (WIRE-D45), as it
    is worded of what mutating admission made."""
    references = obj["metadata"].get("ownerReferences")
    if not isinstance(references, list):
        return None
    kept: dict[str, Any] = {}
    repeated: dict[str, None] = {}
    for reference in references:
        # by its text, so that very many cost no more than reading them (ATTACK-13)
        text = json.dumps(reference, sort_keys=True)
        if text in kept:
            repeated[str(reference.get("uid", ""))] = None
        else:
            kept[text] = reference
    if not repeated:
        return None
    obj["metadata"]["ownerReferences"] = list(kept.values())
    after = " after mutating admission happens" if admitted else ""
    return (
        f".metadata.ownerReferences contains duplicate entries{after}; API server dedups owner references in 1.20+, "
        "and may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: "
        f"{', '.join(repeated)}"
    )


def validate_metadata(obj: Object, resource: Resource, *, name_errors: Sequence[FieldError] = ()) -> list[FieldError]:
    """Every error in the metadata of an object, after its name has been generated. `name_errors` is what the kind
    has against the name. Types must have been checked before."""
    metadata = obj["metadata"]
    problems = list(name_errors)
    if not metadata.get("name"):
        problems.append(errors.required("metadata.name", "name or generateName is required"))
    problems += _namespace_errors(metadata.get("namespace") or "", resource)
    problems += _label_errors(metadata.get("labels") or {})
    problems += _annotation_errors(metadata.get("annotations") or {})
    problems += _owner_errors(metadata.get("ownerReferences") or [])
    problems += _finalizer_errors(metadata.get("finalizers") or [])
    return problems


def validate_metadata_update(new: Object, old: Object) -> list[FieldError]:
    """Every change of metadata that an update may not make (WIRE-D47, WIRE-D48)."""
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


def _label_errors(found: Mapping[str, str]) -> Iterator[FieldError]:
    field = "metadata.labels"
    for key, value in found.items():
        yield from (errors.invalid(field, key, text) for text in labels.qualified_name_errors(key))
        yield from (errors.invalid(field, value, text) for text in labels.label_value_errors(value))


def _annotation_errors(found: Mapping[str, str]) -> Iterator[FieldError]:
    field = "metadata.annotations"
    for key in found:
        # the case of an annotation's prefix does not matter
        yield from (errors.invalid(field, key, text) for text in labels.qualified_name_errors(key.lower()))
    if sum(len(key.encode()) + len(value.encode()) for key, value in found.items()) > ANNOTATIONS_LIMIT:
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
        yield from (errors.invalid(field, finalizer, text) for text in labels.qualified_name_errors(finalizer))
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
