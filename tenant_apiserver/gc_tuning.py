"""Tunes Python's garbage collector and glibc's allocator for a process with a large, long-lived cache.

A full collection stops the process, for a tenth of a second at 10,000 Tenants, although cached objects rarely become
garbage.
"""

from __future__ import annotations

import asyncio
import ctypes
import gc
from collections.abc import Sequence

from registry.cluster.informer import Informer

# Allocations between two collections of the youngest generation; one request allocates some hundreds of objects. With
# 10,000, a collection takes 12 ms of a core, and 25 ms if others want the core, too.
_YOUNG_THRESHOLD = 2_000
# The middle generation is collected often, so that each collection stays short; the oldest after as many allocations as
# with the usual 30 and a threshold of 10,000.
_MIDDLE, _OLD = 3, 150
# A trim takes some milliseconds, during which other threads wait for memory.
_TRIM_PERIOD_SECONDS = 30
# the number of a parameter in glibc's malloc.h
_M_MMAP_THRESHOLD = -3
_LARGE_BLOCK_BYTES = 1024 * 1024


async def freeze_gc(informers: Sequence[Informer]) -> None:
    """Excludes the libraries' objects from collection, and the informers' objects as soon as all are listed.

    Objects that are replaced later are freed by reference counting, because cached objects contain no cycles.
    """
    gc.set_threshold(_YOUNG_THRESHOLD, _MIDDLE, _OLD)
    gc.freeze()
    for informer in informers:
        await informer.late_synced.wait()
    # the garbage of the first lists is too little to justify the long pause of a full collection
    gc.collect(1)
    gc.freeze()


def return_large_blocks() -> None:
    """Lets glibc return blocks above 1 MiB to the operating system as soon as they are freed.

    Otherwise it stops to do so when the first one is freed, and each thread keeps its own: the memory of five large
    requests would remain where ten threads took turns (ATTACK-19). Has no effect with other C libraries.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, _LARGE_BLOCK_BYTES)


async def trim_malloc() -> None:
    """Periodically returns free memory to the operating system, which glibc does not do after peaks of use.

    Returns immediately with other C libraries, which lack `malloc_trim`.
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    while trim is not None:
        await asyncio.sleep(_TRIM_PERIOD_SECONDS)
        await asyncio.to_thread(trim, 0)
