"""The filter that turns errors into responses."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import weakref
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from apiserver.endpoints.filters import error_response
from apiserver.endpoints.filters.error_response import ErrorResponses, status_error_of
from apiserver.meta.errors import BadRequest, Timeout, TooManyRequests
from apiserver.request import request_info
from apiserver.request.bytes_in_flight import BytesInFlight, Reservation
from apiserver.request.context import Handler, RequestContext
from apiserver.request.request_info import Query
from tests.apiserver.endpoints.filter_fakes import raising
from tests.apiserver.endpoints.request_contexts import make_context

MIB = 1024 * 1024


def json_body(response: web.StreamResponse) -> dict[str, Any]:
    assert isinstance(response, web.Response)
    assert isinstance(response.body, bytes)
    parsed: dict[str, Any] = json.loads(response.body)
    return parsed


async def test_a_status_error_becomes_its_status() -> None:
    response = await ErrorResponses()(make_context(), raising(TooManyRequests("slow down", retry_after=3)))
    assert (response.status, response.headers["Retry-After"]) == (429, "3")
    assert json_body(response)["reason"] == "TooManyRequests"


async def test_after_a_504_the_connection_is_closed() -> None:
    response = await ErrorResponses()(make_context(), raising(Timeout("too slow")))
    assert (response.status, response.keep_alive) == (504, False)


class Body(bytearray):
    """Can be referenced weakly."""


async def test_what_a_rejected_request_has_held_is_freed_at_once() -> None:
    """ATTACK-19: bodies that wait for a garbage collection would be hundreds of MiB."""
    held: list[weakref.ref[Body]] = []

    async def reject(_: RequestContext) -> web.StreamResponse:
        body = Body(b"content")
        held.append(weakref.ref(body))
        raise BadRequest("no")

    gc.disable()
    try:
        assert (await ErrorResponses()(make_context(), reject)).status == 400
        assert held[0]() is None
    finally:
        gc.enable()


async def test_a_large_status_counts_as_its_users_until_it_is_read() -> None:
    """ATTACK-19: thousands of connections may each wait for a Status that quotes three megabytes."""
    bytes_in_flight = BytesInFlight(per_user=12 * MIB)
    app = aiohttp_application(raising(BadRequest("a" * 8 * MIB)), bytes_in_flight)
    async with TestClient(TestServer(app)) as client:
        unread = await client.get("/")
        assert unread.status == 400
        assert (await client.get("/")).status == 429
        assert (await unread.json())["reason"] == "BadRequest"
        assert len((await (await client.get("/")).json())["message"]) == 8 * MIB


class LargeError(BadRequest):
    """Can be referenced weakly."""

    def __init__(self) -> None:
        super().__init__("a" * 8 * MIB)


async def test_a_large_error_is_freed_while_its_status_is_sent() -> None:
    """ATTACK-19: it has quoted values of the body, and a client that reads slowly would keep them."""
    raised: list[weakref.ref[LargeError]] = []

    async def reject(_: RequestContext) -> web.StreamResponse:
        error = LargeError()
        raised.append(weakref.ref(error))
        raise error

    gc.disable()
    try:
        async with TestClient(TestServer(aiohttp_application(reject, BytesInFlight()))) as client:
            unread = await client.get("/")
            assert raised[0]() is None
            assert len(await unread.read()) > 8 * MIB
    finally:
        gc.enable()


async def test_a_large_status_for_which_there_is_no_room_is_not_composed() -> None:
    """ATTACK-19: that alone would take twice its memory."""

    class Uncomposed(LargeError):
        def status(self) -> dict[str, Any]:
            raise AssertionError

    context = make_context()
    context.reservation = Reservation(BytesInFlight(per_user=7 * MIB), "alice")
    response = await ErrorResponses()(context, raising(Uncomposed()))
    assert response.status == 429


async def test_a_client_that_does_not_read_a_large_status_is_disconnected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(error_response, "_SEND_SECONDS", 0.05)
    bytes_in_flight = BytesInFlight(per_user=12 * MIB)
    app = aiohttp_application(raising(BadRequest("a" * 8 * MIB)), bytes_in_flight)
    async with TestClient(TestServer(app)) as client:
        unread, writer = await asyncio.open_connection(client.host, client.port, limit=1)
        writer.write(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n")
        await unread.readexactly(12)
        while (await client.get("/")).status == 429:
            pass
        received = b""
        with contextlib.suppress(ConnectionError):
            while piece := await unread.read(MIB):
                received += piece
        assert len(received) < 8 * MIB
        writer.close()


def aiohttp_application(handler: Handler, bytes_in_flight: BytesInFlight) -> web.Application:
    """Answers every request through the filter."""

    async def answer(http: web.Request) -> web.StreamResponse:
        info = request_info.parse_request_info("GET", "/", Query(""))
        context = RequestContext(http=http, info=info, query=Query(""), audit_id="audit-1")
        context.reservation = Reservation(bytes_in_flight, "alice")
        return await ErrorResponses()(context, handler)

    app = web.Application()
    app.router.add_get("/", answer)
    return app


async def test_an_unexpected_exception_is_logged_and_leaks_nothing(caplog: pytest.LogCaptureFixture) -> None:
    response = await ErrorResponses()(make_context(), raising(RuntimeError("the password is hunter2")))
    assert response.status == 500
    assert "hunter2" not in json.dumps(json_body(response))
    [record] = caplog.records
    assert record.exc_info is not None
    assert vars(record)["audit_id"] == "audit-1"


async def test_a_lost_connection_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(ConnectionResetError):
        await ErrorResponses()(make_context(), raising(ConnectionResetError()))
    assert caplog.records == []


@pytest.mark.parametrize(
    ("raised", "code", "reason"),
    [
        pytest.param(web.HTTPNotFound(), 404, "NotFound", id="404"),
        pytest.param(web.HTTPMethodNotAllowed("GET", ["PUT"]), 405, "MethodNotAllowed", id="405"),
        pytest.param(web.HTTPRequestEntityTooLarge(1, 2), 413, "RequestEntityTooLarge", id="413"),
        pytest.param(web.HTTPBadRequest(), 400, "BadRequest", id="400"),
        pytest.param(web.HTTPExpectationFailed(), 417, "", id="417"),
        pytest.param(web.HTTPInternalServerError(), 500, "InternalError", id="500"),
    ],
)
def test_errors_of_aiohttp_become_statuses(raised: web.HTTPException, code: int, reason: str) -> None:
    error = status_error_of(raised)
    assert (error.code, error.reason) == (code, reason)
