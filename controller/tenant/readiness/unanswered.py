"""How long Tenants have waited for controllers that are not ours, and that a cluster may not have."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable

from apiserver.meta.resource import Key

PATIENCE_SECONDS = 60.0
"""An object that no controller looks at for this time has none."""

ObservedVersion = tuple[str, object]


class Unanswered:
    """Since when Tenants wait for a controller of the cluster. In memory: after a change of the leader they wait anew,
    except those that are known to have no controller, or to have waited `before`."""

    def __init__(self, *, clock: Callable[[], float]) -> None:
        """`clock` is monotonic, in seconds."""
        self._clock = clock
        self._since: OrderedDict[Key, tuple[ObservedVersion, float]] = OrderedDict()

    def seconds(self, key: Key, version: ObservedVersion, *, before: Callable[[], float] = lambda: 0.0) -> float:
        """The seconds since the first call with this key and version, plus those `before` it."""
        now = self._clock()
        self._drop_stale(now)
        known = self._since.get(key)
        if known is None or known[0] != version:
            self._since.pop(key, None)
            self._since[key] = version, now - before()
        return now - self._since[key][1]

    def forget(self, key: Key) -> None:
        self._since.pop(key, None)

    def _drop_stale(self, now: float) -> None:
        """Drop Tenants that were deleted while they waited: everyone else is asked for after PATIENCE_SECONDS."""
        while self._since:
            key, (_, since) = next(iter(self._since.items()))
            if now - since < 2 * PATIENCE_SECONDS:
                return
            del self._since[key]


def loop_time() -> float:
    return asyncio.get_running_loop().time()
