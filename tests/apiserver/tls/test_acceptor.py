"""Accepting, reading, writing and closing connections, over real sockets with TLS on both ends."""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import Any, cast

import pytest
from OpenSSL import SSL

from apiserver.tls.acceptor import Acceptor
from apiserver.tls.asyncio_tls import AsyncioServerTls
from apiserver.tls.certificates import make_ca, make_serving
from apiserver.tls.openssl_tls import OpenSslServerTls
from apiserver.tls.server_context import ServerTls
from apiserver.tls.transport import TlsTransport

CA = make_ca("accepting-ca")
PAIR = make_serving(CA, ["127.0.0.1"])
CLIENT = ssl.create_default_context(cadata=CA.certificate.decode())
MEBIBYTE = 1 << 20


class Recorder(asyncio.Protocol):
    """The protocol of one connection; it records the calls of its transport."""

    def __init__(self) -> None:
        self.received = bytearray()
        self.calls: list[str] = []
        self.arrived = asyncio.Event()
        self.lost: asyncio.Future[Exception | None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(TlsTransport, transport)

    def data_received(self, data: bytes) -> None:
        self.received += data
        self.arrived.set()

    def pause_writing(self) -> None:
        self.calls.append("pause")

    def resume_writing(self) -> None:
        self.calls.append("resume")

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost.set_result(exc)

    async def wait_for_bytes(self, size: int) -> None:
        """Wait until `size` bytes have been received."""
        while len(self.received) < size:
            self.arrived.clear()
            await self.arrived.wait()


class Port:
    """An open port and its connections."""

    def __init__(self, tls: ServerTls, handshake: float) -> None:
        self.connections: asyncio.Queue[Recorder] = asyncio.Queue()
        self._clients: list[asyncio.StreamWriter] = []
        bound = socket.create_server(("127.0.0.1", 0))
        # small, so that a client that does not read fills it soon
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 32 * 1024)
        self.acceptor = Acceptor(bound, tls, self._protocol, handshake=handshake)

    def _protocol(self) -> asyncio.Protocol:
        recorder = Recorder()
        self.connections.put_nowait(recorder)
        return recorder

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter, Recorder]:
        """Both ends of a new connection."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.acceptor.port, ssl=CLIENT)
        self._clients.append(writer)
        return reader, writer, await self.connections.get()

    async def close(self) -> None:
        await self.acceptor.close()
        await self.acceptor.wait_closed(within=0.0)
        for client in self._clients:
            client.transport.abort()
            with suppress(OSError):
                await client.wait_closed()


@asynccontextmanager
async def open_port(tls: ServerTls, handshake: float = 5.0) -> AsyncIterator[Port]:
    opened = Port(tls, handshake)
    async with asyncio.timeout(20):
        yield opened
        await opened.close()


OpenPort = Callable[..., AbstractAsyncContextManager[Port]]


@pytest.fixture(params=[OpenSslServerTls, AsyncioServerTls], ids=["openssl", "asyncio"])
def port(request: pytest.FixtureRequest) -> OpenPort:
    """Opens a port with each implementation of TLS that `--tls-transport` selects from."""
    return lambda **options: open_port(request.param(PAIR), **options)


async def test_bytes_are_sent_in_both_directions(port: OpenPort) -> None:
    async with port() as opened_port:
        reader, writer, server = await opened_port.connect()
        writer.write(b"ping")
        await server.wait_for_bytes(4)
        server.transport.write(bytearray(b"po"))
        server.transport.writelines([memoryview(b"n"), b"g"])
        assert (bytes(server.received), await reader.readexactly(4)) == (b"ping", b"pong")
        writer.close()
        assert await server.lost is None


async def test_a_large_body_arrives_complete_and_in_order(port: OpenPort) -> None:
    body = os.urandom(3 * MEBIBYTE)
    async with port() as opened_port:
        _, writer, server = await opened_port.connect()
        writer.write(body)
        await server.wait_for_bytes(len(body))
        assert server.received == body


async def test_data_for_a_slow_client_is_buffered_and_pauses_the_protocol(port: OpenPort) -> None:
    frames = [os.urandom(256 * 1024) for _ in range(32)]
    async with port() as opened_port:
        reader, _writer, server = await opened_port.connect()
        for frame in frames:
            server.transport.write(frame)
        assert server.calls == ["pause"]
        assert server.transport.get_write_buffer_size() > MEBIBYTE
        assert await reader.readexactly(8 * MEBIBYTE) == b"".join(frames)
        # the buffer is empty again, so the protocol has been resumed
        server.transport.write(b"!")
        assert await reader.readexactly(1) == b"!"
        assert server.calls == ["pause", "resume"]
        assert server.transport.get_write_buffer_size() == 0


async def test_write_buffer_limits_can_be_set() -> None:
    async with open_port(OpenSslServerTls(PAIR)) as opened_port:
        _, _writer, server = await opened_port.connect()
        transport = server.transport
        assert transport.get_write_buffer_limits() == (16 * 1024, 64 * 1024)
        transport.set_write_buffer_limits(high=64 * MEBIBYTE)
        transport.write(bytes(32 * MEBIBYTE))
        assert server.calls == []
        transport.set_write_buffer_limits(high=MEBIBYTE, low=0)
        assert server.calls == ["pause"]
        transport.abort()


async def test_buffers_of_many_clients_share_a_frame() -> None:
    frame = bytes(8 * MEBIBYTE)
    async with open_port(OpenSslServerTls(PAIR)) as opened_port:
        opened = [await opened_port.connect() for _ in range(3)]
        for _, _, server in opened:
            server.transport.write(frame)
        buffers = [cast(Any, server.transport)._unsent[-1] for _, _, server in opened]
        assert all(each is frame for each in buffers)


async def test_a_paused_protocol_receives_nothing_until_it_resumes(port: OpenPort) -> None:
    async with port() as opened_port:
        _, writer, server = await opened_port.connect()
        server.transport.pause_reading()
        server.transport.pause_reading()
        writer.write(bytes(MEBIBYTE))
        reader, _, neighbour = await opened_port.connect()
        neighbour.transport.write(b"by now it would be there.")
        await reader.readexactly(25)
        assert not server.received
        assert not server.transport.is_reading()
        server.transport.resume_reading()
        await server.wait_for_bytes(MEBIBYTE)


async def test_close_sends_the_write_buffer_first(port: OpenPort) -> None:
    content = os.urandom(8 * MEBIBYTE)
    # which is also how long the client may take to read on a busy machine
    async with port(handshake=20) as opened_port:
        reader, _writer, server = await opened_port.connect()
        server.transport.write(content)
        server.transport.close()
        server.transport.close()
        assert server.transport.is_closing()
        assert await reader.read(-1) == content
        assert await server.lost is None


async def test_writing_after_close_is_ignored() -> None:
    async with open_port(OpenSslServerTls(PAIR)) as opened_port:
        reader, _writer, server = await opened_port.connect()
        server.transport.write(b"in time")
        server.transport.close()
        server.transport.write(b"too late")
        assert await reader.read(-1) == b"in time"


async def test_a_response_before_the_end_of_a_body_reaches_a_client_that_is_still_sending(port: OpenPort) -> None:
    """Closing a socket with unread data resets the connection, and the client would lose the response."""
    async with port() as opened_port:
        reader, writer, server = await opened_port.connect()
        writer.write(bytes(MEBIBYTE))
        await server.wait_for_bytes(1)
        server.transport.write(b"413")
        server.transport.close()
        # asyncio reports the bytes that came after its own end of the connection
        assert isinstance(await server.lost, ssl.SSLError | None)
        writer.write(bytes(MEBIBYTE))
        assert await reader.read() == b"413"


async def test_a_client_that_keeps_sending_after_the_close_is_disconnected(port: OpenPort) -> None:
    async with port(handshake=0.2) as opened_port:
        plain = await asyncio.to_thread(shake_hands, opened_port.acceptor.port)
        server = await opened_port.connections.get()
        server.transport.close()
        await server.lost
        with plain, pytest.raises(ConnectionError):
            await asyncio.to_thread(send_for_ever, plain)


async def test_after_the_close_a_limited_number_of_bytes_is_read() -> None:
    """ATTACK-19: a gigabyte would keep the server busy."""
    async with open_port(OpenSslServerTls(PAIR), handshake=60) as opened_port:
        plain = await asyncio.to_thread(shake_hands, opened_port.acceptor.port)
        server = await opened_port.connections.get()
        server.transport.close()
        await server.lost
        with plain, pytest.raises(ConnectionError):
            await asyncio.to_thread(send_for_ever, plain)


async def test_above_the_limit_the_oldest_handshake_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    """ATTACK-19"""
    monkeypatch.setattr("apiserver.tls.acceptor._MAX_HANDSHAKES", 5)
    async with open_port(OpenSslServerTls(PAIR), handshake=60) as opened_port:
        silent = [await asyncio.open_connection("127.0.0.1", opened_port.acceptor.port) for _ in range(8)]
        for reader, _ in silent[:3]:
            with suppress(ConnectionError):
                assert await reader.read() == b""
        await opened_port.connect()
        for _, writer in silent:
            writer.close()


def shake_hands(port: int) -> socket.socket:
    plain = socket.create_connection(("127.0.0.1", port), timeout=5)
    plain.setblocking(True)
    connection = SSL.Connection(SSL.Context(SSL.TLS_CLIENT_METHOD), plain)
    connection.set_connect_state()
    connection.do_handshake()
    return plain


def send_for_ever(plain: socket.socket) -> None:
    while True:
        plain.sendall(b"junk" * 1024)


async def test_a_client_that_closes_cleanly_is_disconnected(port: OpenPort) -> None:
    async with port() as opened_port:
        reader, writer, server = await opened_port.connect()
        writer.close()
        assert await server.lost is None
        assert await reader.read() == b""


@pytest.mark.parametrize("disconnect", [lambda client: client.transport.abort(), lambda client: reset(client)])
async def test_a_client_that_aborts_is_disconnected(
    port: OpenPort, disconnect: Callable[[asyncio.StreamWriter], None]
) -> None:
    async with port() as opened_port:
        _, writer, server = await opened_port.connect()
        disconnect(writer)
        assert isinstance(await server.lost, ConnectionResetError | None)
        server.transport.write(b"nobody hears")


def reset(client: asyncio.StreamWriter) -> None:
    """Have the kernel send RST."""
    plain = client.get_extra_info("socket")
    plain.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    client.transport.abort()


async def test_abort_drops_the_write_buffer(port: OpenPort) -> None:
    async with port() as opened_port:
        _, _writer, server = await opened_port.connect()
        server.transport.write(bytes(8 * MEBIBYTE))
        server.transport.abort()
        server.transport.abort()
        assert await server.lost is None
        assert server.transport.get_write_buffer_size() == 0


async def test_the_event_loop_runs_between_the_steps_of_handshakes() -> None:
    """Many handshakes at once must not block other clients (WIRE-H46)."""
    loop, passes, steps = asyncio.get_running_loop(), [0], list[int]()

    def tick() -> None:
        passes[0] += 1
        loop.call_soon(tick)

    class Recording(OpenSslServerTls):
        def accept(self, plain: socket.socket) -> SSL.Connection:
            connection = super().accept(plain)
            do_handshake = connection.do_handshake

            def step() -> None:
                steps.append(passes[0])
                do_handshake()

            connection.do_handshake = step  # type: ignore[method-assign]
            return connection

    async with open_port(Recording(PAIR)) as opened_port:
        loop.call_soon(tick)
        await asyncio.gather(*(opened_port.connect() for _ in range(20)))
    assert len(steps) >= 40
    assert len(set(steps)) == len(steps)


async def test_waiting_in_the_handshake_queue_does_not_count_against_the_timeout() -> None:
    """Otherwise, of thousands of clients that connect at once, the last would be disconnected. The handshakes take
    three seconds together, because a busy machine can delay one of them by more than one second."""
    clients, step = 30, 0.1

    class Slow(OpenSslServerTls):
        def accept(self, plain: socket.socket) -> SSL.Connection:
            connection = super().accept(plain)
            do_handshake = connection.do_handshake

            def slow() -> None:
                until = time.monotonic() + step
                while time.monotonic() < until:
                    pass
                do_handshake()

            connection.do_handshake = slow  # type: ignore[method-assign]
            return connection

    async with open_port(Slow(PAIR), handshake=clients * step) as opened_port:
        assert len(await asyncio.gather(*(opened_port.connect() for _ in range(clients)))) == clients


async def test_silent_clients_do_not_block_others(port: OpenPort) -> None:
    async with port() as opened_port:
        silent = [socket.create_connection(("127.0.0.1", opened_port.acceptor.port)) for _ in range(50)]
        reader, _writer, server = await opened_port.connect()
        server.transport.write(b"hello")
        assert await reader.readexactly(5) == b"hello"
        for each in silent:
            each.close()


async def test_closing_the_port_drops_unfinished_handshakes(port: OpenPort) -> None:
    async with port(handshake=60) as opened_port:
        _, _, server = await opened_port.connect()
        reader, writer = await asyncio.open_connection("127.0.0.1", opened_port.acceptor.port)
        await opened_port.acceptor.close()
        assert await reader.read() == b""
        writer.close()
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("127.0.0.1", opened_port.acceptor.port)
        assert not server.transport.is_closing()
        await opened_port.acceptor.wait_closed(within=0.0)
        assert await server.lost is None


async def test_accepting_continues_after_file_descriptors_ran_out(
    port: OpenPort, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    loop = asyncio.get_running_loop()
    accept, outcomes = loop.sock_accept, [OSError(24, "Too many open files"), ConnectionAbortedError(103, "gone")]

    async def exhausted(listening: socket.socket) -> tuple[socket.socket, Any]:
        if outcomes:
            raise outcomes.pop(0)
        return await accept(listening)

    monkeypatch.setattr("apiserver.tls.acceptor._RECOVERY_SECONDS", 0.0)
    monkeypatch.setattr(loop, "sock_accept", exhausted)
    async with port() as opened_port:
        await opened_port.connect()
    assert not outcomes
    assert "connections cannot be accepted: Too many open files" in caplog.text
