"""The filter that ends requests at their deadline."""

from __future__ import annotations

import asyncio
import gc
import weakref
from functools import partial

import pytest
from aiohttp import web

from apiserver.endpoints.filters.error_response import ErrorResponses
from apiserver.endpoints.filters.request_deadline import RequestDeadline, requested_timeout
from apiserver.meta.errors import BadRequest, Timeout
from apiserver.request.context import Handler, RequestContext
from tests.apiserver.endpoints.filter_fakes import WATCH, Gate, raising
from tests.apiserver.endpoints.request_contexts import make_context
from tests.cpu_time import least_ratio


async def test_a_read_that_takes_too_long_is_a_504() -> None:
    with pytest.raises(Timeout, match=r"^Timeout: request did not complete within the allotted timeout$"):
        await RequestDeadline(limit=0.01)(make_context(), Gate())


async def test_a_write_has_a_shorter_deadline() -> None:
    with pytest.raises(Timeout, match="requested timeout - context deadline exceeded"):
        await RequestDeadline(write_limit=0.01)(make_context("PUT"), Gate())


async def test_a_client_may_request_a_shorter_timeout() -> None:
    context = make_context(target="/apis/example.org/v1/widgets?timeout=10ms")
    with pytest.raises(Timeout):
        await RequestDeadline()(context, Gate())


async def test_the_context_of_a_write_has_its_deadline() -> None:
    context, gate = make_context("PUT", target="/apis/example.org/v1/widgets/a?timeout=5s"), Gate()
    gate.open.set()
    assert context.deadline == context.received_at + 34
    await RequestDeadline()(context, gate)
    assert context.deadline == context.received_at + 5


async def test_a_watch_is_exempt_from_the_request_deadline() -> None:
    gate = Gate()
    gate.open.set()
    await RequestDeadline(limit=-1)(make_context(target=f"{WATCH}&timeout=nonsense"), gate)
    assert gate.finished.is_set()


async def test_a_timeout_error_of_a_handler_is_not_converted() -> None:
    with pytest.raises(TimeoutError, match="mine"):
        await RequestDeadline()(make_context(), raising(TimeoutError("mine")))


async def test_a_write_continues_after_its_client_disconnects() -> None:
    gate = Gate()
    request = asyncio.create_task(_call(RequestDeadline(), make_context("PUT"), gate))
    await gate.entered.wait()
    request.cancel()
    with pytest.raises(asyncio.CancelledError):
        await request
    gate.open.set()
    await gate.finished.wait()


async def test_a_read_ends_when_its_client_disconnects() -> None:
    gate = Gate()
    request = asyncio.create_task(_call(RequestDeadline(), make_context(), gate))
    await gate.entered.wait()
    request.cancel()
    with pytest.raises(asyncio.CancelledError):
        await request
    gate.open.set()
    await asyncio.sleep(0)
    assert not gate.finished.is_set()


async def _call(deadline: RequestDeadline, context: RequestContext, handler: Handler) -> web.StreamResponse:
    return await deadline(context, handler)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        pytest.param("30s", 30, id="seconds"),
        pytest.param("0m1.5s", 1.5, id="a fraction"),
        pytest.param("250000us", 0.25, id="microseconds"),
        pytest.param("250000\u00b5s", 0.25, id="microseconds with their sign"),
        pytest.param("0", 60, id="zero"),
        pytest.param("2m", 60, id="too much"),
        pytest.param("-5s", 60, id="negative"),
    ],
)
def test_a_timeout_is_a_go_duration(text: str, seconds: float) -> None:
    assert requested_timeout(text, 60.0) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "30", "s", "1.s.", "nan", "1e3s", "1s ", "٣s"])
def test_an_invalid_timeout_is_rejected(text: str) -> None:
    with pytest.raises(BadRequest, match="invalid timeout specified in the request URL - time: invalid duration"):
        requested_timeout(text, 60.0)


class Body(bytearray):
    """Can be referenced weakly."""


@pytest.mark.parametrize("method", ["GET", "PUT"])
async def test_what_a_refused_request_has_held_is_freed_at_once(method: str) -> None:
    """ATTACK-19: bodies that wait for a garbage collection would be hundreds of MiB."""
    held: list[weakref.ref[Body]] = []

    async def reject(_: RequestContext) -> web.StreamResponse:
        body = Body(b"content")
        held.append(weakref.ref(body))
        # as a body is read: a write is a task of its own, which the event loop has to finish
        await asyncio.sleep(0)
        raise BadRequest("no")

    context = make_context(method)
    gc.disable()
    try:
        response = await ErrorResponses()(context, lambda context: RequestDeadline()(context, reject))
        assert response.status == 400
        await asyncio.sleep(0)
        assert held[0]() is None
    finally:
        gc.enable()


def test_a_long_number_costs_as_much_as_a_long_text() -> None:
    """ATTACK-19: the parameter is parsed before the user is known; 32 KiB of a request line are its limit."""

    def parse(text: str) -> None:
        with pytest.raises(BadRequest):
            requested_timeout(text, 60)

    number, other = partial(parse, "1" * 16_000), partial(parse, "1h" * 8_000 + "x")
    assert least_ratio(number, other, below=20) < 20
