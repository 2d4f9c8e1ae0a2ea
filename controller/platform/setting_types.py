"""Types of single settings: values that kube-apiserver would reject are rejected when the settings are read.

Otherwise one wrong name or quantity would prevent every Tenant from being reconciled.
"""

from __future__ import annotations

import base64
import binascii
import ipaddress
import re
from collections.abc import Mapping
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator

from registry import quantity

_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", re.ASCII)
_DURATION = re.compile(r"([0-9]+(\.[0-9]+)?(ms|s|m|h))+", re.ASCII)
_UNIT_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_ZERO = re.compile(r"(0+(\.0+)?(ms|s|m|h))+", re.ASCII)
_MAX_NAME = 253
# below 1, a container could request more than it may use
_LEAST_RATIO, _GREATEST_RATIO = 1, 1000


def _name(value: str) -> str:
    """The name of a namespace or a service."""
    if not _LABEL.fullmatch(value):
        raise ValueError("must be a name of at most 63 lower case letters, digits and '-'")
    return value


def _optional_name(value: str) -> str:
    return _name(value) if value else value


def _object_name(value: str) -> str:
    if len(value) > _MAX_NAME or not all(_LABEL.fullmatch(part) for part in value.split(".")):
        raise ValueError("must be the name of an object: lower case letters, digits, '-' and '.'")
    return value


def _optional_object_name(value: str) -> str:
    return _object_name(value) if value else value


def _unique(names: tuple[str, ...]) -> tuple[str, ...]:
    """kube-apiserver rejects an object in which a list of type set contains a duplicate."""
    duplicates = [name for name in dict.fromkeys(names) if names.count(name) > 1]
    if duplicates:
        raise ValueError(f"must not contain {duplicates[0]} twice")
    return names


def _quantities(values: Mapping[str, str]) -> Mapping[str, str]:
    for name, value in values.items():
        try:
            quantity.parse_limit(value)
        except ValueError as e:
            raise ValueError(f"{name}: {e}") from e
    return values


def _cidr(value: str) -> str:
    """The canonical form of a network.

    A zone and an IPv4-mapped address are networks to Python, while kube-apiserver refuses each policy that has one
    (Kubernetes' ValidateIPBlock), so that no tenant would be isolated.
    """
    try:
        network = ipaddress.ip_network(value)
    except ValueError as e:
        raise ValueError(f"must be a network such as 10.0.0.0/8: {e}") from e
    if network.prefixlen == 0:
        raise ValueError("must not contain every address: nothing would be outside of the cluster")
    address = network.network_address
    if isinstance(address, ipaddress.IPv6Address) and (address.scope_id or address.ipv4_mapped):
        raise ValueError("must be a network without a zone, and of IPv4 if it is IPv4's: kube-apiserver refuses others")
    return str(network)


def _duration(value: str) -> str:
    if not _DURATION.fullmatch(value):
        raise ValueError("must be a duration such as 30s, 5m0s or 1h")
    if _ZERO.fullmatch(value):
        raise ValueError("must be longer than zero")
    return value


def duration_seconds(value: str) -> float:
    """The seconds of a valid duration."""
    parts = re.findall(r"([0-9]+(?:\.[0-9]+)?)(ms|s|m|h)", value)
    return sum(float(number) * _UNIT_SECONDS[unit] for number, unit in parts)


def _url(value: str) -> str:
    try:
        parts = urlsplit(value)
        valid = parts.scheme in ("https", "http") and bool(parts.hostname)
    except ValueError:
        valid = False
    if not valid:
        raise ValueError("must be the URL of an ACME directory")
    return value


def _certificates(value: str) -> str:
    """PEM or its base64 encoding; empty for the CAs that cert-manager trusts."""
    try:
        pem = base64.b64decode("".join(value.split()), validate=True) if "-----BEGIN" not in value else value.encode()
    except (binascii.Error, ValueError):
        pem = b""
    if value and b"-----BEGIN CERTIFICATE-----" not in pem:
        raise ValueError("must be certificates in PEM, or base64 of that")
    return value


def ratio(value: int | float) -> int | float:
    """Raises ValueError for a number that is no ratio of limits to requests."""
    if not _LEAST_RATIO <= value <= _GREATEST_RATIO:
        raise ValueError(f"must be a number from {_LEAST_RATIO} to {_GREATEST_RATIO}")
    return value


def ratio_of_text(value: object) -> int | float:
    """The ratio that a text of a ConfigMap stands for. Raises ValueError if it is none."""
    try:
        number = float(value) if isinstance(value, str | int) else 0.0
    except ValueError:
        number = 0.0
    return ratio(number)


Name = Annotated[str, AfterValidator(_name)]
OptionalName = Annotated[str, AfterValidator(_optional_name)]
OptionalObjectName = Annotated[str, AfterValidator(_optional_object_name)]
ObjectName = Annotated[str, AfterValidator(_object_name)]
Names = Annotated[tuple[Name, ...], AfterValidator(_unique)]
Cidr = Annotated[str, AfterValidator(_cidr)]
Cidrs = Annotated[tuple[Cidr, ...], AfterValidator(_unique)]
Quantities = Annotated[Mapping[str, str], AfterValidator(_quantities)]
Ratio = Annotated[int | float, AfterValidator(ratio)]
Duration = Annotated[str, AfterValidator(_duration)]
Url = Annotated[str, AfterValidator(_url)]
CaBundle = Annotated[str, AfterValidator(_certificates)]
