"""Large values are worked on in a thread, so that who sent them is the only one who waits for that (S-13)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

from apiserver.cachedobject import to_json

# Of most objects, a byte costs about half a microsecond in each step of a write.
LARGE = 32 * 1024
"""Bytes of JSON."""

T = TypeVar("T")


def size_of(*values: Any) -> int:
    """Bytes of JSON; the encoder is a hundred times as fast as anything that is done with the values here."""
    return sum(len(to_json(value)) for value in values)


async def computed(work: Callable[[], T], *, size: int) -> T:
    """What `work`, which is about so many bytes, returns or raises. Nobody else may change meanwhile what it reads."""
    return await asyncio.to_thread(work) if size > LARGE else work()
