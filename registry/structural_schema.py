"""Converts pydantic models to structural OpenAPI schemas: without references, unions and titles."""

from __future__ import annotations

import functools
from typing import Any

from pydantic import BaseModel

from apiserver.json.values import deep_copy
from apiserver.meta.resource import Schema

INT_OR_STRING: Schema = {"x-kubernetes-int-or-string": True}


def structural_schema(model: type[BaseModel]) -> Schema:
    """The schema of `model` with field aliases as names. `X | None` becomes X, `int | str` becomes int-or-string.

    Defaults are preserved. Raises ValueError for a model that a structural schema cannot describe.
    """
    return deep_copy(_schema_of(model))


@functools.cache
def _schema_of(model: type[BaseModel]) -> Schema:
    """pydantic takes some ten milliseconds for a model."""
    document = model.model_json_schema(by_alias=True, mode="validation")
    definitions = document.pop("$defs", {})
    return _structural(document, definitions)


def _structural(node: dict[str, Any], definitions: dict[str, Any]) -> dict[str, Any]:
    if "$ref" in node:
        target = definitions[node["$ref"].rpartition("/")[2]]
        return _structural({**target, **{key: value for key, value in node.items() if key != "$ref"}}, definitions)
    if "anyOf" in node:
        rest = {key: value for key, value in node.items() if key != "anyOf"}
        return _structural({**_one_of(node["anyOf"]), **rest}, definitions)
    schema: dict[str, Any] = {}
    for key, value in node.items():
        match key:
            case "title":
                continue
            case "properties":
                schema[key] = {name: _structural(each, definitions) for name, each in value.items()}
            case "items":
                schema[key] = _structural(value, definitions)
            case "additionalProperties":
                # fields without a schema are pruned anyway, so a boolean adds nothing
                if isinstance(value, dict):
                    schema[key] = _structural(value, definitions)
            case "default" if value is None:
                continue
            case "const" | "oneOf" | "allOf" | "prefixItems":
                raise ValueError(f"{key} has no structural form")
            case _:
                schema[key] = value
    return schema


def _one_of(choices: list[dict[str, Any]]) -> dict[str, Any]:
    non_null = [choice for choice in choices if choice.get("type") != "null"]
    if len(non_null) == 1:
        return non_null[0]
    if {choice.get("type") for choice in non_null} == {"integer", "string"}:
        return dict(INT_OR_STRING)
    raise ValueError("a union has no structural form")
