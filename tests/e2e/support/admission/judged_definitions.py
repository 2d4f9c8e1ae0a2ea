"""CustomResourceDefinitions, good and evil, on which the embedded cluster and a kube-apiserver must agree."""

from __future__ import annotations

from typing import Any

STRING = {"type": "string"}
_RULES = "x-kubernetes-validations"


def _object(**fields: Any) -> dict[str, Any]:
    return {"type": "object", "properties": fields}


def _nested(depth: int) -> Any:
    schema: Any = STRING
    for _ in range(depth):
        schema = _object(a=schema)
    return schema


def _array(items: Any, **more: Any) -> dict[str, Any]:
    return {"type": "array", "items": items, **more}


def _pattern(text: str) -> dict[str, Any]:
    return {**STRING, "pattern": text}


_KEYED = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]}
_SHORT = {**STRING, "maxLength": 5}

FIELDS: dict[str, Any] = {
    "fifty levels": _nested(50),
    "a reference": {"$ref": "#/definitions/x"},
    "equal enums": {**STRING, "enum": ["a", "a"]},
    "an exponential pattern": _pattern("^(a+)+$"),
    "a look-ahead": _pattern("^(?=a)b"),
    "a back-reference": _pattern(r"(a)\1"),
    "a Unicode class": _pattern(r"^\p{L}+$"),
    "a quoted pattern": _pattern(r"^\Qa.b\E$"),
    "an ungreedy pattern": _pattern("(?U)a+"),
    "a long repetition": _pattern("a{2000}"),
    "nested repetitions": _pattern("((a{100}){100}){100}"),
    "a possessive quantifier": _pattern("a++b"),
    "an atomic group": _pattern("(?>a)b"),
    "Python's end of text": _pattern(r"a\Z"),
    "an open group": _pattern("a("),
    "a default of another type": {**STRING, "default": 1},
    "a default that is no enum": {**STRING, "enum": ["x"], "default": "y"},
    "a default that does not match": {**STRING, "pattern": "^x$", "default": "y"},
    "a default that is too long": {**STRING, "maxLength": 1, "default": "xx"},
    "a default that breaks a rule": {**_SHORT, "default": "x", _RULES: [{"rule": "self == 'y'"}]},
    "a default with unknown fields": {**_object(b=STRING), "default": {"c": 1}},
    "a default that is null": {**STRING, "default": None},
    "a default in an alternative": {**_object(b=STRING), "anyOf": [{"properties": {"b": {"default": "x"}}}]},
    "a list map without its key": _array(_object(z=STRING), **_KEYED),
    "a list map without keys": _array(_object(k=STRING), **{"x-kubernetes-list-type": "map"}),
    "a negated type": {"not": {"type": "string"}},
    "a list of items": {"type": "array", "items": [STRING, STRING]},
    "an unknown type": {"type": "foo"},
    "an unknown keyword": {**STRING, "foo": 1},
    "a schema that is a bool": True,
    "a schema that is text": "x",
    "properties that are a list": {"type": "object", "properties": ["a"]},
    "required that is text": {**_object(b=STRING), "required": "b"},
    "a minimum that is text": {"type": "integer", "minimum": "x"},
    "an enum that is text": {**STRING, "enum": "abc"},
    "alternatives that are an object": {**_object(b=STRING), "anyOf": {}},
    "a pattern that is a number": {**STRING, "pattern": 5},
    "a type that is a list": {"type": ["string"]},
    "nullable that is text": {**STRING, "nullable": "x"},
    "rules that are an object": {**_SHORT, _RULES: {}},
    "a rule that is a number": {**_SHORT, _RULES: [{"rule": 5}]},
    "keys that are text": _array(_object(k=STRING), **{**_KEYED, "x-kubernetes-list-map-keys": "k"}),
    "a long format": {**STRING, "format": "x" * 10_000},
}
"""Schemas of a field of the spec, by what is special about each."""


def definition(field: Any) -> dict[str, Any]:
    """A definition whose objects have such a field in their spec."""
    schema = {"openAPIV3Schema": _object(spec=_object(a=field))}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "judged.judged-definitions.example.com"},
        "spec": {
            "group": "judged-definitions.example.com",
            "scope": "Namespaced",
            "names": {"plural": "judged", "kind": "Judged"},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
        },
    }
