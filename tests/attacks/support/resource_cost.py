"""Measures the cost of an attack: the memory of the server, and the time of its other clients."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.attacks.support.proxied_replica import Replica
from tests.e2e.support.clusters.cluster import tenants_path
from tests.e2e.support.http.https_client import Client
from tests.e2e.support.http.pace import Pace
from tests.faults.support.process_usage import memory_mib

_PAUSE_SECONDS = 0.02
_MAX_WAIT_SECONDS = 2.0


@dataclass(slots=True)
class Cost:
    """`memory` is the growth of the resident memory in MiB, at its highest point. `waited` is the longest time in
    seconds that another client waited for a list, and `may_wait` how long it may: two seconds on two cores that do
    nothing besides running the server and the attackers."""

    memory: float = 0.0
    waited: float = 0.0
    may_wait: float = _MAX_WAIT_SECONDS

    def __str__(self) -> str:
        return f"{self.memory:.0f} MiB more, others waited {self.waited:.2f} s at most"


@contextmanager
def measured_cost(replica: Replica) -> Iterator[Cost]:
    """Measures what the body of the context costs; the result is complete at its end."""
    pid, cost, over, pace = replica.process.pid, Cost(), threading.Event(), Pace(replica.client())
    before = memory_mib(pid)[0]
    _reset_peak(pid)
    reader = threading.Thread(target=_read, args=(replica.client(), cost, over), daemon=True)
    reader.start()
    try:
        yield cost
    finally:
        over.set()
        reader.join(timeout=60)
        cost.may_wait = pace.limit(_MAX_WAIT_SECONDS)
        cost.memory = memory_mib(pid)[1] - before
        print(cost)


def _read(client: Client, cost: Cost, over: threading.Event) -> None:
    connection = client.connect()
    while not over.wait(_PAUSE_SECONDS):
        started = time.perf_counter()
        connection.request("GET", f"{tenants_path()}?limit=1", headers=client.headers)
        response = connection.getresponse()
        content = response.read()
        assert response.status == 200, content
        cost.waited = max(cost.waited, time.perf_counter() - started)
    connection.close()


def _reset_peak(pid: int) -> None:
    """Lets VmHWM begin again at the current size: see proc(5)."""
    Path(f"/proc/{pid}/clear_refs").write_text("5")
