"""Resource usage of a running server, from /proc and from its metrics."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from tests.e2e.support.http.https_client import Client

_MIB = 1024
_TICKS = os.sysconf("SC_CLK_TCK")
_SAMPLE = re.compile(r"(?P<name>\w+)(?:\{(?P<labels>[^}]*)\})? (?P<value>\S+)")
_RESOURCE = re.compile(r'resource="(?P<resource>[^"]*)"')
_SOCKET = re.compile(r"socket:\[(?P<inode>\d+)\]")


@dataclass(frozen=True, slots=True)
class ProcessUsage:
    """`rss` and `peak` are in MiB. `objects` and `watchers` are those of the watch caches, by resource.

    `own_connections` is the number of connections from the server to itself. The client of the embedded cluster keeps
    idle ones for up to half a minute, as many as it needed at once before.
    """

    rss: float
    peak: float
    open_descriptors: int
    tasks: int
    own_connections: int = 0
    objects: dict[str, int] = field(default_factory=dict)
    watchers: dict[str, int] = field(default_factory=dict)

    @property
    def other_descriptors(self) -> int:
        """The open descriptors that are not an end of one of its own connections."""
        return self.open_descriptors - 2 * self.own_connections

    @property
    def other_tasks(self) -> int:
        """The tasks that do not serve one of its own connections: each is served by one task."""
        return self.tasks - self.own_connections


def memory_mib(pid: int) -> tuple[float, float]:
    """Returns the current and the highest resident memory in MiB."""
    fields = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines() if ":" in line)
    return int(fields["VmRSS"].split()[0]) / _MIB, int(fields["VmHWM"].split()[0]) / _MIB


def processor_seconds(pid: int) -> float:
    """The processor time of all threads of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def open_descriptors(pid: int) -> int:
    return sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir())


def own_connections(pid: int) -> int:
    """The number of established TCP connections with both ends in this process."""
    inodes = set(_socket_inodes(pid))
    rows = [
        line.split() for name in ("tcp", "tcp6") for line in Path(f"/proc/{pid}/net/{name}").read_text().splitlines()
    ]
    # the columns of the kernel: number, local address, remote address, state, and in the tenth one the inode
    ends = {(row[1], row[2]) for row in rows if row[9] in inodes}
    return sum((remote, local) in ends for local, remote in ends) // 2


def _socket_inodes(pid: int) -> Iterator[str]:
    for descriptor in Path(f"/proc/{pid}/fd").iterdir():
        # a descriptor may be closed meanwhile
        with suppress(OSError):
            if found := _SOCKET.fullmatch(str(descriptor.readlink())):
                yield found["inode"]


def other_descriptors(pid: int) -> int:
    """The open descriptors that are not an end of one of its own connections."""
    return open_descriptors(pid) - 2 * own_connections(pid)


def read_process_usage(pid: int, client: Client) -> ProcessUsage:
    text = client.get("/metrics").content.decode()
    rss, peak = memory_mib(pid)
    [tasks] = _values(text, "apiserver_tasks").values()
    return ProcessUsage(
        rss=rss,
        peak=peak,
        open_descriptors=open_descriptors(pid),
        tasks=tasks,
        own_connections=own_connections(pid),
        objects=_values(text, "apiserver_storage_objects"),
        watchers=_values(text, "apiserver_registered_watchers"),
    )


def _values(text: str, name: str) -> dict[str, int]:
    """Returns the values of a gauge by resource."""
    found: dict[str, int] = {}
    for line in text.splitlines():
        sample = _SAMPLE.fullmatch(line) if line.startswith(name) else None
        if sample is not None and sample["name"] == name:
            resource = _RESOURCE.search(sample["labels"] or "")
            key = resource["resource"] if resource is not None else ""
            found[key] = found.get(key, 0) + int(float(sample["value"]))
    return found
