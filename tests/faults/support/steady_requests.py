"""A steady load of requests, none of which may fail."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from tests.e2e.support.clusters.cluster import PATIENCE
from tests.e2e.support.clusters.processes import wait_until
from tests.e2e.support.http.https_client import Response
from tests.faults.support.sizes import size

Call = Callable[[], Response]
# between two requests of a thread: the short tests leave processor time to the servers
_PAUSE_SECONDS = size(short=0.02, full=0.0)


@dataclass(slots=True)
class Load:
    """The number of requests of each thread, and the errors of those that failed."""

    requests: list[int]
    failures: list[str] = field(default_factory=list)

    def repeat(self, number: int, call: Call, over: threading.Event) -> None:
        while not over.wait(_PAUSE_SECONDS):
            try:
                answer = call()
                if answer.status != 200:
                    self.failures.append(f"{answer.status} {answer.content[:300]!r}")
            except (OSError, http.client.HTTPException) as error:
                self.failures.append(repr(error))
            self.requests[number] += 1

    def wait_for_more(self, requests: int = 1) -> None:
        """Waits until each thread has ended this many more requests. The first of them may have begun before."""
        before = list(self.requests)

        def have_ended() -> bool:
            return all(now - then >= requests for then, now in zip(before, self.requests, strict=True))

        wait_until(f"each thread has ended {requests} more requests", have_ended, seconds=PATIENCE)


@contextmanager
def steady_load(calls: Sequence[Call]) -> Iterator[Load]:
    """Repeats each call in a thread of its own until the end of the context."""
    load, over = Load([0] * len(calls)), threading.Event()
    threads = [
        threading.Thread(target=load.repeat, args=(number, call, over), daemon=True)
        for number, call in enumerate(calls)
    ]
    for thread in threads:
        thread.start()
    try:
        yield load
    finally:
        over.set()
        for thread in threads:
            thread.join(timeout=60)
