"""Tells whose process is at the other end of a connection on loopback (Linux).

Loopback has no users: every account of the machine reaches the port, and a browser sends the cookies of 127.0.0.1 to
every port of it, so a server of another account could collect them. The kernel knows the owner of each socket.
"""

from __future__ import annotations

import asyncio
import ipaddress
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

TABLES: Sequence[Path] = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
_ESTABLISHED: Final = "01"
_ROOT: Final = 0

Address = tuple[str, int]


def owner_of(client: Address, server: Address) -> int | None:
    """The user id of the process that has opened the socket `client` to `server`, None if the kernel does not tell.

    Only open sockets count: one that its process has closed belongs to nobody, and is shown as root's.
    """
    for table in TABLES:
        for local, remote, state, uid in _rows(table):
            if state == _ESTABLISHED and local == _hex(client, len(local)) and remote == _hex(server, len(remote)):
                return uid
    return None


def is_own(uid: int | None) -> bool:
    """True for this process's user and for root, who may do as the user anyway. Forwarded ports of a virtual machine's
    host arrive as root's."""
    return uid in (os.getuid(), _ROOT)


async def owners_are_known(server: Address) -> bool:
    """True if the kernel tells the owner of a connection to an open port, which is tried with one of this process's
    own. Other systems than Linux have no such table, and a sandbox may have an empty one."""
    _, writer = await asyncio.open_connection(*server)
    try:
        own, peer = writer.get_extra_info("sockname")[:2], writer.get_extra_info("peername")[:2]
        return await asyncio.to_thread(owner_of, own, peer) == os.getuid()
    finally:
        writer.close()


def _rows(table: Path) -> Iterator[tuple[str, str, str, int]]:
    try:
        lines = table.read_text().splitlines()[1:]
    except OSError:
        return
    for line in lines:
        fields = line.split()
        yield fields[1], fields[2], fields[3], int(fields[7])


def _hex(address: Address, length: int) -> str:
    """As the kernel prints it in a table of IPv4 or IPv6, told by the length of its rows: in words of the machine's
    byte order. Connections of IPv4 to a socket of IPv6 are in the table of IPv6."""
    ip = ipaddress.ip_address(address[0])
    is_long = length > len("00000000:0000")
    if is_long and ip.version == 4:
        ip = ipaddress.ip_address(f"::ffff:{ip}")
    if (ip.version == 6) != is_long:
        return ""
    words = (ip.packed[start : start + 4] for start in range(0, len(ip.packed), 4))
    return "".join(f"{int.from_bytes(word, sys.byteorder):08X}" for word in words) + f":{address[1]:04X}"
