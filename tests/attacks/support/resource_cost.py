"""Measures the cost of an attack: the memory of the server, and the time of its other clients."""

from __future__ import annotations

import inspect
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec, TypeVar, cast

from tests.attacks.support.proxied_replica import Replica
from tests.e2e.support.clusters.cluster import tenants_path
from tests.e2e.support.http.https_client import Client
from tests.e2e.support.http.pace import Pace
from tests.faults.support.process_usage import memory_mib, processor_seconds

_PAUSE_SECONDS = 0.02
_MAX_WAIT_SECONDS = 2.0
# a server that waits for something itself uses no processor time
_STALLED = 5
_ATTEMPTS = 3

P = ParamSpec("P")
R = TypeVar("R")


@dataclass(slots=True)
class Cost:
    """`memory` is the growth of the resident memory in MiB, at its highest point. `waited` is the longest time in
    seconds that another client waited for a list, of which only the processor time of the server counts: the rest goes
    to other processes of the machine. `elapsed` is that time as a whole. `may_wait` is how long a client may wait: two
    seconds on two cores that do nothing besides running the server and the attackers."""

    memory: float = 0.0
    waited: float = 0.0
    elapsed: float = 0.0
    may_wait: float = _MAX_WAIT_SECONDS

    def __str__(self) -> str:
        return f"{self.memory:.0f} MiB more, others waited {self.waited:.2f} s of {self.elapsed:.2f} s at most"


class OthersWaited(AssertionError):
    """Another client waited longer than it may."""


def assert_cheap(cost: Cost, max_memory: float) -> None:
    """`max_memory` is in MiB. Raises OthersWaited only if the memory is within it."""
    assert cost.memory < max_memory, cost
    if cost.waited >= cost.may_wait or cost.elapsed >= _STALLED * cost.may_wait:
        raise OthersWaited(f"{cost}; {cost.may_wait:.2f} s are allowed")


def least_wait_counts(test: Callable[P, R]) -> Callable[P, R]:
    """The test, whose attack is repeated while others wait for too long, up to three times. Other work of the machine
    only adds to a wait; an attack that slows down the server does so each time."""

    @wraps(test)
    def attempts(*args: P.args, **kwargs: P.kwargs) -> Any:
        for attempt in range(_ATTEMPTS):
            with _once_more(attempt):
                return test(*args, **kwargs)

    @wraps(test)
    async def async_attempts(*args: P.args, **kwargs: P.kwargs) -> Any:
        for attempt in range(_ATTEMPTS):
            with _once_more(attempt):
                return await cast(Any, test(*args, **kwargs))

    return async_attempts if inspect.iscoroutinefunction(test) else attempts  # type: ignore[return-value]


@contextmanager
def _once_more(attempt: int) -> Iterator[None]:
    """Suppresses OthersWaited in all attempts but the last."""
    try:
        yield
    except OthersWaited as e:
        if attempt == _ATTEMPTS - 1:
            raise
        print(f"once more: {e}")


@contextmanager
def measured_cost(replica: Replica) -> Iterator[Cost]:
    """Measures what the body of the context costs; the result is complete at its end."""
    pid, cost, over, pace = replica.process.pid, Cost(), threading.Event(), Pace(replica.client())
    before = memory_mib(pid)[0]
    _reset_peak(pid)
    reader = threading.Thread(target=_read, args=(replica.client(), pid, cost, over), daemon=True)
    reader.start()
    try:
        yield cost
    finally:
        over.set()
        reader.join(timeout=60)
        cost.may_wait = pace.limit(_MAX_WAIT_SECONDS)
        cost.memory = memory_mib(pid)[1] - before
        print(cost)


def _read(client: Client, pid: int, cost: Cost, over: threading.Event) -> None:
    connection = client.connect()
    while not over.wait(_PAUSE_SECONDS):
        started, used = time.perf_counter(), processor_seconds(pid)
        connection.request("GET", f"{tenants_path()}?limit=1", headers=client.headers)
        response = connection.getresponse()
        content = response.read()
        assert response.status == 200, content
        elapsed = time.perf_counter() - started
        cost.elapsed = max(cost.elapsed, elapsed)
        cost.waited = max(cost.waited, min(elapsed, processor_seconds(pid) - used))
    connection.close()


def _reset_peak(pid: int) -> None:
    """Lets VmHWM begin again at the current size: see proc(5)."""
    Path(f"/proc/{pid}/clear_refs").write_text("5")
