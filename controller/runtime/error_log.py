"""Logs the errors of a controller's objects: not each retry, which may be many in a second."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
_AGAIN_SECONDS = 300.0


class ErrorLog(Generic[K]):
    """An error of an object is logged when it is another one than before, or has not been logged for five minutes;
    otherwise for debugging only."""

    def __init__(self, logger: logging.Logger) -> None:
        self._logger = logger
        self._logged: dict[K, tuple[str, float]] = {}

    def failed(self, key: K, level: int, message: str, *, traceback: bool = False) -> None:
        """Called in an exception handler if there is to be a traceback."""
        now, (last, at) = asyncio.get_running_loop().time(), self._logged.get(key, ("", 0.0))
        if level >= logging.WARNING:
            if message == last and now < at + _AGAIN_SECONDS:
                level = logging.DEBUG
            else:
                self._logged[key] = message, now
        self._logger.log(level, "%s", message, exc_info=traceback and level > logging.DEBUG)

    def succeeded(self, key: K) -> None:
        self._logged.pop(key, None)
