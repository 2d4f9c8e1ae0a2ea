"""The key that signs service account tokens: JSON Web Tokens with ES256, through PyJWT.

Pure: times and audiences in the claims are checked by bound_tokens, against its own clock.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from typing import Any

import jwt
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)
from jwt.types import Options

_ALGORITHM = "ES256"
_MAX_LENGTH = 16 * 1024
# Times and audiences are checked by bound_tokens.
_SIGNATURE_ONLY: Options = {
    "verify_signature": True,
    "verify_exp": False,
    "verify_nbf": False,
    "verify_iat": False,
    "verify_aud": False,
    "verify_iss": False,
    "verify_sub": False,
    "verify_jti": False,
}


class InvalidServiceAccountToken(Exception):
    """The text is not a token that this key signed."""


def generate_key() -> bytes:
    """A new private key on P-256, as PEM."""
    return ec.generate_private_key(ec.SECP256R1()).private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


class SigningKey:
    """Signs claims, and reads tokens that it signed."""

    def __init__(self, pem: bytes) -> None:
        """Raises ValueError unless `pem` is a private key on P-256."""
        try:
            key = load_pem_private_key(pem, password=None)
        except (TypeError, ValueError, UnsupportedAlgorithm) as error:
            raise ValueError("no private key in PEM") from error
        if not isinstance(key, ec.EllipticCurvePrivateKey) or not isinstance(key.curve, ec.SECP256R1):
            raise ValueError("the key is not an elliptic curve key on P-256")
        self._key = key
        self._public = key.public_key()
        public = self._public.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
        kid = base64.urlsafe_b64encode(hashlib.sha256(public).digest()).rstrip(b"=").decode()
        self._header = {"alg": _ALGORITHM, "kid": kid}

    def sign(self, claims: Mapping[str, Any]) -> str:
        """A token in its compact form. As in Kubernetes, its header has no `typ`."""
        return jwt.encode(dict(claims), self._key, algorithm=_ALGORITHM, headers={**self._header, "typ": None})

    def read(self, token: str) -> dict[str, Any]:
        """The claims of a token that this key signed. Raises InvalidServiceAccountToken."""
        if len(token) > _MAX_LENGTH:
            raise InvalidServiceAccountToken("the token is too long")
        try:
            decoded = jwt.decode_complete(token, self._public, algorithms=[_ALGORITHM], options=_SIGNATURE_ONLY)
        except (jwt.PyJWTError, ValueError, RecursionError) as error:
            raise InvalidServiceAccountToken(str(error)) from error
        # This key signs no other header, so a token with another header is not ours.
        if decoded["header"] != self._header:
            raise InvalidServiceAccountToken("signed with another key")
        claims: dict[str, Any] = decoded["payload"]
        return claims
