"""The compact form of CustomResourceDefinitions: without descriptions, and with each repeated part written once. Pure.

A document is `{"shared": [part, …], "definitions": [definition, …]}`, in which `{"$": n}` stands for the n-th shared
part. A shared part refers to those before it only.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from apiserver.meta.resource import Object

_REFERENCE = "$"
# a shorter part takes less space than the references to it
_SHORTEST_SHARED = 60
_WORDS = ("description", "title", "example", "externalDocs")
_SCHEMA_MAPS = ("properties", "patternProperties", "definitions")
_SCHEMA_LISTS = ("allOf", "anyOf", "oneOf")
_SCHEMAS = ("items", "additionalProperties", "not")


def without_descriptions(schema: Any) -> Any:
    """Returns the structure, bounds and rules of a schema, without the texts that only people read."""
    if not isinstance(schema, Mapping):
        return schema
    found = {}
    for keyword, value in schema.items():
        if keyword in _WORDS:
            continue
        if keyword in _SCHEMA_MAPS:
            value = {name: without_descriptions(each) for name, each in value.items()}
        elif keyword in _SCHEMA_LISTS:
            value = [without_descriptions(each) for each in value]
        elif keyword in _SCHEMAS:
            value = without_descriptions(value)
        found[keyword] = value
    return found


def compact(definitions: Iterable[Object]) -> Object:
    """Returns the document of these definitions."""
    definitions = list(definitions)
    counts: Counter[str] = Counter()
    for definition in definitions:
        _count(definition, counts)
    shared: list[Any] = []
    known: dict[str, int] = {}
    written = [_write(definition, counts, shared, known) for definition in definitions]
    return {"shared": shared, "definitions": written}


def _count(value: Any, counts: Counter[str]) -> None:
    """Counts the parts; those inside a repeated part are counted once."""
    if not isinstance(value, (dict, list)):
        return
    text = _text(value)
    counts[text] += 1
    if counts[text] == 1:
        for each in value.values() if isinstance(value, dict) else value:
            _count(each, counts)


def _write(value: Any, counts: Mapping[str, int], shared: list[Any], known: dict[str, int]) -> Any:
    if not isinstance(value, (dict, list)):
        return value
    text = _text(value)
    if text in known:
        return {_REFERENCE: known[text]}
    if isinstance(value, dict):
        written: Any = {name: _write(each, counts, shared, known) for name, each in value.items()}
    else:
        written = [_write(each, counts, shared, known) for each in value]
    if counts[text] < 2 or len(text) < _SHORTEST_SHARED:
        return written
    known[text] = len(shared)
    shared.append(written)
    return {_REFERENCE: known[text]}


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def expand(document: Object) -> Sequence[Object]:
    """Returns the definitions of a document. Equal parts are the same object, and nothing may be changed."""
    shared: list[Any] = []
    for part in document["shared"]:
        shared.append(_expanded(part, shared))
    return [_expanded(each, shared) for each in document["definitions"]]


def _expanded(value: Any, shared: Sequence[Any]) -> Any:
    if isinstance(value, dict):
        if len(value) == 1 and isinstance(number := value.get(_REFERENCE), int):
            return shared[number]
        return {name: _expanded(each, shared) for name, each in value.items()}
    return [_expanded(each, shared) for each in value] if isinstance(value, list) else value
