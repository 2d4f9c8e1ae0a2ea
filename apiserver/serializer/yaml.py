"""Decoding of YAML as in sigs.k8s.io/yaml: YAML 1.1 scalars, string keys, one document, bounded aliases (WIRE-D67).

Values are built from parser events with an explicit stack, so that nothing recurses and the line of every key is known.
"""

from __future__ import annotations

import json
from typing import Any, Final

import yaml

from apiserver.json.values import own_text
from apiserver.serializer.yaml_scalars import MERGE_KEY, resolve_scalar

_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
# Limits of the values in a document, and of the values that its aliases expand to. More would block the event loop.
_MAX_VALUES = 100_000
_MAX_ALIASED = 100_000
# The limit of their characters, keys included: as many as a body has. One long text is shared by all of its aliases,
# but is written again for each of them (ATTACK-19).
_MAX_ALIASED_TEXT = 3 * 1024 * 1024
_MAX_DUPLICATES = 100
# Duplicates are told until there is as much text: an alias can repeat a key of a megabyte (ATTACK-19).
_MAX_DUPLICATES_TEXT = 256 * 1024


class YamlError(ValueError):
    """A document is invalid. The message includes the line if it is known."""


def decode_yaml(text: str, *, max_nesting: int) -> tuple[Any, list[str]]:
    """Decodes the first document in `text`. Also returns `line 9: key "foo" already set in map` for every duplicate
    key, of which the last one wins. Raises YamlError."""
    builder = _Builder(max_nesting)
    try:
        for event in yaml.parse(text.removeprefix("\ufeff"), Loader=_LOADER):
            builder.handle(event)
            if isinstance(event, yaml.DocumentEndEvent):
                break
    except yaml.YAMLError as error:
        raise YamlError(_describe(error)) from error
    return builder.value, builder.duplicates


def _describe(error: yaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or getattr(error, "reason", None) or "not a YAML document"
    return f"line {mark.line + 1}: {problem}" if mark is not None else str(problem)


class _Node:
    """An object or list under construction."""

    def __init__(self, value: dict[str, Any] | list[Any], anchor: str | None, line: int) -> None:
        self.value = value
        self.anchor = anchor
        self.line = line
        self.key: Any = None
        self.has_key = False
        self.seen: set[tuple[type, Any]] = set()

    @property
    def expects_key(self) -> bool:
        return isinstance(self.value, dict) and not self.has_key


class _Builder:
    def __init__(self, max_nesting: int) -> None:
        self.value: Any = None
        self.duplicates: list[str] = []
        self._duplicates_text = 0
        self._max_nesting = max_nesting
        self._open: list[_Node] = []
        self._anchors: dict[str, Any] = {}
        self._aliased = self._aliased_text = 0
        self._values = 0

    def handle(self, event: yaml.Event) -> None:
        self._values += 1
        if self._values > _MAX_VALUES:
            raise YamlError("document contains too many values")
        if isinstance(event, yaml.ScalarEvent):
            value = self._scalar(event)
            if event.anchor:
                self._anchors[event.anchor] = value
            self._put(value, _line(event))
        elif isinstance(event, yaml.AliasEvent):
            self._put(self._alias(event), _line(event))
        elif isinstance(event, yaml.MappingStartEvent):
            self._start({}, event)
        elif isinstance(event, yaml.SequenceStartEvent):
            self._start([], event)
        elif isinstance(event, yaml.CollectionEndEvent):
            node = self._open.pop()
            if node.anchor:
                self._anchors[node.anchor] = node.value
            self._put(node.value, node.line)

    def _scalar(self, event: yaml.ScalarEvent) -> Any:
        try:
            return resolve_scalar(event, is_key=bool(self._open) and self._open[-1].expects_key)
        except ValueError as error:
            raise YamlError(f"line {_line(event)}: {error}") from error

    def _start(self, value: dict[str, Any] | list[Any], event: yaml.CollectionStartEvent) -> None:
        line = _line(event)
        if self._open and self._open[-1].expects_key:
            raise YamlError(f"line {line}: invalid map key: an object or a list")
        if len(self._open) >= self._max_nesting:
            raise YamlError(f"line {line}: exceeded max depth of {self._max_nesting}")
        self._open.append(_Node(value, event.anchor, line))

    def _put(self, value: Any, line: int) -> None:
        if not self._open:
            self.value = value
            return
        node = self._open[-1]
        if isinstance(node.value, list):
            node.value.append(value)
        elif not node.has_key:
            node.key, node.has_key = value, True
        else:
            self._set(node, node.value, value, line)
            node.has_key = False

    def _set(self, node: _Node, target: dict[str, Any], value: Any, line: int) -> None:
        key = node.key
        if key is MERGE_KEY:
            for source in reversed(_mergeable(value, line)):
                target.update(source)
            return
        identity = (type(key), key)
        if identity in node.seen:
            self._add_duplicate(key, line)
        node.seen.add(identity)
        target[_key_text(key, line)] = value

    def _add_duplicate(self, key: Any, line: int) -> None:
        if len(self.duplicates) < _MAX_DUPLICATES and self._duplicates_text <= _MAX_DUPLICATES_TEXT:
            self.duplicates.append(f"line {line}: key {json.dumps(key, ensure_ascii=False)} already set in map")
            self._duplicates_text += len(self.duplicates[-1])

    def _alias(self, event: yaml.AliasEvent) -> Any:
        line, anchor = _line(event), event.anchor
        if any(node.anchor == anchor for node in self._open):
            raise YamlError(f"line {line}: anchor '{anchor}' value contains itself")
        if anchor not in self._anchors:
            raise YamlError(f"line {line}: unknown anchor '{anchor}' referenced")
        value = self._anchors[anchor]
        if isinstance(value, (dict, list)) and self._open and self._open[-1].expects_key:
            raise YamlError(f"line {line}: invalid map key: an object or a list")
        return self._copy(value)

    def _copy(self, value: Any) -> Any:
        """Copies the value of an alias, so that a later change in one place does not affect another."""
        root: list[Any] = [value]
        pending: list[tuple[Any, Any]] = [(root, 0)]
        while pending:
            container, place = pending.pop()
            each = container[place]
            self._aliased += 1
            self._aliased_text += own_text(each)
            if self._aliased > _MAX_ALIASED or self._aliased_text > _MAX_ALIASED_TEXT:
                raise YamlError("document contains excessive aliasing")
            if isinstance(each, dict):
                container[place] = copied = dict(each)
                pending.extend((copied, key) for key in copied)
            elif isinstance(each, list):
                container[place] = items = list(each)
                pending.extend((items, index) for index in range(len(items)))
        return root[0]


def _line(event: yaml.Event) -> int:
    mark = event.start_mark
    return mark.line + 1 if mark is not None else 0


def _mergeable(value: Any, line: int) -> list[dict[str, Any]]:
    sources = value if isinstance(value, list) else [value]
    if not all(isinstance(source, dict) for source in sources):
        raise YamlError(f"line {line}: map merge requires map or sequence of maps as the value")
    return sources


def _key_text(key: Any, line: int) -> str:
    if isinstance(key, str):
        return key
    if key is None:
        raise YamlError(f"line {line}: unsupported map key: null")
    return f"{key:.8g}" if isinstance(key, float) else json.dumps(key)
