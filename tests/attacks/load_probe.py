"""How a server does under pressure: what its answers cost somebody else meanwhile, and how much memory it holds."""

from __future__ import annotations

import statistics
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from tests.e2e.support.clusters import E2eCluster
from tests.e2e.support.https_client import Client

_SECONDS = 60.0
_REQUESTS = 60
_ROUNDS = 3
_TRIES = 4
ATTACKERS = 2
FACTOR = 2.0
FLOOR_SECONDS = 0.5
# what one request may cost at all
MOST_SECONDS = 1.5


class Bystander:
    """Somebody's reads, one after the other over one connection."""

    def __init__(self, client: Client, path: str) -> None:
        self._path = path
        self._headers = client.headers
        self._connection = client.connect()

    def p99(self) -> float:
        """Seconds. Fails unless all answers are good."""
        taken = sorted(self._read() for _ in range(_REQUESTS))
        return taken[int(len(taken) * 0.99)]

    def close(self) -> None:
        self._connection.close()

    def _read(self) -> float:
        started = time.perf_counter()
        self._connection.request("GET", self._path, headers=self._headers)
        response = self._connection.getresponse()
        content = response.read()
        assert response.status == 200, content
        return time.perf_counter() - started


@contextmanager
def under(attack: Callable[[], int], attackers: int) -> Iterator[Counter[int]]:
    """While so many threads do it again and again; the answers' codes are counted."""
    codes, over = Counter[int](), threading.Event()

    def run() -> None:
        while not over.is_set():
            codes[attack()] += 1

    threads = [threading.Thread(target=run, daemon=True) for _ in range(attackers)]
    for thread in threads:
        thread.start()
    try:
        yield codes
    finally:
        over.set()
        for thread in threads:
            thread.join(timeout=_SECONDS)


@dataclass(frozen=True, slots=True)
class Suffering:
    """Seconds: the p99 of a bystander when idle and under attack, each the median of some turns, and what the attack
    costs its sender when nobody else is there. `codes` are what the attackers were told, in so many `tries`."""

    idle: float
    pressed: float
    cost: float
    codes: Counter[int]
    tries: int = 1

    @property
    def is_bearable(self) -> bool:
        """Within twice of before; or, where that is less than a machine of two cores with the host and the attackers on
        it can tell, no longer than the attackers' requests that can stand before one's own."""
        return self.pressed <= max(FACTOR * self.idle, FLOOR_SECONDS, FACTOR * ATTACKERS * self.cost)


def suffers(bystander: Bystander, attack: Callable[[], int]) -> Suffering:
    """The first of some tries that is bearable, else the last: other work on the machine does not last."""
    found = _suffers(bystander, attack)
    while not found.is_bearable and found.tries < _TRIES:
        found = replace(_suffers(bystander, attack), tries=found.tries + 1)
    return found


def _suffers(bystander: Bystander, attack: Callable[[], int]) -> Suffering:
    bystander.p99()
    cost = statistics.median(_seconds(attack) for _ in range(_ROUNDS))
    idle, pressed, codes = list[float](), list[float](), Counter[int]()
    for _ in range(_ROUNDS):
        idle.append(bystander.p99())
        with under(attack, ATTACKERS) as told:
            pressed.append(bystander.p99())
        codes += told
    return Suffering(statistics.median(idle), statistics.median(pressed), cost, codes)


def _seconds(attack: Callable[[], int]) -> float:
    started = time.perf_counter()
    attack()
    return time.perf_counter() - started


def resident_bytes(cluster: E2eCluster) -> int:
    """Of our server's process; 0 where it is not ours to look at."""
    if cluster.kind == "external":
        return 0
    status = Path(f"/proc/{cluster.server.pid}/status").read_text()
    [line] = [line for line in status.splitlines() if line.startswith("VmRSS:")]
    return int(line.split()[1]) * 1024
