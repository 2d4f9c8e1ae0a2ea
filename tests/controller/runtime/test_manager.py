from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from apiserver.meta import errors
from apiserver.meta.resource import GroupResource
from controller.runtime.apply import ForeignObject
from controller.runtime.manager import Controller, ControllerManager
from controller.runtime.workqueue import RateLimiter, WorkQueue
from controller.runtime.write_gate import NotLeading
from tests.virtual_time import run_virtual, virtual


class Recorder:
    """A reconciler that takes its time, and fails as it is told to."""

    def __init__(self, *failures: Exception, seconds: float = 1.0) -> None:
        self._failures = list(failures)
        self._seconds = seconds
        self.done: list[str] = []
        self.inside: list[str] = []
        self.most = 0

    async def reconcile(self, key: str) -> None:
        assert key not in self.inside
        self.inside.append(key)
        self.most = max(self.most, len(self.inside))
        try:
            await asyncio.sleep(self._seconds)
            if self._failures:
                raise self._failures.pop(0)
        finally:
            self.inside.remove(key)
        self.done.append(key)


def controller(reconciler: Recorder, *seed: str, workers: int = 2) -> tuple[Controller[str], WorkQueue[str]]:
    queue = WorkQueue[str](limiter=RateLimiter(jitter=lambda: 0.0))
    return (
        Controller(name="test", queue=queue, reconciler=reconciler, initial_keys=lambda: seed, workers=workers),
        queue,
    )


@asynccontextmanager
async def running(awaitable: Awaitable[Any]) -> AsyncIterator[asyncio.Task[Any]]:
    task = asyncio.ensure_future(awaitable)
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.wait([task])


@virtual
async def test_keys_are_worked_on_in_parallel_within_bounds_and_never_twice_at_once() -> None:
    reconciler = Recorder()
    each, queue = controller(reconciler, "a", "b", "c", "d")
    async with running(each.run()):
        await asyncio.sleep(0.5)
        for key in ("a", "b", "a"):
            queue.add(key)
        await asyncio.sleep(10)
    assert sorted(reconciler.done) == ["a", "a", "b", "b", "c", "d"]
    assert reconciler.most == 2


@pytest.mark.parametrize(
    ("error", "level", "text"),
    [
        pytest.param(errors.Conflict(GroupResource("", "x"), "y"), logging.DEBUG, "409", id="conflict"),
        pytest.param(errors.ServiceUnavailable("away"), logging.WARNING, "503 away", id="unreachable"),
        pytest.param(NotLeading("lost"), logging.DEBUG, "not leading", id="not leading"),
        pytest.param(ForeignObject("theirs"), logging.WARNING, "theirs", id="foreign"),
        pytest.param(LookupError("a bug"), logging.ERROR, "cannot be reconciled", id="bug"),
    ],
)
def test_a_key_that_fails_is_logged_once_and_tried_again(
    error: Exception, level: int, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        reconciler = Recorder(error)
        each, queue = controller(reconciler, "a", "b", workers=1)
        async with running(each.run()):
            await asyncio.sleep(10)
        assert sorted(reconciler.done) == ["a", "b"]
        assert queue.failures("a") == 0

    with caplog.at_level(logging.DEBUG, "controller"):
        run_virtual(main)

    told = [record for record in caplog.records if record.name == "controller.runtime.manager"]
    assert [record.levelno for record in told] == [level]
    assert text in told[0].getMessage()
    assert bool(told[0].exc_info) is (level == logging.ERROR)


@virtual
async def test_a_key_whose_namespace_ends_is_not_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    cause = {"reason": "NamespaceTerminating", "message": "namespace a is being terminated"}
    reconciler = Recorder(errors.StatusError(403, "Forbidden", "forbidden", details={"causes": [cause]}))
    each, queue = controller(reconciler, "a", workers=1)
    async with running(each.run()):
        await asyncio.sleep(10)
        assert (reconciler.done, queue.failures("a")) == ([], 0)
        assert not caplog.records
        queue.add("a")
        await asyncio.sleep(10)
    assert reconciler.done == ["a"]


@virtual
async def test_work_that_is_broken_off_is_not_lost() -> None:
    reconciler = Recorder()
    each, queue = controller(reconciler, "a")
    async with running(each.run()):
        await asyncio.sleep(0.5)
    assert (reconciler.done, len(queue)) == ([], 1)


@virtual
async def test_work_without_a_pause_does_not_keep_others_waiting() -> None:
    class Instant:
        count = 0

        async def reconcile(self, key: int) -> None:
            self.count += 1

    reconciler = Instant()
    queue = WorkQueue[int]()
    each = Controller(name="test", queue=queue, reconciler=reconciler, initial_keys=lambda: range(1000), workers=1)
    async with running(each.run()):
        for _ in range(5):
            await asyncio.sleep(0)
        assert 0 < reconciler.count < 10


def test_one_controller_that_fails_ends_them_all() -> None:
    class Broken:
        name = "broken"

        async def run(self) -> None:
            await asyncio.sleep(1)
            raise LookupError("a bug")

    async def main() -> None:
        reconciler = Recorder()
        each, _ = controller(reconciler)
        with pytest.raises(ExceptionGroup) as ended:
            await ControllerManager(controllers=[each, Broken()]).run()
        assert isinstance(ended.value.exceptions[0], LookupError)

    run_virtual(main)


def test_with_an_elector_controllers_run_only_while_it_says_so() -> None:
    class Term:
        """Leads from 5 to 8."""

        async def run(self, lead: Callable[[], Awaitable[Any]]) -> None:
            await asyncio.sleep(5)
            async with running(lead()):
                await asyncio.sleep(3)

    async def main() -> None:
        reconciler = Recorder()
        each, queue = controller(reconciler, "seed")
        queue.add("early")
        task = asyncio.create_task(ControllerManager(controllers=[each], elector=Term()).run())
        await asyncio.sleep(4)
        assert reconciler.done == []
        await task
        assert sorted(reconciler.done) == ["early", "seed"]
        queue.add("late")
        await asyncio.sleep(5)
        assert "late" not in reconciler.done

    run_virtual(main)
