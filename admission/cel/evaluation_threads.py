"""Decides where expressions are evaluated: short ones on the event loop, long ones in a few threads."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import TypeVar

from admission.cel.evaluation import EvaluationOptions, NeedsPieces
from admission.cel.input_size import EvaluationInput
from admission.cel.loops import LoopShape
from apiserver.meta.errors import TooManyRequests

# more would only share the same processor time
_THREADS = 2
_WAIT_SECONDS = 5.0

T = TypeVar("T")


class EvaluationThreads:
    """Shared by everything that evaluates expressions with the data of requests."""

    def __init__(self) -> None:
        self._slots = asyncio.Semaphore(_THREADS)

    async def evaluate(
        self,
        work: Callable[[EvaluationOptions], T],
        options: EvaluationOptions,
        *,
        shape: LoopShape,
        values: EvaluationInput,
    ) -> T:
        """Calls `work`, which evaluates expressions of this shape on these values, with `options` for that. It runs in
        a thread if it may take long, or if it waits for the authorizer. Raises TooManyRequests if other long
        evaluations take too long, CutOff if a limit ended this one, and what `work` raises."""
        values.require_no_nul()
        if values.is_short(shape):
            try:
                return work(options) if options.check is None else await asyncio.to_thread(work, options)
            except NeedsPieces:
                # the lists that functions made are longer than the values that they read
                pass
        return await self._evaluate_in_pieces(work, options)

    async def _evaluate_in_pieces(self, work: Callable[[EvaluationOptions], T], options: EvaluationOptions) -> T:
        try:
            async with asyncio.timeout(_WAIT_SECONDS):
                await self._slots.acquire()
        except TimeoutError:
            raise TooManyRequests("too many requests wait for long evaluations of admission policies") from None
        abandoned = threading.Event()
        options = replace(options, in_pieces=True, abandoned=abandoned)
        running = asyncio.ensure_future(asyncio.to_thread(work, options))
        running.add_done_callback(self._release)
        try:
            # a thread cannot be cancelled: it keeps its slot until it notices that nobody waits
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            abandoned.set()
            raise

    def _release(self, done: asyncio.Future[T]) -> None:
        self._slots.release()
        with suppress(asyncio.CancelledError):
            # nobody else may be left to retrieve it
            done.exception()
