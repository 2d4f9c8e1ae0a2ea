"""Decides at every call to a cluster, and at every response and event, which of several replicas continues."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import aclosing, contextmanager
from typing import Any, TypeVar

from registry.cluster.interface import ClusterResource, WatchEvent
from tests.fake_cluster import FakeCluster
from tests.virtual_time import VirtualLoop

T = TypeVar("T")


class Killed(Exception):
    """The result of a call to a replica that was killed."""


class Turns:
    """Runs one replica at a time. `choices` decide which of the possible steps is taken; after them it is always the
    first one. Outside `play`, nothing is delayed."""

    def __init__(self, choices: Sequence[int] = ()) -> None:
        self._choices = list(choices)
        self._waiting: list[tuple[str, asyncio.Future[None]]] = []
        self._is_active = False
        self._killed: set[str] = set()
        self._held_events: dict[str, asyncio.Event] = {}
        self.taken = 0

    def kill(self, replica: str) -> None:
        """From now on the replica takes no step: its requests that were not sent never are."""
        self._killed.add(replica)

    @contextmanager
    def events_held(self, replica: str) -> Iterator[None]:
        """No event reaches the replica within the context."""
        released = self._held_events[replica] = asyncio.Event()
        try:
            yield
        finally:
            del self._held_events[replica]
            released.set()

    async def event(self, replica: str) -> None:
        """The step before an event."""
        if (released := self._held_events.get(replica)) is not None:
            await released.wait()
        await self.step(replica)

    async def step(self, replica: str) -> None:
        if replica in self._killed:
            await asyncio.Event().wait()
        if self._is_active:
            turn = asyncio.get_running_loop().create_future()
            self._waiting.append((replica, turn))
            await turn

    async def play(
        self, calls: Mapping[str, Coroutine[Any, Any, T]], *, before_step: Callable[[int], None] = lambda _: None
    ) -> list[T | BaseException]:
        """Runs one call on each replica, and returns their results or errors. `before_step` gets the number of the
        step."""
        self._is_active = True
        tasks = {replica: asyncio.ensure_future(_result(call)) for replica, call in calls.items()}
        while not all(task.done() or replica in self._killed for replica, task in tasks.items()):
            await self._until_idle()
            before_step(self.taken)
            if possible := [each for each in self._waiting if each[0] not in self._killed]:
                chosen = possible[self._choices.pop(0) % len(possible) if self._choices else 0]
                self._waiting.remove(chosen)
                chosen[1].set_result(None)
                self.taken += 1
            else:
                # only time can pass
                await asyncio.sleep(0.1)
        self._release()
        return [task.result() if task.done() else Killed() for task in tasks.values()]

    def _release(self) -> None:
        self._is_active = False
        for replica, turn in self._waiting:
            if replica not in self._killed:
                turn.set_result(None)
        self._waiting.clear()

    async def _until_idle(self) -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        await asyncio.sleep(0)
        while loop.has_ready_callbacks:  # noqa: ASYNC110
            await asyncio.sleep(0)


async def _result(call: Coroutine[Any, Any, T]) -> T | BaseException:
    try:
        return await call
    except Exception as e:
        return e


class SteppedCluster:
    """A replica's ClusterClient for a shared cluster: each request and each response is a step, and each event."""

    def __init__(self, replica: str, cluster: FakeCluster, turns: Turns) -> None:
        self._replica = replica
        self._cluster = cluster
        self._turns = turns

    def __getattr__(self, verb: str) -> Callable[..., Awaitable[Any]]:
        method = getattr(self._cluster, verb)

        async def call(*arguments: Any, **options: Any) -> Any:
            await self._turns.step(self._replica)
            try:
                return await method(*arguments, **options)
            finally:
                await self._turns.step(self._replica)

        return call

    async def watch(self, res: ClusterResource, namespace: str = "", **options: Any) -> AsyncIterator[WatchEvent]:
        async with aclosing(self._cluster.watch(res, namespace, **options)) as events:  # type: ignore[type-var]
            async for event in events:
                await self._turns.event(self._replica)
                yield event
