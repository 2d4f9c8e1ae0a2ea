"""The file of platform settings: checked before anything starts, with errors that name the key, then followed.

What is said of a file is for everyone to see, so it never holds a part of the file that is not a key or its value.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from apiserver.serializer.yaml import decode_yaml
from controller.platform.settings import WRONG_KEY, PlatformSettings, ReloadableSettings

_logger = logging.getLogger(__name__)
# A mounted file is exchanged by a link, an edited one by a rename: content is all that tells for sure.
_POLL_SECONDS = 1.0
_MAX_NESTING = 100
_MESSAGES = {
    "extra_forbidden": "is not a key that is known",
    "model_type": "must be a mapping",
    "dict_type": "must be a mapping",
    "mapping_type": "must be a mapping",
    "tuple_type": "must be a list",
    "missing": "must be set",
}


def load(path: Path | None) -> PlatformSettings:
    """The settings in a file; the defaults without one. Raises ValueError with a line that names the keys."""
    if path is None:
        return PlatformSettings()
    try:
        return parse(path.read_bytes())
    except OSError as error:
        raise ValueError(f"{path}: {error.strerror}") from error
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def parse(content: bytes) -> PlatformSettings:
    """Raises ValueError with one line that names every wrong key."""
    document, doubled = decode_yaml(content.decode(), max_nesting=_MAX_NESTING)
    if doubled:
        # a section that is there twice hides the first one
        raise ValueError("; ".join(doubled))
    try:
        return PlatformSettings.model_validate(document)
    except ValidationError as error:
        said = [_said(each) for each in error.errors(include_url=False, include_input=False)]
        raise ValueError("; ".join(said)) from error


def _said(error: Mapping[str, Any]) -> str:
    key = ".".join(map(str, error["loc"])) or "the document"
    if error["type"] == WRONG_KEY:
        return f"{key}.{error['msg']}"
    plainly = error["msg"].removeprefix("Value error, ").replace("Input should be", "must be", 1)
    return f"{key}: {_MESSAGES.get(error['type'], plainly)}"


class SettingsFile:
    """Keeps `settings` as the file has them. What is wrong in the file changes nothing."""

    def __init__(self, path: Path | None, settings: ReloadableSettings) -> None:
        self._path = path
        self._settings = settings
        self._judged: bytes | str | None = None
        self._refused = ""

    @property
    def refused(self) -> str:
        """What is wrong with the file as it is now; empty if those are the settings."""
        return self._refused

    async def follow(self) -> None:
        """Runs until it is cancelled; returns at once without a file."""
        if self._path is None:
            return
        before: bytes | str | None = None
        while True:
            found = await asyncio.to_thread(_read, self._path)
            # seen twice: a file that is just being written is not judged by its beginning
            if found == before != self._judged:
                await self._judge(found)
            before = found
            await asyncio.sleep(_POLL_SECONDS)

    async def _judge(self, found: bytes | str) -> None:
        try:
            settings = await asyncio.to_thread(_changed, found)
        except ValueError as error:
            self._refuse(str(error))
        else:
            self._accept(settings)
        self._judged = found

    def _refuse(self, why: str) -> None:
        if why != self._refused:
            _logger.error("--config: the changed file is refused, the old settings stay: %s", why)
        self._refused = why

    def _accept(self, settings: PlatformSettings) -> None:
        changes = settings != self._settings.current
        if changes or self._refused:
            _logger.info(
                "--config: %s", "the changed settings hold from now on" if changes else "the file is right again"
            )
        self._refused = ""
        self._settings.replace(settings)


def _read(path: Path) -> bytes | str:
    """The content of a file, or why it cannot be read."""
    try:
        return path.read_bytes()
    except OSError as error:
        return f"it cannot be read: {error.strerror}"


def _changed(found: bytes | str) -> PlatformSettings:
    """Nothing at all would be the defaults, and is more likely a mistake."""
    if isinstance(found, str):
        raise ValueError(found)
    if not found.strip():
        raise ValueError("it is empty; {} is what stands for the defaults")
    return parse(found)
