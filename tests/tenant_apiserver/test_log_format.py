"""The two forms of the log."""

from __future__ import annotations

import json
import logging

from tenant_apiserver.log_format import JsonFormatter, TextFormatter


def record(**extra: object) -> logging.LogRecord:
    made = logging.makeLogRecord({"name": "apiserver", "levelno": 20, "levelname": "INFO", "msg": "ready", **extra})
    made.created, made.msecs = 0.0, 7.0
    return made


def test_a_json_line_holds_what_the_caller_added() -> None:
    line = json.loads(JsonFormatter().format(record(code=200)))
    assert line == {
        "ts": "1970-01-01T00:00:00.007Z",
        "level": "info",
        "logger": "apiserver",
        "msg": "ready",
        "code": 200,
    }


def test_a_text_line_holds_what_the_caller_added() -> None:
    assert TextFormatter().format(record(code=200)) == "1970-01-01T00:00:00.007Z INFO    apiserver: ready code=200"
