"""TLS of the HTTPS listener as its clients see it: certificates, versions and failed handshakes."""

from __future__ import annotations

import asyncio
import io
import os
import socket
import ssl
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

from apiserver.server.listener import (
    ConnectionLimits,
    Listener,
)
from apiserver.tls.asyncio_tls import AsyncioServerTls
from apiserver.tls.certificates import KeyPair, make_ca, make_client, parse_bundle
from apiserver.tls.openssl_tls import OpenSslServerTls
from apiserver.tls.server_context import ServerTls
from tests.apiserver.server.https_listener import ALICE, CA, CLIENT_CA, SERVING, application, client_tls, get, serving


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
