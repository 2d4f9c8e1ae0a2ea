"""The listener's start and its graceful shutdown."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from aiohttp import ClientError, ClientSession, ClientTimeout, TCPConnector, web

from apiserver.server.listener import (
    CannotListen,
    ShutdownStages,
    listen,
    serve_until_stopped,
    stop_on_signals,
)
from apiserver.tls.server_context import ServerTls
from tests.apiserver.server.https_listener import SERVING, application, client_tls, get, serving


@pytest.fixture
def restored_signals() -> Iterator[None]:
    """Restores the signal handlers, because the test process continues after the server has shut down."""
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.usefixtures("restored_signals")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_ends_watches_and_lets_requests_finish(
    server_tls: type[ServerTls], tmp_path: Path, number: signal.Signals
) -> None:
    stages = ShutdownStages(draining=asyncio.Event(), shutdown=asyncio.Event())
    entered, work = asyncio.Event(), asyncio.Event()

    async def handler(http: web.Request) -> web.StreamResponse:
        entered.set()
        await stages.shutdown.wait()
        # the request is still in progress when watches end
        await work.wait()
        return web.Response(text=http.path)

    listener = await listen(application(handler), tls=server_tls(SERVING), host="127.0.0.1", port=0, grace=4)
    stages.readyz_check()
    stop = asyncio.Event()
    with stop_on_signals(stop):
        server = asyncio.create_task(serve_until_stopped(listener, stages, stop=stop))
        request = asyncio.create_task(get(listener, client_tls(tmp_path)))
        await entered.wait()
        os.kill(os.getpid(), number)
        await stages.shutdown.wait()
        os.kill(os.getpid(), number)
        assert not request.done()
        work.set()
        assert await request == (200, "/")
        async with asyncio.timeout(5):
            await server
    # the shutdown was graceful, and another signal must not change the exit status
    os.kill(os.getpid(), number)
    with pytest.raises(RuntimeError, match="shutting down"):
        stages.readyz_check()
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection("127.0.0.1", listener.port)


async def test_while_draining_every_response_closes_its_connection(server_tls: type[ServerTls], tmp_path: Path) -> None:
    """An aggregator that reuses its connections would lose a request that it sends while one is being closed."""
    stages = ShutdownStages(draining=asyncio.Event(), shutdown=asyncio.Event(), delay=60.0)
    listener = await listen(application(), tls=server_tls(SERVING), host="127.0.0.1", port=0, grace=2)
    stop = asyncio.Event()
    server = asyncio.create_task(serve_until_stopped(listener, stages, stop=stop))
    connector = TCPConnector(ssl=client_tls(tmp_path))
    async with ClientSession(connector=connector, timeout=ClientTimeout(10)) as session:

        async def connection() -> str | None:
            async with session.get(f"https://127.0.0.1:{listener.port}/") as response:
                assert response.status == 200
                return response.headers.get("Connection")

        assert [await connection() for _ in range(2)] == [None, None]
        stop.set()
        await stages.draining.wait()
        assert [await connection() for _ in range(2)] == ["close", "close"]
    assert not stages.shutdown.is_set()
    server.cancel()
    with pytest.raises(asyncio.CancelledError):
        await server


async def test_a_watch_that_ends_is_the_last_answer_of_its_connection(
    server_tls: type[ServerTls], tmp_path: Path
) -> None:
    """Its client comes back at once, and would wait here for an answer that sends it elsewhere. Another request keeps
    the server running meanwhile."""
    stages = ShutdownStages(draining=asyncio.Event(), shutdown=asyncio.Event(), delay=0.001)
    stop, entered, work = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def handler(http: web.Request) -> web.StreamResponse:
        if http.path == "/":
            entered.set()
            await work.wait()
            return web.Response()
        response = web.StreamResponse()
        response.enable_chunked_encoding()
        await response.prepare(http)
        await response.write(b"event")
        await stages.shutdown.wait()
        return response

    listener = await listen(application(handler), tls=server_tls(SERVING), host="127.0.0.1", port=0, grace=16)
    server = asyncio.create_task(serve_until_stopped(listener, stages, stop=stop))
    reader, writer = await asyncio.open_connection("127.0.0.1", listener.port, ssl=client_tls(tmp_path))
    request = asyncio.create_task(get(listener, client_tls(tmp_path)))
    writer.write(b"GET /watch HTTP/1.1\r\nHost: h\r\n\r\n")
    async with asyncio.timeout(10):
        await reader.readuntil(b"event")
        await entered.wait()
        stop.set()
        # to the end of the connection
        assert (await reader.read()).endswith(b"0\r\n\r\n")
        assert not request.done()
        work.set()
        assert await request == (200, "")
        await server
    writer.close()


async def test_a_port_in_use_is_a_one_line_error(server_tls: type[ServerTls]) -> None:
    async with serving(application(), server_tls(SERVING)) as listener:
        with pytest.raises(CannotListen) as error:
            await listen(application(), tls=server_tls(SERVING), host="127.0.0.1", port=listener.port)
    assert str(error.value) == f"cannot listen on 127.0.0.1 port {listener.port}: Address already in use"


async def test_shutdown_waits_for_the_rest_of_a_request_body(server_tls: type[ServerTls], tmp_path: Path) -> None:
    stages = ShutdownStages(draining=asyncio.Event(), shutdown=asyncio.Event())
    entered, stop = asyncio.Event(), asyncio.Event()

    async def handler(http: web.Request) -> web.StreamResponse:
        entered.set()
        return web.Response(text=await http.text())

    listener = await listen(application(handler), tls=server_tls(SERVING), host="127.0.0.1", port=0, grace=4)
    server = asyncio.create_task(serve_until_stopped(listener, stages, stop=stop))
    reader, writer = await asyncio.open_connection("127.0.0.1", listener.port, ssl=client_tls(tmp_path))
    writer.write(b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\nfirst")
    await entered.wait()
    stop.set()
    await stages.shutdown.wait()
    writer.write(b"-last")
    async with asyncio.timeout(5):
        answer = await reader.read()
        await server
    writer.close()
    assert answer.startswith(b"HTTP/1.1 200")
    assert b"Connection: close" in answer
    assert answer.endswith(b"first-last")


async def test_a_request_that_never_ends_does_not_block_the_shutdown(
    server_tls: type[ServerTls], tmp_path: Path
) -> None:
    stages = ShutdownStages(draining=asyncio.Event(), shutdown=asyncio.Event())
    entered, stop = asyncio.Event(), asyncio.Event()

    async def handler(http: web.Request) -> web.StreamResponse:
        entered.set()
        await asyncio.Event().wait()
        return web.Response()

    listener = await listen(application(handler), tls=server_tls(SERVING), host="127.0.0.1", port=0, grace=0.2)
    server = asyncio.create_task(serve_until_stopped(listener, stages, stop=stop))
    request = asyncio.create_task(get(listener, client_tls(tmp_path)))
    await entered.wait()
    stop.set()
    async with asyncio.timeout(5):
        await server
    with pytest.raises(ClientError):
        await request
