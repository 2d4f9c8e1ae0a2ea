"""How clients come in, and how their connections are read, written and ended: a real socket with TLS on both ends."""

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
    """One connection as its protocol sees it."""

    def __init__(self) -> None:
        self.received = bytearray()
        self.told: list[str] = []
        self.arrived = asyncio.Event()
        self.lost: asyncio.Future[Exception | None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(TlsTransport, transport)

    def data_received(self, data: bytes) -> None:
        self.received += data
        self.arrived.set()

    def pause_writing(self) -> None:
        self.told.append("pause")

    def resume_writing(self) -> None:
        self.told.append("resume")

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost.set_result(exc)

    async def has(self, size: int) -> None:
        """Wait for so many bytes."""
        while len(self.received) < size:
            self.arrived.clear()
            await self.arrived.wait()


class Port:
    """An open port, and the connections that came in by it."""

    def __init__(self, tls: ServerTls, handshake: float) -> None:
        self.came: asyncio.Queue[Recorder] = asyncio.Queue()
        self._clients: list[asyncio.StreamWriter] = []
        bound = socket.create_server(("127.0.0.1", 0))
        # what a client does not read shall fill the buffers soon
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 32 * 1024)
        self.acceptor = Acceptor(bound, tls, self._protocol, handshake=handshake)

    def _protocol(self) -> asyncio.Protocol:
        recorder = Recorder()
        self.came.put_nowait(recorder)
        return recorder

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter, Recorder]:
        """Both ends of a new connection."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.acceptor.port, ssl=CLIENT)
        self._clients.append(writer)
        return reader, writer, await self.came.get()

    async def close(self) -> None:
        await self.acceptor.close()
        await self.acceptor.emptied(within=0.0)
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


async def test_bytes_go_both_ways(port: OpenPort) -> None:
    async with port() as at:
        reader, writer, server = await at.connect()
        writer.write(b"ping")
        await server.has(4)
        server.transport.write(bytearray(b"po"))
        server.transport.writelines([memoryview(b"n"), b"g"])
        assert (bytes(server.received), await reader.readexactly(4)) == (b"ping", b"pong")
        writer.close()
        assert await server.lost is None


async def test_a_body_of_megabytes_comes_whole_and_in_order(port: OpenPort) -> None:
    body = os.urandom(3 * MEBIBYTE)
    async with port() as at:
        _, writer, server = await at.connect()
        writer.write(body)
        await server.has(len(body))
        assert server.received == body


async def test_what_a_slow_client_does_not_take_waits_and_its_writer_is_told(port: OpenPort) -> None:
    frames = [os.urandom(256 * 1024) for _ in range(32)]
    async with port() as at:
        reader, _writer, server = await at.connect()
        for frame in frames:
            server.transport.write(frame)
        assert server.told == ["pause"]
        assert server.transport.get_write_buffer_size() > MEBIBYTE
        assert await reader.readexactly(8 * MEBIBYTE) == b"".join(frames)
        # the last of it has left, and with it what was said of waiting
        server.transport.write(b"!")
        assert await reader.readexactly(1) == b"!"
        assert server.told == ["pause", "resume"]
        assert server.transport.get_write_buffer_size() == 0


async def test_limits_of_what_waits_can_be_set() -> None:
    async with open_port(OpenSslServerTls(PAIR)) as at:
        _, _writer, server = await at.connect()
        transport = server.transport
        assert transport.get_write_buffer_limits() == (16 * 1024, 64 * 1024)
        transport.set_write_buffer_limits(high=64 * MEBIBYTE)
        transport.write(bytes(32 * MEBIBYTE))
        assert server.told == []
        transport.set_write_buffer_limits(high=MEBIBYTE, low=0)
        assert server.told == ["pause"]
        transport.abort()


async def test_a_frame_that_many_wait_for_is_held_once() -> None:
    frame = bytes(8 * MEBIBYTE)
    async with open_port(OpenSslServerTls(PAIR)) as at:
        opened = [await at.connect() for _ in range(3)]
        for _, _, server in opened:
            server.transport.write(frame)
        held = [cast(Any, server.transport)._unsent[-1] for _, _, server in opened]
        assert all(each is frame for each in held)


async def test_a_reader_that_pauses_is_sent_nothing_until_it_goes_on(port: OpenPort) -> None:
    async with port() as at:
        _, writer, server = await at.connect()
        server.transport.pause_reading()
        server.transport.pause_reading()
        writer.write(bytes(MEBIBYTE))
        reader, _, neighbour = await at.connect()
        neighbour.transport.write(b"by now it would have come")
        await reader.readexactly(25)
        assert not server.received
        assert not server.transport.is_reading()
        server.transport.resume_reading()
        await server.has(MEBIBYTE)


async def test_closing_sends_all_that_waits_first(port: OpenPort) -> None:
    content = os.urandom(8 * MEBIBYTE)
    async with port() as at:
        reader, _writer, server = await at.connect()
        server.transport.write(content)
        server.transport.close()
        server.transport.close()
        assert server.transport.is_closing()
        assert await reader.read(-1) == content
        assert await server.lost is None


async def test_writing_after_close_is_ignored() -> None:
    async with open_port(OpenSslServerTls(PAIR)) as at:
        reader, _writer, server = await at.connect()
        server.transport.write(b"in time")
        server.transport.close()
        server.transport.write(b"too late")
        assert await reader.read(-1) == b"in time"


async def test_an_answer_before_the_end_of_a_body_reaches_a_client_that_goes_on_sending(port: OpenPort) -> None:
    """Closing a socket on which something is unread resets it, and takes the answer from the client."""
    async with port() as at:
        reader, writer, server = await at.connect()
        writer.write(bytes(MEBIBYTE))
        await server.has(1)
        server.transport.write(b"413")
        server.transport.close()
        # asyncio reports the bytes that came after its own end of the connection
        assert isinstance(await server.lost, ssl.SSLError | None)
        writer.write(bytes(MEBIBYTE))
        assert await reader.read() == b"413"


async def test_a_client_that_goes_on_for_ever_after_the_end_is_cut(port: OpenPort) -> None:
    async with port(handshake=0.2) as at:
        plain = await asyncio.to_thread(shake_hands, at.acceptor.port)
        server = await at.came.get()
        server.transport.close()
        await server.lost
        with plain, pytest.raises(ConnectionError):
            await asyncio.to_thread(send_for_ever, plain)


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


async def test_a_client_that_says_goodbye_is_gone(port: OpenPort) -> None:
    async with port() as at:
        reader, writer, server = await at.connect()
        writer.close()
        assert await server.lost is None
        assert await reader.read() == b""


@pytest.mark.parametrize("act", [lambda client: client.transport.abort(), lambda client: reset(client)])
async def test_a_client_that_breaks_off_is_gone(port: OpenPort, act: Callable[[asyncio.StreamWriter], None]) -> None:
    async with port() as at:
        _, writer, server = await at.connect()
        act(writer)
        assert isinstance(await server.lost, ConnectionResetError | None)
        server.transport.write(b"nobody hears")


def reset(client: asyncio.StreamWriter) -> None:
    """Have the kernel send RST."""
    plain = client.get_extra_info("socket")
    plain.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    client.transport.abort()


async def test_aborting_leaves_what_waits_behind(port: OpenPort) -> None:
    async with port() as at:
        _, _writer, server = await at.connect()
        server.transport.write(bytes(8 * MEBIBYTE))
        server.transport.abort()
        server.transport.abort()
        assert await server.lost is None
        assert server.transport.get_write_buffer_size() == 0


async def test_others_are_served_between_two_handshakes() -> None:
    """A crowd that comes at once must not keep everybody waiting (WIRE-H46)."""
    loop, passes, steps = asyncio.get_running_loop(), [0], list[int]()

    def tick() -> None:
        passes[0] += 1
        loop.call_soon(tick)

    class Noting(OpenSslServerTls):
        def accept(self, plain: socket.socket) -> SSL.Connection:
            connection = super().accept(plain)
            whole = connection.do_handshake

            def step() -> None:
                steps.append(passes[0])
                whole()

            connection.do_handshake = step  # type: ignore[method-assign]
            return connection

    async with open_port(Noting(PAIR)) as at:
        loop.call_soon(tick)
        await asyncio.gather(*(at.connect() for _ in range(20)))
    assert len(steps) >= 40
    assert len(set(steps)) == len(steps)


async def test_waiting_for_a_turn_takes_nothing_of_a_client_s_time() -> None:
    """Of thousands that come at once the last would otherwise be cut."""
    crowd, step = 30, 0.03

    class Slow(OpenSslServerTls):
        def accept(self, plain: socket.socket) -> SSL.Connection:
            connection = super().accept(plain)
            whole = connection.do_handshake

            def slow() -> None:
                until = time.monotonic() + step
                while time.monotonic() < until:
                    pass
                whole()

            connection.do_handshake = slow  # type: ignore[method-assign]
            return connection

    async with open_port(Slow(PAIR), handshake=crowd * step) as at:
        assert len(await asyncio.gather(*(at.connect() for _ in range(crowd)))) == crowd


async def test_who_says_nothing_holds_up_nobody(port: OpenPort) -> None:
    async with port() as at:
        silent = [socket.create_connection(("127.0.0.1", at.acceptor.port)) for _ in range(50)]
        reader, _writer, server = await at.connect()
        server.transport.write(b"hello")
        assert await reader.readexactly(5) == b"hello"
        for each in silent:
            each.close()


async def test_a_port_that_is_closed_lets_go_of_those_who_are_not_in_yet(port: OpenPort) -> None:
    async with port(handshake=60) as at:
        _, _, server = await at.connect()
        reader, writer = await asyncio.open_connection("127.0.0.1", at.acceptor.port)
        await at.acceptor.close()
        assert await reader.read() == b""
        writer.close()
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("127.0.0.1", at.acceptor.port)
        assert not server.transport.is_closing()
        await at.acceptor.emptied(within=0.0)
        assert await server.lost is None


async def test_a_process_without_descriptors_accepts_again_once_it_has_some(
    port: OpenPort, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    loop = asyncio.get_running_loop()
    accept, answers = loop.sock_accept, [OSError(24, "Too many open files"), ConnectionAbortedError(103, "gone")]

    async def exhausted(listening: socket.socket) -> tuple[socket.socket, Any]:
        if answers:
            raise answers.pop(0)
        return await accept(listening)

    monkeypatch.setattr("apiserver.tls.acceptor._RECOVERY_SECONDS", 0.0)
    monkeypatch.setattr(loop, "sock_accept", exhausted)
    async with port() as at:
        await at.connect()
    assert not answers
    assert "connections cannot be accepted: Too many open files" in caplog.text
