"""A side of a comparison: the server, the resource, and the processes whose processor time is measured."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from benchmarks.client import Endpoint
from benchmarks.objects import Object
from benchmarks.targets.processes import ObservedProcess

MERGE_PATCH = "application/merge-patch+json"
_QUIET_SECONDS = 0.1
# The share of a processor that all processes together may use: a kube-apiserver is never entirely idle.
_QUIET_SHARE = 0.2
_TIMEOUT_SECONDS = 120.0

Processes = Callable[[], Mapping[str, ObservedProcess]]
"""Returns the current processes by name: a restart creates new ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Restart:
    """`start` waits until the server is ready."""

    stop: Callable[[], Awaitable[None]]
    start: Callable[[], Awaitable[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """`collection` is the path of a resource in one namespace, `make` returns the body that creates an object in it.
    `serving` are the processes that answer, `dependencies` those that they call; both are empty for a remote server.
    Only this side creates objects whose names start with `prefix`. `restart` is for a server that can be
    restarted."""

    title: str
    user: Endpoint
    collection: str
    make: Callable[[str], Object]
    prefix: str
    serving: Processes = dict
    dependencies: Processes = dict
    restart: Restart | None = None

    def processes(self) -> Mapping[str, ObservedProcess]:
        return {**self.serving(), **self.dependencies()}

    async def wait_until_idle(self) -> None:
        """Waits until the processes of this side are idle."""
        await wait_until_idle([self])

    def memory_mib(self) -> float:
        """The resident memory of the processes that answer."""
        return sum(process.memory_mib()[0] for process in self.serving().values())


async def wait_until_idle(sides: Sequence[Side]) -> None:
    """Waits until the processes of all sides have finished the work of the previous turn. Raises TimeoutError."""
    processes = {process for side in sides for process in side.processes().values()}
    async with asyncio.timeout(_TIMEOUT_SECONDS):
        while True:
            before = sum(process.cpu_seconds() for process in processes)
            await asyncio.sleep(_QUIET_SECONDS)
            spent = sum(process.cpu_seconds() for process in processes) - before
            if spent < _QUIET_SHARE * _QUIET_SECONDS:
                return


@dataclass(slots=True)
class Cost:
    """Seconds, complete when the context ends; `client` is the processor time of this process."""

    wall: float = 0.0
    client: float = 0.0
    serving: float = 0.0
    cpu: Mapping[str, float] = field(default_factory=dict)


@contextmanager
def measure_cost(side: Side) -> Iterator[Cost]:
    """All the processor time of a process that is started meanwhile counts."""
    cost = Cost()
    before = {process.pid: process.cpu_seconds() for process in side.processes().values()}
    start, client = time.perf_counter(), time.process_time()
    yield cost
    cost.wall, cost.client = time.perf_counter() - start, time.process_time() - client
    cost.cpu = {
        name: process.cpu_seconds() - before.get(process.pid, 0.0) for name, process in side.processes().items()
    }
    cost.serving = sum(cost.cpu[name] for name in side.serving())
