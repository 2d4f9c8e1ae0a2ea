"""Mixed load on `standalone` for a long time: nothing that it uses may grow. python -m tests.faults.soak --seconds 600

Prints a table of what the server used at the end of every round, when nobody asked for anything, and exits with 1
unless the last third of the rounds is as flat as `judge` wants it.
"""

from __future__ import annotations

import argparse
import http.client
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

from tests.e2e.support.clusters import ROOT, EmbeddedCluster, tenants_path
from tests.e2e.support.https_client import Client
from tests.e2e.support.processes import wait_until
from tests.e2e.support.raw_tls import RawTls
from tests.e2e.support.tenants import manifest
from tests.faults.process_usage import Vitals, vitals
from tests.faults.sizes import new_seed

MERGE, APPLY = "application/merge-patch+json", "application/apply-patch+yaml"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
WORKERS = 6
NAMES = 20
ROUND_SECONDS = 20.0
# at the end of a round, until what was deleted is gone and the reconciler is done
REST_SECONDS = 30.0
# the first rounds fill caches, histories and the allocator's arenas
WARM_UP = 1 / 3


class Soaked(EmbeddedCluster):
    """Its histories, one a kind, are full within the warm-up."""

    flags = ("--watch-history-size=512Ki",)


@dataclass(frozen=True, slots=True)
class Limits:
    """How much more the last third of the rounds may use than the one after the warm-up, by medians: MiB of memory,
    and a number of anything else."""

    memory: float = 16.0
    count: int = 2


@dataclass(slots=True)
class Mixed:
    """Everything that clients do, in a random order; `codes` are the answers."""

    client: Client
    ordinary: Client
    chance: random.Random
    prefix: str
    codes: Counter[str] = field(default_factory=Counter)

    def act(self) -> None:
        often = (self.create, self.create, self.change, self.change, self.apply, self.delete, self.read, self.page)
        seldom = (self.watch, self.leave, self.nonsense, self.stranger)
        action = self.chance.choice((*often, *often, *often, *seldom))
        with suppress(OSError, http.client.HTTPException):
            self.codes[f"{action.__name__} {action()}"] += 1

    def _name(self) -> str:
        return f"{self.prefix}{self.chance.randrange(NAMES)}"

    def _ask(self, method: str, name: str = "", body: Any = None, kind: str = "application/json") -> int:
        return self.client.request(method, tenants_path(ROOT, name), body, content_type=kind).status

    def create(self) -> int:
        return self._ask("POST", body=manifest(self._name(), annotations={"text": "x" * self.chance.randrange(4000)}))

    def change(self) -> int:
        body = {"metadata": {"labels": {"number": str(self.chance.randrange(10**6))}}}
        return self._ask("PATCH", self._name(), body, MERGE)

    def apply(self) -> int:
        name = self._name()
        query = {"fieldManager": f"m{self.chance.randrange(3)}", "force": "true"}
        body = manifest(name, spec={"resourceQuotas": {"cpu": str(self.chance.randrange(1, 9))}})
        return self.client.request("PATCH", tenants_path(ROOT, name), body, query=query, content_type=APPLY).status

    def delete(self) -> int:
        return self._ask("DELETE", self._name())

    def read(self) -> int:
        headers = self.chance.choice(({}, {"Accept": TABLE}, {"Accept-Encoding": "gzip"}))
        paths = (tenants_path(), tenants_path(ROOT, self._name()), "/apis", "/openapi/v2", "/metrics")
        return self.client.get(self.chance.choice(paths), headers=headers).status

    def page(self) -> int:
        """A list that is begun and not always finished."""
        first = self.client.get(tenants_path(ROOT), query={"limit": 3})
        token = first.json()["metadata"].get("continue")
        if token and self.chance.random() < 0.5:
            return self.client.get(tenants_path(ROOT), query={"limit": 3, "continue": token}).status
        return first.status

    def watch(self) -> int:
        query = {"watch": "true", "timeoutSeconds": self.chance.randint(1, 3), "allowWatchBookmarks": "true"}
        with self.client.stream(tenants_path(), query=query) as frames:
            for _ in frames:
                pass
        return 200

    def leave(self) -> int:
        """Connections that end in the middle: of a request, of an answer, of a watch."""
        with RawTls(self.client) as connection:
            kind = self.chance.randrange(3)
            if kind == 0:
                connection.send(b"POST /apis HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n{")
            elif kind == 1:
                connection.send_request_head("GET", "/openapi/v2")
            else:
                connection.send_request_head("GET", f"{tenants_path()}?watch=1")
                connection.read_until(b"\r\n\r\n")
        return 0

    def nonsense(self) -> int:
        return self._ask("POST", body=self.chance.choice(("{", "[]", b"\xff", manifest("Bad_Name"), {"kind": "Pod"})))

    def stranger(self) -> int:
        """Somebody who sees nothing, and tries."""
        return self.ordinary.get(tenants_path(self.chance.choice(("", ROOT)))).status


@dataclass(slots=True)
class Soak:
    cluster: EmbeddedCluster
    seed: int
    round_seconds: float
    codes: Counter[str] = field(default_factory=Counter)

    def run(self, seconds: float, tell: Callable[[str], None]) -> list[Vitals]:
        """What was used at the end of every round."""
        rounds: list[Vitals] = []
        end = time.monotonic() + seconds
        tell(HEAD)
        while time.monotonic() < end or len(rounds) < 6:
            self._load(len(rounds))
            self._rest()
            rounds.append(vitals(self.cluster.server.pid, self.cluster.client()))
            tell(row(len(rounds), rounds[-1], sum(self.codes.values())))
        return rounds

    def _load(self, number: int) -> None:
        over, client = threading.Event(), self.cluster.client()
        workers = [
            Mixed(
                client,
                self.cluster.client("stranger"),
                random.Random(self.seed + number * WORKERS + each),
                f"s{each}x",
            )
            for each in range(WORKERS)
        ]

        def work(worker: Mixed) -> None:
            while not over.is_set():
                worker.act()

        threads = [threading.Thread(target=work, args=(worker,)) for worker in workers]
        for thread in threads:
            thread.start()
        try:
            time.sleep(self.round_seconds)
        finally:
            over.set()
        for thread in threads:
            thread.join()
        for worker in workers:
            self.codes += worker.codes

    def _rest(self) -> None:
        """Everything that was made is deleted, Events too, and what follows from that is over."""
        client = self.cluster.client()
        client.request("DELETE", tenants_path(ROOT), query={"labelSelector": "!platform"})
        wait_until("the tenants are gone", lambda: self._left(tenants_path(ROOT)) <= 1, seconds=2 * REST_SECONDS)
        namespaces = "/api/v1/namespaces"
        wait_until("their namespaces too", lambda: self._left(namespaces, "tenant-s") == 0, seconds=2 * REST_SECONDS)
        for namespace in (ROOT, "default"):
            client.request("DELETE", f"/apis/events.k8s.io/v1/namespaces/{namespace}/events")
        self._wait_until_idle()

    def _left(self, path: str, prefix: str = "") -> int:
        items = self.cluster.client().get(path).expect(200)["items"]
        return sum(item["metadata"]["name"].startswith(prefix) for item in items)

    def _wait_until_idle(self) -> None:
        pid = self.cluster.server.pid

        def idle() -> bool:
            before = _ticks(pid)
            time.sleep(0.5)
            return _ticks(pid) - before <= 5

        with suppress(AssertionError):
            wait_until("the server is idle", idle, seconds=REST_SECONDS)


def _ticks(pid: int) -> int:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    return int(fields[11]) + int(fields[12])


HEAD = f"{'round':>5} {'requests':>9} {'RSS MiB':>8} {'fds':>5} {'tasks':>6} {'watchers':>9} {'objects':>8}"


def row(number: int, used: Vitals, requests: int) -> str:
    watchers, objects = sum(used.watchers.values()), sum(used.objects.values())
    return (
        f"{number:>5} {requests:>9} {used.rss:>8.1f} {used.descriptors:>5} {used.tasks:>6} {watchers:>9} {objects:>8}"
    )


def judge(rounds: Sequence[Vitals], limits: Limits) -> list[str]:
    """What grew. The median of the last third is held against that of the third after the warm-up."""
    warm = rounds[int(len(rounds) * WARM_UP) :]
    first, last = warm[: len(warm) // 2], warm[len(warm) // 2 :]
    measures: Mapping[str, tuple[Callable[[Vitals], float], float]] = {
        "RSS in MiB": (lambda used: used.rss, limits.memory),
        "file descriptors": (lambda used: used.descriptors, limits.count),
        "tasks": (lambda used: used.tasks, limits.count),
        "watchers": (lambda used: sum(used.watchers.values()), limits.count),
        "objects in caches": (lambda used: sum(used.objects.values()), limits.count),
    }
    grown: list[str] = []
    for name, (measure, most) in measures.items():
        before, after = (statistics.median(map(measure, part)) for part in (first, last))
        if after - before > most:
            grown.append(f"{name}: {before:.0f}, then {after:.0f}, which is more than {most:.0f} more")
    return grown


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.faults.soak")
    parser.add_argument("--seconds", type=float, default=600.0)
    seconds = parser.parse_args().seconds
    with tempfile.TemporaryDirectory() as directory:
        host = Soaked(Path(directory))
        try:
            soak = Soak(host, new_seed(), ROUND_SECONDS)
            rounds = soak.run(seconds, lambda line: print(line, flush=True))
        finally:
            status = host.stop()
        grown = judge(rounds, Limits())
        print(f"answers: {dict(sorted(soak.codes.items()))}")
        errors = [name for name in soak.codes if name.rpartition(" ")[2].startswith("5")]
        traces = "Traceback" in host.server.log()
    wrong = [*grown, *(f"answers: {name}" for name in errors), *(["a trace in the log"] if traces else [])]
    wrong += [f"exit status {status}"] if status else []
    print("\n".join(wrong) or "flat: RSS, file descriptors, tasks, watchers and caches")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
