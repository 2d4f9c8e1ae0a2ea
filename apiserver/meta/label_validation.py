"""Validation of label keys and values, with the texts of k8s.io/apimachinery/pkg/util/validation."""

from __future__ import annotations

import re

from apiserver.meta.name_validation import dns1123_subdomain_errors

_NAME = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_NAME_TEXT = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"
)
_NAME_EXAMPLES = f"(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '{_NAME}')"
_VALUE = f"({_NAME})?"
_VALUE_TEXT = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    f"'{_VALUE}')"
)
_MAX_NAME = 63

_NAME_PATTERN = re.compile(_NAME)
_VALUE_PATTERN = re.compile(_VALUE)


def qualified_name_errors(key: str) -> list[str]:
    """Returns the errors of a qualified name, such as a label key or the name of a finalizer (WIRE-D43, WIRE-D46)."""
    parts = key.split("/")
    if len(parts) > 2:
        optional = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        return [f"a valid label key {_NAME_TEXT} {_NAME_EXAMPLES} {optional}"]
    errors = [f"prefix part {error}" for error in _prefix_errors(parts[0])] if len(parts) == 2 else []
    name = parts[-1]
    if not name:
        errors.append("name part must be non-empty")
    elif len(name.encode()) > _MAX_NAME:
        errors.append(f"name part {_too_long(_MAX_NAME)}")
    if not _NAME_PATTERN.fullmatch(name):
        errors.append(f"name part {_NAME_TEXT} {_NAME_EXAMPLES}")
    return errors


def label_value_errors(value: str) -> list[str]:
    """Returns the errors of a label value."""
    errors = [_too_long(_MAX_NAME)] if len(value.encode()) > _MAX_NAME else []
    if not _VALUE_PATTERN.fullmatch(value):
        errors.append(_VALUE_TEXT)
    return errors


def _prefix_errors(prefix: str) -> list[str]:
    return dns1123_subdomain_errors(prefix, unit="bytes") if prefix else ["must be non-empty"]


def _too_long(limit: int) -> str:
    return f"must be no more than {limit} bytes"
