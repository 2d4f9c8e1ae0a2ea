"""Processes large values in a thread, so that only the client that sent them waits for that (ATTACK-13)."""

from __future__ import annotations

import asyncio
import contextvars
import sys
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from contextvars import ContextVar
from typing import Any, Final, TypeVar
from weakref import WeakValueDictionary

from apiserver.encoding.encoded_object import to_json

# For most objects, each step of a write takes about half a microsecond per byte.
LARGE_BYTES = 32 * 1024
"""The size of the JSON above which a value is processed in a thread."""

# Python's default is ten times as long, and the event loop would wait that long about ten times per request.
_SWITCH_INTERVAL_SECONDS = 0.0005

CURRENT_FLOW: ContextVar[str] = ContextVar("CURRENT_FLOW", default="")
"""The flow of the request that is being handled (BytesInFlight); empty for those whose threads are not limited."""
# As many as asyncio has on two cores. More would delay the event loop, with which they share the GIL.
_THREADS: Final = 6

T = TypeVar("T")
_executor = ThreadPoolExecutor(_THREADS, thread_name_prefix="requests")
_threads_of: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()


def shorten_switch_interval() -> None:
    """Make computing threads release the GIL sooner, so that the event loop keeps answering other clients."""
    sys.setswitchinterval(_SWITCH_INTERVAL_SECONDS)


def json_size(*values: Any) -> int:
    """The size of the values' JSON in bytes. Encoding the values takes a hundredth of the time of the offloaded
    work."""
    return sum(len(to_json(value)) for value in values)


async def offload_if_large(work: Callable[[], T], *, size: int, large: int = LARGE_BYTES) -> T:
    """Run `work`, in a thread if `size` bytes are more than `large`, and return or raise its outcome. Nothing else may
    change the values that `work` reads meanwhile."""
    return await run_in_thread(work) if size > large else work()


async def run_in_thread(work: Callable[[], T]) -> T:
    """Runs `work` in a thread. The requests of one user have one at a time, and a request that is given up keeps it
    until `work` ends, which cannot be stopped: otherwise a user whose requests take minutes would have all threads
    (ATTACK-13)."""
    flow = CURRENT_FLOW.get()
    if not flow:
        return await asyncio.to_thread(work)
    loop = asyncio.get_running_loop()
    threads = _threads_of.setdefault(flow, asyncio.Semaphore())
    await threads.acquire()

    def release(_: Future[T]) -> None:
        # the loop may have ended meanwhile
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(threads.release)

    try:
        running = _executor.submit(contextvars.copy_context().run, work)
    except RuntimeError:
        threads.release()
        raise
    running.add_done_callback(release)
    return await asyncio.wrap_future(running)
