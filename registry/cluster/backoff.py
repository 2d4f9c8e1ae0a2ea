"""Exponential backoff with jitter, so that replicas do not retry at the same time."""

from __future__ import annotations

import random
from collections.abc import Callable


class Backoff:
    """Doubles the delay from `first` to `longest` seconds, and adds up to 100% jitter as client-go does."""

    def __init__(
        self, *, first: float = 0.8, longest: float = 30.0, jitter: Callable[[], float] = random.random
    ) -> None:
        self._first = first
        self._longest = longest
        self._jitter = jitter
        self._next = first

    def reset(self) -> None:
        self._next = self._first

    def next(self) -> float:
        """The seconds to wait before the next attempt, at most `longest`."""
        delay = self._next
        self._next = min(self._longest, delay * 2)
        return min(self._longest, delay * (1 + self._jitter()))
