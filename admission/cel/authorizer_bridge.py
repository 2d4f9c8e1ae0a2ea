"""Lets CEL expressions that run in a worker thread call the authorizer, which runs on the event loop."""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
import time
from collections.abc import Callable

from apiserver.authorization.authorizer import AccessAttributes, Authorizer, Decision


class AuthorizerBridge:
    """Created on the event loop; `authorize` is called from a worker thread. `deadline` is the request's, on the
    monotonic clock. Each distinct check calls the authorizer only once."""

    def __init__(self, authorizer: Authorizer, *, deadline: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._authorizer = authorizer
        self._loop = asyncio.get_running_loop()
        self._deadline = deadline
        self._clock = clock
        self._cancelled = threading.Event()
        self._decisions: dict[str, Decision] = {}

    def cancel(self) -> None:
        """Called when the result is no longer awaited: further checks raise TimeoutError without a call."""
        self._cancelled.set()

    def authorize(self, access: AccessAttributes) -> Decision:
        """Raises StatusError, TimeoutError."""
        # AccessAttributes cannot be hashed: the user's extra is a mapping
        key = repr(access)
        if key not in self._decisions:
            self._decisions[key] = self._authorize_on_loop(access)
        return self._decisions[key]

    def _authorize_on_loop(self, access: AccessAttributes) -> Decision:
        remaining = self._deadline - self._clock()
        if remaining <= 0 or self._cancelled.is_set():
            raise TimeoutError
        future = asyncio.run_coroutine_threadsafe(self._authorizer.authorize(access), self._loop)
        try:
            return future.result(remaining)
        except concurrent.futures.TimeoutError:
            future.cancel()
            raise TimeoutError from None
        except concurrent.futures.CancelledError:
            # the process is shutting down
            raise TimeoutError from None
