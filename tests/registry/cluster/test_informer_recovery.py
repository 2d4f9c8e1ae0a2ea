"""Recovery of the informer from expired versions, outages, and invalid responses."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Any

import pytest

from apiserver.meta import errors
from apiserver.meta.errors import StatusError
from apiserver.meta.resource import Object
from registry.cluster.informer import Informer
from registry.cluster.interface import NAMESPACES, ClusterUnreachable, WatchEvent
from registry.cluster.watch_decoder import MalformedStream
from tests.registry.cluster.informer_script import (
    END,
    INITIAL,
    RecordingHandler,
    Script,
    bookmark,
    event,
    obj,
    page,
    play,
)
from tests.virtual_time import virtual

EXPIRED = errors.Expired("too old resource version")


@pytest.mark.parametrize(
    "error",
    [
        pytest.param(EXPIRED, id="too old"),
        pytest.param(errors.TooLargeResourceVersion(9, 4), id="larger than the latest version"),
    ],
)
async def test_an_unavailable_version_is_followed_by_a_new_list(error: StatusError) -> None:
    run = await play(INITIAL, [error], [event("ADDED", "c", 20), bookmark(21, **END)])
    assert run.calls == ["watchlist", "watch 5", "watchlist", "watch 21"]
    assert run.handled == [("replace", ["a", "b"], 5), ("replace", ["c"], 21)]


def unreachable(message: str, cause: Exception) -> ClusterUnreachable:
    error = ClusterUnreachable(message)
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        pytest.param(
            unreachable("kube-apiserver cannot be reached", OSError("no route")), "no route", id="a cause that says why"
        ),
        pytest.param(
            unreachable("kube-apiserver does not accept the credentials", KeyError()),
            "kube-apiserver does not accept the credentials",
            id="a cause without a text",
        ),
        pytest.param(
            StatusError(403, "Forbidden", "things is forbidden"), "things is forbidden", id="an answer of the cluster"
        ),
    ],
)
async def test_the_log_says_why_a_watch_failed(
    error: StatusError, expected: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        await play(INITIAL, [error], page(5))
    assert [each.getMessage() for each in caplog.records] == [f"informer of namespaces: the watch failed: {expected}"]


async def test_a_right_that_is_off_by_design_is_no_warning(caplog: pytest.LogCaptureFixture) -> None:
    forbidden = StatusError(403, "Forbidden", "secrets is forbidden")
    with caplog.at_level(logging.INFO):
        await play(INITIAL, [forbidden], page(5), if_forbidden="TenantSecrets are off")
    assert [(each.levelno, each.getMessage()) for each in caplog.records] == [(logging.INFO, "TenantSecrets are off")]


FORBIDDEN = StatusError(403, "Forbidden", "things is forbidden")


@virtual
async def test_a_right_that_is_lost_during_an_outage_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    """A kube-apiserver that has just started refuses for a moment what it allows afterwards."""
    with caplog.at_level(logging.WARNING):
        await play(INITIAL, [unreachable("away", OSError("no route"))], *[FORBIDDEN] * 7, page(5), sleep=asyncio.sleep)
    assert [each.getMessage() for each in caplog.records] == [
        "informer of namespaces: the watch failed: no route",
        "informer of namespaces: the watch failed: things is forbidden",
    ]


@virtual
async def test_a_refusal_of_a_kube_apiserver_that_is_starting_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        await play(INITIAL, [unreachable("away", OSError("no route"))], FORBIDDEN, page(5), sleep=asyncio.sleep)
    assert [each.getMessage() for each in caplog.records] == ["informer of namespaces: the watch failed: no route"]


@virtual
async def test_an_account_that_may_list_and_not_watch_is_refused_once(caplog: pytest.LogCaptureFixture) -> None:
    """Each attempt would otherwise be logged, 0.8 seconds after the last."""
    refused = [step for _ in range(4) for step in (FORBIDDEN, page(5))]
    with caplog.at_level(logging.WARNING):
        run = await play(INITIAL, *refused)
    assert len(caplog.records) == 1
    assert run.delays[:4] == [0.8, 1.6, 3.2, 6.4]
    assert run.handled[1:] == [*[("unreachable", 403)] * 4, ("unreachable", None)]


async def test_a_new_list_is_not_older_than_the_last_event_unless_that_version_is_unavailable() -> None:
    future = errors.TooLargeResourceVersion(6, 4)
    rejected = StatusError(422, "Invalid", "")
    run = await play(rejected, page(5), [event("ADDED", "a", 6), EXPIRED], future, page(4), [event("ADDED", "b", 5)])
    assert run.calls == ["watchlist", "list 0", "watch 5", "list 6", "list", "watch 4", "watch 5"]
    assert run.handled[-2:] == [("replace", [], 4), ("ADDED", "b", 5)]


async def test_expired_watches_are_followed_by_lists() -> None:
    run = await play(EXPIRED, page(5, obj("a", 1)), EXPIRED, page(7, obj("a", 1)), [event("MODIFIED", "a", 8)])
    assert run.calls == ["watchlist", "list 0", "watch 5", "list 5", "watch 7", "watch 8"]
    assert run.handled == [("replace", ["a"], 5), ("replace", ["a"], 7), ("MODIFIED", "a", 8)]


@pytest.mark.parametrize(
    ("steps", "complete"),
    [
        pytest.param([[EXPIRED], INITIAL], False, id="events were missed"),
        pytest.param([[ClusterUnreachable()], page(5)], True, id="an outage that the watch resumes after"),
    ],
)
async def test_an_informer_is_incomplete_until_handlers_have_the_new_list(steps: list[Any], complete: bool) -> None:
    seen: list[bool] = []

    class FlagReader(RecordingHandler):
        async def replace(self, items: Sequence[Object], rv: int) -> None:
            seen.append(informer.complete.is_set())

    async def pause(seconds: float) -> None:
        seen.append(informer.complete.is_set())

    informer = Informer(script := Script(INITIAL, *steps), NAMESPACES, sleep=pause)  # type: ignore[arg-type]
    informer.add_handler(FlagReader())
    task = asyncio.create_task(informer.run())
    await asyncio.wait_for(script.over.wait(), 5)
    task.cancel()
    await asyncio.wait([task])
    assert seen[:3] == [False, True, complete]
    assert informer.complete.is_set()


@pytest.mark.parametrize(
    "steps",
    [
        pytest.param([[*INITIAL, EXPIRED], [bookmark(30, **END), event("ADDED", "c", 31)]], id="initial events"),
        pytest.param(
            [errors.BadRequest("no watch list"), page(5), [EXPIRED], page(30), [event("ADDED", "c", 31)]], id="lists"
        ),
    ],
)
async def test_missed_events_are_listed_without_a_delay(steps: list[Any]) -> None:
    """Writes are held back meanwhile."""
    run = await play(*steps)
    assert run.handled[-1] == ("ADDED", "c", 31)
    # it follows the short watch at the end
    assert run.delays == [0.8]


async def test_an_informer_whose_watches_expire_is_complete_between_its_lists() -> None:
    lists = [step for rv in range(10, 14) for step in (page(rv), [EXPIRED])]
    run = await play(errors.BadRequest("no watch list"), *lists, page(20), [event("ADDED", "c", 21)])
    assert run.completeness == [True] * 4
    assert run.delays[:3] == [0.8] * 3


async def test_initial_events_of_watches_that_expire_are_requested_after_a_delay() -> None:
    expiring = [event("ADDED", "a", 3), bookmark(5, **END), EXPIRED]
    run = await play(expiring, expiring, expiring, [*INITIAL, event("ADDED", "c", 6)])
    assert run.delays[:2] == [0.8, 0.8]
    assert run.handled[-1] == ("ADDED", "c", 6)


async def test_a_list_of_an_unavailable_version_is_repeated_after_a_delay() -> None:
    run = await play(errors.BadRequest("no watch list"), page(5), [EXPIRED], EXPIRED, page(7), [event("ADDED", "c", 8)])
    assert run.calls[2:6] == ["watch 5", "list 5", "list", "watch 7"]
    assert run.delays[0] == 0.8


async def test_handlers_see_an_outage_and_its_end_and_no_event_is_lost() -> None:
    outage = ClusterUnreachable()
    run = await play(INITIAL, [outage], outage, outage, page(9), [event("MODIFIED", "a", 8)])
    assert run.calls == ["watchlist", "watch 5", "probe", "probe", "probe", "watch 5", "watch 8"]
    assert run.handled[1:] == [
        ("unreachable", 503),
        ("unreachable", 503),
        ("unreachable", 503),
        ("unreachable", None),
        ("MODIFIED", "a", 8),
    ]


async def test_the_delay_grows_during_an_outage() -> None:
    outage = [ClusterUnreachable(retry_after=0) for _ in range(8)]
    run = await play(*outage, page(1), INITIAL)
    assert run.delays[:8] == [0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30.0, 30.0]


async def test_the_delay_is_reset_after_an_outage() -> None:
    outage = [ClusterUnreachable(retry_after=0) for _ in range(6)]
    run = await play(INITIAL, *outage, page(1), [ClusterUnreachable(retry_after=0)], page(1), [event("ADDED", "c", 6)])
    assert run.delays[5:8] == [25.6, 30.0, 0.8]
    assert run.handled[-1] == ("ADDED", "c", 6)


async def test_retry_after_is_honoured_up_to_a_limit() -> None:
    for seconds, expected in ((7, 7), (10_000, 30)):
        later = errors.TooManyRequests("later", retry_after=seconds)
        run = await play(later, later, page(1), page(1, obj("a", 1)))
        assert run.delays[0] == expected


@pytest.mark.parametrize(
    "invalid",
    [
        pytest.param(MalformedStream("no event"), id="an undecodable event"),
        pytest.param(WatchEvent("MODIFIED", {"metadata": {"name": "a"}}), id="an object without a version"),
        pytest.param(
            WatchEvent("MODIFIED", {"metadata": {"name": "a", "resourceVersion": "x"}}),
            id="a version that is not a number",
        ),
        pytest.param(WatchEvent("MODIFIED", {}), id="no metadata"),
    ],
)
async def test_an_invalid_event_is_followed_by_a_new_list(invalid: WatchEvent | Exception) -> None:
    answers: list[Any] = [page(1)] if isinstance(invalid, Exception) else []
    run = await play([*INITIAL, invalid], *answers, [event("ADDED", "c", 8), bookmark(8, **END)])
    assert ("replace", ["c"], 8) in run.handled


async def test_an_invalid_list_is_repeated() -> None:
    rejected = StatusError(422, "Invalid", "")
    run = await play(rejected, {"metadata": {}}, page(5, {"metadata": {}}), page(6, obj("a", 3)))
    assert run.calls == ["watchlist", "list 0", "list", "list", "watch 6"]
    assert run.handled == [("replace", ["a"], 6)]


async def test_a_handler_that_fails_does_not_end_the_informer() -> None:
    script = Script(INITIAL, INITIAL)

    class Failing(RecordingHandler):
        async def replace(self, items: Sequence[Object], rv: int) -> None:
            await super().replace(items, rv)
            if len(self.handled) == 1:
                raise RuntimeError("a bug")

    async def sleep(seconds: float) -> None:
        return None

    handler = Failing()
    informer = Informer(script, NAMESPACES, sleep=sleep)  # type: ignore[arg-type]
    informer.add_handler(handler)
    task = asyncio.create_task(informer.run())
    await asyncio.wait_for(script.over.wait(), 5)
    task.cancel()
    await asyncio.wait([task])
    assert len(handler.handled) == 2


async def test_retry_now_ends_the_delay() -> None:
    script = Script(ClusterUnreachable(), page(1), INITIAL)
    waiting = asyncio.Event()

    async def sleep(seconds: float) -> None:
        waiting.set()
        await asyncio.Event().wait()

    informer = Informer(script, NAMESPACES, sleep=sleep)  # type: ignore[arg-type]
    task = asyncio.create_task(informer.run())
    await asyncio.wait_for(waiting.wait(), 5)
    informer.retry_now()
    await asyncio.wait_for(informer.synced.wait(), 5)
    task.cancel()
    await asyncio.wait([task])


def table(rv: int) -> Object:
    """A response in the Table format."""
    row = {"cells": ["a"], "object": {"kind": "PartialObjectMetadata", "metadata": {"name": "a"}}}
    return {"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": {"resourceVersion": str(rv)}, "rows": [row]}


async def test_tables_are_not_processed_as_objects() -> None:
    """A reflector that accepted them would store rows instead of objects, or sync with nothing (WIRE-J21)."""
    whole_state = [event("ADDED", "a", 3), bookmark(6, **END)]
    run = await play([WatchEvent("ADDED", table(4)), bookmark(5, **END)], whole_state)
    assert run.handled == [("replace", ["a"], 6)]
    run = await play([bookmark(5, **END), WatchEvent("ADDED", table(6))], whole_state)
    assert run.handled == [("replace", [], 5), ("replace", ["a"], 6)]
