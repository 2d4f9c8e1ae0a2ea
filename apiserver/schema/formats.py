"""The formats that Kubernetes checks in a CustomResourceDefinition (kube-openapi's strfmt). Pure.

Formats that are not listed here are ignored, as in Kubernetes.
"""

from __future__ import annotations

import base64
import binascii
import ipaddress
import re
from collections.abc import Callable, Mapping
from datetime import date, datetime
from urllib.parse import urlsplit

_TIME = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}([.,]\d+)?(Z|[+-]\d{2}:\d{2})?", re.ASCII)
_DURATION = re.compile(r"[+-]?((\d+(\.\d*)?|\.\d+)(ns|us|\u00b5s|\u03bcs|ms|s|m|h))+|[+-]?0", re.ASCII)
_LONG_DURATION = re.compile(
    r"(\d+)\s*(ns|nano|us|\u00b5s|micro|ms|milli|s|sec|m|min|h|hr|hour|d|day|w|wk|week|nanos?|nanoseconds?|"
    r"micros?|microseconds?|millis?|milliseconds?|secs?|seconds?|mins?|minutes?|hrs?|hours?|days?|wks?|weeks?)",
    re.ASCII,
)
_EMAIL = re.compile(r"[^\s@<>()\[\],;:\"]+@[^\s@<>()\[\],;:\"]+")
_HOSTNAME_LABEL = re.compile(r"[^\W_]([-]?[^\W_]){0,62}")
_LAST_LABEL = re.compile(r"[^\W\d_]{2,63}|[^\W_](-?[^\W_]){0,62}")
_MAC = re.compile(
    r"[0-9a-fA-F]{2}([:-][0-9a-fA-F]{2}){5}([:-][0-9a-fA-F]{2}){0,14}|[0-9a-fA-F]{4}(\.[0-9a-fA-F]{4}){2,}"
)
_UUID = r"[0-9a-f]{8}-?[0-9a-f]{4}-?%s[0-9a-f]{3}-?%s[0-9a-f]{3}-?[0-9a-f]{12}"
_PREFIX_LENGTH = re.compile(r"\d{1,7}", re.ASCII)
_SHORT_NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")


def _is_datetime(text: str) -> bool:
    if not text:
        return True
    return bool(_TIME.fullmatch(text)) and _parses(datetime.fromisoformat, text)


def _is_date(text: str) -> bool:
    return len(text) == 10 and _parses(date.fromisoformat, text)


def _is_duration(text: str) -> bool:
    return bool(_DURATION.fullmatch(text) or _LONG_DURATION.fullmatch(text))


def _is_base64(text: str) -> bool:
    try:
        base64.b64decode(text.replace("\n", "").replace("\r", ""), validate=True)
    except (binascii.Error, ValueError):
        return False
    return True


def _is_hostname(text: str) -> bool:
    *labels, last = text.split(".")
    return (
        len(text) <= 255
        and all(_HOSTNAME_LABEL.fullmatch(label) and len(label) <= 63 for label in labels)
        and bool(_LAST_LABEL.fullmatch(last))
    )


def _is_uri(text: str) -> bool:
    """As Go's url.ParseRequestURI: an absolute URI or an absolute path."""
    if not text or any(character <= " " or character == "\x7f" for character in text):
        return False
    return text.startswith("/") or (_parses(urlsplit, text) and bool(urlsplit(text).scheme))


def _is_cidr(text: str) -> bool:
    address, slash, bits = text.partition("/")
    # other digits are no number, and thousands of them none that Python reads
    if not slash or not _PREFIX_LENGTH.fullmatch(bits):
        return False
    return _parses(ipaddress.ip_address, address) and int(bits) <= ipaddress.ip_address(address).max_prefixlen


def _is_short_name(text: str) -> bool:
    return bool(_SHORT_NAME.fullmatch(text))


def _is_long_name(text: str) -> bool:
    return len(text) <= 253 and all(_SHORT_NAME.fullmatch(part) for part in text.split("."))


def _parses(parse: Callable[[str], object], text: str) -> bool:
    try:
        parse(text)
    except ValueError:
        return False
    return True


def _matches(pattern: str | re.Pattern[str]) -> Callable[[str], bool]:
    compiled = re.compile(pattern, re.IGNORECASE) if isinstance(pattern, str) else pattern
    return lambda text: compiled.fullmatch(text) is not None


_ANY = "[0-9a-f]"
STRING_FORMATS: Mapping[str, Callable[[str], bool]] = {
    "byte": _is_base64,
    "cidr": _is_cidr,
    "date": _is_date,
    "datetime": _is_datetime,
    "duration": _is_duration,
    "email": _matches(_EMAIL),
    "hexcolor": _matches(r"#?([0-9a-f]{3}|[0-9a-f]{6})"),
    "hostname": _is_hostname,
    "ipv4": lambda text: _parses(ipaddress.IPv4Address, text),
    "ipv6": lambda text: _parses(ipaddress.IPv6Address, text),
    "k8slongname": _is_long_name,
    "k8sshortname": _is_short_name,
    "mac": _matches(_MAC),
    "uri": _is_uri,
    "uuid": _matches(_UUID % (_ANY, _ANY)),
    "uuid3": _matches(_UUID % ("3", _ANY)),
    "uuid4": _matches(_UUID % ("4", "[89ab]")),
    "uuid5": _matches(_UUID % ("5", "[89ab]")),
}
"""By the name of the format without dashes, as Kubernetes looks them up."""

INTEGER_FORMATS: Mapping[str, tuple[int, int]] = {"int32": (-(2**31), 2**31 - 1), "int64": (-(2**63), 2**63 - 1)}
"""The least and the greatest value of each."""


def is_in_integer_format(value: float, name: str) -> bool:
    """`name` is one of INTEGER_FORMATS."""
    least, greatest = INTEGER_FORMATS[name]
    return least <= value <= greatest and float(value).is_integer()
