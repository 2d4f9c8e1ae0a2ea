"""Configures logging: one line for each record, as text or as JSON."""

from __future__ import annotations

import logging
import sys
import time
from typing import Any

import orjson

_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
# -v 0 logs warnings and errors, 1 also start and stop of the process, 3 every request (as in Kubernetes), 4 debug
# records.
_REQUESTS_FROM = 3
_DEBUG_FROM = 4


class JsonFormatter(logging.Formatter):
    """One JSON object for each record; the keys of `extra` become keys of the object."""

    def format(self, record: logging.LogRecord) -> str:
        document: dict[str, Any] = {
            "ts": _timestamp(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "msg": record.getMessage(),
            **_extra(record),
        }
        if record.exc_info:
            document["exception"] = self.formatException(record.exc_info)
        return orjson.dumps(document, default=str).decode()


class TextFormatter(logging.Formatter):
    """Time, level, logger, message, and the keys of `extra` as key=value."""

    def format(self, record: logging.LogRecord) -> str:
        extra = "".join(f" {key}={value!r}" for key, value in _extra(record).items())
        line = f"{_timestamp(record)} {record.levelname:<7} {record.name}: {record.getMessage()}{extra}"
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


def configure(*, form: str, verbosity: int) -> None:
    """Sends the log to standard error; `form` is 'text' or 'json', `verbosity` 0 to 10."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter() if form == "json" else TextFormatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(_level(verbosity))
    logging.getLogger("apiserver.access").setLevel(logging.INFO if verbosity >= _REQUESTS_FROM else logging.WARNING)
    # aiohttp and asyncio log every malformed request and TLS alert that a client causes
    logging.getLogger("aiohttp").setLevel(logging.CRITICAL if verbosity < _DEBUG_FROM else logging.DEBUG)
    logging.getLogger("asyncio").setLevel(logging.CRITICAL if verbosity < _DEBUG_FROM else logging.DEBUG)


def _level(verbosity: int) -> int:
    if verbosity >= _DEBUG_FROM:
        return logging.DEBUG
    return logging.INFO if verbosity else logging.WARNING


def _timestamp(record: logging.LogRecord) -> str:
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(record.created))}.{int(record.msecs):03}Z"


def _extra(record: logging.LogRecord) -> dict[str, Any]:
    return {key: value for key, value in vars(record).items() if key not in _STANDARD}
