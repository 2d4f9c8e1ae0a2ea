"""Loads the file of platform settings at the start, and reloads it when it changes.

The log and readyz show its errors, so they quote nothing of the file except keys and values.
"""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

from apiserver.serializer.yaml import decode_yaml
from controller.platform.documents import settings_from
from controller.platform.settings import PlatformSettings, ReloadableSettings

_logger = logging.getLogger(__name__)
# A mounted file is replaced through a symlink, an edited one by a rename: only comparing contents is reliable.
_POLL_SECONDS = 1.0
_MAX_NESTING = 100


def load_settings(path: Path | None) -> PlatformSettings:
    """Loads the settings file, or the defaults without one. Raises ValueError with one line that names the keys."""
    if path is None:
        return PlatformSettings()
    try:
        return parse_settings(path.read_bytes())
    except OSError as error:
        raise ValueError(f"{path}: {error.strerror}") from error
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def parse_settings(content: bytes) -> PlatformSettings:
    """Parses YAML. Raises ValueError with one line that names every wrong key."""
    document, duplicates = decode_yaml(content.decode(), max_nesting=_MAX_NESTING)
    if duplicates:
        # a repeated section would silently replace the first one
        raise ValueError("; ".join(duplicates))
    return settings_from(document)


class SettingsFile:
    """Reloads `settings` when the file changes; an invalid file leaves them unchanged."""

    def __init__(self, path: Path | None, settings: ReloadableSettings) -> None:
        self._path = path
        self._settings = settings
        self._processed: bytes | str | None = None
        self._error = ""

    @property
    def error(self) -> str:
        """The error in the current file; empty if its settings are in force."""
        return self._error

    async def follow(self) -> None:
        """Polls the file until cancelled; returns immediately without a file."""
        if self._path is None:
            return
        before: bytes | str | None = None
        while True:
            content = await asyncio.to_thread(_read, self._path)
            # the content must be the same in two polls, so that a partially written file is not loaded
            if content == before != self._processed:
                await self._load(content)
            before = content
            await asyncio.sleep(_POLL_SECONDS)

    async def _load(self, content: bytes | str) -> None:
        try:
            settings = await asyncio.to_thread(_parse_changed, content)
        except ValueError as error:
            self._reject(str(error))
        else:
            self._accept(settings)
        self._processed = content

    def _reject(self, error: str) -> None:
        if error != self._error:
            _logger.error("--config: the changed file is invalid, keeping the previous settings: %s", error)
        self._error = error

    def _accept(self, settings: PlatformSettings) -> None:
        changes = settings != self._settings.current
        if changes or self._error:
            outcome = "the changed settings are in force" if changes else "the file is valid again, nothing has changed"
            _logger.info("--config: %s", outcome)
        self._error = ""
        self._settings.replace(settings)


def _read(path: Path) -> bytes | str:
    """Returns the content as bytes, or the reason why it cannot be read as str."""
    try:
        return path.read_bytes()
    except OSError as error:
        return f"it cannot be read: {error.strerror}"


def _parse_changed(content: bytes | str) -> PlatformSettings:
    """Rejects an empty file: it would mean the defaults, but is more likely a mistake."""
    if isinstance(content, str):
        raise ValueError(content)
    if not content.strip():
        raise ValueError("it is empty: write {} to use the defaults")
    return parse_settings(content)
