"""Converts OpenAPI v3 to v2, for the clients that still read /openapi/v2 (WIRE-C35).

Keywords that v2 cannot express are dropped, because clients validate objects against v2 before they send them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from apiserver.endpoints.openapi.meta_definitions import REF_PREFIX
from apiserver.meta.resource import Schema

_METHODS = ("get", "put", "post", "delete", "patch")
_ANY_BODY = ["application/json", "application/yaml"]
_UNKNOWN_TO_V2 = frozenset(("default", "nullable", "anyOf", "oneOf", "not", "allOf"))
_INT_OR_STRING = "x-kubernetes-int-or-string"
_PRESERVE = "x-kubernetes-preserve-unknown-fields"


def to_v2(document: Mapping[str, Any]) -> dict[str, Any]:
    """`document` as OpenAPI v2; `document` itself is not changed. A field that preserves unknown fields has no
    properties, as in kube-apiserver's document of a CustomResourceDefinition (apiextensions-apiserver,
    controller/openapi/v2): kubectl, which validates the items of a List by v2, would reject all others. `kubectl
    explain` reads v3."""
    components = document["components"]
    return {
        "swagger": "2.0",
        "info": document["info"],
        "paths": {path: _path(item) for path, item in document["paths"].items()},
        "definitions": {name: _definition(schema) for name, schema in components["schemas"].items()},
        "securityDefinitions": components["securitySchemes"],
        "security": document["security"],
    }


def _path(item: Mapping[str, Any]) -> dict[str, Any]:
    converted: dict[str, Any] = {method: _operation(item[method]) for method in _METHODS if method in item}
    if "parameters" in item:
        converted["parameters"] = [_parameter(parameter) for parameter in item["parameters"]]
    return converted


def _operation(operation: Mapping[str, Any]) -> dict[str, Any]:
    converted = {
        key: value for key, value in operation.items() if key not in ("parameters", "requestBody", "responses")
    }
    body = operation.get("requestBody")
    parameters = [_parameter(parameter) for parameter in operation.get("parameters", ())]
    if body is not None:
        parameters.insert(0, _body(body))
    produces = {
        media_type for response in operation["responses"].values() for media_type in response.get("content", ())
    }
    return {
        **converted,
        "consumes": sorted(body["content"]) if body is not None else _ANY_BODY,
        "parameters": parameters,
        "produces": sorted(produces),
        "responses": {code: _response(response) for code, response in operation["responses"].items()},
        "schemes": ["https"],
    }


def _parameter(parameter: Mapping[str, Any]) -> dict[str, Any]:
    converted = {key: value for key, value in parameter.items() if key != "schema"}
    return {**converted, **_schema(parameter["schema"])}


def _body(body: Mapping[str, Any]) -> dict[str, Any]:
    converted: dict[str, Any] = {"name": "body", "in": "body", "schema": _first_schema(body["content"])}
    return {**converted, "required": True} if body.get("required") else converted


def _response(response: Mapping[str, Any]) -> dict[str, Any]:
    if not response.get("content"):
        return {"description": response["description"]}
    return {"description": response["description"], "schema": _first_schema(response["content"])}


def _first_schema(content: Mapping[str, Any]) -> Schema:
    """v2 has a single schema for all media types; ours are equal."""
    return _schema(next(iter(content.values()))["schema"])


def _definition(schema: Schema) -> Schema:
    """A top-level definition keeps its properties even if unknown fields are preserved."""
    if not schema.get(_PRESERVE):
        return _schema(schema)
    return {**_schema({key: value for key, value in schema.items() if key != _PRESERVE}), _PRESERVE: True}


def _schema(schema: Schema) -> Schema:
    if "$ref" in schema:
        return {"$ref": _reference(schema)}
    converted = {key: value for key, value in schema.items() if key not in _UNKNOWN_TO_V2}
    composed = schema.get("allOf", ())
    if len(composed) == 1 and "$ref" in composed[0]:
        return {**converted, "$ref": _reference(composed[0])}
    if schema.get(_INT_OR_STRING):
        return {**_annotations(converted), "type": "string", "format": "int-or-string"}
    if schema.get("nullable") or schema.get(_PRESERVE):
        # with a type clients would reject null, and with properties they would reject any other field
        return _annotations(converted)
    if "properties" in converted:
        converted["properties"] = {name: _schema(each) for name, each in converted["properties"].items()}
    for keyword in ("items", "additionalProperties"):
        if keyword in converted:
            converted[keyword] = _schema(converted[keyword])
    return converted


def _annotations(schema: Schema) -> dict[str, Any]:
    return {key: value for key, value in schema.items() if key == "description" or key.startswith("x-")}


def _reference(schema: Schema) -> str:
    return "#/definitions/" + str(schema["$ref"]).removeprefix(REF_PREFIX)
