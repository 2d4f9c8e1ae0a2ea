"""Durations of requests to paths that a client must not be able to tell apart."""

from __future__ import annotations

import statistics
import time
from contextlib import closing

from tests.e2e.support.http.https_client import Client

_SAMPLES, _MOST_ROUNDS = 150, 5
# the deciles of equal requests may differ this much on a busy machine; a lookup in the store or in the cluster, which
# would tell the two apart, takes a multiple
_RELATIVE_TOLERANCE = 0.35
_TOLERANCE_SECONDS = 0.0005


def measure_until_equal(client: Client, method: str, one: str, other: str) -> tuple[float, float]:
    """How long undisturbed requests of both paths take, in seconds: in rounds, until they take equally long, at most
    five."""
    durations = _Durations(client, method, one, other)
    for _ in range(_MOST_ROUNDS):
        durations.measure()
        if take_equally_long(*durations.lowest_decile):
            break
    first, second = durations.lowest_decile
    return first, second


class _Durations:
    """The durations of requests to some paths, sent alternately over one connection so that other work on the machine
    affects all paths equally."""

    def __init__(self, client: Client, method: str, *paths: str) -> None:
        self._client = client
        self._method = method
        self._seconds = {path: list[float]() for path in paths}

    def measure(self) -> None:
        with closing(self._client.connect()) as connection:
            for number in range(10 + _SAMPLES):
                for path, durations in self._seconds.items():
                    started = time.perf_counter()
                    connection.request(self._method, path, headers=self._client.headers)
                    connection.getresponse().read()
                    if number >= 10:
                        durations.append(time.perf_counter() - started)

    @property
    def lowest_decile(self) -> list[float]:
        """For each path, how long an undisturbed request takes: other work only adds to a duration."""
        return [statistics.quantiles(each, n=10)[0] for each in self._seconds.values()]


def take_equally_long(one: float, other: float) -> bool:
    return abs(one - other) <= max(_RELATIVE_TOLERANCE * min(one, other), _TOLERANCE_SECONDS)
