"""An HTTPS listener with certificates of its own, and clients of it."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from aiohttp import ClientSession, ClientTimeout, TCPConnector, web

from apiserver.authentication.x509 import PeerCertificates
from apiserver.server.listener import (
    ConnectionLimits,
    Listener,
    listen,
)
from apiserver.tls.certificates import KeyPair, make_ca, make_client, make_serving
from apiserver.tls.server_context import ServerTls

CA = make_ca("serving-ca")
CLIENT_CA = make_ca("client-ca")
SERVING = make_serving(CA, ["127.0.0.1"])
ALICE = make_client(CLIENT_CA, "alice")


def client_tls(tmp_path: Path, pair: KeyPair | None = None, *, verify: bool = True) -> ssl.SSLContext:
    context = ssl.create_default_context(cadata=CA.certificate.decode())
    if not verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if pair is not None:
        files = tmp_path / "client.crt", tmp_path / "client.key"
        for path, content in zip(files, (pair.certificate, pair.key), strict=True):
            path.write_bytes(content)
        context.load_cert_chain(*files)
    return context


async def name_of_peer(http: web.Request) -> web.Response:
    peer = PeerCertificates().get(http)
    return web.Response(text=peer.common_name if peer else "")


def application(handler: Callable[[web.Request], object] = name_of_peer) -> web.Application:
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", handler)  # type: ignore[arg-type]
    return app


@asynccontextmanager
async def serving(
    app: web.Application, tls: ServerTls, limits: ConnectionLimits | None = None
) -> AsyncIterator[Listener]:
    listener = await listen(app, tls=tls, host="127.0.0.1", port=0, grace=2, limits=limits)
    try:
        yield listener
    finally:
        await listener.close()


async def get(listener: Listener, context: ssl.SSLContext, **headers: str) -> tuple[int, str]:
    connector = TCPConnector(ssl=context, force_close=True)
    async with (
        ClientSession(connector=connector, timeout=ClientTimeout(10)) as session,
        session.get(f"https://127.0.0.1:{listener.port}/", headers=headers) as response,
    ):
        assert "Server" not in response.headers
        return response.status, await response.text()
