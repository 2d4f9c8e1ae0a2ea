"""The part of kubectl's JSONPath that printer columns and selectable fields use. Pure.

Fields (`.a`, `['a']`), indexes (`[0]`, `[-1]`), all elements (`[*]`) and filters by equality (`[?(@.type=="Ready")]`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any

_Step = Callable[[Any], Iterable[Any]]
JsonPath = Callable[[Any], Sequence[Any]]
"""Returns the values at a path, none if a field on the way is missing."""

_PART = re.compile(
    r"""\.?\[\s*(?P<quote>['"])(?P<quoted>(?:\\.|(?!(?P=quote)).)*)(?P=quote)\s*\]
    |\.?\[\s*(?P<index>-?\d+)\s*\]
    |\.?\[\s*(?P<all>\*)\s*\]
    |\.?\[\?\(\s*@(?P<path>[^=!<>]+?)\s*(?P<operator>==|!=)\s*(?P<value>'[^']*'|"[^"]*"|[^'")\s]+)\s*\)\s*\]
    |\.(?P<every>\*)
    |\.(?P<name>(?:\\.|[^.\[\]\s()*?'"{}])+)""",
    re.VERBOSE,
)


@lru_cache(maxsize=1024)
def json_path(text: str) -> JsonPath:
    """Raises ValueError for a path that is not supported."""
    steps = _steps(text)

    def find(value: Any) -> Sequence[Any]:
        found = [value]
        for step in steps:
            found = [each for parent in found for each in step(parent)]
        return found

    return find


def _steps(text: str) -> Sequence[_Step]:
    steps: list[_Step] = []
    position = 0
    while position < len(text):
        if text[position:] == "." and not steps:
            break
        part = _PART.match(text, position)
        if part is None:
            raise ValueError(f"unrecognized path {text!r}")
        steps.append(_step(part))
        position = part.end()
    return steps


def _step(part: re.Match[str]) -> _Step:
    if part["quoted"] is not None:
        return _field(re.sub(r"\\(.)", r"\1", part["quoted"]))
    if part["name"] is not None:
        return _field(re.sub(r"\\(.)", r"\1", part["name"]))
    if part["index"] is not None:
        return _item(int(part["index"]))
    if part["path"] is not None:
        return _filter(json_path(part["path"]), part["operator"] == "==", _literal(part["value"]))
    return _elements


def _field(name: str) -> _Step:
    return lambda value: (value[name],) if isinstance(value, dict) and name in value else ()


def _item(index: int) -> _Step:
    return lambda value: (value[index],) if isinstance(value, list) and -len(value) <= index < len(value) else ()


def _elements(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return [value[name] for name in sorted(value)]
    return value if isinstance(value, list) else ()


def _filter(path: JsonPath, wanted: bool, expected: Any) -> _Step:
    def matching(value: Any) -> Iterable[Any]:
        for each in _elements(value):
            found = path(each)
            if found and (found[0] == expected) is wanted:
                yield each

    return matching


def _literal(text: str) -> Any:
    if text[0] in "'\"":
        return text[1:-1]
    try:
        return json.loads(text)
    except ValueError as error:
        raise ValueError(f"unrecognized value {text!r}") from error
