"""Kubernetes' CEL functions for IP addresses and networks (pkg/cel/library/ip.go, cidr.go)."""

from __future__ import annotations

import ipaddress
import re
from ipaddress import IPv4Address, IPv6Address
from typing import Any

from admission.cel.library.opaque_types import (
    NO_OVERLOAD,
    FunctionError,
    Functions,
    OpaqueValue,
    Type,
    expect,
    function,
    kind_of,
    make,
    method,
    overload,
)

IP = "net.IP"
CIDR = "net.CIDR"
_PREFIX = re.compile(r"0|[1-9][0-9]{0,2}", re.ASCII)

Address = IPv4Address | IPv6Address


def parse_ip(text: str) -> Address:
    """Raises FunctionError; zones, IPv4-mapped IPv6 addresses and leading zeros are rejected."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError as error:
        why = f"IP Address {_quoted(text)} parse error during conversion from string: ParseAddr({_quoted(text)})"
        raise FunctionError(f"{why}: {_ip_error(text)}") from error
    if isinstance(address, IPv6Address):
        if address.scope_id is not None:
            raise FunctionError(f"IP address {_quoted(text)} with zone value is not allowed")
        if address.ipv4_mapped is not None:
            raise FunctionError(f"IPv4-mapped IPv6 address {_quoted(text)} is not allowed")
    return address


def parse_cidr(text: str) -> tuple[Address, int]:
    """Raises FunctionError."""
    name, slash, bits = text.rpartition("/")
    quoted = _quoted(text)
    failed = "network address parse error during conversion from string: "
    if not slash:
        raise FunctionError(f"{failed}{failed}netip.ParsePrefix({quoted}): no '/'")
    try:
        address = ipaddress.ip_address(name)
    except ValueError as error:
        why = f"ParseAddr({_quoted(name)}): {_ip_error(name)}"
        raise FunctionError(f"{failed}{failed}netip.ParsePrefix({quoted}): {why}") from error
    if isinstance(address, IPv6Address) and address.scope_id is not None:
        raise FunctionError(f"{failed}{failed}netip.ParsePrefix({quoted}): IPv6 zones cannot be present in a prefix")
    if not _PREFIX.fullmatch(bits):
        raise FunctionError(f"{failed}{failed}netip.ParsePrefix({quoted}): bad bits after slash: {_quoted(bits)}")
    if int(bits) > address.max_prefixlen:
        raise FunctionError(f"{failed}{failed}netip.ParsePrefix({quoted}): prefix length out of range")
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        raise FunctionError(f"{failed}IPv4-mapped IPv6 address {quoted} is not allowed")
    return address, int(bits)


def _ip_error(text: str) -> str:
    if not text:
        return "unable to parse IP"
    if ":" in text:
        return _ipv6_error(text)
    if "." not in text:
        return "unable to parse IP"
    fields = text.split(".")
    for field in fields:
        if strange := re.search(r"[^0-9]", field):
            return f"unexpected character (at {_quoted(text[text.index(strange[0]) :])})"
        if len(field) > 1 and field[0] == "0":
            return "IPv4 field has octet with leading zero"
        if field and int(field) > 255:
            return "IPv4 field has value >255"
        if not field:
            return f"IPv4 field must have at least one digit (at {_quoted(text[max(text.find('..') + 1, 0) :])})"
    return "IPv4 address too long" if len(fields) > 4 else "IPv4 address too short"


def _ipv6_error(text: str) -> str:
    if text.count("::") > 1 or ":::" in text:
        rest = text[text.index("::") + 2 :]
        at = rest if rest.startswith(":") else rest[rest.index("::") + 1 :]
        no_digit = "each colon-separated field must have at least one digit"
        why = no_digit if rest.startswith(":") else "multiple :: in address"
        return f"{why} (at {_quoted(at)})"
    return "address string too short" if "::" not in text and text.count(":") < 7 else "unexpected character"


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _ip(address: Address) -> OpaqueValue:
    return make(IP, address=str(address))


def _cidr(address: Address, bits: int) -> OpaqueValue:
    return make(CIDR, address=str(address), bits=bits)


def _address(value: object) -> Address:
    return ipaddress.ip_address(expect(value, IP)["address"])


def _prefix(value: object) -> tuple[Address, int]:
    found = expect(value, CIDR)
    return ipaddress.ip_address(found["address"]), int(found["bits"])


def _masked(address: Address, bits: int) -> Address:
    return ipaddress.ip_network((address, bits), strict=False).network_address


def contains_ip(value: object, other: object) -> bool:
    address, bits = _prefix(value)
    inner = parse_ip(other) if isinstance(other, str) else _address(other)
    return inner.version == address.version and _masked(inner, bits) == _masked(address, bits)


def contains_cidr(value: object, other: object) -> bool:
    address, bits = _prefix(value)
    inner, inner_bits = parse_cidr(other) if isinstance(other, str) else _prefix(other)
    return inner.version == address.version and bits <= inner_bits and _masked(inner, bits) == _masked(address, bits)


def is_global_unicast(address: Address) -> bool:
    """As Go's netip defines it: private addresses are global unicast, too."""
    special = address.is_unspecified or address.is_loopback or address.is_multicast or address.is_link_local
    return not special and address != IPv4Address("255.255.255.255")


def is_link_local_multicast(address: Address) -> bool:
    if isinstance(address, IPv4Address):
        return address in ipaddress.ip_network("224.0.0.0/24")
    return address.packed[0] == 0xFF and address.packed[1] & 0x0F == 0x02


def to_string(value: Any) -> str:
    if kind_of(value) == IP:
        return str(_address(value))
    if kind_of(value) == CIDR:
        address, bits = _prefix(value)
        return f"{address}/{bits}"
    raise FunctionError(NO_OVERLOAD)


def _succeeds(parse: Any, text: str) -> bool:
    try:
        parse(text)
    except FunctionError:
        return False
    return True


def functions() -> Functions:
    text, truth, number, opaque = Type.STRING, Type.BOOL, Type.INT, Type.MAP
    return (
        function(
            "ip",
            overload(opaque, text, impl=lambda value: _ip(parse_ip(value))),
            overload(opaque, opaque, impl=lambda value: _ip(_prefix(value)[0]), member=True),
        ),
        function("isIP", overload(truth, text, impl=lambda value: _succeeds(parse_ip, value))),
        function("ip.isCanonical", overload(truth, text, impl=lambda value: str(parse_ip(value)) == value)),
        method("family", number, impl=lambda value: _address(value).version),
        method("isUnspecified", truth, impl=lambda value: _address(value).is_unspecified),
        method("isLoopback", truth, impl=lambda value: _address(value).is_loopback),
        method("isLinkLocalMulticast", truth, impl=lambda value: is_link_local_multicast(_address(value))),
        method("isLinkLocalUnicast", truth, impl=lambda value: _address(value).is_link_local),
        method("isGlobalUnicast", truth, impl=lambda value: is_global_unicast(_address(value))),
        function("cidr", overload(opaque, text, impl=lambda value: _cidr(*parse_cidr(value)))),
        function("isCIDR", overload(truth, text, impl=lambda value: _succeeds(parse_cidr, value))),
        function(
            "containsIP",
            overload(truth, opaque, text, impl=contains_ip, member=True),
            overload(truth, opaque, opaque, impl=contains_ip, member=True),
        ),
        function(
            "containsCIDR",
            overload(truth, opaque, text, impl=contains_cidr, member=True),
            overload(truth, opaque, opaque, impl=contains_cidr, member=True),
        ),
        method("prefixLength", number, impl=lambda value: _prefix(value)[1]),
        method("masked", opaque, impl=lambda value: _cidr(_masked(*_prefix(value)), _prefix(value)[1])),
        function("string", overload(text, opaque, impl=to_string)),
    )
