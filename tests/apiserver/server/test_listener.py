"""The HTTPS listener as its clients see it: TLS, limits, and graceful shutdown."""

from __future__ import annotations

import asyncio
import io
import os
import signal
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path

import pytest
from aiohttp import ClientError, ClientSession, ClientTimeout, TCPConnector, web
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID
from OpenSSL import SSL

from apiserver.authentication.peers import Peers
from apiserver.authentication.request_header import RequestHeaderAuthenticator, RequestHeaderConfig
from apiserver.authentication.x509 import CertificateVerifier, ClientCertificateAuthenticator, PeerCertificates
from apiserver.server.listener import (
    CannotListen,
    ConnectionLimits,
    Listener,
    ShutdownStages,
    listen,
    serve_until_stopped,
    stop_on_signals,
)
from apiserver.tls.asyncio_tls import AsyncioServerTls
from apiserver.tls.certificates import KeyPair, make_ca, make_client, make_serving, parse_bundle
from apiserver.tls.file_reload import follow_file, follow_files
from apiserver.tls.openssl_tls import OpenSslServerTls
from apiserver.tls.server_context import ServerTls

CA = make_ca("serving-ca")
CLIENT_CA = make_ca("client-ca")
SERVING = make_serving(CA, ["127.0.0.1"])
ALICE = make_client(CLIENT_CA, "alice")


@pytest.fixture(params=[OpenSslServerTls, AsyncioServerTls], ids=["openssl", "asyncio"])
def server_tls(request: pytest.FixtureRequest) -> type[ServerTls]:
    """Each implementation that `--tls-transport` selects from."""
    selected: type[ServerTls] = request.param
    return selected


def rsa_pair() -> KeyPair:
    """A self-signed certificate of another key type."""
    key = rsa.generate_private_key(65537, 2048)
    template = parse_bundle(SERVING.certificate)[0]
    builder = (
        x509.CertificateBuilder()
        .subject_name(template.subject)
        .issuer_name(template.subject)
        .public_key(key.public_key())
        .serial_number(4711)
        .not_valid_before(template.not_valid_before_utc)
        .not_valid_after(template.not_valid_after_utc)
    )
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return KeyPair(builder.sign(key, hashes.SHA256()).public_bytes(Encoding.PEM), private)


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


async def served_certificate(listener: Listener) -> int:
    """The serial number of the certificate that the server presents to a new connection."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    _, writer = await asyncio.open_connection("127.0.0.1", listener.port, ssl=context)
    der = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    writer.close()
    await writer.wait_closed()
    return x509.load_der_x509_certificate(der).serial_number


def handshake(port: int, version: int | None = None) -> tuple[str, list[str]]:
    """The TLS version of a connection of at most `version`, and the client CAs that the server names."""
    context = SSL.Context(SSL.TLS_CLIENT_METHOD)
    context.set_cipher_list(b"ALL:@SECLEVEL=0")
    context.set_alpn_protos([b"http/1.1"])
    if version is not None:
        context.set_min_proto_version(SSL.TLS1_VERSION)
        context.set_max_proto_version(version)
    with socket.create_connection(("127.0.0.1", port), timeout=5) as plain:
        plain.setblocking(True)
        connection = SSL.Connection(context, plain)
        connection.set_connect_state()
        connection.do_handshake()
        names = connection.get_client_ca_list(as_cryptography=True)
        connection.shutdown()
    common = [str(name.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value) for name in names]
    return connection.get_protocol_version_name(), common


async def offered_cas(listener: Listener) -> list[str]:
    return (await asyncio.to_thread(handshake, listener.port))[1]


def expected_cas(server_tls: type[ServerTls], *authorities: str) -> list[str]:
    """The client CAs that a handshake names: asyncio has no way to name any."""
    return list(authorities) if server_tls is OpenSslServerTls else []


async def test_a_client_certificate_reaches_the_request(server_tls: type[ServerTls], tmp_path: Path) -> None:
    async with serving(application(), server_tls(SERVING, CLIENT_CA.certificate)) as listener:
        assert await get(listener, client_tls(tmp_path, ALICE)) == (200, "alice")
        assert await get(listener, client_tls(tmp_path)) == (200, "")


async def test_client_certificates_are_requested_once_there_is_a_client_ca(
    server_tls: type[ServerTls], tmp_path: Path
) -> None:
    tls = server_tls(SERVING)
    async with serving(application(), tls) as listener:
        assert await get(listener, client_tls(tmp_path, ALICE)) == (200, "")
        assert await offered_cas(listener) == []
        tls.replace_client_cas(CLIENT_CA.certificate)
        assert await get(listener, client_tls(tmp_path, ALICE)) == (200, "alice")
        assert await offered_cas(listener) == expected_cas(server_tls, "client-ca")


async def test_the_handshake_names_every_client_ca(server_tls: type[ServerTls], tmp_path: Path) -> None:
    tls = server_tls(SERVING, CLIENT_CA.certificate + b"\n" + make_ca("proxy-ca").certificate)
    async with serving(application(), tls) as listener:
        assert await offered_cas(listener) == expected_cas(server_tls, "client-ca", "proxy-ca")
        tls.replace_client_cas(CA.certificate)
        assert await offered_cas(listener) == expected_cas(server_tls, "serving-ca")


async def test_a_certificate_of_an_unknown_ca_passes_the_handshake_except_with_asyncio(
    server_tls: type[ServerTls], tmp_path: Path
) -> None:
    async with serving(application(), server_tls(SERVING, CLIENT_CA.certificate)) as listener:
        mallory = client_tls(tmp_path, make_client(make_ca("nobody"), "mallory"))
        if server_tls is AsyncioServerTls:
            with pytest.raises(ClientError):
                await get(listener, mallory)
        else:
            assert await get(listener, mallory) == (200, "mallory")


async def test_no_session_is_resumed(server_tls: type[ServerTls], tmp_path: Path) -> None:
    """In a resumed session the client would not present its certificates again."""
    async with serving(application(), server_tls(SERVING, CLIENT_CA.certificate)) as listener:
        context = client_tls(tmp_path, ALICE)
        context.maximum_version = ssl.TLSVersion.TLSv1_2

        def twice() -> tuple[bool | None, bytes]:
            session = None
            for _ in range(2):
                with (
                    socket.create_connection(("127.0.0.1", listener.port), timeout=5) as plain,
                    context.wrap_socket(plain, server_hostname="127.0.0.1", session=session) as encrypted,
                ):
                    session = encrypted.session
                    encrypted.sendall(b"GET / HTTP/1.0\r\n\r\n")
                    answer = b"".join(iter(partial(encrypted.recv, 4096), b""))
                    reused = encrypted.session_reused
            return reused, answer

        reused, answer = await asyncio.to_thread(twice)
    assert not reused or server_tls is AsyncioServerTls
    assert answer.endswith(b"alice")


async def test_failed_handshakes_are_counted(server_tls: type[ServerTls], tmp_path: Path) -> None:
    failures: list[str] = []
    tls = server_tls(SERVING, on_handshake_error=lambda: failures.append("failed"))
    async with serving(application(), tls, ConnectionLimits(handshake=0.05)) as listener:
        assert await get(listener, client_tls(tmp_path)) == (200, "")
        assert failures == []
        for sent in (b"GET / HTTP/1.1\r\n\r\n", b"no TLS", b""):
            await send_without_tls(listener, sent)
    assert failures == ["failed", "failed", "failed"]


async def test_a_client_without_tls_gets_an_http_error(server_tls: type[ServerTls]) -> None:
    async with serving(application(), server_tls(SERVING)) as listener:
        answer = await send_without_tls(listener, b"GET / HTTP/1.1\r\nHost: h\r\n\r\n")
    assert answer.startswith(b"HTTP/1.0 400 ")
    assert answer.endswith(b"Client sent an HTTP request to an HTTPS server.\n")


async def send_without_tls(listener: Listener, sent: bytes) -> bytes:
    """Send bytes without TLS; return the server's bytes until it closes the connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", listener.port)
    writer.write(sent)
    async with asyncio.timeout(5):
        answer = await reader.read()
    writer.close()
    await writer.wait_closed()
    return answer


async def test_large_requests_and_responses_arrive_complete(server_tls: type[ServerTls], tmp_path: Path) -> None:
    content = os.urandom(3_000_000)

    async def echo(http: web.Request) -> web.Response:
        return web.Response(body=await http.read() * 3)

    app = web.Application(client_max_size=4_000_000)
    app.router.add_post("/", echo)
    connector = TCPConnector(ssl=client_tls(tmp_path))
    async with (
        serving(app, server_tls(SERVING)) as listener,
        ClientSession(connector=connector, timeout=ClientTimeout(30)) as session,
        session.post(f"https://127.0.0.1:{listener.port}/", data=io.BytesIO(content)) as response,
    ):
        assert await response.read() == content * 3


async def test_a_new_certificate_serves_new_connections_even_with_another_key_type(server_tls: type[ServerTls]) -> None:
    tls, successor = server_tls(SERVING), rsa_pair()
    async with serving(application(), tls) as listener:
        assert await served_certificate(listener) == parse_bundle(SERVING.certificate)[0].serial_number
        tls.replace_certificate(successor)
        assert await served_certificate(listener) == 4711


def test_an_invalid_certificate_changes_nothing(server_tls: type[ServerTls]) -> None:
    tls = server_tls(SERVING)
    with pytest.raises(ValueError, match="certificate and key cannot be used"):
        tls.replace_certificate(KeyPair(SERVING.certificate, ALICE.key))
    with pytest.raises(ValueError, match="no serving certificate"):
        tls.replace_certificate(KeyPair(b"", SERVING.key))
    with pytest.raises(ValueError, match="no certificate"):
        tls.replace_client_cas(b"nonsense")
    with pytest.raises(ValueError, match="asn1"):
        tls.replace_client_cas(b"-----BEGIN CERTIFICATE-----\nnonsense\n-----END CERTIFICATE-----\n")
    assert tls.certificate == SERVING.certificate


async def test_old_tls_versions_are_rejected_and_http_1_1_is_chosen(
    server_tls: type[ServerTls], tmp_path: Path
) -> None:
    async with serving(application(), server_tls(SERVING)) as listener:
        context = client_tls(tmp_path)
        context.set_alpn_protocols(["h2", "http/1.1"])
        _, writer = await asyncio.open_connection("127.0.0.1", listener.port, ssl=context)
        chosen = writer.get_extra_info("ssl_object")
        assert chosen.selected_alpn_protocol() == "http/1.1"
        assert chosen.version() == "TLSv1.3"
        writer.close()
        await writer.wait_closed()
        # asyncio closes the connection without sending the alert
        received = "alert protocol version" if server_tls is OpenSslServerTls else "Unexpected EOF"
        with pytest.raises(SSL.Error, match=received):
            await asyncio.to_thread(handshake, listener.port, SSL.TLS1_1_VERSION)
        assert (await asyncio.to_thread(handshake, listener.port, SSL.TLS1_2_VERSION))[0] == "TLSv1.2"


async def test_a_changed_pair_is_loaded_once_both_files_match(server_tls: type[ServerTls], tmp_path: Path) -> None:
    certificate, key = tmp_path / "tls.crt", tmp_path / "tls.key"
    certificate.write_bytes(SERVING.certificate)
    key.write_bytes(SERVING.key)
    tls, successor = server_tls(SERVING), make_serving(CA, ["127.0.0.1"])
    rounds = FakeSleep(
        # the key is written after its certificate
        lambda: certificate.write_bytes(successor.certificate),
        lambda: key.write_bytes(successor.key),
    )
    served = rounds.record(lambda: tls.certificate)
    with pytest.raises(asyncio.CancelledError):
        await follow_files(certificate, key, tls, sleep=rounds)
    assert served == [SERVING.certificate, SERVING.certificate, successor.certificate]


async def test_a_changed_file_is_reloaded_until_it_is_accepted(tmp_path: Path) -> None:
    path, received = tmp_path / "ca.crt", list[bytes]()

    def changed(content: bytes) -> None:
        received.append(content)
        if content == b"bad" and received.count(content) == 1:
            raise ValueError("not yet")

    rounds = FakeSleep(
        lambda: path.write_bytes(b"one"),
        lambda: None,
        lambda: path.write_bytes(b"bad"),
        lambda: None,
        path.unlink,
    )
    with pytest.raises(asyncio.CancelledError):
        await follow_file(path, changed, sleep=rounds)
    assert received == [b"one", b"bad", b"bad"]


class FakeSleep:
    """Replaces the sleep between two polls: each call makes one of `changes`; when none is left, it cancels."""

    def __init__(self, *changes: Callable[[], object]) -> None:
        self._changes = list(changes)
        self._probes: list[Callable[[], None]] = []

    def record(self, value: Callable[[], bytes]) -> list[bytes]:
        recorded: list[bytes] = []
        self._probes.append(lambda: recorded.append(value()))
        return recorded

    async def __call__(self, seconds: float) -> None:
        for probe in self._probes:
            probe()
        if not self._changes:
            raise asyncio.CancelledError
        await asyncio.to_thread(self._changes.pop(0))


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


@pytest.fixture
def restored_signals() -> Iterator[None]:
    """Restores the signal handlers, because the test process continues after the server has shut down."""
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.usefixtures("restored_signals")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_ends_watches_and_lets_requests_finish(
    server_tls: type[ServerTls], tmp_path: Path, number: signal.Signals
) -> None:
    stages = ShutdownStages(draining=asyncio.Event(), shutdown=asyncio.Event())
    entered, work = asyncio.Event(), asyncio.Event()

    async def handler(http: web.Request) -> web.StreamResponse:
        entered.set()
        await stages.shutdown.wait()
        # the request is still in progress when watches end
        await work.wait()
        return web.Response(text=http.path)

    listener = await listen(application(handler), tls=server_tls(SERVING), host="127.0.0.1", port=0, grace=4)
    stages.readyz_check()
    stop = asyncio.Event()
    with stop_on_signals(stop):
        server = asyncio.create_task(serve_until_stopped(listener, stages, stop=stop))
        request = asyncio.create_task(get(listener, client_tls(tmp_path)))
        await entered.wait()
        os.kill(os.getpid(), number)
        await stages.shutdown.wait()
        os.kill(os.getpid(), number)
        assert not request.done()
        work.set()
        assert await request == (200, "/")
        async with asyncio.timeout(5):
            await server
    # the shutdown was graceful, and another signal must not change the exit status
    os.kill(os.getpid(), number)
    with pytest.raises(RuntimeError, match="shutting down"):
        stages.readyz_check()
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection("127.0.0.1", listener.port)


async def test_while_draining_every_response_closes_its_connection(server_tls: type[ServerTls], tmp_path: Path) -> None:
    """An aggregator that reuses its connections would lose a request that it sends while one is being closed."""
    stages = ShutdownStages(draining=asyncio.Event(), shutdown=asyncio.Event(), delay=60.0)
    listener = await listen(application(), tls=server_tls(SERVING), host="127.0.0.1", port=0, grace=2)
    stop = asyncio.Event()
    server = asyncio.create_task(serve_until_stopped(listener, stages, stop=stop))
    connector = TCPConnector(ssl=client_tls(tmp_path))
    async with ClientSession(connector=connector, timeout=ClientTimeout(10)) as session:

        async def connection() -> str | None:
            async with session.get(f"https://127.0.0.1:{listener.port}/") as response:
                assert response.status == 200
                return response.headers.get("Connection")

        assert [await connection() for _ in range(2)] == [None, None]
        stop.set()
        await stages.draining.wait()
        assert [await connection() for _ in range(2)] == ["close", "close"]
    assert not stages.shutdown.is_set()
    server.cancel()
    with pytest.raises(asyncio.CancelledError):
        await server


async def test_a_port_in_use_is_a_one_line_error(server_tls: type[ServerTls]) -> None:
    async with serving(application(), server_tls(SERVING)) as listener:
        with pytest.raises(CannotListen) as error:
            await listen(application(), tls=server_tls(SERVING), host="127.0.0.1", port=listener.port)
    assert str(error.value) == f"cannot listen on 127.0.0.1 port {listener.port}: Address already in use"


async def test_shutdown_waits_for_the_rest_of_a_request_body(server_tls: type[ServerTls], tmp_path: Path) -> None:
    stages = ShutdownStages(draining=asyncio.Event(), shutdown=asyncio.Event())
    entered, stop = asyncio.Event(), asyncio.Event()

    async def handler(http: web.Request) -> web.StreamResponse:
        entered.set()
        return web.Response(text=await http.text())

    listener = await listen(application(handler), tls=server_tls(SERVING), host="127.0.0.1", port=0, grace=4)
    server = asyncio.create_task(serve_until_stopped(listener, stages, stop=stop))
    reader, writer = await asyncio.open_connection("127.0.0.1", listener.port, ssl=client_tls(tmp_path))
    writer.write(b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\nfirst")
    await entered.wait()
    stop.set()
    await stages.shutdown.wait()
    writer.write(b"-last")
    async with asyncio.timeout(5):
        answer = await reader.read()
        await server
    writer.close()
    assert answer.startswith(b"HTTP/1.1 200")
    assert b"Connection: close" in answer
    assert answer.endswith(b"first-last")


async def test_a_request_that_never_ends_does_not_block_the_shutdown(
    server_tls: type[ServerTls], tmp_path: Path
) -> None:
    stages = ShutdownStages(draining=asyncio.Event(), shutdown=asyncio.Event())
    entered, stop = asyncio.Event(), asyncio.Event()

    async def handler(http: web.Request) -> web.StreamResponse:
        entered.set()
        await asyncio.Event().wait()
        return web.Response()

    listener = await listen(application(handler), tls=server_tls(SERVING), host="127.0.0.1", port=0, grace=0.2)
    server = asyncio.create_task(serve_until_stopped(listener, stages, stop=stop))
    request = asyncio.create_task(get(listener, client_tls(tmp_path)))
    await entered.wait()
    stop.set()
    async with asyncio.timeout(5):
        await server
    with pytest.raises(ClientError):
        await request
