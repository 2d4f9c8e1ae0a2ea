"""Validates documents of settings. Errors name the key, and quote nothing but keys and values: readyz shows them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from controller.platform.settings import WRONG_KEY, PlatformSettings

_MESSAGES = {
    "extra_forbidden": "is not a known key",
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
    message = error["msg"].removeprefix("Value error, ").replace("Input should be", "must be", 1)
    return f"{key}: {_MESSAGES.get(error['type'], message)}"
