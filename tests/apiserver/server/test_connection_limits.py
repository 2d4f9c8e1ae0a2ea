"""The listener's limits of heads, connections and idle time."""

from __future__ import annotations

import asyncio
import ssl
from contextlib import suppress
from pathlib import Path

import pytest
from aiohttp import ClientSession, ClientTimeout, TCPConnector, web

from apiserver.authentication.peers import Peers
from apiserver.authentication.request_header import RequestHeaderAuthenticator, RequestHeaderConfig
from apiserver.authentication.x509 import CertificateVerifier, ClientCertificateAuthenticator, PeerCertificates
from apiserver.request.bytes_in_flight import BytesInFlight
from apiserver.request.context import User
from apiserver.server.http_protocol import connection_of
from apiserver.server.listener import (
    ConnectionLimits,
    Listener,
    listen,
)
from apiserver.tls.certificates import make_ca, make_client
from apiserver.tls.server_context import ServerTls
from tests.apiserver.server.https_listener import ALICE, CLIENT_CA, SERVING, application, client_tls, serving


@pytest.mark.parametrize(
    ("length", "direct", "proxied"),
    [
        pytest.param(60_000, 200, 200, id="less than 64 KiB"),
        pytest.param(70_000, 431, 200, id="more than 64 KiB"),
        pytest.param(1_040_000, 431, 200, id="almost 1 MiB"),
        pytest.param(1_050_000, 431, 431, id="more than 1 MiB"),
    ],
)
async def test_only_a_front_proxy_may_send_long_heads(
    server_tls: type[ServerTls], tmp_path: Path, length: int, direct: int, proxied: int
) -> None:
    """ATTACK-19: the client certificate tells."""
    proxy_ca = make_ca("proxy-ca")
    headers = RequestHeaderAuthenticator(
        config=lambda: RequestHeaderConfig(ca_pem=proxy_ca.certificate, allowed_names=("proxy",)),
        peers=PeerCertificates(),
        verifier=CertificateVerifier(lambda: proxy_ca.certificate),
    )
    tls = server_tls(SERVING, proxy_ca.certificate + CLIENT_CA.certificate)
    listener = await listen(
        application(),
        tls=tls,
        host="127.0.0.1",
        port=0,
        grace=2,
        peers=Peers(is_front_proxy=headers.is_front_proxy),
    )
    pairs = {ALICE: direct, make_client(proxy_ca, "other"): direct, make_client(proxy_ca, "proxy"): proxied}
    for pair, code in pairs.items():
        assert await status_of_long_head(listener, client_tls(tmp_path, pair), length) == code
    assert await status_of_long_head(listener, client_tls(tmp_path), length) == direct
    await listener.close()


async def status_of_long_head(listener: Listener, context: ssl.SSLContext, length: int) -> int:
    reader, writer = await asyncio.open_connection("127.0.0.1", listener.port, ssl=context)
    writer.write(b"GET / HTTP/1.1\r\nHost: h\r\nX-Remote-Group: " + b"g" * length + b"\r\n\r\n")
    async with asyncio.timeout(10):
        line = await reader.readuntil(b"\r\n")
    writer.close()
    return int(line.split()[1])


async def test_the_oldest_connections_without_a_request_are_closed(server_tls: type[ServerTls], tmp_path: Path) -> None:
    """ATTACK-19: those with a valid client certificate stay."""
    certificates = ClientCertificateAuthenticator(
        peers=PeerCertificates(), verifier=CertificateVerifier(lambda: CLIENT_CA.certificate)
    )
    listener = await listen(
        application(),
        tls=server_tls(SERVING, CLIENT_CA.certificate),
        host="127.0.0.1",
        port=0,
        grace=2,
        limits=ConnectionLimits(unidentified=3),
        peers=Peers(user=certificates.user_of),
    )
    opened = []
    for pair in (ALICE, None, None, ALICE, None, None, None):
        reader, writer = await asyncio.open_connection("127.0.0.1", listener.port, ssl=client_tls(tmp_path, pair))
        opened.append((reader, writer))
    async with asyncio.timeout(10):
        for reader, _ in (opened[1], opened[2]):
            with suppress(OSError):
                assert await reader.read() == b""
        for index in (0, 3, 4, 5, 6):
            reader, writer = opened[index]
            writer.write(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n")
            assert (await reader.readuntil(b"\r\n")).startswith(b"HTTP/1.1 200")
    for _, writer in opened:
        writer.close()
    await listener.close()


async def test_users_who_share_have_the_connections_of_one(server_tls: type[ServerTls], tmp_path: Path) -> None:
    """ATTACK-19: a tenant can make any number of ServiceAccounts, each of which could have thousands."""

    async def identify(http: web.Request) -> web.StreamResponse:
        connection_of(http).identify(User(http.headers["X-User"]))
        return web.Response()

    listener = await listen(
        application(identify),
        tls=server_tls(SERVING),
        host="127.0.0.1",
        port=0,
        grace=2,
        limits=ConnectionLimits(per_user=2),
        bytes_in_flight=BytesInFlight(flow_of=lambda user: user.partition(":")[0]),
    )
    opened = []
    async with asyncio.timeout(30):
        for user in ("eve:1", "alice", "eve:2", "eve:3"):
            reader, writer = await asyncio.open_connection("127.0.0.1", listener.port, ssl=client_tls(tmp_path))
            opened.append((reader, writer))
            writer.write(f"GET / HTTP/1.1\r\nHost: h\r\nX-User: {user}\r\n\r\n".encode())
            assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200")
        with suppress(OSError):
            assert await opened[0][0].read() == b""
        for reader, writer in opened[1:]:
            writer.write(b"GET / HTTP/1.1\r\nHost: h\r\nX-User: alice\r\n\r\n")
            assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200")
    for _, writer in opened:
        writer.close()
    await listener.close()


@pytest.mark.parametrize(
    "sent", [pytest.param(b"", id="silence"), pytest.param(b"GET / HTTP/1.1\r\nX-Slow: ", id="half a head")]
)
async def test_a_client_that_does_not_finish_its_request_head_is_disconnected(
    server_tls: type[ServerTls], tmp_path: Path, sent: bytes
) -> None:
    async with serving(application(), server_tls(SERVING), ConnectionLimits(idle=0.05)) as listener:
        reader, writer = await asyncio.open_connection("127.0.0.1", listener.port, ssl=client_tls(tmp_path))
        writer.write(sent)
        async with asyncio.timeout(5):
            assert await reader.read() == b""
        writer.close()
        await writer.wait_closed()


async def test_idle_connections_stay_open_longer_than_an_aggregator_keeps_them(
    server_tls: type[ServerTls], tmp_path: Path
) -> None:
    assert ConnectionLimits().idle > 90
    peers: list[object] = []

    async def handler(http: web.Request) -> web.StreamResponse:
        assert http.transport is not None
        peers.append(http.transport.get_extra_info("peername"))
        return web.Response()

    connector = TCPConnector(ssl=client_tls(tmp_path))
    async with (
        serving(application(handler), server_tls(SERVING)) as listener,
        ClientSession(connector=connector, timeout=ClientTimeout(10)) as session,
    ):
        for _ in range(2):
            async with session.get(f"https://127.0.0.1:{listener.port}/") as response:
                await response.read()
    assert len(peers) == 2
    assert peers[0] == peers[1]


async def test_a_client_that_does_not_complete_the_handshake_is_disconnected(server_tls: type[ServerTls]) -> None:
    async with serving(application(), server_tls(SERVING), ConnectionLimits(handshake=0.05)) as listener:
        reader, writer = await asyncio.open_connection("127.0.0.1", listener.port)
        async with asyncio.timeout(5):
            assert await reader.read() == b""
        writer.close()
        await writer.wait_closed()
