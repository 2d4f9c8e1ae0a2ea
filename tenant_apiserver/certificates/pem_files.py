"""The PEM files that flags name. Errors begin with the flag and its value, as for every other flag."""

from __future__ import annotations

from pathlib import Path

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from apiserver.tls.certificates import KeyPair, is_matching_pair, parse_bundle
from apiserver.tls.file_reload import read_pair


class UnusableFile(ValueError):
    """A file that a flag names cannot be used. The text begins with the flag."""


def read_serving_pair(certificate: Path, key: Path) -> KeyPair:
    """The files of --tls-cert-file and --tls-private-key-file. Raises UnusableFile, and OSError."""
    pair = read_pair(certificate, key)
    named, key_named = f"--tls-cert-file={certificate}", f"--tls-private-key-file={key}"
    _require_certificate(named, pair.certificate)
    try:
        load_pem_private_key(pair.key, password=None)
    except TypeError as error:
        raise UnusableFile(f"{key_named}: the key must not be encrypted") from error
    except (ValueError, UnsupportedAlgorithm) as error:
        raise UnusableFile(f"{key_named}: must be a PEM file with a private key") from error
    if not is_matching_pair(pair):
        raise UnusableFile(f"{key_named}: must be the key of {named}, not of another")
    return pair


def read_ca_bundle(flag: str, path: Path | None) -> bytes:
    """The file of a flag, empty without one. Raises UnusableFile, and OSError."""
    if path is None:
        return b""
    pem = path.read_bytes()
    _require_certificate(f"{flag}={path}", pem)
    return pem


def _require_certificate(named: str, pem: bytes) -> None:
    try:
        found = parse_bundle(pem)
    except ValueError as error:
        raise UnusableFile(f"{named}: has a certificate that cannot be read") from error
    if not found:
        raise UnusableFile(f"{named}: must be a PEM file with a certificate")
