"""Lists as YAML and as indented JSON, converted run by run: a whole list would need ten times its memory."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import orjson
import yaml

from apiserver.json import deep as deepjson

# of the representer, which calls itself for each level, and of a RawJson
_TOO_DEEP = (RecursionError, yaml.representer.RepresenterError)
_IN_ONE_LINE = bytes.maketrans(b"\r\n\t", b"   ")


@dataclass(frozen=True, slots=True)
class ListFormat:
    """`items` converts the JSON of at least one item. `separator` is written between two results of it."""

    head: bytes
    items: Callable[[Sequence[bytes]], bytes]
    separator: bytes
    tail: bytes


def indented(body: bytes) -> bytes:
    """JSON with an indentation of two spaces, of which values that nest by more than 254 levels have none."""
    try:
        return orjson.dumps(orjson.loads(body), option=orjson.OPT_INDENT_2)
    except (TypeError, ValueError):
        return body


def to_yaml(body: bytes) -> bytes:
    """JSON as YAML with sorted keys, as sigs.k8s.io/yaml writes it."""
    return _dump(deepjson.loads(body))


def to_ascii_yaml(value: dict[str, Any]) -> bytes:
    """As `to_yaml`, with everything escaped that is not ASCII."""
    try:
        return _block(value, allow_unicode=False)
    except _TOO_DEEP:
        # as a whole, since it is YAML, too
        return json.dumps(value, sort_keys=True).encode() + b"\n"


def indented_list(head: bytes) -> ListFormat:
    """`head` is the JSON of a list before its first item; the items are its last field."""
    empty = indented(head + b"]}")
    return ListFormat(empty.removesuffix(b"[]\n}") + b"[\n", _indented_items, b",\n", b"\n  ]\n}")


def yaml_list(head: bytes) -> ListFormat:
    """`head` is the JSON of a list before its first item; the items are its last field."""
    document: dict[str, Any] = deepjson.loads(head + b"]}")
    items = list(document)[-1]
    before = {key: value for key, value in document.items() if key < items}
    after = {key: value for key, value in document.items() if key > items}
    return ListFormat(_dump(before) + f"{items}:\n".encode(), _yaml_items, b"", _dump(after))


def _indented_items(items: Sequence[bytes]) -> bytes:
    return b",\n".join(b"    " + indented(item).replace(b"\n", b"\n    ") for item in items)


def _yaml_items(items: Sequence[bytes]) -> bytes:
    # YAML does not indent the items of a list that is a field
    return b"".join(_dump([deepjson.loads(item)]) for item in items)


def _dump(value: dict[str, Any] | list[Any]) -> bytes:
    if not value:
        return b""
    try:
        return _block(value)
    except _TOO_DEEP:
        pass
    if isinstance(value, dict):
        return b"".join(_field(value, key) for key in sorted(value))
    return b"".join(map(_item, value))


def _block(value: dict[str, Any] | list[Any], *, allow_unicode: bool = True) -> bytes:
    text = yaml.dump(
        value, Dumper=yaml.CSafeDumper, sort_keys=True, allow_unicode=allow_unicode, default_flow_style=False
    )
    return text.encode()


def _field(value: dict[str, Any], key: str) -> bytes:
    try:
        return _block({key: value[key]})
    except _TOO_DEEP:
        return _block({key: None}).removesuffix(b"null\n") + _flow(value[key])


def _item(value: Any) -> bytes:
    try:
        return _block([value])
    except _TOO_DEEP:
        return b"- " + _flow(value)


def _flow(value: Any) -> bytes:
    """A value that nests too deeply for PyYAML, by about 300 levels, as JSON, which is YAML, too. As a block its
    indentation alone would be the square of its levels. In one line: indentation has no meaning of its own then."""
    return deepjson.dumps(value).translate(_IN_ONE_LINE) + b"\n"
