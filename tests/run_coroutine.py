"""Runs coroutines that only yield to the event loop, for tests without an event loop."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


def run_coroutine(coroutine: Coroutine[Any, Any, T]) -> T:
    """Resumes `coroutine` at every yield and returns its result. It must not wait for anything."""
    while True:
        try:
            awaited = coroutine.send(None)
        except StopIteration as done:
            result: T = done.value
            return result
        assert awaited is None, f"the coroutine waits for {awaited}"
