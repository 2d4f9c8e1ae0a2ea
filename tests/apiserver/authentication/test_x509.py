"""Client certificates: which ones are trusted, and how long their verification is cached."""

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


def issue(
    ca: KeyPair,
    name: str,
    *,
    is_ca: bool,
    attribute: crypto.ObjectIdentifier = NameOID.COMMON_NAME,
    key: ec.EllipticCurvePrivateKey | None = None,
) -> KeyPair:
    """A certificate without extended key usage, as some cluster tools create them."""
    issuer = parse_bundle(ca.certificate)[0]
    signer = load_pem_private_key(ca.key, password=None)
    assert isinstance(signer, ec.EllipticCurvePrivateKey)
    key = key or ec.generate_private_key(ec.SECP256R1())
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


async def test_the_certificate_subject_becomes_the_user() -> None:
    pair = make_client(CA, "alice", ["devs", "ops"], now=NOW)
    user = await authenticator().authenticate(make_context(tls=Tls(pair)))
    assert user is not None
    assert (user.name, user.groups) == ("alice", ("devs", "ops"))
    digest = hashlib.sha256(parse_bundle(pair.certificate)[0].public_bytes(Encoding.DER)).hexdigest()
    assert user.extra == {"authentication.kubernetes.io/credential-id": (f"X509SHA256={digest}",)}


async def test_a_connection_without_a_certificate_has_no_credential() -> None:
    assert await authenticator().authenticate(make_context()) is None


async def test_certificates_are_ignored_without_a_client_ca() -> None:
    assert await authenticator(b"").authenticate(make_context(tls=Tls(make_client(CA, "alice", now=NOW)))) is None


@pytest.mark.parametrize(
    "pair",
    [
        pytest.param(make_client(OTHER_CA, "alice", now=NOW), id="another CA"),
        pytest.param(make_client(make_ca("ca", now=NOW), "alice", now=NOW), id="a CA of the same name"),
        pytest.param(make_client(CA, "alice", now=NOW - timedelta(days=400)), id="expired"),
        pytest.param(make_client(CA, "alice", now=NOW + timedelta(days=1)), id="not valid yet"),
        pytest.param(make_serving(CA, ["alice"], now=NOW), id="a serving certificate"),
        pytest.param(
            make_client(make_client(CA, "mallory", now=NOW), "alice", now=NOW), id="issued by a leaf certificate"
        ),
    ],
)
async def test_an_untrusted_certificate_is_rejected(pair: KeyPair) -> None:
    with pytest.raises(AuthenticationError):
        await authenticator().authenticate(make_context(tls=Tls(pair)))


async def test_a_leaf_certificate_cannot_issue_another_one() -> None:
    mallory = make_client(CA, "mallory", now=NOW)
    forged = make_client(mallory, "alice", now=NOW)
    with pytest.raises(AuthenticationError):
        await authenticator().authenticate(make_context(tls=Tls(forged, [mallory])))


async def test_an_intermediate_sent_by_the_client_completes_the_chain() -> None:
    intermediate = issue(CA, "intermediate", is_ca=True)
    tls = Tls(issue(intermediate, "alice", is_ca=False), [intermediate])
    user = await authenticator().authenticate(make_context(tls=tls))
    assert user is not None
    assert user.name == "alice"


async def test_a_cached_verification_ends_when_the_certificate_expires() -> None:
    clock = Clock()
    verified = authenticator(clock=clock)
    context = make_context(tls=Tls(make_client(CA, "alice", now=NOW, lifetime=timedelta(hours=1))))
    assert await verified.authenticate(context) is not None
    clock.now += 3601
    with pytest.raises(AuthenticationError):
        await verified.authenticate(context)


async def test_a_cached_verification_ends_when_the_ca_bundle_changes() -> None:
    bundles = [CA.certificate]
    peers = PeerCertificates()
    verified = ClientCertificateAuthenticator(
        peers=peers, verifier=CertificateVerifier(lambda: bundles[-1], clock=Clock())
    )
    context = make_context(tls=Tls(make_client(CA, "alice", now=NOW)))
    assert await verified.authenticate(context) is not None
    bundles.append(OTHER_CA.certificate)
    with pytest.raises(AuthenticationError):
        await verified.authenticate(context)
    bundles.append(OTHER_CA.certificate + CA.certificate)
    assert await verified.authenticate(context) is not None


async def test_a_failed_verification_is_repeated_after_a_minute() -> None:
    clock = Clock()
    verified = authenticator(clock=clock)
    context = make_context(tls=Tls(make_client(CA, "alice", now=NOW + timedelta(minutes=5, seconds=30))))
    with pytest.raises(AuthenticationError):
        await verified.authenticate(context)
    clock.now += 61
    assert await verified.authenticate(context) is not None


async def test_a_certificate_without_a_common_name_names_no_user() -> None:
    nameless = issue(CA, "devs", is_ca=False, attribute=NameOID.ORGANIZATION_NAME)
    assert await authenticator().authenticate(make_context(tls=Tls(nameless))) is None


async def test_intermediates_that_certify_each_other_are_not_tried_in_every_order() -> None:
    """ATTACK-19: three of them would take as long as 200 requests, for each new chain and without credentials."""
    key = ec.generate_private_key(ec.SECP256R1())
    first = issue(make_ca("circle", now=NOW), "circle", is_ca=True, key=key)
    circle = [issue(first, "circle", is_ca=True, key=key) for _ in range(4)]
    with pytest.raises(AuthenticationError) as raised:
        await authenticator().authenticate(make_context(tls=Tls(issue(circle[0], "mallory", is_ca=False), circle)))
    assert "signature check limit" not in str(raised.value)


async def test_a_long_chain_is_not_verified() -> None:
    """ATTACK-19"""
    chain = [issue(CA, "intermediate", is_ca=True)]
    for number in range(4):
        chain.insert(0, issue(chain[0], f"intermediate {number}", is_ca=True))
    with pytest.raises(AuthenticationError, match="more than 4 intermediate"):
        await authenticator().authenticate(make_context(tls=Tls(issue(chain[0], "alice", is_ca=False), chain)))
    tls = Tls(issue(chain[2], "alice", is_ca=False), chain[2:])
    user = await authenticator().authenticate(make_context(tls=tls))
    assert user is not None


def test_a_connection_can_be_judged_before_its_first_request() -> None:
    judge = authenticator()
    for pair, name in ((make_client(CA, "alice", now=NOW), "alice"), (make_client(OTHER_CA, "bob", now=NOW), "")):
        transport = make_context(tls=Tls(pair)).http.transport
        assert transport is not None
        user = judge.user_of(transport)
        assert (user.name if user else "") == name


def test_the_certificate_of_a_connection_is_read_once() -> None:
    tls = Tls(make_client(CA, "alice", now=NOW))
    peers = PeerCertificates()
    assert peers.get(make_context(tls=tls).http) is peers.get(make_context(tls=tls).http)
