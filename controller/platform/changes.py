"""Tells which settings differ, as Events and the log do. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import orjson

from controller.platform.settings import PlatformSettings


def changes(before: PlatformSettings, after: PlatformSettings) -> Sequence[str]:
    """A phrase for each setting that differs: its key, the new value and the previous one, both as JSON."""
    return list(_differences(before.model_dump(by_alias=True), after.model_dump(by_alias=True), ""))


def _differences(before: Mapping[str, Any], after: Mapping[str, Any], path: str) -> Iterator[str]:
    for key in dict.fromkeys((*after, *before)):
        old, new = before.get(key), after.get(key)
        if isinstance(old, Mapping) and isinstance(new, Mapping):
            yield from _differences(old, new, f"{path}{key}.")
        elif old != new:
            yield f"{path}{key}: {_json(new)} instead of {_json(old)}"


def _json(value: Any) -> str:
    return orjson.dumps(value).decode().replace('","', '", "')
