"""Generates the OpenAPI v3 definitions of the served kinds from their Resources."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from apiserver.endpoints.openapi.meta_definitions import API_VERSION, KIND, described_ref, ref
from apiserver.meta.resource import Resource, Schema

_PRESERVE = "x-kubernetes-preserve-unknown-fields"

# The schema keywords of OpenAPI 3.0. Clients drop all others except extensions, and would then write the document back
# differently (WIRE-C52).
_KEYWORDS = frozenset(
    (
        *("title", "description", "type", "format", "default", "enum", "example", "nullable"),
        *("properties", "required", "minProperties", "maxProperties", "additionalProperties"),
        *("items", "minItems", "maxItems", "uniqueItems"),
        *("pattern", "minLength", "maxLength"),
        *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
        *("allOf", "anyOf", "oneOf", "not"),
    )
)


def definition_name(resource: Resource) -> str:
    """The reversed group, the version and the kind, as for CRDs: io.cert-manager.v1.Issuer (WIRE-C48)."""
    return f"{definition_prefix(resource.group)}.{resource.version}.{resource.kind}"


def definition_prefix(group: str) -> str:
    """The reversed group; for the core group, whose name is empty, the prefix that Kubernetes uses."""
    return ".".join(reversed(group.split("."))) if group else "io.k8s.api.core"


def kind_definitions(resource: Resource, *, listed: bool) -> dict[str, Schema]:
    """The definition of the kind and, if it is `listed`, of its list, by name."""
    name = definition_name(resource)
    definitions = {name: _kind(resource)}
    if listed:
        definitions[f"{name}List"] = _list(resource, name)
    return definitions


def _kind(resource: Resource) -> Schema:
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {
            "apiVersion": API_VERSION,
            "kind": KIND,
            "metadata": described_ref("The object's metadata.", "ObjectMeta"),
            **{name: publish(each) for name, each in {**resource.properties, **resource.published}.items()},
        },
        **_group_version_kind(resource, resource.kind),
    }
    if resource.required:
        schema["required"] = list(resource.required)
    if resource.description:
        schema["description"] = resource.description
    if resource.preserve_unknown_fields:
        schema[_PRESERVE] = True
    return schema


def _list(resource: Resource, name: str) -> Schema:
    return {
        "type": "object",
        "description": f"{resource.list_kind} is a list of {resource.kind}.",
        "required": ["items"],
        "properties": {
            "apiVersion": API_VERSION,
            "items": {"type": "array", "description": f"List of {resource.plural}.", "items": ref(name)},
            "kind": KIND,
            "metadata": described_ref("The list's metadata.", "ListMeta"),
        },
        **_group_version_kind(resource, resource.list_kind),
    }


def _group_version_kind(resource: Resource, kind: str) -> dict[str, Any]:
    """In a schema this extension is a list, in an operation an object; clients reject a document that mixes them
    (WIRE-C40)."""
    entry = {"group": resource.group, "kind": kind, "version": resource.version}
    return {"x-kubernetes-group-version-kind": [entry]}


def publish(schema: Schema) -> Schema:
    """The schema reduced to the keywords of OpenAPI, without booleans in place of schemas (WIRE-C50, WIRE-C52)."""
    published: dict[str, Any] = {}
    for keyword, value in schema.items():
        if keyword == "additionalProperties" and isinstance(value, bool):
            # kube-controller-manager's type checker panics on a boolean (cozystack/cozystack#2863)
            if value:
                published[_PRESERVE] = True
        elif keyword in _KEYWORDS or keyword.startswith("x-"):
            published[keyword] = _publish_value(keyword, value)
    return published


def _publish_value(keyword: str, value: Any) -> Any:
    if keyword == "properties":
        return {name: publish(each) for name, each in value.items()}
    if keyword in ("allOf", "anyOf", "oneOf"):
        return [publish(each) for each in value]
    if keyword in ("items", "additionalProperties", "not") and isinstance(value, Mapping):
        return publish(value)
    return value
