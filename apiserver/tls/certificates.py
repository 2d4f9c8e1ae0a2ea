"""Creates and inspects X.509 certificates in PEM: CAs, serving and client certificates, and bundles."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.types import CertificateIssuerPrivateKeyTypes
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

CA_LIFETIME = timedelta(days=3650)
LIFETIME = timedelta(days=365)
# Peers whose clocks are slow would reject a certificate as not valid yet.
_BACKDATE = timedelta(minutes=5)
_CERTIFICATE = re.compile(rb"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A certificate and its private key, both PEM."""

    certificate: bytes
    key: bytes

    def __repr__(self) -> str:
        return "KeyPair(…)"


def make_ca(common_name: str, *, now: datetime | None = None, lifetime: timedelta = CA_LIFETIME) -> KeyPair:
    """A self-signed certificate authority."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])
    builder = (
        _builder(name, key, now, lifetime)
        .issuer_name(name)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(_key_usage(signs_certificates=True), critical=True)
    )
    return _pair(builder, key, signer=key)


def make_serving(
    ca: KeyPair, names: Sequence[str], *, now: datetime | None = None, lifetime: timedelta = LIFETIME
) -> KeyPair:
    """A serving certificate for `names`: DNS names and IP addresses. The first one is the common name."""
    key = ec.generate_private_key(ec.SECP256R1())
    # a common name has at most 64 characters, and clients ignore it if there are alternative names
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, names[0][:64])])
    alternatives = x509.SubjectAlternativeName([_general_name(name) for name in names])
    builder = _issued_builder(ca, subject, key, ExtendedKeyUsageOID.SERVER_AUTH, now, lifetime)
    return _sign(ca, builder.add_extension(alternatives, critical=False), key)


def make_client(
    ca: KeyPair,
    user: str,
    groups: Sequence[str] = (),
    *,
    now: datetime | None = None,
    lifetime: timedelta = LIFETIME,
) -> KeyPair:
    """A client certificate that authenticates `user` with `groups` (WIRE-A20). Raises ValueError for a name that a
    certificate cannot contain."""
    key = ec.generate_private_key(ec.SECP256R1())
    attributes = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
    subject = x509.Name([*attributes, x509.NameAttribute(NameOID.COMMON_NAME, user)])
    return _sign(ca, _issued_builder(ca, subject, key, ExtendedKeyUsageOID.CLIENT_AUTH, now, lifetime), key)


def parse_bundle(pem: bytes) -> list[x509.Certificate]:
    """The certificates of a PEM bundle, in order; other text is ignored. Raises ValueError for a malformed one."""
    return [x509.load_pem_x509_certificate(block) for block in _CERTIFICATE.findall(pem)]


def is_matching_pair(pair: KeyPair) -> bool:
    """True if certificate and key can be parsed and belong together."""
    try:
        key = load_pem_private_key(pair.key, password=None)
        return key.public_key() == _first_certificate(pair.certificate).public_key()
    except (TypeError, ValueError, UnsupportedAlgorithm):
        return False


def expiry(pem: bytes) -> datetime:
    """The expiry of the first certificate of a PEM bundle. Raises ValueError if there is none."""
    return _first_certificate(pem).not_valid_after_utc


def should_renew(pem: bytes, now: datetime) -> bool:
    """True if two thirds of the lifetime of the first certificate have passed."""
    certificate = _first_certificate(pem)
    start, end = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    return now >= start + (end - start) * 2 / 3


def valid_for_names(pem: bytes, names: Sequence[str]) -> bool:
    """True if the first certificate of a PEM bundle lists all `names`; wildcards are not expanded."""
    try:
        extension = _first_certificate(pem).extensions.get_extension_for_class(x509.SubjectAlternativeName)
    except x509.ExtensionNotFound:
        return False
    return all(_general_name(name) in extension.value for name in names)


def issued_by(pem: bytes, ca_pem: bytes) -> bool:
    """True if a certificate of the CA bundle signed the first certificate of `pem`."""
    certificate = _first_certificate(pem)
    for ca in parse_bundle(ca_pem):
        try:
            certificate.verify_directly_issued_by(ca)
        except Exception:  # InvalidSignature, or one of several errors for keys of another type
            continue
        return True
    return False


def _first_certificate(pem: bytes) -> x509.Certificate:
    found = parse_bundle(pem)
    if not found:
        raise ValueError("no certificate in the PEM data")
    return found[0]


def _builder(
    subject: x509.Name, key: ec.EllipticCurvePrivateKey, now: datetime | None, lifetime: timedelta
) -> x509.CertificateBuilder:
    start = now or datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(start - _BACKDATE)
        .not_valid_after(start + lifetime)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )


def _issued_builder(
    ca: KeyPair,
    subject: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    usage: x509.ObjectIdentifier,
    now: datetime | None,
    lifetime: timedelta,
) -> x509.CertificateBuilder:
    issuer = _first_certificate(ca.certificate)
    identifier = issuer.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    return (
        _builder(subject, key, now, lifetime)
        .issuer_name(issuer.subject)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_key_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(identifier), critical=False)
    )


def _sign(ca: KeyPair, builder: x509.CertificateBuilder, key: ec.EllipticCurvePrivateKey) -> KeyPair:
    signer = load_pem_private_key(ca.key, password=None)
    assert isinstance(signer, ec.EllipticCurvePrivateKey)
    return _pair(builder, key, signer=signer)


def _pair(
    builder: x509.CertificateBuilder, key: ec.EllipticCurvePrivateKey, *, signer: CertificateIssuerPrivateKeyTypes
) -> KeyPair:
    certificate = builder.sign(signer, hashes.SHA256())
    return KeyPair(
        certificate=certificate.public_bytes(Encoding.PEM),
        key=key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()),
    )


def _key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)
