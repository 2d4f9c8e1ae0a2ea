"""The addresses under which clients reach a stand-alone server: they belong into its serving certificate."""

from __future__ import annotations

import fcntl
import ipaddress
import socket
import struct
from collections.abc import Sequence
from pathlib import Path

_LOOPBACK = "127.0.0.1"
_SIOCGIFADDR = 0x8915
_IF_INET6 = Path("/proc/net/if_inet6")


def serves_all_addresses(bind_address: str) -> bool:
    return ipaddress.ip_address(bind_address).is_unspecified


def local_address(bind_address: str) -> str:
    """An address at which a client on this machine reaches the server."""
    return _LOOPBACK if serves_all_addresses(bind_address) else bind_address


def serving_names(bind_address: str) -> Sequence[str]:
    """The names and addresses for the certificate: `bind_address`, or this machine's name and its addresses if the
    server listens on all. May block for a DNS lookup."""
    if not serves_all_addresses(bind_address):
        return [bind_address]
    name = socket.gethostname()
    try:
        found = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
    except OSError:
        found = []
    addresses = {str(each[4][0]).partition("%")[0] for each in found} | _interface_addresses()
    # link-local addresses have a zone, which a certificate cannot contain
    global_addresses = {each for each in addresses if not ipaddress.ip_address(each).is_link_local}
    return [_LOOPBACK, *([name] if name else []), *sorted(global_addresses - {_LOOPBACK})]


def _interface_addresses() -> set[str]:
    """The addresses of the machine's interfaces; what the system does not tell is left out."""
    found = {_outbound_address(socket.AF_INET, "192.0.2.1"), _outbound_address(socket.AF_INET6, "2001:db8::1")}
    try:
        found.update(interface_address(name) for _, name in socket.if_nameindex())
        found.update(parse_if_inet6(_IF_INET6.read_text()))
    except OSError:
        pass
    return found - {""}


def _outbound_address(family: socket.AddressFamily, destination: str) -> str:
    """The address from which the machine reaches others, "" without a route. Sends nothing: `destination` is reserved
    for documentation (RFC 5737, RFC 3849)."""
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((destination, 9))
            return str(probe.getsockname()[0])
    except OSError:
        return ""


def interface_address(name: str) -> str:
    """The IPv4 address of an interface, "" if it has none or the system is not Linux."""
    request = struct.pack("256s", name.encode()[:15])
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            answer = fcntl.ioctl(probe, _SIOCGIFADDR, request)
    except OSError:
        return ""
    # struct ifreq: the name, then a sockaddr_in of family, port and address
    return socket.inet_ntoa(answer[20:24])


def parse_if_inet6(text: str) -> list[str]:
    """The addresses in /proc/net/if_inet6: one a line, which begins with 32 hexadecimal digits."""
    return [str(ipaddress.IPv6Address(int(line[:32], 16))) for line in text.splitlines()]
