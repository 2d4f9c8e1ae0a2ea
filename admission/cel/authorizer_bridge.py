"""How an expression in a worker thread asks, and the event loop answers, what somebody may do."""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
import time
from collections.abc import Callable

from apiserver.authorization.authorizer import AccessAttributes, Authorizer, Decision


class Asking:
    """Made on the event loop; `ask` is called in a thread. `end` is when the request has to be done, on the monotonic
    clock. The same question is asked once."""

    def __init__(self, authorizer: Authorizer, *, end: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._authorizer = authorizer
        self._loop = asyncio.get_running_loop()
        self._end = end
        self._clock = clock
        self._given_up = threading.Event()
        self._answers: dict[str, Decision] = {}

    def give_up(self) -> None:
        """Nobody waits for the answer any longer: whatever is asked from now on is not."""
        self._given_up.set()

    def ask(self, access: AccessAttributes) -> Decision:
        """Raises StatusError, TimeoutError."""
        # users are compared by all they are; extra is a mapping, which has no hash
        key = repr(access)
        if key not in self._answers:
            self._answers[key] = self._ask(access)
        return self._answers[key]

    def _ask(self, access: AccessAttributes) -> Decision:
        remaining = self._end - self._clock()
        if remaining <= 0 or self._given_up.is_set():
            raise TimeoutError
        answer = asyncio.run_coroutine_threadsafe(self._authorizer.authorize(access), self._loop)
        try:
            return answer.result(remaining)
        except concurrent.futures.TimeoutError:
            answer.cancel()
            raise TimeoutError from None
        except concurrent.futures.CancelledError:
            # the process ends
            raise TimeoutError from None
