"""The forms of single settings: what no object of the host could hold is refused where the settings are read.

Left until the host refuses it, one wrong name or quantity would keep every Tenant from being made.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator

from registry import quantity

_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", re.ASCII)
_DURATION = re.compile(r"([0-9]+(\.[0-9]+)?(ms|s|m|h))+", re.ASCII)
_LONGEST_NAME = 253


def _name(value: str) -> str:
    """Of a namespace or a service."""
    if not _LABEL.fullmatch(value):
        raise ValueError("must be a name of at most 63 lower case letters, digits and '-'")
    return value


def _name_or_nothing(value: str) -> str:
    return _name(value) if value else value


def _object_name(value: str) -> str:
    if len(value) > _LONGEST_NAME or not all(_LABEL.fullmatch(part) for part in value.split(".")):
        raise ValueError("must be the name of an object: lower case letters, digits, '-' and '.'")
    return value


def _without_doubles(names: tuple[str, ...]) -> tuple[str, ...]:
    """The host refuses a set that holds something twice, and all that stands beside it."""
    doubled = [name for name in dict.fromkeys(names) if names.count(name) > 1]
    if doubled:
        raise ValueError(f"must not hold {doubled[0]} twice")
    return names


def _quantities(values: Mapping[str, str]) -> Mapping[str, str]:
    for name, value in values.items():
        try:
            quantity.parse(value)
        except ValueError as e:
            raise ValueError(f"{name}: {e}") from e
    return values


def _duration(value: str) -> str:
    if not _DURATION.fullmatch(value):
        raise ValueError("must be a duration such as 30s, 5m0s or 1h")
    return value


def _url(value: str) -> str:
    try:
        parts = urlsplit(value)
        good = parts.scheme in ("https", "http") and bool(parts.hostname)
    except ValueError:
        good = False
    if not good:
        raise ValueError("must be the URL of an ACME directory")
    return value


def _certificates(value: str) -> str:
    """PEM, or base64 of it; empty for those that cert-manager trusts."""
    try:
        plain = base64.b64decode("".join(value.split()), validate=True) if "-----BEGIN" not in value else value.encode()
    except (binascii.Error, ValueError):
        plain = b""
    if value and b"-----BEGIN CERTIFICATE-----" not in plain:
        raise ValueError("must be certificates in PEM, or base64 of that")
    return value


Name = Annotated[str, AfterValidator(_name)]
OptionalName = Annotated[str, AfterValidator(_name_or_nothing)]
ObjectName = Annotated[str, AfterValidator(_object_name)]
Names = Annotated[tuple[Name, ...], AfterValidator(_without_doubles)]
Quantities = Annotated[Mapping[str, str], AfterValidator(_quantities)]
Duration = Annotated[str, AfterValidator(_duration)]
Url = Annotated[str, AfterValidator(_url)]
CaBundle = Annotated[str, AfterValidator(_certificates)]
