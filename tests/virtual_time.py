"""An event loop whose time jumps to the next timer as soon as nothing else is left to do."""

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
    """Never waits: the time that it is asked to wait passes at once."""

    now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if not ready and timeout is None:
            raise RuntimeError("nothing will ever happen")
        if not ready and timeout is not None and timeout > 0:
            self.now += timeout
        return ready


class VirtualLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._virtual = _JumpingSelector()
        super().__init__(self._virtual)

    def time(self) -> float:
        return self._virtual.now

    def hold_up(self, seconds: float) -> None:
        """Time passes in which nothing runs, as in a callback that takes that long."""
        self._virtual.now += seconds


def run_virtual(main: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run `main()` to its end, in no real time; so nothing takes so long that it would give others a turn."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner, patch("apiserver.cooperative._SLICE_SECONDS", math.inf):
        return runner.run(main())


def virtual(test: Callable[P, Coroutine[Any, Any, None]]) -> Callable[P, None]:
    """For a test that is a coroutine: it takes no real time."""

    @wraps(test)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        run_virtual(lambda: test(*args, **kwargs))

    return run
