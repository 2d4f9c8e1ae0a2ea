"""Lists as YAML and as indented JSON, converted run by run: a whole list would need ten times its memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import orjson
import yaml


@dataclass(frozen=True, slots=True)
class ListFormat:
    """`items` converts the JSON of at least one item. `separator` is written between two results of it."""

    head: bytes
    items: Callable[[Sequence[bytes]], bytes]
    separator: bytes
    tail: bytes


def indented(body: bytes) -> bytes:
    """JSON with an indentation of two spaces."""
    return orjson.dumps(orjson.loads(body), option=orjson.OPT_INDENT_2)


def to_yaml(body: bytes) -> bytes:
    """JSON as YAML with sorted keys, as sigs.k8s.io/yaml writes it."""
    return _dump(orjson.loads(body))


def indented_list(head: bytes) -> ListFormat:
    """`head` is the JSON of a list before its first item; the items are its last field."""
    empty = indented(head + b"]}")
    return ListFormat(empty.removesuffix(b"[]\n}") + b"[\n", _indented_items, b",\n", b"\n  ]\n}")


def yaml_list(head: bytes) -> ListFormat:
    """`head` is the JSON of a list before its first item; the items are its last field."""
    document: dict[str, Any] = orjson.loads(head + b"]}")
    items = list(document)[-1]
    before = {key: value for key, value in document.items() if key < items}
    after = {key: value for key, value in document.items() if key > items}
    return ListFormat(_dump(before) + f"{items}:\n".encode(), _yaml_items, b"", _dump(after))


def _indented_items(items: Sequence[bytes]) -> bytes:
    return b",\n".join(b"    " + indented(item).replace(b"\n", b"\n    ") for item in items)


def _yaml_items(items: Sequence[bytes]) -> bytes:
    # YAML does not indent the items of a list that is a field
    return b"".join(_dump([orjson.loads(item)]) for item in items)


def _dump(value: dict[str, Any] | list[Any]) -> bytes:
    if not value:
        return b""
    text = yaml.dump(value, Dumper=yaml.CSafeDumper, sort_keys=True, allow_unicode=True, default_flow_style=False)
    return text.encode()
