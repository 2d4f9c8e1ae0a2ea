"""Coroutines that wait for nothing but their turn, for tests that have no event loop."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


def run_coroutine(coroutine: Coroutine[Any, Any, T]) -> T:
    """The result of `coroutine`, which is given every turn that it asks for."""
    while True:
        try:
            waits_for = coroutine.send(None)
        except StopIteration as done:
            result: T = done.value
            return result
        assert waits_for is None, f"it waits for {waits_for}"
