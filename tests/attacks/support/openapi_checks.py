"""Finds mistakes in OpenAPI documents that break clients or the aggregator."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.e2e.support.tenants import Object

_TYPING_KEYS = ("properties", "additionalProperties", "$ref", "allOf")
# definitions that are plain objects in the documents of kube-apiserver, too
_UNTYPED_IN_KUBERNETES = ("FieldsV1", "fieldsV1", "meta.v1.Patch", "runtime.RawExtension")


def find_untyped_objects(definitions: Object) -> list[str]:
    """Returns the paths of object schemas that neither have fields nor preserve unknown fields."""
    return [path for path, schema in _object_schemas(definitions, "") if not _is_typed(schema, path)]


def find_dangling_references(document: Object, prefix: str, known: Object) -> list[str]:
    """Returns the references without a target. Fails for a document without references."""
    found = set(_references(document))
    assert found
    return sorted(each for each in found if not each.startswith(prefix) or each.removeprefix(prefix) not in known)


def _is_typed(schema: Object, path: str) -> bool:
    untyped = schema.get("x-kubernetes-preserve-unknown-fields") is True or path.endswith(_UNTYPED_IN_KUBERNETES)
    return untyped or any(key in schema for key in _TYPING_KEYS)


def _object_schemas(document: Any, path: str) -> Iterator[tuple[str, Object]]:
    if isinstance(document, dict):
        if document.get("type") == "object":
            yield path, document
        for key, value in document.items():
            yield from _object_schemas(value, f"{path}/{key}")
    elif isinstance(document, list):
        for number, each in enumerate(document):
            yield from _object_schemas(each, f"{path}/{number}")


def _references(document: Any) -> Iterator[str]:
    if isinstance(document, dict):
        found = document.get("$ref")
        if isinstance(found, str):
            yield found
        for value in document.values():
            yield from _references(value)
    elif isinstance(document, list):
        for each in document:
            yield from _references(each)
