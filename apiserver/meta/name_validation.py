"""Validation of names, with the texts of k8s.io/apimachinery/pkg/util/validation (WIRE-D40)."""

from __future__ import annotations

import re

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_LABEL_TEXT = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end "
    f"with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '{_LABEL}')"
)
_SUBDOMAIN_TEXT = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start "
    f"and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '{_SUBDOMAIN}')"
)
_DNS1035_LABEL = "[a-z]([-a-z0-9]*[a-z0-9])?"
DNS1035_LABEL_TEXT = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, "
    "and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is "
    f"'{_DNS1035_LABEL}')"
)
_LABEL_PATTERN = re.compile(_LABEL)
_DNS1035_LABEL_PATTERN = re.compile(_DNS1035_LABEL)
_SUBDOMAIN_PATTERN = re.compile(_SUBDOMAIN)


def dns1123_label_errors(name: str) -> list[str]:
    """Returns the errors of a DNS label, such as the name of a namespace."""
    return _errors(name, 63, _LABEL_PATTERN, _LABEL_TEXT)


def dns1035_label_errors(name: str) -> list[str]:
    """Returns the errors of a DNS label that begins with a letter, such as the version of an API."""
    return _errors(name, 63, _DNS1035_LABEL_PATTERN, DNS1035_LABEL_TEXT)


def kind_problem(kind: str) -> str:
    """Returns the reason why `kind` cannot name a kind, and "" if it can."""
    problems = dns1035_label_errors(kind.lower())
    return f"may have mixed case, but should otherwise match: {','.join(problems)}" if problems else ""


def dns1123_subdomain_errors(name: str, *, unit: str = "characters") -> list[str]:
    """Returns the errors of a DNS subdomain, such as the names of most objects. Kubernetes 1.34 and later count `bytes`
    where the subdomain is part of a label's key."""
    return _errors(name, 253, _SUBDOMAIN_PATTERN, _SUBDOMAIN_TEXT, unit)


def path_segment_errors(name: str) -> list[str]:
    """Returns the reasons why `name` cannot be a path segment. Names of RBAC's kinds have no other rule: `system:x` is
    valid."""
    if name in (".", ".."):
        return [f"may not be '{name}'"]
    if "/" not in name and "%" not in name:
        return []
    return [f"may not contain '{character}'" for character in "/%" if character in name]


def _errors(name: str, limit: int, pattern: re.Pattern[str], text: str, unit: str = "characters") -> list[str]:
    errors = [f"must be no more than {limit} {unit}"] if len(name.encode()) > limit else []
    if not pattern.fullmatch(name):
        errors.append(text)
    return errors
