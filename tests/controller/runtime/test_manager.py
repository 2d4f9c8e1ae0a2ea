"""Controllers process keys in parallel, retry failures, and run while their replica leads."""

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
from tests.loop_iterations import count_loop_iterations
from tests.virtual_time import run_virtual, virtual


class SlowReconciler:
    """A reconciler that takes `seconds` for each key and raises the given failures first."""

    def __init__(self, *failures: Exception, seconds: float = 1.0) -> None:
        self._failures = list(failures)
        self._seconds = seconds
        self.done: list[str] = []
        self.running: list[str] = []
        self.max_running = 0

    def fail_next(self, failure: Exception) -> None:
        self._failures.append(failure)

    async def reconcile(self, key: str) -> None:
        assert key not in self.running
        self.running.append(key)
        self.max_running = max(self.max_running, len(self.running))
        try:
            await asyncio.sleep(self._seconds)
            if self._failures:
                raise self._failures.pop(0)
        finally:
            self.running.remove(key)
        self.done.append(key)


def controller(reconciler: SlowReconciler, *keys: str, workers: int = 2) -> tuple[Controller[str], WorkQueue[str]]:
    queue = WorkQueue[str](limiter=RateLimiter(jitter=lambda: 0.0))
    return (
        Controller(name="test", queue=queue, reconciler=reconciler, initial_keys=lambda: keys, workers=workers),
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
async def test_keys_are_processed_in_parallel_up_to_the_number_of_workers_and_each_by_one() -> None:
    reconciler = SlowReconciler()
    each, queue = controller(reconciler, "a", "b", "c", "d")
    async with running(each.run()):
        await asyncio.sleep(0.5)
        for key in ("a", "b", "a"):
            queue.add(key)
        await asyncio.sleep(10)
    assert sorted(reconciler.done) == ["a", "a", "b", "b", "c", "d"]
    assert reconciler.max_running == 2


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
def test_a_failure_is_logged_once_and_its_key_is_retried(
    error: Exception, level: int, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        reconciler = SlowReconciler(error)
        each, queue = controller(reconciler, "a", "b", workers=1)
        async with running(each.run()):
            await asyncio.sleep(10)
        assert sorted(reconciler.done) == ["a", "b"]
        assert queue.failures("a") == 0

    with caplog.at_level(logging.DEBUG, "controller"):
        run_virtual(main)

    logged = [record for record in caplog.records if record.name == "controller.runtime.manager"]
    assert [record.levelno for record in logged] == [level]
    assert text in logged[0].getMessage()
    assert bool(logged[0].exc_info) is (level == logging.ERROR)


AWAY, BROKEN, BUG = errors.ServiceUnavailable("away"), errors.ServiceUnavailable("broken"), LookupError("a bug")


@pytest.mark.parametrize(
    ("failures", "logged"),
    [
        pytest.param([AWAY] * 12, ["503 away"], id="an error that stays"),
        pytest.param([AWAY, AWAY, BROKEN, BROKEN, AWAY], ["503 away", "503 broken", "503 away"], id="one that changes"),
        pytest.param([BUG] * 3, ["cannot be reconciled: LookupError('a bug')"], id="a bug"),
        # the last attempt is after 328 seconds
        pytest.param([AWAY] * 17, ["503 away"] * 2, id="one that stays for minutes"),
    ],
)
def test_an_error_is_logged_again_if_it_changes_or_stays_for_minutes(
    failures: list[Exception], logged: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        reconciler = SlowReconciler(*failures, seconds=0.0)
        each, _ = controller(reconciler, "a", workers=1)
        async with running(each.run()):
            await asyncio.sleep(5000)
        assert reconciler.done == ["a"]

    with caplog.at_level(logging.DEBUG, "controller.runtime.manager"):
        run_virtual(main)
    shown = [each.getMessage() for each in caplog.records if each.levelno >= logging.WARNING]
    assert shown == [f"test a: {text}" for text in logged]
    assert len(caplog.records) == len(failures)


def test_an_error_that_is_back_after_a_success_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        reconciler = SlowReconciler(AWAY, seconds=0.0)
        each, queue = controller(reconciler, "a", workers=1)
        async with running(each.run()):
            await asyncio.sleep(10)
            reconciler.fail_next(AWAY)
            queue.add("a")
            await asyncio.sleep(10)
        assert reconciler.done == ["a", "a"]

    with caplog.at_level(logging.WARNING, "controller.runtime.manager"):
        run_virtual(main)
    assert caplog.messages == ["test a: 503 away"] * 2


def test_a_conflict_that_no_retry_resolves_is_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        conflict = errors.Conflict(GroupResource("", "x"), "y")
        reconciler = SlowReconciler(*[conflict] * 7, seconds=0.0)
        each, _ = controller(reconciler, "a", workers=1)
        async with running(each.run()):
            await asyncio.sleep(10)
        assert reconciler.done == ["a"]

    with caplog.at_level(logging.DEBUG, "controller"):
        run_virtual(main)
    assert [record.levelno for record in caplog.records] == [logging.DEBUG] * 6 + [logging.WARNING]


@virtual
async def test_a_key_whose_namespace_is_terminating_is_not_retried(caplog: pytest.LogCaptureFixture) -> None:
    cause = {"reason": "NamespaceTerminating", "message": "namespace a is being terminated"}
    reconciler = SlowReconciler(errors.StatusError(403, "Forbidden", "forbidden", details={"causes": [cause]}))
    each, queue = controller(reconciler, "a", workers=1)
    async with running(each.run()):
        await asyncio.sleep(10)
        assert (reconciler.done, queue.failures("a")) == ([], 0)
        assert not caplog.records
        queue.add("a")
        await asyncio.sleep(10)
    assert reconciler.done == ["a"]


@virtual
async def test_a_cancelled_key_is_queued_again() -> None:
    reconciler = SlowReconciler()
    each, queue = controller(reconciler, "a")
    async with running(each.run()):
        await asyncio.sleep(0.5)
    assert (reconciler.done, len(queue)) == ([], 1)


@virtual
async def test_a_worker_yields_to_the_event_loop_between_keys() -> None:
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


@virtual
async def test_one_worker_begins_in_an_iteration_of_the_event_loop() -> None:
    """Otherwise a request waits for one key of each worker, twice: before it is read and before it is answered."""
    begun: list[int] = []
    all_begun = asyncio.Event()

    class Instant:
        async def reconcile(self, key: int) -> None:
            begun.append(iterations.count)
            if len(begun) == 100:
                all_begun.set()

    queue = WorkQueue[int]()
    each = Controller(name="test", queue=queue, reconciler=Instant(), initial_keys=lambda: range(100), workers=8)
    async with count_loop_iterations() as iterations, running(each.run()):
        await all_begun.wait()
    assert len(set(begun)) == 100


def test_the_first_controller_that_fails_ends_all() -> None:
    class Broken:
        name = "broken"

        async def run(self) -> None:
            await asyncio.sleep(1)
            raise LookupError("a bug")

    async def main() -> None:
        reconciler = SlowReconciler()
        each, _ = controller(reconciler)
        with pytest.raises(ExceptionGroup) as ended:
            await ControllerManager(controllers=[each, Broken()]).run()
        assert isinstance(ended.value.exceptions[0], LookupError)

    run_virtual(main)


def test_with_an_elector_controllers_run_only_while_the_replica_leads() -> None:
    class Term:
        """Leads from second 5 to second 8."""

        async def run(self, lead: Callable[[], Awaitable[Any]]) -> None:
            await asyncio.sleep(5)
            async with running(lead()):
                await asyncio.sleep(3)

    async def main() -> None:
        reconciler = SlowReconciler()
        each, queue = controller(reconciler, "initial")
        queue.add("early")
        task = asyncio.create_task(ControllerManager(controllers=[each], elector=Term()).run())
        await asyncio.sleep(4)
        assert reconciler.done == []
        await task
        assert sorted(reconciler.done) == ["early", "initial"]
        queue.add("late")
        await asyncio.sleep(5)
        assert "late" not in reconciler.done

    run_virtual(main)
