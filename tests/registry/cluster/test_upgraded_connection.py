"""Connections to the cluster that have switched protocols."""

from __future__ import annotations

import asyncio
import socket
import ssl
from pathlib import Path

import pytest
import uvloop
from multidict import CIMultiDict

from registry.cluster.kubernetes_asyncio_shim import Configuration
from registry.cluster.upstream import UpstreamClient
from tests.apiserver.server.https_listener import CA, SERVING

OUTPUT = bytes(range(256)) * 512
SWITCHED = b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n"


class Received(asyncio.Protocol):
    def __init__(self) -> None:
        self.content = bytearray()
        self.ended = asyncio.Event()

    def data_received(self, data: bytes) -> None:
        self.content += data

    def connection_lost(self, exc: Exception | None) -> None:
        self.ended.set()


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run])
def test_output_that_arrives_while_reading_is_paused_is_not_lost_at_the_end(run: object, tmp_path: Path) -> None:
    assert callable(run)
    assert run(_received_after_the_end(tmp_path)) == OUTPUT


async def _received_after_the_end(directory: Path) -> bytes:
    listener = socket.create_server(("127.0.0.1", 0))
    configuration = Configuration(host=f"https://127.0.0.1:{listener.getsockname()[1]}")
    configuration.ssl_ca_cert = str(directory / "ca.crt")
    tls = _server_tls(directory)
    client = UpstreamClient(configuration)
    serving = asyncio.create_task(asyncio.to_thread(_serve, listener, tls))
    try:
        answer = await client.upgrade("POST", "/", CIMultiDict({"Connection": "Upgrade", "Upgrade": "SPDY/3.1"}))
        await serving
        # what has arrived, with the end of the connection, is read now if anything is
        for _ in range(20):
            await asyncio.sleep(0)
        received = Received()
        assert answer.transport is not None
        answer.transport.set_protocol(received)
        answer.transport.resume_reading()
        async with asyncio.timeout(20):
            await received.ended.wait()
        return answer.rest + received.content
    finally:
        await client.close()


def _serve(listener: socket.socket, tls: ssl.SSLContext) -> None:
    """Switches protocols, sends the output and ends the connection at once."""
    with listener, tls.wrap_socket(listener.accept()[0], server_side=True) as connection:
        connection.recv(65536)
        connection.sendall(SWITCHED)
        connection.sendall(OUTPUT)


def _server_tls(directory: Path) -> ssl.SSLContext:
    """Writes the CA of the server, too."""
    files = [directory / "server.crt", directory / "server.key", directory / "ca.crt"]
    for path, content in zip(files, (SERVING.certificate, SERVING.key, CA.certificate), strict=True):
        path.write_bytes(content)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(files[0], files[1])
    return context
