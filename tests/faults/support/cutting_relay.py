"""A relay from plain TCP to the TLS of a cluster that cuts chosen responses after any number of bytes."""

from __future__ import annotations

import asyncio
import contextlib
import re
import ssl
from collections.abc import Callable

Cut = Callable[[bytes], int | None]
"""Returns after how many bytes the response to the request with this head is cut, None for not at all. Called once per
request."""

_LENGTH = re.compile(rb"(?i)\r\ncontent-length: *(\d+)")
REFUSED = -1
"""In place of a number of bytes: the relay responds 400, as a cluster does that does not know a query parameter."""
_BAD_REQUEST = (
    b"HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\nContent-Length: 73\r\nConnection: close\r\n\r\n"
    b'{"kind":"Status","status":"Failure","code":400,"reason":"BadRequest"}    '
)


class CuttingRelay:
    """Relays one request per connection."""

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
        """Closes the listener and all connections."""
        assert self._server is not None
        self._server.close()
        serving = tuple(self._serving)
        for each in serving:
            each.cancel()
        await asyncio.gather(*serving)
        # the event loop needs two iterations to close a connection that was being opened
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
        remaining = self._cut(head)
        if remaining == REFUSED:
            writer.write(_BAD_REQUEST)
            await writer.drain()
            return
        response, upstream = await asyncio.open_connection("127.0.0.1", self._port, ssl=self._tls)
        try:
            upstream.write(head.replace(b"\r\n", b"\r\nConnection: close\r\n", 1))
            if length := _LENGTH.search(head):
                upstream.write(await reader.readexactly(int(length[1])))
            ended = asyncio.ensure_future(reader.read())
            await self._copy_response(response, writer, remaining, ended)
            ended.cancel()
        finally:
            upstream.transport.abort()

    async def _copy_response(
        self,
        response: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        remaining: int | None,
        ended: asyncio.Future[bytes],
    ) -> None:
        """Copies until the response ends, `remaining` bytes are copied or the client disconnects."""
        while remaining is None or remaining > 0:
            more = asyncio.ensure_future(response.read(65536 if remaining is None else min(remaining, 65536)))
            await asyncio.wait((more, ended), return_when=asyncio.FIRST_COMPLETED)
            if not more.done() or not (data := more.result()):
                more.cancel()
                break
            writer.write(data)
            await writer.drain()
            remaining = remaining - len(data) if remaining is not None else None
        # flushes what was written before the connection is aborted
        writer.close()
        await writer.wait_closed()
