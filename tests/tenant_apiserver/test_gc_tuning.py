"""Tuning of the garbage collector and of malloc."""

from __future__ import annotations

import asyncio
import ctypes
import gc
from collections.abc import Iterator
from types import SimpleNamespace
from typing import cast

import pytest

from registry.cluster.informer import Informer
from tenant_apiserver import gc_tuning


class FakeInformer:
    def __init__(self) -> None:
        self.late_synced = asyncio.Event()


@pytest.fixture(autouse=True)
def _collector() -> Iterator[None]:
    thresholds = gc.get_threshold()
    yield
    gc.unfreeze()
    gc.set_threshold(*thresholds)


async def test_cached_objects_are_frozen_once_all_informers_have_synced() -> None:
    informer = FakeInformer()
    freezing = asyncio.create_task(gc_tuning.freeze_gc([cast(Informer, informer)]))
    await asyncio.sleep(0)
    assert gc.get_freeze_count() > 0
    cached = [["a list is an object that the collector tracks"]]
    assert any(each is cached for each in gc.get_objects())
    informer.late_synced.set()
    await freezing
    assert not any(each is cached for each in gc.get_objects())


async def test_malloc_is_trimmed_periodically(monkeypatch: pytest.MonkeyPatch) -> None:
    paddings: list[int] = []
    twice = asyncio.Event()
    loop = asyncio.get_running_loop()

    def trim(padding: int) -> None:
        paddings.append(padding)
        if len(paddings) == 2:
            loop.call_soon_threadsafe(twice.set)

    monkeypatch.setattr(ctypes, "CDLL", lambda _: SimpleNamespace(malloc_trim=trim))
    monkeypatch.setattr(gc_tuning, "_TRIM_PERIOD_SECONDS", 0)
    trimming = asyncio.create_task(gc_tuning.trim_malloc())
    await twice.wait()
    trimming.cancel()
    assert paddings[:2] == [0, 0]


async def test_trimming_ends_with_a_c_library_that_lacks_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda _: SimpleNamespace())
    await gc_tuning.trim_malloc()
