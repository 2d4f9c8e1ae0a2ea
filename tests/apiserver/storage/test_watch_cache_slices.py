"""A long list goes into the watch cache in slices: what readers get in between is a state that there was."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from apiserver.meta.resource import Resource
from apiserver.storage.watch_cache import CachedObject, WatchCache, encode

THINGS = Resource(group="", version="v1", kind="Thing", plural="things", singular="thing", namespaced=True)


def thing(name: str, rv: int) -> CachedObject:
    return encode(THINGS, {"metadata": {"name": name, "namespace": "a", "uid": name, "resourceVersion": str(rv)}})


def slow_cache() -> WatchCache:
    """Time passes with every change: each is a slice of its own."""
    now = 0.0

    def slowly(_: object) -> None:
        nonlocal now
        now += 1.0

    cache = WatchCache(THINGS, clock=lambda: now)
    cache.subscribe(slowly)
    return cache


async def seen_meanwhile(
    cache: WatchCache, objects: Sequence[CachedObject], rv: int, look: Callable[[], str]
) -> list[str]:
    replacing = asyncio.create_task(cache.replace_cooperatively(objects, rv))
    seen = []
    while not replacing.done():
        seen.append(look())
        await asyncio.sleep(0)
    await replacing
    return [*dict.fromkeys(seen), look()]


def shown(cache: WatchCache) -> str:
    return " ".join(f"{obj.key.name}@{obj.rv}" for obj in cache) + f" at {cache.rv}"


async def test_readers_see_missed_changes_one_after_the_other() -> None:
    cache = slow_cache()
    cache.replace([thing("x", 3), thing("y", 4)], 10)
    seen = await seen_meanwhile(cache, [thing("x", 12), thing("z", 14)], 20, lambda: shown(cache))
    assert seen == ["x@3 y@4 at 10", "x@3 at 11", "x@12 at 12", "x@12 z@14 at 14", "x@12 z@14 at 20"]


async def test_a_cache_is_not_ready_before_its_first_list_is_whole() -> None:
    cache = slow_cache()
    seen = await seen_meanwhile(cache, [thing("x", 3), thing("y", 4)], 10, lambda: f"{len(cache)} {cache.ready}")
    assert seen == ["0 False", "1 False", "2 False", "2 True"]


async def test_a_cache_is_not_ready_while_it_takes_a_list_of_the_past() -> None:
    cache = slow_cache()
    cache.replace([thing("x", 30)], 40)
    seen = await seen_meanwhile(cache, [thing("x", 3), thing("y", 4)], 10, lambda: f"{len(cache)} {cache.ready}")
    assert seen == ["1 True", "1 False", "2 False", "2 True"]
    assert cache.rv == 10
