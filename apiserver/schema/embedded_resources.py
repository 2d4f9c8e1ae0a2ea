"""Objects inside of objects, x-kubernetes-embedded-resource (apiextensions-apiserver/pkg/apiserver/schema/objectmeta).
Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from apiserver.meta import errors
from apiserver.meta.errors import FieldError
from apiserver.meta.name_validation import kind_problem
from apiserver.meta.object_meta import annotation_errors, label_errors
from apiserver.meta.resource import Schema
from apiserver.schema.nested_values import nested_values


def embedded_resource_errors(schema: Schema, value: Any, path: str = "") -> list[FieldError]:
    """The errors of embedded objects in their apiVersion, kind, labels and annotations."""
    return [
        error
        for each, obj, where in nested_values(schema, value, path)
        if isinstance(obj, dict) and each.get("x-kubernetes-embedded-resource")
        for error in (*_type_errors(obj, where), *_metadata_errors(obj, where))
    ]


def _metadata_errors(value: Mapping[str, Any], path: str) -> Iterator[FieldError]:
    metadata = value.get("metadata")
    if not isinstance(metadata, dict):
        return
    for name, check in (("labels", label_errors), ("annotations", annotation_errors)):
        entries = metadata.get(name)
        if isinstance(entries, dict) and all(isinstance(each, str) for each in entries.values()):
            for error in check(entries):
                yield replace(error, field=f"{path}.{error.field}")


def _type_errors(value: Mapping[str, Any], path: str) -> Iterator[FieldError]:
    for name in ("apiVersion", "kind"):
        where = f"{path}.{name}"
        if name not in value:
            yield errors.required(where)
        elif not isinstance(value[name], str):
            yield errors.invalid(where, value[name], "must be a string")
        elif not value[name]:
            yield errors.invalid(where, "", "must not be empty")
    version, kind = value.get("apiVersion"), value.get("kind")
    if isinstance(version, str) and version.count("/") > 1:
        yield errors.invalid(f"{path}.apiVersion", version, f"unexpected GroupVersion string: {version}")
    if isinstance(kind, str) and kind and (why := kind_problem(kind)):
        yield errors.invalid(f"{path}.kind", kind, why)
