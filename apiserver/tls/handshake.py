"""Waits for a socket during a TLS handshake, and limits the time that the client takes."""

from __future__ import annotations

import asyncio
import socket


class HandshakeTimer:
    """Counts down the seconds that a client has left, only while the server waits for the client.

    Otherwise, if thousands of clients connected simultaneously, the last ones would time out before they were served.
    """

    def __init__(self, plain: socket.socket, seconds: float) -> None:
        self._plain = plain
        self.left = seconds

    async def wait_for_client(self, *, writing: bool = False) -> None:
        """Wait until the socket is readable or, with `writing`, writable. Raises TimeoutError."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        async with asyncio.timeout(self.left):
            await _wait_for_socket(self._plain, writing=writing)
        self.left -= loop.time() - began


async def _wait_for_socket(plain: socket.socket, *, writing: bool) -> None:
    loop = asyncio.get_running_loop()
    ready = loop.create_future()

    def notify() -> None:
        if not ready.done():
            ready.set_result(None)

    (loop.add_writer if writing else loop.add_reader)(plain, notify)
    try:
        await ready
    finally:
        (loop.remove_writer if writing else loop.remove_reader)(plain)
