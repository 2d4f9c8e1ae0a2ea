from __future__ import annotations

import asyncio
import ctypes
import gc
from collections.abc import Iterator
from types import SimpleNamespace
from typing import cast

import pytest

from registry.cluster.informer import Informer
from tenant_apiserver import gc_tuning as memory


class FakeInformer:
    def __init__(self) -> None:
        self.told = asyncio.Event()


@pytest.fixture(autouse=True)
def _collector() -> Iterator[None]:
    thresholds = gc.get_threshold()
    yield
    gc.unfreeze()
    gc.set_threshold(*thresholds)


async def test_what_is_held_when_everything_was_seen_is_spared() -> None:
    informer = FakeInformer()
    sparing = asyncio.create_task(memory.freeze_gc([cast(Informer, informer)]))
    await asyncio.sleep(0)
    assert gc.get_freeze_count() > 0
    held = [["a list is an object that the collector looks at"]]
    assert any(each is held for each in gc.get_objects())
    informer.told.set()
    await sparing
    assert not any(each is held for each in gc.get_objects())


async def test_unused_memory_is_given_back_again_and_again(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    twice = asyncio.Event()
    loop = asyncio.get_running_loop()

    def trim(keep: int) -> None:
        asked.append(keep)
        if len(asked) == 2:
            loop.call_soon_threadsafe(twice.set)

    monkeypatch.setattr(ctypes, "CDLL", lambda _: SimpleNamespace(malloc_trim=trim))
    monkeypatch.setattr(memory, "_TRIM_PERIOD_SECONDS", 0)
    giving = asyncio.create_task(memory.trim_malloc())
    await twice.wait()
    giving.cancel()
    assert asked[:2] == [0, 0]


async def test_a_c_library_that_cannot_be_told_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda _: SimpleNamespace())
    await memory.trim_malloc()
