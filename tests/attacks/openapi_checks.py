"""What is wrong with a document of OpenAPI, so that a cluster could stumble over it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.e2e.support.tenants import Object

_DESCRIBED = ("properties", "additionalProperties", "$ref", "allOf")
# which are just objects in a kube-apiserver's own documents, too
_ANYTHING = ("FieldsV1", "fieldsV1", "meta.v1.Patch", "runtime.RawExtension")


def find_untyped_objects(definitions: Object) -> list[str]:
    """Where the schemas are that neither have fields nor say that they are free."""
    return [path for path, schema in _schemas(definitions, "") if not _is_described(schema, path)]


def find_dangling_references(document: Object, prefix: str, known: Object) -> list[str]:
    """References that lead nowhere. A document without any is no document."""
    found = set(_references(document))
    assert found
    return sorted(each for each in found if not each.startswith(prefix) or each.removeprefix(prefix) not in known)


def _is_described(schema: Object, path: str) -> bool:
    free = schema.get("x-kubernetes-preserve-unknown-fields") is True or path.endswith(_ANYTHING)
    return free or any(key in schema for key in _DESCRIBED)


def _schemas(document: Any, path: str) -> Iterator[tuple[str, Object]]:
    if isinstance(document, dict):
        if document.get("type") == "object":
            yield path, document
        for key, value in document.items():
            yield from _schemas(value, f"{path}/{key}")
    elif isinstance(document, list):
        for number, each in enumerate(document):
            yield from _schemas(each, f"{path}/{number}")


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
