"""Lets a write finish whose request is cancelled."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


async def run_to_end(write: Coroutine[Any, Any, T]) -> T:
    """Runs a write to its end even if the caller is cancelled, and only then lets the caller continue, so that locks
    around the write, such as admission's, stay locked until it is done."""
    task = asyncio.ensure_future(write)
    # retrieves the exception of a write that fails after its caller was cancelled
    task.add_done_callback(lambda done: done.cancelled() or done.exception())
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        raise
