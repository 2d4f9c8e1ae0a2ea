"""Ends watches of the proxy while its process shuts down."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def calling_at(event: asyncio.Event, action: Callable[[], None]) -> Iterator[None]:
    """Calls `action` when the event is set during the block, or is set already; not after the block."""

    def on_set(_: object) -> None:
        action()

    waiting = asyncio.create_task(event.wait(), name="until-shutdown")
    waiting.add_done_callback(on_set)
    try:
        yield
    finally:
        waiting.remove_done_callback(on_set)
        waiting.cancel()
