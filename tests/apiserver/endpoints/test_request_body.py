"""Bodies are read within the limits of their user."""

from __future__ import annotations

import tracemalloc
from collections.abc import AsyncIterator
from unittest.mock import Mock

import pytest

from apiserver.authorization.authorizer import MASTERS
from apiserver.endpoints.handlers import request_body
from apiserver.meta.errors import RequestEntityTooLarge, TooManyRequests
from apiserver.meta.resource import Object
from apiserver.request.bytes_in_flight import BytesInFlight, Reservation
from apiserver.request.context import RequestContext, User

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


ALICE = User("alice", groups=("system:authenticated",))
ADMIN = User("admin", groups=(MASTERS,))
COMPONENT = User("system:serviceaccount:ns:name", groups=(MASTERS, "system:serviceaccounts"))


def sized(values: int, managed: int = 0) -> Object:
    """An object with so many annotations, and so many fields of a manager."""
    entry = {"manager": "m", "fieldsV1": {"f:metadata": {f"f:k{n}": {} for n in range(managed)}}}
    annotations = {f"k{n}": "" for n in range(values)}
    return {"metadata": {"name": "x", "annotations": annotations, **({"managedFields": [entry]} if managed else {})}}


@pytest.mark.parametrize(
    ("user", "value", "error"),
    [
        pytest.param(ALICE, sized(19_000, 19_000), "", id="what the server added for the user does not count"),
        pytest.param(ALICE, sized(20_000), "an object may hold 20000 values", id="too many values"),
        pytest.param(ADMIN, sized(20_000), "an object may hold 20000 values", id="those of an administrator"),
        pytest.param(
            ALICE, sized(10, 40_000), "metadata.managedFields may hold 40000 values", id="managed fields have a limit"
        ),
        pytest.param(
            ALICE, {"spec": {"k" * 20_000: dict.fromkeys(map(str, range(1000)))}}, "paths of an object's", id="paths"
        ),
        pytest.param(
            ALICE,
            {"metadata": {"managedFields": [{"f:" + "k" * 40_000: dict.fromkeys(map(str, range(1000)))}]}},
            "paths of an object's",
            id="paths of managed fields",
        ),
        pytest.param(COMPONENT, sized(21_000, 50_000), "", id="a component writes what it has admitted"),
        pytest.param(ALICE, [0] * 20_001, "an object may hold 20000 values", id="no object"),
        pytest.param(ALICE, {"metadata": [0] * 20_001}, "an object may hold 20000 values", id="no metadata"),
    ],
)
def test_the_values_of_an_object_are_limited_for_users(user: User, value: Object, error: str) -> None:
    """ATTACK-13."""
    if not error:
        request_body.check_size(value, user)
        return
    with pytest.raises(RequestEntityTooLarge, match=error):
        request_body.check_size(value, user)
