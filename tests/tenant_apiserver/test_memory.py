from __future__ import annotations

import asyncio
import gc
from collections.abc import Iterator
from typing import cast

import pytest

from controller.informer import Informer
from tenant_apiserver import memory


class Synced:
    def __init__(self) -> None:
        self.synced = asyncio.Event()


@pytest.fixture(autouse=True)
def _collector() -> Iterator[None]:
    thresholds = gc.get_threshold()
    yield
    gc.unfreeze()
    gc.set_threshold(*thresholds)


async def test_what_is_held_when_everything_was_seen_is_spared() -> None:
    informer = Synced()
    sparing = asyncio.create_task(memory.spare([cast(Informer, informer)]))
    await asyncio.sleep(0)
    assert gc.get_freeze_count() > 0
    held = [["a list is an object that the collector looks at"]]
    assert any(each is held for each in gc.get_objects())
    informer.synced.set()
    await sparing
    assert not any(each is held for each in gc.get_objects())
