"""Validates documents of settings. Errors name the key, and quote nothing but keys and values: readyz shows them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

from apiserver.meta.suggestion import suggest
from controller.platform.settings import WRONG_KEY, PlatformSettings

_UNKNOWN = "extra_forbidden"
_MESSAGES = {
    _UNKNOWN: "is not a known key",
    "model_type": "must be a mapping",
    "dict_type": "must be a mapping",
    "mapping_type": "must be a mapping",
    "tuple_type": "must be a list",
    "missing": "must be set",
}


def settings_from(document: Any) -> PlatformSettings:
    """The settings in a decoded document. Raises ValueError with one line that names every wrong key."""
    try:
        return PlatformSettings.model_validate(document)
    except ValidationError as error:
        messages = [_format_error(each) for each in error.errors(include_url=False, include_input=False)]
        raise ValueError("; ".join(messages)) from error


def _format_error(error: Mapping[str, Any]) -> str:
    key = ".".join(map(str, error["loc"])) or "the document"
    if error["type"] == WRONG_KEY:
        return f"{key}.{error['msg']}"
    if error["type"] == _UNKNOWN:
        return f"{key}: {_MESSAGES[_UNKNOWN]}{_hint(error['loc'])}"
    message = error["msg"].removeprefix("Value error, ").replace("Input should be", "must be", 1)
    return f"{key}: {_MESSAGES.get(error['type'], message)}"


def _hint(key: Sequence[object]) -> str:
    """The known key of the same section that is most like an unknown one."""
    *sections, unknown = map(str, key)
    section: type[BaseModel] | None = PlatformSettings
    for each in sections:
        section = _section(section, each)
    return suggest(unknown, _fields(section))


def _section(of: type[BaseModel] | None, key: str) -> type[BaseModel] | None:
    """The section with a key; that of the values of a mapping also with each of its keys. None if a key has none."""
    fields = _fields(of)
    if key not in fields:
        return of
    candidates = (fields[key], *get_args(fields[key]))
    return next((each for each in candidates if isinstance(each, type) and issubclass(each, BaseModel)), None)


def _fields(of: type[BaseModel] | None) -> Mapping[str, Any]:
    """The types of the values of a section by key."""
    fields = of.model_fields if of is not None else {}
    return {each.alias or name: each.annotation for name, each in fields.items()}
