"""Converts values for the rules of a schema: as its fields are named and typed in CEL (apiserver/pkg/cel/common)."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Mapping
from typing import Any

from admission.cel.budget import CutOff
from apiserver.meta.resource import Schema

Convert = Callable[[Any], Any]

_RESERVED = frozenset(
    (
        *("true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if"),
        *("import", "let", "loop", "package", "namespace", "return", "var", "void", "while"),
    )
)
_ESCAPES = {"__": "__underscores__", "-": "__dash__", ".": "__dot__", "/": "__slash__"}
_ESCAPED = re.compile(r"__|[-./]")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_METADATA: Schema = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "generateName": {"type": "string"}},
}
_TYPE_META = {"apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": _METADATA}


def escape(name: str) -> str:
    """The name of a property in rules, empty if rules cannot name it."""
    if name in _RESERVED:
        return f"__{name}__"
    escaped = _ESCAPED.sub(lambda found: _ESCAPES[found[0]], name)
    return escaped if _NAME.fullmatch(escaped) else ""


def visible_properties(schema: Schema, *, is_root: bool) -> Mapping[str, Schema]:
    """The properties that rules see. At the root of an object these include its type and name."""
    properties: Mapping[str, Schema] = schema.get("properties") or {}
    return {**properties, **_TYPE_META} if is_root else properties


class Converters:
    """The conversions of schemas, each made when it is first needed."""

    def __init__(self) -> None:
        # with the schemas, so that their ids stay theirs
        self._known: dict[tuple[int, bool], tuple[Schema, Convert]] = {}

    def of(self, schema: Schema, *, is_root: bool = False) -> Convert:
        """Returns the conversion of values of this type. It raises CutOff for text that rules cannot read. Fields
        without a schema are left out."""
        key = id(schema), is_root
        if key not in self._known:
            self._known[key] = schema, self._make(schema, is_root=is_root)
        return self._known[key][1]

    def _make(self, schema: Schema, *, is_root: bool) -> Convert:
        if schema.get("x-kubernetes-int-or-string"):
            return _scalar
        match "object" if is_root else schema.get("type"):
            case "object":
                additional = schema.get("additionalProperties")
                if isinstance(additional, Mapping) and not is_root:
                    return self._map(additional)
                return self._object(schema, is_root=is_root)
            case "array":
                return self._list(schema.get("items") or {})
            case "number":
                return lambda value: value if value is None else float(value)
            case "integer":
                return lambda value: value if value is None else int(value)
            case "string" if schema.get("format") == "byte":
                return _bytes
            case _:
                return _scalar

    def _object(self, schema: Schema, *, is_root: bool) -> Convert:
        fields = {name: (escape(name), part) for name, part in visible_properties(schema, is_root=is_root).items()}
        converters: dict[str, Convert] = {}

        def convert(value: Any) -> Any:
            if not isinstance(value, dict):
                return value
            converted = {}
            for name, each in value.items():
                escaped, part = fields.get(name, ("", {}))
                if not escaped:
                    continue
                if name not in converters:
                    embedded = bool(part.get("x-kubernetes-embedded-resource"))
                    converters[name] = self.of(part, is_root=embedded)
                converted[escaped] = converters[name](each)
            return converted

        return convert

    def _map(self, additional: Schema) -> Convert:
        values = self.of(additional)

        def convert(value: Any) -> Any:
            return {_scalar(name): values(each) for name, each in value.items()} if isinstance(value, dict) else value

        return convert

    def _list(self, items: Schema) -> Convert:
        values = self.of(items, is_root=bool(items.get("x-kubernetes-embedded-resource")))
        return lambda value: [values(each) for each in value] if isinstance(value, list) else value


def _scalar(value: Any) -> Any:
    if isinstance(value, str) and "\0" in value:
        raise CutOff("the object contains a NUL character, which expressions cannot read")
    # content without a schema is not visible
    return None if isinstance(value, (dict, list)) else value


def _bytes(value: Any) -> Any:
    try:
        return base64.b64decode(value)
    except (binascii.Error, ValueError, TypeError):
        return value
