"""Processes large values in a thread, so that only the client that sent them waits for that (ATTACK-13)."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from typing import Any, TypeVar

from apiserver.encoding.encoded_object import to_json

# For most objects, each step of a write takes about half a microsecond per byte.
LARGE_BYTES = 32 * 1024
"""The size of the JSON above which a value is processed in a thread."""

# Python's default is ten times as long, and the event loop would wait that long about ten times per request.
_SWITCH_INTERVAL_SECONDS = 0.0005

T = TypeVar("T")


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
    return await asyncio.to_thread(work) if size > large else work()
