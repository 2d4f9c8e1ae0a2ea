"""A proxy in the process of the test, before an upstream that records every byte of every request head."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from weakref import WeakSet

from aiohttp import ClientResponse, ClientSession, ClientTimeout, TCPConnector, TraceConfig, TraceRequestEndParams

from apiserver.authentication.authenticator import UnionAuthenticator
from apiserver.authentication.x509 import CertificateVerifier, ClientCertificateAuthenticator, PeerCertificates
from apiserver.authorization.subject_access_review import SubjectAccessReviewAuthorizer
from apiserver.request.context import Handler, RequestContext
from apiserver.server.listener import listen
from apiserver.tls.certificates import KeyPair, make_client
from registry.cluster.interface import SUBJECT_ACCESS_REVIEWS_PATH
from registry.cluster.upstream import UpstreamClient
from tenant_apiserver.options.command_line import parse_command_line
from tenant_apiserver.options.proxy import ProxyOptions
from tenant_apiserver.process import TLS_TRANSPORTS, Process, shutdown_stages
from tenant_apiserver.proxy.chain import ProxyParts, proxy_application
from tenant_apiserver.proxy.forward import OwnAnswer
from tenant_apiserver.proxy.impersonation_refusal import ImpersonationRefusals
from tests.apiserver.server.https_listener import ALICE, CA, CLIENT_CA, SERVING, client_tls
from tests.plain_http import plain_http

OWN_ACCOUNT = "system:serviceaccount:tenant-apiserver-proxy:proxy"


@dataclass(frozen=True, slots=True)
class Received:
    """A request head as it arrived, header names in lower case."""

    method: str
    target: str
    headers: list[tuple[str, str]]

    def values(self, name: str) -> list[str]:
        return [value for each, value in self.headers if each == name]


@dataclass
class RecordingUpstream:
    """Answers reviews by `allowed`, upgrades with a 101 and an echo unless `refusal` is set, everything else with
    `answer`."""

    received: list[Received] = field(default_factory=list)
    allowed: Callable[[dict[str, object]], bool] = lambda attributes: False
    answer: bytes = (
        b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nAudit-ID: of-the-cluster\r\nContent-Length: 2\r\n\r\nok"
    )
    refusal: bytes = b""
    on_connection: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]] | None = None
    """Serves new connections instead."""

    async def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await (self.on_connection or self.serve)(reader, writer)

    @property
    def forwarded(self) -> list[Received]:
        return [each for each in self.received if each.target != SUBJECT_ACCESS_REVIEWS_PATH]

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while await self._serve_one(reader, writer):
                pass
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def _serve_one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        first, *lines = head.strip().split("\r\n")
        method, target, _ = first.split(" ")
        pairs = [line.partition(":") for line in lines]
        request = Received(method, target, [(name.lower(), value.strip()) for name, _, value in pairs])
        self.received.append(request)
        body = await _body(request, reader)
        if target == SUBJECT_ACCESS_REVIEWS_PATH:
            allowed = self.allowed(json.loads(body)["spec"].get("resourceAttributes", {}))
            writer.write(_json_response({"status": {"allowed": allowed}}))
        elif request.values("upgrade") and not self.refusal:
            protocol = request.values("upgrade")[0]
            writer.write(f"HTTP/1.1 101 Switching\r\nConnection: Upgrade\r\nUpgrade: {protocol}\r\n\r\nhello".encode())
            while data := await reader.read(65536):
                writer.write(data)
                await writer.drain()
            return False
        else:
            writer.write(self.refusal or self.answer)
        await writer.drain()
        return True


async def _body(request: Received, reader: asyncio.StreamReader) -> bytes:
    """Framed in one of the two ways. Another server would read two requests where both are said, or one twice."""
    lengths, codings = request.values("content-length"), request.values("transfer-encoding")
    assert len(lengths) + len(codings) <= 1, request.headers
    if not codings:
        return await reader.readexactly(int(lengths[0]) if lengths else 0)
    assert codings == ["chunked"]
    body = b""
    while size := int((await reader.readuntil(b"\r\n")).strip(), 16):
        body += await reader.readexactly(size)
        assert await reader.readexactly(2) == b"\r\n"
    assert await reader.readexactly(2) == b"\r\n"
    return body


def _json_response(document: object) -> bytes:
    body = json.dumps(document).encode()
    return b"HTTP/1.1 201 Created\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)


@dataclass(frozen=True)
class RunningProxy:
    upstream: RecordingUpstream
    port: int
    directory: Path
    process: Process
    refused: list[str]
    """The messages by which the upstream has refused the impersonation."""

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}"

    def tls(self, pair: KeyPair | None = ALICE) -> ssl.SSLContext:
        return client_tls(self.directory, pair)

    @asynccontextmanager
    async def session(self, pair: KeyPair | None = ALICE) -> AsyncIterator[ClientSession]:
        """A client with a certificate of its own, alice's by default. Responses end with it, also those that a test
        does not read to their ends: their connections would warn when they are collected, in a later test."""
        responses = WeakSet[ClientResponse]()

        async def note(session: ClientSession, context: object, end: TraceRequestEndParams) -> None:
            responses.add(end.response)

        trace = TraceConfig()
        trace.on_request_end.append(note)
        connector = TCPConnector(ssl=self.tls(pair))
        timeout = ClientTimeout(20)
        async with ClientSession(self.url, connector=connector, timeout=timeout, trace_configs=[trace]) as session:
            try:
                yield session
            finally:
                for response in list(responses):
                    response.close()

    async def send(
        self, *lines: str, pair: KeyPair | None = ALICE
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Sends these lines of a head unchanged."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port, ssl=self.tls(pair))
        writer.write("\r\n".join([*lines, "", ""]).encode("latin-1"))
        return reader, writer


def user_certificate(name: str, *groups: str) -> KeyPair:
    return make_client(CLIENT_CA, name, groups)


async def _no_answer(context: RequestContext) -> Handler | None:
    return None


def _upstream_tls(directory: Path) -> ssl.SSLContext:
    files = directory / "upstream.crt", directory / "upstream.key"
    files[0].write_bytes(SERVING.certificate)
    files[1].write_bytes(SERVING.key)
    (directory / "upstream-ca.crt").write_bytes(CA.certificate)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(*files)
    return context


@asynccontextmanager
async def proxied_upstream(
    directory: Path,
    *flags: str,
    own_account: str = OWN_ACCOUNT,
    own_answer: OwnAnswer = _no_answer,
    base_path: str = "",
    over_tls: bool = False,
    transport: str = "openssl",
) -> AsyncIterator[RunningProxy]:
    """`over_tls` is how the proxy reaches the upstream, `transport` its own --tls-transport."""
    upstream, refused = RecordingUpstream(), list[str]()
    server = await asyncio.start_server(
        upstream.accept, "127.0.0.1", 0, ssl=_upstream_tls(directory) if over_tls else None
    )
    scheme = "https" if over_tls else "http"
    configuration = plain_http(f"{scheme}://127.0.0.1:{server.sockets[0].getsockname()[1]}{base_path}")
    if over_tls:
        configuration.ssl_ca_cert = str(directory / "upstream-ca.crt")
    client = UpstreamClient(configuration)
    certificates = ClientCertificateAuthenticator(
        peers=PeerCertificates(), verifier=CertificateVerifier(lambda: CLIENT_CA.certificate)
    )
    options = await asyncio.to_thread(parse_command_line, ["proxy", f"--cert-dir={directory}", *flags], {})
    assert isinstance(options, ProxyOptions)
    process = Process(stages=shutdown_stages(delay=1.0))
    parts = ProxyParts(
        upstream=client,
        process=process,
        authenticator=UnionAuthenticator((certificates,)),
        authorizer=SubjectAccessReviewAuthorizer(
            lambda body: client.review(SUBJECT_ACCESS_REVIEWS_PATH, body), on_stale=lambda: None
        ),
        own_account=lambda: own_account,
        own_answer=own_answer,
        expired=_no_answer,
        refusals=ImpersonationRefusals(lambda: own_account, refused.append),
        audit=None,
    )
    tls = TLS_TRANSPORTS[transport](SERVING, CLIENT_CA.certificate)
    listener = await listen(proxy_application(parts, options), tls=tls, host="127.0.0.1", port=0, grace=0.4)
    try:
        yield RunningProxy(upstream, listener.port, directory, process, refused)
    finally:
        await listener.close()
        await client.close()
        server.close()
