"""Authentication by client certificates: the certificate of a connection, its verification against the client CA, and
the user that it names (WIRE-A20, WIRE-A21)."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, Protocol
from weakref import WeakKeyDictionary

from aiohttp import web
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
from cryptography.x509.verification import Criticality, ExtensionPolicy, Policy, PolicyBuilder, Store, VerificationError

from apiserver.authentication.authenticator import AuthenticationError
from apiserver.request.context import RequestContext, User
from apiserver.tls.certificates import parse_bundle
from apiserver.tls.transport import client_chain

_CREDENTIAL_ID = "authentication.kubernetes.io/credential-id"
_UID = x509.ObjectIdentifier("1.3.6.1.4.1.57683.2")
_CACHE_SIZE = 1024
_MAX_INTERMEDIATES = 4
# A failure is cached briefly: a certificate may become valid without a change of the CA.
_FAILURE_SECONDS = 60.0


@dataclass(frozen=True)
class PeerCertificate:
    """The certificate from the TLS handshake, in DER; `intermediates` are the rest of its chain. Nothing is
    verified."""

    der: bytes
    intermediates: tuple[bytes, ...] = ()

    @cached_property
    def digest(self) -> bytes:
        """Identifies the certificate and its chain in a cache, which a client must not fill with their content."""
        return hashlib.sha256(
            b"".join(hashlib.sha256(der).digest() for der in (self.der, *self.intermediates))
        ).digest()

    @cached_property
    def certificate(self) -> x509.Certificate:
        return x509.load_der_x509_certificate(self.der)

    @cached_property
    def common_name(self) -> str:
        """The last common name of the subject, as in Go; empty if there is none."""
        return "".join(_subject(self.certificate, NameOID.COMMON_NAME)[-1:])

    @cached_property
    def user(self) -> User | None:
        """The user that the certificate names, None without a common name."""
        if not self.common_name:
            return None
        return User(
            name=self.common_name,
            uid="".join(_subject(self.certificate, _UID)[:1]),
            groups=tuple(_subject(self.certificate, NameOID.ORGANIZATION_NAME)),
            extra={_CREDENTIAL_ID: (f"X509SHA256={hashlib.sha256(self.der).hexdigest()}",)},
        )


class PeerCertificates:
    """Gets the peer certificate of a connection. It is read once per connection."""

    def __init__(self) -> None:
        self._by_connection: WeakKeyDictionary[Any, PeerCertificate] = WeakKeyDictionary()

    def get(self, http: web.Request) -> PeerCertificate | None:
        """The certificate of a request's connection, None also after the client disconnected."""
        return self.of(http.transport) if http.transport is not None else None

    def of(self, transport: asyncio.BaseTransport) -> PeerCertificate | None:
        tls = transport.get_extra_info("ssl_object")
        if tls is None:
            return None
        peer = self._by_connection.get(tls)
        if peer is None:
            chain = client_chain(tls)
            if not chain:
                return None
            peer = self._by_connection[tls] = PeerCertificate(chain[0], chain[1:])
        return peer


def has_client_certificate(http: web.Request) -> bool:
    """True if the client sent a certificate, valid or not."""
    tls = _tls(http)
    return tls is not None and bool(client_chain(tls))


class Verifier(Protocol):
    def verify(self, peer: PeerCertificate) -> bool:
        """Returns False if no CA is configured. Raises AuthenticationError if the CA did not issue the certificate."""
        ...


@dataclass(frozen=True, slots=True)
class _Verification:
    """The result for a chain and a CA bundle, valid until `until`; `error` is empty for a trusted chain."""

    ca: bytes
    until: float
    error: str


class CertificateVerifier:
    """Verifies chains against the CA bundle (PEM, empty for none) that `ca` returns at the time of the request.

    Results are cached by chain until the bundle changes or a certificate of the chain expires.
    """

    def __init__(self, ca: Callable[[], bytes], *, clock: Callable[[], float] = time.time) -> None:
        self._ca = ca
        self._clock = clock
        self._verifications: OrderedDict[bytes, _Verification] = OrderedDict()
        self._bundle: tuple[bytes, Store | None] = (b"", None)

    def verify(self, peer: PeerCertificate) -> bool:
        ca = self._ca()
        if not ca:
            return False
        now = self._clock()
        verification = self._verifications.get(peer.digest)
        if verification is None or verification.ca != ca or now >= verification.until:
            verification = self._verifications[peer.digest] = self._verify_chain(peer, ca, now)
            if len(self._verifications) > _CACHE_SIZE:
                self._verifications.popitem(last=False)
        if verification.error:
            raise AuthenticationError(verification.error)
        return True

    def _verify_chain(self, peer: PeerCertificate, ca: bytes, now: float) -> _Verification:
        try:
            chain = _verified_chain(peer, self._store(ca), now)
        except (VerificationError, ValueError, x509.UnsupportedGeneralNameType) as error:
            return _Verification(ca, now + _FAILURE_SECONDS, f"x509: {error}")
        return _Verification(ca, min(each.not_valid_after_utc.timestamp() for each in chain), "")

    def _store(self, ca: bytes) -> Store | None:
        if self._bundle[0] != ca:
            anchors = parse_bundle(ca)
            self._bundle = (ca, Store(anchors) if anchors else None)
        return self._bundle[1]


class ClientCertificateAuthenticator:
    """Authenticates by a client certificate: the common name is the user, organizations are the groups (WIRE-A20)."""

    def __init__(self, *, peers: PeerCertificates, verifier: Verifier) -> None:
        self._peers = peers
        self._verifier = verifier

    async def authenticate(self, context: RequestContext) -> User | None:
        return self._user(self._peers.get(context.http))

    def user_of(self, transport: asyncio.BaseTransport) -> User | None:
        """The user that a connection's certificate names, None without a valid certificate."""
        try:
            return self._user(self._peers.of(transport))
        except AuthenticationError:
            return None

    def _user(self, peer: PeerCertificate | None) -> User | None:
        return peer.user if peer is not None and self._verifier.verify(peer) else None


def _verified_chain(peer: PeerCertificate, store: Store | None, now: float) -> list[x509.Certificate]:
    if store is None:
        raise ValueError("the CA bundle contains no certificate")
    verifier = (
        PolicyBuilder()
        .store(store)
        .time(datetime.fromtimestamp(now, UTC))
        .extension_policies(ca_policy=_CA_POLICY, ee_policy=_CLIENT_POLICY)
        .max_chain_depth(_MAX_INTERMEDIATES)
        .build_client_verifier()
    )
    return verifier.verify(peer.certificate, _intermediates(peer)).chain


def _intermediates(peer: PeerCertificate) -> list[x509.Certificate]:
    """The intermediates, one of each name and key: with several, the number of chains to verify would grow
    exponentially. Raises ValueError for too many (ATTACK-19)."""
    if len(peer.intermediates) > _MAX_INTERMEDIATES:
        raise ValueError(f"there are more than {_MAX_INTERMEDIATES} intermediate certificates")
    found: dict[tuple[bytes, bytes], x509.Certificate] = {}
    for der in peer.intermediates:
        certificate = x509.load_der_x509_certificate(der)
        key = certificate.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
        found.setdefault((certificate.subject.public_bytes(), key), certificate)
    return list(found.values())


def _allows_clients(policy: Policy, certificate: x509.Certificate, usage: x509.ExtendedKeyUsage | None) -> None:
    """Raises ValueError unless the usage includes client authentication. As in Go, no extended usage allows all."""
    allowed = (ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE)
    if usage is not None and not any(each in allowed for each in usage):
        raise ValueError("certificate specifies an incompatible key usage")


def _is_ca(policy: Policy, certificate: x509.Certificate, constraints: x509.BasicConstraints) -> None:
    if not constraints.ca:
        raise ValueError("the issuer is not a certificate authority")


def _signs_certificates(policy: Policy, certificate: x509.Certificate, usage: x509.KeyUsage | None) -> None:
    if usage is not None and not usage.key_cert_sign:
        raise ValueError("the issuer may not sign certificates")


# The policies of the web PKI require a subjectAltName and an authorityKeyIdentifier, which cluster certificates often
# lack.
_CLIENT_POLICY = ExtensionPolicy.permit_all().may_be_present(
    x509.ExtendedKeyUsage, Criticality.AGNOSTIC, _allows_clients
)
_CA_POLICY = (
    ExtensionPolicy.permit_all()
    .require_present(x509.BasicConstraints, Criticality.AGNOSTIC, _is_ca)
    .may_be_present(x509.KeyUsage, Criticality.AGNOSTIC, _signs_certificates)
    .may_be_present(x509.ExtendedKeyUsage, Criticality.AGNOSTIC, _allows_clients)
)


def _subject(certificate: x509.Certificate, oid: x509.ObjectIdentifier) -> list[str]:
    return [str(attribute.value) for attribute in certificate.subject.get_attributes_for_oid(oid)]


def _tls(http: web.Request) -> Any:
    """Returns OpenSSL's connection of a request, None without TLS or after the client disconnected."""
    return http.transport.get_extra_info("ssl_object") if http.transport is not None else None
