"""Bodies are read within the limits of their user."""

from __future__ import annotations

import tracemalloc
from collections.abc import AsyncIterator
from unittest.mock import Mock

import pytest

from apiserver.endpoints.handlers import request_body
from apiserver.meta.errors import RequestEntityTooLarge, TooManyRequests
from apiserver.request.bytes_in_flight import BytesInFlight, Reservation
from apiserver.request.context import RequestContext

KIB = 1024


def context_of(pieces: int, *, length: int | None = None, bytes_in_flight: BytesInFlight) -> RequestContext:
    """A request with a body of so many pieces of 64 KiB."""

    async def arriving() -> AsyncIterator[bytes]:
        for _ in range(pieces):
            yield b" " * 64 * KIB

    context = Mock(spec=RequestContext)
    context.http = Mock(content_length=length, content=Mock(iter_any=arriving))
    context.reservation = Reservation(bytes_in_flight, "alice")
    return context


async def test_a_body_counts_for_its_user_while_it_arrives() -> None:
    in_flight = BytesInFlight(per_user=200 * KIB)
    assert len(await request_body.read(context_of(2, bytes_in_flight=in_flight))) == 128 * KIB
    with pytest.raises(TooManyRequests):
        await request_body.read(context_of(2, bytes_in_flight=in_flight))
    with pytest.raises(TooManyRequests):
        await request_body.read(context_of(0, length=100 * KIB, bytes_in_flight=in_flight))


@pytest.mark.parametrize(
    ("limit", "error"),
    [
        pytest.param(request_body.MAX_BYTES, TooManyRequests, id="of the user"),
        pytest.param(1024 * KIB, RequestEntityTooLarge, id="of one body"),
    ],
)
async def test_a_body_above_a_limit_is_freed_at_once(limit: int, error: type[Exception]) -> None:
    """ATTACK-19: the traceback of an error can stay in memory for long."""
    tracemalloc.start()
    try:
        with pytest.raises(error) as raised:
            await request_body.read(context_of(40, bytes_in_flight=BytesInFlight(per_user=2000 * KIB)), limit=limit)
        assert tracemalloc.get_traced_memory()[0] < 500 * KIB, raised
    finally:
        tracemalloc.stop()
