"""JSON Web Tokens, signed with ES256 (RFC 7515, 7518, 7519). Pure; what the claims are worth is for others to say."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from collections.abc import Mapping
from typing import Any

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature, encode_dss_signature
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)

_ALGORITHM = "ES256"
_HALF = 32
_MAX_LENGTH = 16 * 1024


class InvalidJwt(Exception):
    """The text is no token of this key."""


def make_key() -> bytes:
    """A private key to sign with, PEM."""
    return ec.generate_private_key(ec.SECP256R1()).private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


class SigningKey:
    """Signs claims, and reads what it has signed."""

    def __init__(self, pem: bytes) -> None:
        """Raises ValueError for what is no P-256 key."""
        try:
            key = load_pem_private_key(pem, password=None)
        except (TypeError, ValueError, UnsupportedAlgorithm) as error:
            raise ValueError("no private key in PEM") from error
        if not isinstance(key, ec.EllipticCurvePrivateKey) or not isinstance(key.curve, ec.SECP256R1):
            raise ValueError("the key is not an elliptic curve key on P-256")
        self._key = key
        public = key.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
        self._header = {"alg": _ALGORITHM, "kid": _encode(hashlib.sha256(public).digest())}

    def sign(self, claims: Mapping[str, Any]) -> str:
        """A token in its compact form."""
        signed = f"{_encode_json(self._header)}.{_encode_json(claims)}"
        r, s = decode_dss_signature(self._key.sign(signed.encode(), ec.ECDSA(hashes.SHA256())))
        return f"{signed}.{_encode(r.to_bytes(_HALF, 'big') + s.to_bytes(_HALF, 'big'))}"

    def read(self, token: str) -> dict[str, Any]:
        """The claims of a token that this key has signed. Raises InvalidJwt."""
        parts = token.split(".")
        if len(parts) != 3 or len(token) > _MAX_LENGTH:
            raise InvalidJwt("not a JSON Web Token")
        header, payload, signature = parts
        # no other header is ever signed here, so nothing in it is the sender's to choose
        if _decode_json(header) != self._header:
            raise InvalidJwt("signed with another key")
        halves = _decode(signature)
        if len(halves) != 2 * _HALF:
            raise InvalidJwt("the signature has the wrong length")
        r, s = (int.from_bytes(half, "big") for half in (halves[:_HALF], halves[_HALF:]))
        try:
            public = self._key.public_key()
            public.verify(encode_dss_signature(r, s), f"{header}.{payload}".encode(), ec.ECDSA(hashes.SHA256()))
        except InvalidSignature as error:
            raise InvalidJwt("the signature does not fit") from error
        claims = _decode_json(payload)
        if not isinstance(claims, dict):
            raise InvalidJwt("the claims are no object")
        return claims


def _encode_json(value: Mapping[str, Any]) -> str:
    return _encode(json.dumps(value, separators=(",", ":")).encode())


def _encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _decode_json(text: str) -> Any:
    try:
        return json.loads(_decode(text))
    except (ValueError, RecursionError) as error:
        raise InvalidJwt("not JSON") from error


def _decode(text: str) -> bytes:
    try:
        return base64.b64decode((text + "=" * (-len(text) % 4)).encode("ascii"), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError) as error:
        raise InvalidJwt("not base64url") from error
