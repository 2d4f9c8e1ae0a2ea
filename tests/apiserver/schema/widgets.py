"""A resource whose schema has every feature of structural schemas."""

from __future__ import annotations

from apiserver.meta.resource import Resource

STRING = {"type": "string"}
SPEC = {
    "type": "object",
    "required": ["name"],
    "properties": {
        "name": {"type": "string", "pattern": "^[a-z]+$", "minLength": 2, "maxLength": 5},
        "on": {"type": "boolean", "default": False},
        "count": {"type": "integer", "minimum": 1, "maximum": 9},
        "ratio": {"type": "number"},
        "mode": {"type": "string", "enum": ["a", "b"]},
        "maybe": {"type": "string", "nullable": True},
        "quotas": {
            "type": "object",
            "default": {},
            "additionalProperties": {"x-kubernetes-int-or-string": True},
        },
        "list": {
            "type": "array",
            "maxItems": 2,
            "items": {"type": "object", "properties": {"a": STRING, "b": {"type": "string", "default": "z"}}},
        },
        "set": {"type": "array", "items": STRING, "x-kubernetes-list-type": "set"},
        "ports": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["port"],
            "items": {"type": "object", "properties": {"port": {"type": "integer"}}},
        },
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True, "properties": {"known": STRING}},
        "bare": {"type": "object"},
    },
}


def widgets(*, preserve_unknown_fields: bool = False) -> Resource:
    return Resource(
        group="g",
        version="v1",
        kind="Widget",
        plural="widgets",
        singular="widget",
        namespaced=True,
        properties={"spec": SPEC},
        preserve_unknown_fields=preserve_unknown_fields,
    )
