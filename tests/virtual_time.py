"""An event loop whose clock jumps to the next timer as soon as no callback is ready."""

from __future__ import annotations

import asyncio
import math
import selectors
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, ParamSpec, TypeVar
from unittest.mock import patch

P = ParamSpec("P")
T = TypeVar("T")


class _JumpingSelector(selectors.DefaultSelector):
    """Never blocks: a timeout elapses at once on the virtual clock."""

    now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if not ready and timeout is None:
            raise RuntimeError("deadlock: no callback is ready and no timer is set")
        if not ready and timeout is not None and timeout > 0:
            self.now += timeout
        return ready


class VirtualLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._virtual = _JumpingSelector()
        super().__init__(self._virtual)

    def time(self) -> float:
        return self._virtual.now

    @property
    def has_ready_callbacks(self) -> bool:
        """True if something else can run before the clock jumps."""
        return bool(self._ready)  # type: ignore[attr-defined]

    def block(self, seconds: float) -> None:
        """Advances the clock while nothing else runs, like a callback that blocks the loop."""
        self._virtual.now += seconds


def run_virtual(main: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Runs `main()` to completion without real delays. Cooperative yields are off, because they depend on real time."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner, patch("apiserver.cooperative._SLICE_SECONDS", math.inf):
        return runner.run(main())


def virtual(test: Callable[P, Coroutine[Any, Any, None]]) -> Callable[P, None]:
    """Decorates an async test, which then runs in virtual time."""

    @wraps(test)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        run_virtual(lambda: test(*args, **kwargs))

    return run
