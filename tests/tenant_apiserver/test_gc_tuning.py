"""Tuning of the garbage collector and of malloc."""

from __future__ import annotations

import asyncio
import ctypes
import gc
import subprocess
import sys
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


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "gnu_get_libc_version"), reason="this C library is not glibc")
def test_large_blocks_are_returned_as_soon_as_they_are_freed() -> None:
    """ATTACK-19: glibc keeps what each of ten threads has freed, once a process has freed one such block."""
    script = """
import threading
from tenant_apiserver.gc_tuning import return_large_blocks

def resident_mib():
    [line] = [line for line in open("/proc/self/status") if line.startswith("VmRSS")]
    return int(line.split()[1]) // 1024

def use_memory():
    together.wait()
    for _ in range(2):
        blocks = [b"x" * (3 << 20) for _ in range(4)]
        del blocks
    together.wait()

return_large_blocks()
together = threading.Barrier(8)
threads = [threading.Thread(target=use_memory) for _ in range(8)]
before = resident_mib()
for each in threads:
    each.start()
for each in threads:
    each.join()
print(resident_mib() - before)
"""
    run = subprocess.run([sys.executable, "-c", script], stdout=subprocess.PIPE, check=True, timeout=60)
    assert int(run.stdout) < 12


def test_another_c_library_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda _: SimpleNamespace())
    gc_tuning.return_large_blocks()
