"""A steady load of requests, none of which may fail."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from tests.e2e.support.https_client import Response

Call = Callable[[], Response]


@dataclass(slots=True)
class Load:
    """The number of successful requests, and the errors of the others."""

    answered: int = 0
    failures: list[str] = field(default_factory=list)

    def repeat(self, call: Call, over: threading.Event) -> None:
        while not over.is_set():
            try:
                answer = call()
            except (OSError, http.client.HTTPException) as error:
                self.failures.append(repr(error))
                continue
            if answer.status == 200:
                self.answered += 1
            else:
                self.failures.append(f"{answer.status} {answer.content[:300]!r}")


@contextmanager
def steady_load(calls: Sequence[Call]) -> Iterator[Load]:
    """Repeats each call in a thread of its own until the end of the context."""
    load, over = Load(), threading.Event()
    threads = [threading.Thread(target=load.repeat, args=(call, over), daemon=True) for call in calls]
    for thread in threads:
        thread.start()
    try:
        yield load
    finally:
        over.set()
        for thread in threads:
            thread.join(timeout=60)
