"""Large values are worked on in a thread, so that who sent them is the only one who waits for that (ATTACK-13)."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from typing import Any, TypeVar

from apiserver.encoding.encoded_object import to_json

# Of most objects, a byte costs about half a microsecond in each step of a write.
LARGE = 32 * 1024
"""Bytes of JSON."""

# Python lets a thread that computes go on for ten times as long, each time that the event loop wants to go on: some ten
# times a request.
_TURN_SECONDS = 0.0005

T = TypeVar("T")


def shorten_switch_interval() -> None:
    """For a process whose event loop answers others while threads compute: it is to have its turn soon."""
    sys.setswitchinterval(_TURN_SECONDS)


def json_size(*values: Any) -> int:
    """Bytes of JSON; the encoder is a hundred times as fast as anything that is done with the values here."""
    return sum(len(to_json(value)) for value in values)


async def offload_if_large(work: Callable[[], T], *, size: int) -> T:
    """What `work`, which is about so many bytes, returns or raises. Nobody else may change meanwhile what it reads."""
    return await asyncio.to_thread(work) if size > LARGE else work()
