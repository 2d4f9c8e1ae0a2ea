from __future__ import annotations

import asyncio

from admission.tenant.group_lock import GroupLock


class LockHolders:
    """Tasks that acquire one lock in order and release it on demand."""

    def __init__(self) -> None:
        self.lock = GroupLock()
        self.holding: list[str] = []
        self._released: dict[str, asyncio.Event] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}

    async def acquire(self, name: str, group: str | None) -> None:
        self._released[name] = asyncio.Event()
        self._tasks[name] = asyncio.create_task(self._hold(name, group))
        await _run_pending_tasks()

    async def release(self, name: str) -> None:
        self._released[name].set()
        await self._tasks[name]
        await _run_pending_tasks()

    async def cancel(self, name: str) -> None:
        self._tasks[name].cancel()
        await asyncio.wait([self._tasks[name]])
        await _run_pending_tasks()

    async def _hold(self, name: str, group: str | None) -> None:
        async with self.lock.hold(group):
            self.holding.append(name)
            try:
                await self._released[name].wait()
            finally:
                self.holding.remove(name)


async def _run_pending_tasks() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_members_of_a_group_share_the_lock() -> None:
    holders = LockHolders()
    await holders.acquire("a", "grows")
    await holders.acquire("b", "grows")

    assert holders.holding == ["a", "b"]


async def test_another_group_waits_for_the_lock() -> None:
    holders = LockHolders()
    await holders.acquire("a", "grows")
    await holders.acquire("b", "shrinks")
    assert holders.holding == ["a"]

    await holders.release("a")
    assert holders.holding == ["b"]


async def test_a_holder_without_a_group_has_the_lock_exclusively() -> None:
    holders = LockHolders()
    await holders.acquire("a", None)
    await holders.acquire("b", None)
    assert holders.holding == ["a"]

    await holders.release("a")
    assert holders.holding == ["b"]


async def test_a_waiter_is_not_overtaken() -> None:
    holders = LockHolders()
    await holders.acquire("a", "grows")
    await holders.acquire("b", None)
    await holders.acquire("c", "grows")
    assert holders.holding == ["a"]

    await holders.release("a")
    assert holders.holding == ["b"]
    await holders.release("b")
    assert holders.holding == ["c"]


async def test_a_cancelled_waiter_lets_the_next_one_in() -> None:
    holders = LockHolders()
    await holders.acquire("a", "grows")
    await holders.acquire("b", None)
    await holders.acquire("c", "grows")

    await holders.cancel("b")

    assert holders.holding == ["a", "c"]


async def test_a_cancelled_holder_releases_the_lock() -> None:
    holders = LockHolders()
    await holders.acquire("a", None)
    await holders.acquire("b", None)

    await holders.cancel("a")

    assert holders.holding == ["b"]


async def test_a_waiter_cancelled_while_it_acquires_the_lock_releases_it() -> None:
    lock = GroupLock()
    first = lock.hold(None)
    await first.__aenter__()
    entered = asyncio.create_task(lock.hold(None).__aenter__())
    await _run_pending_tasks()

    await first.__aexit__(None, None, None)
    entered.cancel()
    await asyncio.wait([entered])

    async with asyncio.timeout(1), lock.hold("grows"):
        assert entered.cancelled()
