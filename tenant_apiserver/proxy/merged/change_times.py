"""When the changes of RBAC objects have been learned, by their resourceVersions."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from typing import Final

from registry.visibility.rbac_history import Affected, RbacHistory

_CHANGES: Final = 10_000


class ChangeTimes:
    """The times of the latest 10,000 changes, of which each counts as one of the largest version so far: four
    informers learn of them, each in the order of the versions, and one may be behind the others."""

    def __init__(
        self, history: RbacHistory, *, clock: Callable[[], float] = time.monotonic, max_changes: int = _CHANGES
    ) -> None:
        self._clock = clock
        self._changes: deque[tuple[int, float]] = deque(maxlen=max_changes)
        self._max_changes = max_changes
        history.subscribe(self._on_change)

    def time_after(self, version: int) -> float:
        """The monotonic time at which the first change after `version` was learned, or now. Minus infinity if it may be
        one of those that are forgotten."""
        found = self._clock()
        for changed, at in reversed(self._changes):
            if changed <= version:
                return found
            found = at
        return found if len(self._changes) < self._max_changes else float("-inf")

    def _on_change(self, affected: Affected, rv: int, namespace: str | None) -> None:
        largest = self._changes[-1][0] if self._changes else 0
        self._changes.append((max(rv, largest), self._clock()))
