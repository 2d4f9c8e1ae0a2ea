"""A long list is applied to the watch cache in slices: between two of them readers see states that really existed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from apiserver.meta.resource import Resource
from apiserver.storage.watch_cache import CachedObject, WatchCache, encode

THINGS = Resource(group="", version="v1", kind="Thing", plural="things", singular="thing", namespaced=True)


def thing(name: str, rv: int) -> CachedObject:
    return encode(THINGS, {"metadata": {"name": name, "namespace": "a", "uid": name, "resourceVersion": str(rv)}})


def slow_cache() -> WatchCache:
    """A cache whose clock advances with every change, so that each change is a slice of its own."""
    now = 0.0

    def advance_clock(_: object) -> None:
        nonlocal now
        now += 1.0

    cache = WatchCache(THINGS, clock=lambda: now)
    cache.subscribe(advance_clock)
    return cache


async def states_during_relist(
    cache: WatchCache, objects: Sequence[CachedObject], rv: int, observe: Callable[[], str]
) -> list[str]:
    replacing = asyncio.create_task(cache.replace_cooperatively(objects, rv))
    observed = []
    while not replacing.done():
        observed.append(observe())
        await asyncio.sleep(0)
    await replacing
    return [*dict.fromkeys(observed), observe()]


def state_of(cache: WatchCache) -> str:
    return " ".join(f"{obj.key.name}@{obj.rv}" for obj in cache) + f" at {cache.rv}"


async def test_readers_see_the_changes_of_a_relist_one_after_the_other() -> None:
    cache = slow_cache()
    cache.replace([thing("x", 3), thing("y", 4)], 10)
    observed = await states_during_relist(cache, [thing("x", 12), thing("z", 14)], 20, lambda: state_of(cache))
    assert observed == ["x@3 y@4 at 10", "x@3 at 11", "x@12 at 12", "x@12 z@14 at 14", "x@12 z@14 at 20"]


async def test_a_cache_is_not_ready_before_its_first_list_is_complete() -> None:
    cache = slow_cache()
    observed = await states_during_relist(
        cache, [thing("x", 3), thing("y", 4)], 10, lambda: f"{len(cache)} {cache.ready}"
    )
    assert observed == ["0 False", "1 False", "2 False", "2 True"]


async def test_a_cache_is_not_ready_while_it_applies_an_older_list() -> None:
    cache = slow_cache()
    cache.replace([thing("x", 30)], 40)
    observed = await states_during_relist(
        cache, [thing("x", 3), thing("y", 4)], 10, lambda: f"{len(cache)} {cache.ready}"
    )
    assert observed == ["1 True", "1 False", "2 False", "2 True"]
    assert cache.rv == 10
