"""A long list is applied to the watch cache in slices, between which readers see the changes one after the other."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import pytest

from apiserver.meta.resource import Key, Resource
from apiserver.request.options import ListOptions
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


async def rv_of_get(cache: WatchCache, at_least: int) -> int:
    found = await cache.get(Key("a", "x"), at_least=at_least)
    assert found is not None
    return found.rv


async def rv_of_list(cache: WatchCache) -> int:
    return next(each.rv for each in (await cache.list("", ListOptions())).items if each.key.name == "x")


@pytest.mark.parametrize(
    "read",
    [
        pytest.param(lambda cache: rv_of_get(cache, 0), id="get"),
        pytest.param(lambda cache: rv_of_get(cache, 12), id="get at a version"),
        pytest.param(rv_of_list, id="list"),
    ],
)
async def test_an_own_write_that_was_overwritten_is_waited_for_until_the_end_of_the_list(
    read: Callable[[WatchCache], Awaitable[int]],
) -> None:
    """x was written by this process at 12, and again by others at 14: at 13, it is still as it was at 3."""
    cache = slow_cache()
    cache.replace([thing("x", 3), thing("y", 4)], 10)
    cache.expect_version(Key("a", "x"), 12)
    amid = asyncio.Event()
    cache.subscribe(lambda event: amid.set() if event.rv == 13 else None)
    replacing = asyncio.create_task(cache.replace_cooperatively([thing("x", 14), thing("y", 13)], 20))
    await amid.wait()
    assert cache.rv == 13
    assert await read(cache) == 14
    await replacing
