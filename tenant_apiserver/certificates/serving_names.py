"""The addresses under which clients reach a stand-alone server: they belong into its serving certificate."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Sequence

_LOOPBACK = "127.0.0.1"


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
    # a link-local address has a zone, which a certificate cannot contain
    addresses = {str(each[4][0]) for each in found if "%" not in str(each[4][0])}
    return [_LOOPBACK, *([name] if name else []), *sorted(addresses - {_LOOPBACK})]
