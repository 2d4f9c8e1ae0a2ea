"""What the garbage collector need not look at: what is there once everything was seen stays for long. And what the
process need not keep.

The collector stops everything while it walks through all objects, a tenth of a second at 10,000 Tenants, again and
again.
"""

from __future__ import annotations

import asyncio
import ctypes
import gc
from collections.abc import Sequence

from registry.cluster.informer import Informer

# Between two looks at the youngest objects; answering one request makes some hundreds, most of which are soon gone.
_YOUNG_THRESHOLD = 10_000
# Then, those that have survived are looked at again after few such looks, so that they are not too many at a time, and
# everything after as many as before.
_MIDDLE, _OLD = 3, 30
# It takes some milliseconds, in which who needs more memory waits.
_TRIM_PERIOD_SECONDS = 30


async def freeze_gc(informers: Sequence[Informer]) -> None:
    """Have the collector pass over what the libraries made, and when the informers have told all, over what is held.
    What is replaced later is freed all the same: nothing that they hold refers to itself."""
    gc.set_threshold(_YOUNG_THRESHOLD, _MIDDLE, _OLD)
    gc.freeze()
    for informer in informers:
        await informer.late_synced.wait()
    # a look at everything would stop everybody for longer than all the garbage that came of reading is worth
    gc.collect(1)
    gc.freeze()


async def trim_malloc() -> None:
    """What was needed for a moment, for lists at a start or for a crowd: glibc keeps such pages until it is told. Other
    C libraries have no such call."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    while trim is not None:
        await asyncio.sleep(_TRIM_PERIOD_SECONDS)
        await asyncio.to_thread(trim, 0)
