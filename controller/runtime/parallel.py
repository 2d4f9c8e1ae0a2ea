"""Runs writes that do not depend on one another at the same time: the cluster stores several as quickly as one."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Any, TypeVar

T = TypeVar("T")


async def run_all(calls: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """The results in the order of the calls. All calls end, however many fail; then the first error in this order is
    raised."""
    started = list(calls)
    if len(started) == 1:
        return [await started[0]]
    results = await asyncio.gather(*started, return_exceptions=True)
    found: list[T] = []
    for result in results:
        if isinstance(result, BaseException):
            raise result
        found.append(result)
    return found
