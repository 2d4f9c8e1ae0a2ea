"""The descriptor of a broken connection is closed once: its number may be another connection's by then."""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest

from apiserver.server.event_loop import run

_RESET = struct.pack("ii", 1, 0)


@pytest.fixture
def port() -> Iterator[int]:
    """Of a server that keeps its connections open."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening.getsockname()[1]


@pytest.fixture
def resetting_port() -> Iterator[int]:
    """Of a server that resets each connection that it accepts."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def reset() -> None:
            with suppress(OSError):
                while True:
                    accepted, _ = listening.accept()
                    accepted.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
                    accepted.close()

        thread = threading.Thread(target=reset)
        thread.start()
        yield listening.getsockname()[1]
        listening.shutdown(socket.SHUT_RDWR)
        thread.join()


class _Aborting(asyncio.Protocol):
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert hasattr(transport, "abort")
        transport.abort()


def owns_closed_descriptor(connected: socket.socket) -> bool:
    """True if the socket would close a descriptor that is closed already."""
    if connected.fileno() < 0:
        return False
    try:
        os.fstat(connected.fileno())
    except OSError:
        connected.detach()
        return True
    return False


async def connect(port: int) -> socket.socket:
    """Raises OSError."""
    connected = socket.socket()
    connected.setblocking(False)
    try:
        await asyncio.get_running_loop().sock_connect(connected, ("127.0.0.1", port))
    except OSError:
        connected.close()
        raise
    return connected


@pytest.mark.parametrize(
    ("protocol", "cancelled"),
    [
        pytest.param(_Aborting, False, id="aborted by its protocol"),
        pytest.param(asyncio.Protocol, True, id="cancelled"),
        pytest.param(asyncio.Protocol, False, id="closed later"),
    ],
)
def test_a_socket_that_was_passed_on_closes_nothing(
    port: int, protocol: Callable[[], asyncio.Protocol], cancelled: bool
) -> None:
    async def main() -> None:
        connected, loop = await connect(port), asyncio.get_running_loop()
        creating = asyncio.create_task(loop.create_connection(protocol, sock=connected))
        await asyncio.sleep(0)
        if cancelled:
            creating.cancel()
        with suppress(asyncio.CancelledError):
            transport, _ = await creating
            transport.close()
        await asyncio.sleep(0.01)
        assert connected.fileno() < 0

    run(main())


def test_connections_that_are_reset_while_they_begin_close_nothing_of_others(resetting_port: int) -> None:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE

    async def main() -> None:
        loop = asyncio.get_running_loop()
        for _ in range(200):
            try:
                connected = await connect(resetting_port)
            except OSError:
                continue
            with suppress(OSError):
                await loop.create_connection(asyncio.Protocol, sock=connected, ssl=context, server_hostname="x")
            assert not owns_closed_descriptor(connected)
            connected.close()

    run(main())


def test_hosts_and_ports_are_connected_as_usual(port: int) -> None:
    async def main() -> None:
        transport, _ = await asyncio.get_running_loop().create_connection(asyncio.Protocol, "127.0.0.1", port)
        assert transport.get_extra_info("peername") == ("127.0.0.1", port)
        transport.close()

    run(main())
