from __future__ import annotations

import asyncio

import pytest

from admission.complete_caches import CompleteCaches
from apiserver.admission import Operation
from apiserver.meta import errors
from tests.tenant_objects import attributes, tenant


def events(*complete: bool) -> list[asyncio.Event]:
    found = [asyncio.Event() for _ in complete]
    for event, is_complete in zip(found, complete, strict=True):
        if is_complete:
            event.set()
    return found


@pytest.mark.parametrize("operation", ["CREATE", "UPDATE", "DELETE"])
async def test_a_write_passes_unchanged_if_all_caches_are_complete(operation: Operation) -> None:
    plugin, request = CompleteCaches(events(True, True)), attributes(operation, tenant("a"), tenant("a"))

    assert plugin.handles(request)
    assert await plugin.admit(request) is request.object


@pytest.mark.parametrize("complete", [(False, True), (True, False)], ids=str)
async def test_a_write_gets_429_if_a_cache_stays_incomplete(complete: tuple[bool, bool]) -> None:
    """A kube-apiserver answers 403 (WIRE-H49), which clients do not retry."""
    with pytest.raises(errors.TooManyRequests) as caught:
        await CompleteCaches(events(*complete), seconds=0.01).admit(attributes("CREATE", tenant("a")))

    assert (caught.value.code, caught.value.retry_after) == (429, 1)


async def test_a_write_waits_for_a_cache_that_completes_in_time() -> None:
    missing, complete = events(False, True)
    waiting = asyncio.create_task(CompleteCaches([missing, complete]).wait())
    await asyncio.sleep(0)

    # a cache that was complete needs a new list before the other one is there
    complete.clear()
    missing.set()
    await asyncio.sleep(0)
    assert not waiting.done()

    complete.set()
    async with asyncio.timeout(1):
        await waiting
