"""A relay from plain TCP to a host's TLS that ends chosen answers after so many bytes, heads and chunk sizes too."""

from __future__ import annotations

import asyncio
import contextlib
import re
import ssl
from collections.abc import Callable

Cut = Callable[[bytes], int | None]
"""After how many bytes the answer to the request with this head ends; None lets it pass. Asked once a request."""

_LENGTH = re.compile(rb"(?i)\r\ncontent-length: *(\d+)")
REFUSED = -1
"""Instead of a number: the request is answered 400, as by a host that does not know its parameters."""
_BAD_REQUEST = (
    b"HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\nContent-Length: 73\r\nConnection: close\r\n\r\n"
    b'{"kind":"Status","status":"Failure","code":400,"reason":"BadRequest"}    '
)


class CuttingRelay:
    """One request a connection."""

    def __init__(self, port: int, tls: ssl.SSLContext, cut: Cut) -> None:
        self._port = port
        self._tls = tls
        self._cut = cut
        self._server: asyncio.Server | None = None
        self._serving: set[asyncio.Task[None]] = set()
        self.url = ""

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def close(self) -> None:
        """With everything that is still under way."""
        assert self._server is not None
        self._server.close()
        serving = tuple(self._serving)
        for each in serving:
            each.cancel()
        await asyncio.gather(*serving)
        # a connection that was being made is closed by the loop, two passes later
        for _ in range(3):
            await asyncio.sleep(0)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        own = asyncio.current_task()
        assert own is not None
        self._serving.add(own)
        own.add_done_callback(self._serving.discard)
        with contextlib.suppress(OSError, EOFError, asyncio.CancelledError):
            await self._relay(reader, writer)
        writer.transport.abort()

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        left = self._cut(head)
        if left == REFUSED:
            writer.write(_BAD_REQUEST)
            await writer.drain()
            return
        host, upstream = await asyncio.open_connection("127.0.0.1", self._port, ssl=self._tls)
        try:
            upstream.write(head.replace(b"\r\n", b"\r\nConnection: close\r\n", 1))
            if length := _LENGTH.search(head):
                upstream.write(await reader.readexactly(int(length[1])))
            ended = asyncio.ensure_future(reader.read())
            await self._answer(host, writer, left, ended)
            ended.cancel()
        finally:
            upstream.transport.abort()

    async def _answer(
        self, host: asyncio.StreamReader, writer: asyncio.StreamWriter, left: int | None, ended: asyncio.Future[bytes]
    ) -> None:
        """Until the host has said all, so many bytes have passed, or the client has gone."""
        while left is None or left > 0:
            more = asyncio.ensure_future(host.read(65536 if left is None else min(left, 65536)))
            await asyncio.wait((more, ended), return_when=asyncio.FIRST_COMPLETED)
            if not more.done() or not (data := more.result()):
                more.cancel()
                break
            writer.write(data)
            await writer.drain()
            left = left - len(data) if left is not None else None
        # what was written leaves before the connection is cut
        writer.close()
        await writer.wait_closed()
