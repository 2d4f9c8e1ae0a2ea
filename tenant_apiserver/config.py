"""The file of platform settings: checked before anything starts, with errors that name the key, then followed."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

import yaml
from pydantic import ValidationError

from apiserver.tls import follow_file
from controller.platform import WRONG_KEY, FollowedSettings, PlatformSettings

_logger = logging.getLogger(__name__)


def load(path: Path | None) -> PlatformSettings:
    """The settings in a file; the defaults without one. Raises ValueError with a line that names the key."""
    if path is None:
        return PlatformSettings()
    try:
        return parse(path.read_bytes())
    except (OSError, ValueError) as error:
        raise ValueError(f"{path}: {error}") from error


def parse(content: bytes) -> PlatformSettings:
    """Raises ValueError with a line that names the key."""
    try:
        document = yaml.safe_load(content.decode())
    except (UnicodeDecodeError, yaml.YAMLError) as error:
        raise ValueError(" ".join(str(error).split())) from error
    try:
        return PlatformSettings.model_validate({} if document is None else document)
    except ValidationError as error:
        first = error.errors()[0]
        key, said = ".".join(map(str, first["loc"])) or "the document", first["msg"].removeprefix("Value error, ")
        raise ValueError(f"{key}.{said}" if first["type"] == WRONG_KEY else f"{key}: {said}") from error


class ConfigFile:
    """Keeps `settings` as the file has them. What is wrong in the file changes nothing."""

    def __init__(self, path: Path | None, settings: FollowedSettings) -> None:
        self._path = path
        self._settings = settings
        self._refused = ""

    @property
    def refused(self) -> str:
        """What is wrong with the file as it is now; empty if those are the settings."""
        return self._refused

    async def follow(self) -> None:
        """Runs until it is cancelled; returns at once without a file."""
        if self._path is None:
            return
        loop = asyncio.get_running_loop()

        def changed(content: bytes) -> None:
            if not content.strip():
                # a file without anything would be the defaults, and is more likely one that is just being written
                raise ValueError("it is empty")
            try:
                settings = parse(content)
            except ValueError as error:
                if self._refused != str(error):
                    _logger.error("--config: the changed file is refused, the old settings stay: %s", error)
                self._refused = str(error)
                return
            self._refused = ""
            loop.call_soon_threadsafe(self._replace, settings)

        await follow_file(self._path, changed)

    def _replace(self, settings: PlatformSettings) -> None:
        if settings != self._settings.current:
            _logger.info("--config: the changed settings hold from now on")
            self._settings.replace(settings)
