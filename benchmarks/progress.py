"""Progress of what takes minutes, for whoever waits at a terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Final, TextIO

_SECONDS: Final = 5.0


class Progress:
    """Says on stderr, every few seconds, what is done and how many are left. In a pipe it says nothing: logs and files
    have only the results."""

    def __init__(
        self,
        what: str,
        total: int | None = None,
        *,
        stream: TextIO | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Without a `total`, it is not known how many are left."""
        self._what = what
        self._total = total
        self._stream = sys.stderr if stream is None else stream
        self._clock = clock
        self._is_shown = self._stream.isatty()
        self._start = self._said = clock()
        self._done = 0

    def step(self) -> None:
        """One more is done."""
        self.reach(self._done + 1)

    def reach(self, done: int) -> None:
        """So many are done by now."""
        self._done = done
        if not self._is_shown or (now := self._clock()) < self._said + _SECONDS:
            return
        self._said = now
        count = f"{done:,}" if self._total is None else f"{done:,} of {self._total:,}, {self._total - done:,} left"
        print(f"  {self._what}: {count}, after {now - self._start:.0f} s", file=self._stream, flush=True)
