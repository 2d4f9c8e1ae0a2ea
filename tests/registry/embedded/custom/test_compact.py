from __future__ import annotations

from typing import Any

from registry.embedded.custom.compact import compact, expand, without_descriptions

STRING = {"type": "string", "maxLength": 253, "pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"}
DEFINITIONS: list[dict[str, Any]] = [
    {"a": STRING, "b": {"c": STRING, "d": [STRING, {"e": STRING}]}},
    {"a": STRING, "f": "$"},
]


def test_a_compact_document_has_each_repeated_part_once() -> None:
    document = compact(DEFINITIONS)
    assert document["shared"] == [STRING]
    assert document["definitions"][1] == {"a": {"$": 0}, "f": "$"}
    assert list(expand(document)) == DEFINITIONS


def test_descriptions_are_left_out_and_fields_of_that_name_are_not() -> None:
    schema = {
        "description": "text",
        "properties": {"description": {"type": "string", "description": "text"}, "title": {"type": "string"}},
        "items": {"description": "text", "type": "string"},
        "oneOf": [{"title": "text", "required": ["a"]}],
    }
    assert without_descriptions(schema) == {
        "properties": {"description": {"type": "string"}, "title": {"type": "string"}},
        "items": {"type": "string"},
        "oneOf": [{"required": ["a"]}],
    }
