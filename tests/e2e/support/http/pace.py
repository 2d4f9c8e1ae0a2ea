"""Bounds on durations that hold on a slow or busy machine, too."""

from __future__ import annotations

import time

from tests.e2e.support.http.https_client import Client

# a small request over a new connection, to a server and from a client that share two idle cores
_IDLE_SECONDS = 0.01
_REQUESTS = 20


class Pace:
    """The slowness of the machine, measured at construction, before the duration that a test bounds, and after it.

    Wall time alone would bound the speed of the machine: beside other work a request takes ten times as long as usual.
    """

    def __init__(self, client: Client) -> None:
        """`client` is that of an administrator of the server in question."""
        self._client = client
        self._slowness = 1.0
        self._measure()

    def limit(self, seconds: float) -> float:
        """The bound for something that may take this long on two idle cores."""
        self._measure()
        return seconds * self._slowness

    def allows(self, seconds: float, elapsed: float) -> bool:
        """True for a duration within `limit(seconds)`. The slowness is measured again only if that decides."""
        return elapsed < seconds or elapsed < self.limit(seconds)

    def _measure(self) -> None:
        started = time.perf_counter()
        for _ in range(_REQUESTS):
            assert self._client.get("/livez").status == 200
        measured = (time.perf_counter() - started) / _REQUESTS
        self._slowness = max(self._slowness, measured / _IDLE_SECONDS)


def is_within(seconds: float, elapsed: float, client: Client) -> bool:
    """True for a duration within this bound on two idle cores. The slowness is measured only if that decides."""
    return elapsed < seconds or Pace(client).allows(seconds, elapsed)
