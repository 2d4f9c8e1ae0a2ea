"""A long mixed load on `standalone`, whose resource usage must not grow: python -m tests.faults.soak --seconds 600

Prints the usage of the idle server after every round, and exits with 1 if `find_growth` finds growth in the last third
of the rounds.
"""

from __future__ import annotations

import argparse
import http.client
import math
import random
import statistics
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.e2e.support.clusters.cluster import ROOT, tenants_path
from tests.e2e.support.clusters.embedded import EmbeddedCluster
from tests.e2e.support.clusters.processes import wait_until
from tests.e2e.support.http.https_client import Client
from tests.e2e.support.http.raw_tls import RawTls
from tests.e2e.support.tenants import manifest
from tests.faults.support.process_usage import ProcessUsage, processor_seconds, read_process_usage
from tests.faults.support.sizes import new_seed

MERGE, APPLY = "application/merge-patch+json", "application/apply-patch+yaml"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
WORKERS = 6
NAMES = 20
ROUND_SECONDS = 20.0
# at the end of a round, until the deleted objects are gone and the reconciler is idle
REST_SECONDS = 30.0
# the first rounds fill caches, histories and the allocator's arenas
WARM_UP = 1 / 3
# connections that never become idle: two for leases, and one for the discovery of missing kinds every ten seconds, of
# which two were measured. aiohttp reuses the connection that has been idle for longest, so each request in its
# keep-alive of 15 s keeps one from being closed
_LEASES, _DISCOVERY = 2, 1
_PERIODIC = _LEASES + _DISCOVERY
# how often each action is run before the first round, as each has a few variants
_FIRST_ACTIONS = 5


class SoakCluster(EmbeddedCluster):
    """The watch histories are small enough to fill up during the warm-up."""

    flags = ("--watch-history-size=512Ki",)


@dataclass(frozen=True, slots=True)
class RoundLength:
    """A client ends its round with the first action that reaches one of both. Rounds of a number of actions are the
    same on a slow machine."""

    seconds: float = math.inf
    actions: float = math.inf

    def is_over(self, started: float, actions: int) -> bool:
        return actions >= self.actions or time.monotonic() - started >= self.seconds


@dataclass(frozen=True, slots=True)
class Limits:
    """The permitted growth between the medians of the third after the warm-up and of the last third: of the memory in
    MiB, and of everything else in numbers."""

    memory_mib: float = 16.0
    count: int = 2


@dataclass(slots=True)
class MixedClient:
    """Does what clients do in a random order, and counts the statuses of each action in `codes`."""

    client: Client
    ordinary: Client
    rng: random.Random
    prefix: str
    codes: Counter[str] = field(default_factory=Counter)

    def run_round(self, length: RoundLength) -> None:
        started, actions = time.monotonic(), 0
        while not length.is_over(started, actions):
            self._run(self.rng.choice(self._actions()))
            actions += 1

    def run_every_action(self, times: int) -> None:
        for action in dict.fromkeys(self._actions()):
            for _ in range(times):
                self._run(action)

    def _actions(self) -> Sequence[Callable[[], int]]:
        """Each as often as it is likely."""
        frequent = (self.create, self.create, self.change, self.change, self.apply, self.delete, self.read, self.page)
        rare = (self.watch, self.disconnect_midway, self.send_invalid, self.read_as_stranger)
        return (*frequent, *frequent, *frequent, *rare)

    def _run(self, action: Callable[[], int]) -> None:
        with suppress(OSError, http.client.HTTPException):
            self.codes[f"{action.__name__} {action()}"] += 1

    def _name(self) -> str:
        return f"{self.prefix}{self.rng.randrange(NAMES)}"

    def _ask(self, method: str, name: str = "", body: Any = None, kind: str = "application/json") -> int:
        return self.client.request(method, tenants_path(ROOT, name), body, content_type=kind).status

    def create(self) -> int:
        return self._ask("POST", body=manifest(self._name(), annotations={"text": "x" * self.rng.randrange(4000)}))

    def change(self) -> int:
        body = {"metadata": {"labels": {"number": str(self.rng.randrange(10**6))}}}
        return self._ask("PATCH", self._name(), body, MERGE)

    def apply(self) -> int:
        name = self._name()
        query = {"fieldManager": f"m{self.rng.randrange(3)}", "force": "true"}
        body = manifest(name, spec={"resourceQuotas": {"cpu": str(self.rng.randrange(1, 9))}})
        return self.client.request("PATCH", tenants_path(ROOT, name), body, query=query, content_type=APPLY).status

    def delete(self) -> int:
        return self._ask("DELETE", self._name())

    def read(self) -> int:
        headers = self.rng.choice(({}, {"Accept": TABLE}, {"Accept-Encoding": "gzip"}))
        paths = (tenants_path(), tenants_path(ROOT, self._name()), "/apis", "/openapi/v2", "/metrics")
        return self.client.get(self.rng.choice(paths), headers=headers).status

    def page(self) -> int:
        """Reads the first page of a list, and the next one half of the time."""
        first = self.client.get(tenants_path(ROOT), query={"limit": 3})
        token = first.json()["metadata"].get("continue")
        if token and self.rng.random() < 0.5:
            return self.client.get(tenants_path(ROOT), query={"limit": 3, "continue": token}).status
        return first.status

    def watch(self) -> int:
        query = {"watch": "true", "timeoutSeconds": self.rng.randint(1, 3), "allowWatchBookmarks": "true"}
        with self.client.stream(tenants_path(), query=query) as frames:
            for _ in frames:
                pass
        return 200

    def disconnect_midway(self) -> int:
        """Closes a connection in the middle of a request, a response or a watch."""
        with RawTls(self.client) as connection:
            kind = self.rng.randrange(3)
            if kind == 0:
                connection.send(b"POST /apis HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n{")
            elif kind == 1:
                connection.send_request_head("GET", "/openapi/v2")
            else:
                connection.send_request_head("GET", f"{tenants_path()}?watch=1")
                connection.read_until(b"\r\n\r\n")
        return 0

    def send_invalid(self) -> int:
        return self._ask("POST", body=self.rng.choice(("{", "[]", b"\xff", manifest("Bad_Name"), {"kind": "Pod"})))

    def read_as_stranger(self) -> int:
        """Lists Tenants as a user without any role."""
        return self.ordinary.get(tenants_path(self.rng.choice(("", ROOT)))).status


@dataclass(slots=True)
class Soak:
    """Rounds of load on a cluster, each followed by a cleanup."""

    cluster: EmbeddedCluster
    seed: int
    length: RoundLength
    codes: Counter[str] = field(default_factory=Counter)

    def run(self, seconds: float, report: Callable[[str], None]) -> list[ProcessUsage]:
        """Returns the usage at the end of every round."""
        rounds: list[ProcessUsage] = []
        end = time.monotonic() + seconds
        # what the server starts at a first request of its kind is not growth
        self._run_workers([self._client(0, 0)], lambda worker: worker.run_every_action(_FIRST_ACTIONS))
        self._clean_up()
        report(HEAD)
        while time.monotonic() < end or len(rounds) < 6:
            workers = [self._client(len(rounds) + 1, number) for number in range(WORKERS)]
            self._run_workers(workers, lambda worker: worker.run_round(self.length))
            self._clean_up()
            rounds.append(self._read_usage())
            report(row(len(rounds), rounds[-1], sum(self.codes.values())))
        return rounds

    def wait_until_connections_are_closed(self) -> None:
        """Waits until the server has few more connections to itself than watches. `find_growth` does not count them, so
        this finds connections that are never closed."""
        wait_until(
            "the idle connections of the server to itself are closed",
            lambda: (usage := self._read_usage()).own_connections - sum(usage.watchers.values()) <= _PERIODIC,
            seconds=2 * REST_SECONDS,
        )

    def _read_usage(self) -> ProcessUsage:
        return read_process_usage(self.cluster.server.pid, self.cluster.client())

    def _client(self, round_number: int, number: int) -> MixedClient:
        rng = random.Random(self.seed + round_number * WORKERS + number)
        return MixedClient(self.cluster.client(), self.cluster.client("stranger"), rng, f"s{number}x")

    def _run_workers(self, workers: Sequence[MixedClient], work: Callable[[MixedClient], None]) -> None:
        threads = [threading.Thread(target=work, args=(worker,)) for worker in workers]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for worker in workers:
            self.codes += worker.codes

    def _clean_up(self) -> None:
        """Deletes all Tenants and Events, and waits until the server is idle."""
        client = self.cluster.client()
        client.request("DELETE", tenants_path(ROOT), query={"labelSelector": "!platform"})
        wait_until(
            "the tenants are gone", lambda: self._count_objects(tenants_path(ROOT)) <= 1, seconds=2 * REST_SECONDS
        )
        namespaces = "/api/v1/namespaces"
        wait_until(
            "their namespaces are gone",
            lambda: self._count_objects(namespaces, "tenant-s") == 0,
            seconds=2 * REST_SECONDS,
        )
        for namespace in (ROOT, "default"):
            client.request("DELETE", f"/apis/events.k8s.io/v1/namespaces/{namespace}/events")
        self._wait_until_idle()

    def _count_objects(self, path: str, prefix: str = "") -> int:
        items = self.cluster.client().get(path).expect(200)["items"]
        return sum(item["metadata"]["name"].startswith(prefix) for item in items)

    def _wait_until_idle(self) -> None:
        pid = self.cluster.server.pid

        def is_idle() -> bool:
            before = processor_seconds(pid)
            time.sleep(0.5)
            return processor_seconds(pid) - before <= 0.05

        with suppress(AssertionError):
            wait_until("the server is idle", is_idle, seconds=REST_SECONDS)


HEAD = f"{'round':>5} {'requests':>9} {'RSS MiB':>8} {'fds':>5} {'tasks':>6} {'own':>4} {'watchers':>9} {'objects':>8}"


def row(number: int, usage: ProcessUsage, requests: int) -> str:
    watchers, objects = sum(usage.watchers.values()), sum(usage.objects.values())
    process = f"{usage.rss:>8.1f} {usage.other_descriptors:>5} {usage.other_tasks:>6} {usage.own_connections:>4}"
    return f"{number:>5} {requests:>9} {process} {watchers:>9} {objects:>8}"


def find_growth(rounds: Sequence[ProcessUsage], limits: Limits) -> list[str]:
    """Describes each measure whose median grew by more than its limit between the third after the warm-up and the
    last third.

    Descriptors and tasks of the connections of the server to itself do not count: how many of these are idle depends on
    how many were needed at once.
    """
    warm = rounds[int(len(rounds) * WARM_UP) :]
    first, last = warm[: len(warm) // 2], warm[len(warm) // 2 :]
    measures: Mapping[str, tuple[Callable[[ProcessUsage], float], float]] = {
        "RSS in MiB": (lambda usage: usage.rss, limits.memory_mib),
        "file descriptors": (lambda usage: usage.other_descriptors, limits.count),
        "tasks": (lambda usage: usage.other_tasks, limits.count),
        "watchers": (lambda usage: sum(usage.watchers.values()), limits.count),
        "objects in caches": (lambda usage: sum(usage.objects.values()), limits.count),
    }
    grown: list[str] = []
    for name, (measure, limit) in measures.items():
        before, after = (statistics.median(map(measure, part)) for part in (first, last))
        if after - before > limit:
            grown.append(f"{name}: grew from {before:.0f} to {after:.0f}, by more than {limit:.0f}")
    return grown


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.faults.soak")
    parser.add_argument("--seconds", type=float, default=600.0)
    seconds = parser.parse_args().seconds
    with tempfile.TemporaryDirectory() as directory:
        cluster = SoakCluster(Path(directory))
        try:
            soak = Soak(cluster, new_seed(), RoundLength(seconds=ROUND_SECONDS))
            rounds = soak.run(seconds, lambda line: print(line, flush=True))
            soak.wait_until_connections_are_closed()
        finally:
            status = cluster.stop()
        grown = find_growth(rounds, Limits())
        print(f"responses: {dict(sorted(soak.codes.items()))}")
        errors = [name for name in soak.codes if name.rpartition(" ")[2].startswith("5")]
        traceback = "Traceback" in cluster.server.log()
    problems = [*grown, *(f"response: {name}" for name in errors), *(["a traceback in the log"] if traceback else [])]
    problems += [f"exit status {status}"] if status else []
    print("\n".join(problems) or "no growth of RSS, file descriptors, tasks, watchers or caches")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
