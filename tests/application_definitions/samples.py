"""Cozystack's ApplicationDefinitions, without their texts, and a valid spec for each of them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from apiserver.meta.resource import Object

_FILE = Path(__file__).parent / "definitions.json"


@cache
def _definitions() -> Mapping[str, Object]:
    return {each["metadata"]["name"]: each for each in json.loads(_FILE.read_text())}


def definition_names() -> list[str]:
    """All 31 names, with that of Tenants."""
    return sorted(_definitions())


def definition(name: str) -> Object:
    """A copy of the definition with this name."""
    copied: Object = json.loads(json.dumps(_definitions()[name]))
    return copied


def sample_spec(name: str) -> Object:
    """A value for every documented key, besides keys that no schema has."""
    schema = json.loads(definition(name)["spec"]["application"]["openAPISchema"] or "{}")
    return {**_sample(schema), "undocumented": {"empty": None, "list": [1, "a"]}}


def _sample(schema: Mapping[str, Any]) -> Any:
    if "enum" in schema:
        return schema["enum"][0]
    if schema.get("x-kubernetes-int-or-string"):
        return "7Gi" if "pattern" in schema else 7
    match schema.get("type"):
        case "boolean":
            return True
        case "integer":
            return max(3, schema.get("minimum", 3))
        case "string":
            return "x"
        case "array":
            return [_sample(schema.get("items") or {})]
        case "object":
            additional = schema.get("additionalProperties")
            others = {"one": _sample(additional)} if isinstance(additional, dict) else {}
            return {key: _sample(each) for key, each in (schema.get("properties") or {}).items()} | others
        case _:
            return None
