"""Passes events on to many watches, without waking a task for each."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from typing import Final, Protocol

_SLICE_SECONDS: Final = 0.005


class Recipient(Protocol):
    def push(self) -> None:
        """Sends what is pending. Raises nothing."""
        ...


class FanOut:
    """Lets recipients send what is pending, in the order in which they became due, for 5 ms in each iteration of the
    event loop: other requests do not wait for five thousand watches."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._due: deque[Recipient] = deque()

    def schedule(self, recipient: Recipient) -> None:
        if not self._due:
            asyncio.get_running_loop().call_soon(self._run)
        self._due.append(recipient)

    def _run(self) -> None:
        due, clock = self._due, self._clock
        end = clock() + _SLICE_SECONDS
        while due:
            # a recipient that is due stays in the queue until it has sent: only an empty one is scheduled again
            due[0].push()
            due.popleft()
            if due and clock() >= end:
                asyncio.get_running_loop().call_soon(self._run)
                return
