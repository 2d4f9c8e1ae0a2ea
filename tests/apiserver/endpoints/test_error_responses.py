"""The filter that turns errors into responses."""

from __future__ import annotations

import gc
import json
import weakref
from typing import Any

import pytest
from aiohttp import web

from apiserver.endpoints.filters.error_response import ErrorResponses, status_error_of
from apiserver.meta.errors import BadRequest, Timeout, TooManyRequests
from apiserver.request.context import RequestContext
from tests.apiserver.endpoints.filter_fakes import raising
from tests.apiserver.endpoints.request_contexts import make_context


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
