from __future__ import annotations

import asyncio

from admission.tenant.group_lock import GroupLock


class LockHolders:
    """Holders of one lock, that come in order and leave when told to."""

    def __init__(self) -> None:
        self.lock = GroupLock()
        self.inside: list[str] = []
        self._leave: dict[str, asyncio.Event] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}

    async def come(self, name: str, group: str | None) -> None:
        self._leave[name] = asyncio.Event()
        self._tasks[name] = asyncio.create_task(self._hold(name, group))
        await _settle()

    async def leave(self, name: str) -> None:
        self._leave[name].set()
        await self._tasks[name]
        await _settle()

    async def give_up(self, name: str) -> None:
        self._tasks[name].cancel()
        await asyncio.wait([self._tasks[name]])
        await _settle()

    async def _hold(self, name: str, group: str | None) -> None:
        async with self.lock.hold(group):
            self.inside.append(name)
            try:
                await self._leave[name].wait()
            finally:
                self.inside.remove(name)


async def _settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_a_group_shares() -> None:
    scene = LockHolders()
    await scene.come("a", "grows")
    await scene.come("b", "grows")

    assert scene.inside == ["a", "b"]


async def test_groups_are_kept_apart() -> None:
    scene = LockHolders()
    await scene.come("a", "grows")
    await scene.come("b", "shrinks")
    assert scene.inside == ["a"]

    await scene.leave("a")
    assert scene.inside == ["b"]


async def test_without_a_group_nobody_shares() -> None:
    scene = LockHolders()
    await scene.come("a", None)
    await scene.come("b", None)
    assert scene.inside == ["a"]

    await scene.leave("a")
    assert scene.inside == ["b"]


async def test_who_waits_is_not_overtaken() -> None:
    scene = LockHolders()
    await scene.come("a", "grows")
    await scene.come("b", None)
    await scene.come("c", "grows")
    assert scene.inside == ["a"]

    await scene.leave("a")
    assert scene.inside == ["b"]
    await scene.leave("b")
    assert scene.inside == ["c"]


async def test_who_gives_up_waiting_lets_the_next_one_in() -> None:
    scene = LockHolders()
    await scene.come("a", "grows")
    await scene.come("b", None)
    await scene.come("c", "grows")

    await scene.give_up("b")

    assert scene.inside == ["a", "c"]


async def test_a_holder_that_is_cancelled_leaves() -> None:
    scene = LockHolders()
    await scene.come("a", None)
    await scene.come("b", None)

    await scene.give_up("a")

    assert scene.inside == ["b"]


async def test_who_is_cancelled_in_the_moment_of_being_admitted_leaves_no_trace() -> None:
    lock = GroupLock()
    first = lock.hold(None)
    await first.__aenter__()
    entered = asyncio.create_task(lock.hold(None).__aenter__())
    await _settle()

    await first.__aexit__(None, None, None)
    entered.cancel()
    await asyncio.wait([entered])

    async with asyncio.timeout(1), lock.hold("grows"):
        assert entered.cancelled()
