"""The filter that limits the requests, watches and bytes that are in progress."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from apiserver.endpoints.filters.max_in_flight import WATCHES_PER_SLOT, MaxInFlight
from apiserver.endpoints.responsewriters import LargeResponse
from apiserver.meta.errors import BadRequest, TooManyRequests
from apiserver.metrics import Metrics
from apiserver.request.bytes_in_flight import BytesInFlight
from apiserver.request.context import Handler, RequestContext, User
from tests.apiserver.endpoints.filter_fakes import ADMIN, WATCH, Gate, application, raising
from tests.apiserver.endpoints.request_contexts import ALICE, FakeConnection, make_context, ok

_WIDGET = "/apis/example.org/v1/namespaces/ns/widgets/w"


async def test_requests_over_the_limit_get_a_retry_after() -> None:
    metrics, gate = Metrics(), Gate()
    inflight = max_in_flight(1, metrics)
    first = asyncio.create_task(_inflight(inflight, make_context(user=ALICE), gate))
    await gate.entered.wait()
    assert metrics.registry.get_sample_value("apiserver_current_inflight_requests", {"request_kind": "readOnly"}) == 1
    with pytest.raises(TooManyRequests) as raised:
        await inflight(make_context("PUT", user=ALICE), ok)
    assert raised.value.retry_after == 1
    assert metrics.registry.get_sample_value("apiserver_dropped_requests_total") == 1
    for exempt in (make_context(target=WATCH, user=ALICE), make_context(user=ADMIN)):
        assert (await inflight(exempt, ok)).status == 200
    gate.open.set()
    await first
    assert (await inflight(make_context("PUT", user=ALICE), ok)).status == 200


def max_in_flight(
    limit: int,
    metrics: Metrics,
    *,
    bytes_in_flight: BytesInFlight | None = None,
    connection: FakeConnection | None = None,
    watch_bytes_per_user: int = 1024 * 1024,
) -> MaxInFlight:
    return MaxInFlight(
        limit,
        metrics,
        bytes_in_flight=bytes_in_flight or BytesInFlight(),
        watch_bytes_per_user=watch_bytes_per_user,
        connection=connection or FakeConnection(),
    )


async def _inflight(inflight: MaxInFlight, context: RequestContext, handler: Handler) -> web.StreamResponse:
    return await inflight(context, handler)


async def test_one_user_cannot_use_the_whole_limit() -> None:
    """ATTACK-13: one user can use three quarters of the limit; the rest is left for others."""
    inflight, gate = max_in_flight(4, Metrics()), Gate()
    running = [asyncio.create_task(_inflight(inflight, make_context(user=ALICE), gate)) for _ in range(3)]
    await gate.entered.wait()
    with pytest.raises(TooManyRequests):
        await inflight(make_context(user=ALICE), ok)
    assert (await inflight(make_context(user=User("bob")), ok)).status == 200
    gate.open.set()
    await asyncio.gather(*running)
    assert (await inflight(make_context(user=ALICE), ok)).status == 200


async def test_the_watches_of_a_user_are_limited() -> None:
    """ATTACK-13: a user can open four watches per slot of the limit; those of other users do not count."""
    metrics, gate = Metrics(), Gate()
    inflight = max_in_flight(1, metrics)
    running = [asyncio.create_task(_inflight(inflight, make_context(target=WATCH, user=ALICE), gate)) for _ in range(4)]
    await gate.entered.wait()
    with pytest.raises(TooManyRequests):
        await inflight(make_context(target=WATCH, user=ALICE), ok)
    assert metrics.registry.get_sample_value("apiserver_dropped_requests_total") == 1
    for other in (make_context(target=WATCH, user=User("bob")), make_context(target=WATCH, user=ADMIN)):
        assert (await inflight(other, ok)).status == 200
    # watches do not use the slots of requests
    assert (await inflight(make_context(user=ALICE), ok)).status == 200
    gate.open.set()
    await asyncio.gather(*running)
    assert (await inflight(make_context(target=WATCH, user=ALICE), ok)).status == 200


async def test_several_users_cannot_use_the_whole_limit() -> None:
    """ATTACK-13: each has at most three quarters of what the others leave."""
    inflight, gate = max_in_flight(64, Metrics()), Gate()
    running = list[asyncio.Task[web.StreamResponse]]()
    for name, left in {"eve": 48, "mallory": 12}.items():
        context = make_context(user=User(name))
        running += [asyncio.create_task(_inflight(inflight, context, gate)) for _ in range(left)]
        await asyncio.sleep(0)
        with pytest.raises(TooManyRequests):
            await inflight(context, ok)
    assert (await inflight(make_context(user=ALICE), ok)).status == 200
    gate.open.set()
    await asyncio.gather(*running)


@pytest.mark.parametrize(("target", "limit"), [(_WIDGET, 6), (WATCH, 8 * WATCHES_PER_SLOT)])
async def test_users_of_one_flow_have_the_requests_and_watches_of_one(target: str, limit: int) -> None:
    """ATTACK-13: a tenant can make any number of ServiceAccounts."""
    bytes_in_flight = BytesInFlight(flow_of=lambda user: user.partition(":")[0])
    inflight, gate = max_in_flight(8, Metrics(), bytes_in_flight=bytes_in_flight), Gate()
    accounts = [make_context(target=target, user=User(f"eve:{number}")) for number in range(limit + 1)]
    running = [asyncio.create_task(_inflight(inflight, each, gate)) for each in accounts[:-1]]
    await gate.entered.wait()
    with pytest.raises(TooManyRequests):
        await inflight(accounts[-1], ok)
    assert (await inflight(make_context(target=target, user=ALICE), ok)).status == 200
    gate.open.set()
    await asyncio.gather(*running)


async def test_a_failed_request_frees_its_slot() -> None:
    inflight = max_in_flight(1, Metrics())
    for _ in range(3):
        with pytest.raises(BadRequest):
            await inflight(make_context(user=ALICE), raising(BadRequest("no")))


async def test_a_connection_belongs_to_whoever_has_authenticated_on_it() -> None:
    connection = FakeConnection()
    inflight = max_in_flight(1, Metrics(), connection=connection)
    impersonated = make_context(user=User("bob"))
    impersonated.impersonator = ALICE
    for context in (make_context(user=ALICE), impersonated, make_context(target="/livez", user=ADMIN)):
        await inflight(context, ok)
    assert connection.owners == ["alice", "alice", "admin"]


async def test_the_large_heads_and_the_bodies_of_a_user_are_limited() -> None:
    bytes_in_flight = BytesInFlight(per_user=100)
    inflight, gate = max_in_flight(9, Metrics(), bytes_in_flight=bytes_in_flight, connection=FakeConnection(60)), Gate()
    running = asyncio.create_task(_inflight(inflight, make_context(user=ALICE), gate))
    await gate.entered.wait()
    with pytest.raises(TooManyRequests):
        await inflight(make_context(user=ALICE), ok)
    assert (await inflight(make_context(user=User("bob")), ok)).status == 200
    gate.open.set()
    await running

    async def read_body(context: RequestContext) -> web.StreamResponse:
        for size in (30, 11):
            context.reservation.add(size)
        raise AssertionError("a body of 41 bytes was accepted")

    with pytest.raises(TooManyRequests):
        await inflight(make_context("PUT", user=ALICE), read_body)
    assert (await inflight(make_context(user=ALICE), ok)).status == 200


@pytest.mark.parametrize(
    ("head", "selector"),
    [
        pytest.param(0, ",".join(f"v{number}" for number in range(2000)), id="selectors"),
        pytest.param(300_000, "", id="large heads"),
    ],
)
async def test_what_the_watches_of_a_user_keep_is_limited(head: int, selector: str) -> None:
    """ATTACK-19: a selector takes up to a hundred times the memory of its text. Bodies do not wait for an hour."""
    bytes_in_flight, connection, gate = BytesInFlight(per_user=1000), FakeConnection(head), Gate()
    inflight = max_in_flight(
        9, Metrics(), bytes_in_flight=bytes_in_flight, connection=connection, watch_bytes_per_user=500_000
    )
    target = f"{WATCH}&labelSelector=a%20notin%20({selector})"
    running = asyncio.create_task(_inflight(inflight, make_context(target=target, user=ALICE), gate))
    await gate.entered.wait()
    with pytest.raises(TooManyRequests):
        await inflight(make_context(target=target, user=ALICE), ok)
    bytes_in_flight.check(ALICE.name, 1000)
    assert (await inflight(make_context(target=target, user=User("bob")), ok)).status == 200
    connection.head = 0
    assert (await inflight(make_context(target=f"{WATCH}&labelSelector=a,b,c", user=ALICE), ok)).status == 200
    gate.open.set()
    await running
    connection.head = head
    assert (await inflight(make_context(target=target, user=ALICE), ok)).status == 200


async def test_the_selectors_of_lists_count_as_bodies() -> None:
    inflight = max_in_flight(9, Metrics(), bytes_in_flight=BytesInFlight(per_user=1000))
    listed, values = _WIDGET.removesuffix("/w"), ",".join(f"v{number}" for number in range(2000))
    with pytest.raises(TooManyRequests):
        await inflight(make_context(target=f"{listed}?labelSelector=a%20notin%20({values})", user=ALICE), ok)
    # a GET of one object has no selector
    for target in (f"{listed}?labelSelector=a,b,c", f"{_WIDGET}?labelSelector=a%20notin%20({values})"):
        assert (await inflight(make_context(target=target, user=ALICE), ok)).status == 200


async def test_a_streamed_response_counts_until_it_is_sent() -> None:
    """ATTACK-19: otherwise one user could have any number of lists that are sent to slow clients."""
    gate = Gate()

    async def body() -> AsyncIterator[bytes]:
        yield b"a" * 100
        await gate.open.wait()
        yield b"b"

    async def stream(_: RequestContext) -> web.StreamResponse:
        return LargeResponse(body=body(), memory=60, status=200, headers={})

    app = application(stream, bytes_in_flight=BytesInFlight(per_user=100))
    async with TestClient(TestServer(app)) as client:
        first = await client.get("/apis/g/v1/widgets")
        assert first.status == 200
        assert (await client.get("/apis/g/v1/widgets")).status == 429
        gate.open.set()
        assert await first.read() == b"a" * 100 + b"b"
        assert (await (await client.get("/apis/g/v1/widgets")).read()).endswith(b"b")


async def test_a_client_that_disconnects_while_a_response_is_streamed_frees_its_slot(
    caplog: pytest.LogCaptureFixture,
) -> None:
    ended = asyncio.Event()

    async def body() -> AsyncIterator[bytes]:
        try:
            while True:
                yield b"a" * 100_000
                await asyncio.sleep(0)
        finally:
            ended.set()

    async def stream(_: RequestContext) -> web.StreamResponse:
        return LargeResponse(body=body(), memory=60, status=200, headers={})

    async with TestClient(TestServer(application(stream, max_requests_inflight=1))) as client:
        for _ in range(3):
            ended.clear()
            response = await client.get("/apis/g/v1/widgets")
            assert response.status == 200
            response.close()
            async with asyncio.timeout(5):
                await ended.wait()
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []
