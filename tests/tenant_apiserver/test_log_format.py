"""The two log formats."""

from __future__ import annotations

import json
import logging

from tenant_apiserver.log_format import JsonFormatter, TextFormatter


def record(**extra: object) -> logging.LogRecord:
    result = logging.makeLogRecord({"name": "apiserver", "levelno": 20, "levelname": "INFO", "msg": "ready", **extra})
    result.created, result.msecs = 0.0, 7.0
    return result


def test_a_json_line_contains_the_extra_fields() -> None:
    line = json.loads(JsonFormatter().format(record(code=200)))
    assert line == {
        "ts": "1970-01-01T00:00:00.007Z",
        "level": "info",
        "logger": "apiserver",
        "msg": "ready",
        "code": 200,
    }


def test_a_text_line_contains_the_extra_fields() -> None:
    assert TextFormatter().format(record(code=200)) == "1970-01-01T00:00:00.007Z INFO    apiserver: ready code=200"
