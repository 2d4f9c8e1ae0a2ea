"""Resource usage of a running server, from /proc and from its metrics."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

from tests.e2e.support.https_client import Client

_MIB = 1024
_SAMPLE = re.compile(r"(?P<name>\w+)(?:\{(?P<labels>[^}]*)\})? (?P<value>\S+)")
_RESOURCE = re.compile(r'resource="(?P<resource>[^"]*)"')


@dataclass(frozen=True, slots=True)
class ProcessUsage:
    """`rss` and `peak` are in MiB. `objects` and `watchers` are those of the watch caches, by resource."""

    rss: float
    peak: float
    open_descriptors: int
    tasks: int
    objects: dict[str, int] = field(default_factory=dict)
    watchers: dict[str, int] = field(default_factory=dict)


def memory_mib(pid: int) -> tuple[float, float]:
    """Returns the current and the highest resident memory in MiB."""
    fields = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines() if ":" in line)
    return int(fields["VmRSS"].split()[0]) / _MIB, int(fields["VmHWM"].split()[0]) / _MIB


def open_descriptors(pid: int) -> int:
    return sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir())


def read_process_usage(pid: int, client: Client) -> ProcessUsage:
    text = client.get("/metrics").content.decode()
    rss, peak = memory_mib(pid)
    [tasks] = _values(text, "apiserver_tasks").values()
    return ProcessUsage(
        rss=rss,
        peak=peak,
        open_descriptors=open_descriptors(pid),
        tasks=tasks,
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
