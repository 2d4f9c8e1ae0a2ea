"""Client certificates: which CA vouches for them, and for how long that is believed."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509 as crypto
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import NameOID

from apiserver.authentication.authenticator import AuthenticationError
from apiserver.authentication.x509 import CertificateVerifier, ClientCertificateAuthenticator, PeerCertificates
from apiserver.tls.certificates import KeyPair, make_ca, make_client, make_serving, parse_bundle
from tests.apiserver.endpoints.request_contexts import Tls, make_context

NOW = datetime(2026, 1, 1, tzinfo=UTC)
CA = make_ca("ca", now=NOW)
OTHER_CA = make_ca("other", now=NOW)


class Clock:
    def __init__(self) -> None:
        self.now = NOW.timestamp()

    def __call__(self) -> float:
        return self.now


def authenticator(ca: bytes = CA.certificate, clock: Clock | None = None) -> ClientCertificateAuthenticator:
    return ClientCertificateAuthenticator(
        peers=PeerCertificates(), verifier=CertificateVerifier(lambda: ca, clock=clock or Clock())
    )


def issue(ca: KeyPair, name: str, *, is_ca: bool, attribute: crypto.ObjectIdentifier = NameOID.COMMON_NAME) -> KeyPair:
    """A certificate without any extended key usage, as small cluster tools make them."""
    issuer = parse_bundle(ca.certificate)[0]
    signer = load_pem_private_key(ca.key, password=None)
    assert isinstance(signer, ec.EllipticCurvePrivateKey)
    key = ec.generate_private_key(ec.SECP256R1())
    builder = (
        crypto.CertificateBuilder()
        .subject_name(crypto.Name([crypto.NameAttribute(attribute, name)]))
        .issuer_name(issuer.subject)
        .public_key(key.public_key())
        .serial_number(crypto.random_serial_number())
        .not_valid_before(NOW - timedelta(hours=1))
        .not_valid_after(NOW + timedelta(days=1))
        .add_extension(crypto.BasicConstraints(ca=is_ca, path_length=None), critical=True)
    )
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return KeyPair(builder.sign(signer, hashes.SHA256()).public_bytes(Encoding.PEM), private)


async def test_the_subject_becomes_the_user() -> None:
    pair = make_client(CA, "alice", ["devs", "ops"], now=NOW)
    user = await authenticator().authenticate(make_context(tls=Tls(pair)))
    assert user is not None
    assert (user.name, user.groups) == ("alice", ("devs", "ops"))
    digest = hashlib.sha256(parse_bundle(pair.certificate)[0].public_bytes(Encoding.DER)).hexdigest()
    assert user.extra == {"authentication.kubernetes.io/credential-id": (f"X509SHA256={digest}",)}


async def test_no_certificate_is_no_credential() -> None:
    assert await authenticator().authenticate(make_context()) is None


async def test_without_a_ca_certificates_are_no_credential() -> None:
    assert await authenticator(b"").authenticate(make_context(tls=Tls(make_client(CA, "alice", now=NOW)))) is None


@pytest.mark.parametrize(
    "pair",
    [
        pytest.param(make_client(OTHER_CA, "alice", now=NOW), id="another CA"),
        pytest.param(make_client(make_ca("ca", now=NOW), "alice", now=NOW), id="a CA of the same name"),
        pytest.param(make_client(CA, "alice", now=NOW - timedelta(days=400)), id="expired"),
        pytest.param(make_client(CA, "alice", now=NOW + timedelta(days=1)), id="not valid yet"),
        pytest.param(make_serving(CA, ["alice"], now=NOW), id="a serving certificate"),
        pytest.param(make_client(make_client(CA, "mallory", now=NOW), "alice", now=NOW), id="self-made"),
    ],
)
async def test_a_certificate_that_nobody_vouches_for_is_refused(pair: KeyPair) -> None:
    with pytest.raises(AuthenticationError):
        await authenticator().authenticate(make_context(tls=Tls(pair)))


async def test_a_leaf_cannot_vouch_for_another_certificate() -> None:
    mallory = make_client(CA, "mallory", now=NOW)
    forged = make_client(mallory, "alice", now=NOW)
    with pytest.raises(AuthenticationError):
        await authenticator().authenticate(make_context(tls=Tls(forged, [mallory])))


async def test_an_intermediate_that_the_client_sends_is_used() -> None:
    intermediate = issue(CA, "intermediate", is_ca=True)
    tls = Tls(issue(intermediate, "alice", is_ca=False), [intermediate])
    user = await authenticator().authenticate(make_context(tls=tls))
    assert user is not None
    assert user.name == "alice"


async def test_a_verdict_ends_with_the_certificate() -> None:
    clock = Clock()
    judge = authenticator(clock=clock)
    context = make_context(tls=Tls(make_client(CA, "alice", now=NOW, lifetime=timedelta(hours=1))))
    assert await judge.authenticate(context) is not None
    clock.now += 3601
    with pytest.raises(AuthenticationError):
        await judge.authenticate(context)


async def test_a_verdict_ends_with_its_ca() -> None:
    bundles = [CA.certificate]
    peers = PeerCertificates()
    judge = ClientCertificateAuthenticator(
        peers=peers, verifier=CertificateVerifier(lambda: bundles[-1], clock=Clock())
    )
    context = make_context(tls=Tls(make_client(CA, "alice", now=NOW)))
    assert await judge.authenticate(context) is not None
    bundles.append(OTHER_CA.certificate)
    with pytest.raises(AuthenticationError):
        await judge.authenticate(context)
    bundles.append(OTHER_CA.certificate + CA.certificate)
    assert await judge.authenticate(context) is not None


async def test_a_refusal_is_looked_at_again_after_a_minute() -> None:
    clock = Clock()
    judge = authenticator(clock=clock)
    context = make_context(tls=Tls(make_client(CA, "alice", now=NOW + timedelta(minutes=5, seconds=30))))
    with pytest.raises(AuthenticationError):
        await judge.authenticate(context)
    clock.now += 61
    assert await judge.authenticate(context) is not None


async def test_a_certificate_without_a_common_name_is_nobody() -> None:
    nameless = issue(CA, "devs", is_ca=False, attribute=NameOID.ORGANIZATION_NAME)
    assert await authenticator().authenticate(make_context(tls=Tls(nameless))) is None


def test_a_connection_s_certificate_is_read_once() -> None:
    tls = Tls(make_client(CA, "alice", now=NOW))
    peers = PeerCertificates()
    assert peers.of(make_context(tls=tls).http) is peers.of(make_context(tls=tls).http)
