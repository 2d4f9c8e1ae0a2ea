"""Service account tokens that expire: signed JWTs, valid while the account and the Secret they are bound to exist."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from apiserver.meta.resource import Key
from apiserver.request.context import User
from registry.embedded.auth.signing_key import InvalidServiceAccountToken, SigningKey
from registry.rbac.role_index import service_account_user
from registry.sqlite.backend import SqliteBackend

AUDIENCE = "https://kubernetes.default.svc"
"""The issuer of all tokens, and the default audience."""

_KUBERNETES = "kubernetes.io"
_CREDENTIAL_ID = "authentication.kubernetes.io/credential-id"
# the clock of this machine may have been set back a little
_LEEWAY_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class BoundObject:
    """A Secret that a token is bound to: the token becomes invalid when the Secret is deleted."""

    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class AuthenticatedToken:
    """The user of a valid token and the audiences that the token is meant for."""

    user: User
    audiences: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundTokens:
    """Issues and authenticates tokens. `clock` returns seconds since the epoch."""

    key: SigningKey
    accounts: SqliteBackend
    secrets: SqliteBackend
    clock: Callable[[], float] = time.time

    def issue(
        self, account: Key, uid: str, *, audiences: Sequence[str], seconds: int, bound: BoundObject | None = None
    ) -> tuple[str, int]:
        """Returns a token and its expiration time in seconds since the epoch."""
        now = int(self.clock())
        private_claims: dict[str, Any] = {"namespace": account.namespace}
        private_claims["serviceaccount"] = {"name": account.name, "uid": uid}
        if bound is not None:
            private_claims["secret"] = {"name": bound.name, "uid": bound.uid}
        claims = {
            "aud": list(audiences),
            "exp": now + seconds,
            "iat": now,
            "iss": AUDIENCE,
            "jti": str(uuid.uuid4()),
            _KUBERNETES: private_claims,
            "nbf": now,
            "sub": f"system:serviceaccount:{account.namespace}:{account.name}",
        }
        return self.key.sign(claims), now + seconds

    def authenticate_token(self, token: str) -> AuthenticatedToken | None:
        """Returns None for a token that this key did not sign, that is expired or not yet valid, or whose account or
        bound Secret no longer exists."""
        try:
            claims = self.key.read(token)
        except InvalidServiceAccountToken:
            return None
        now = self.clock()
        if not claims["nbf"] - _LEEWAY_SECONDS <= now < claims["exp"]:
            return None
        private_claims: Mapping[str, Any] = claims[_KUBERNETES]
        account = private_claims["serviceaccount"]
        key = Key(private_claims["namespace"], account["name"])
        if not _exists(self.accounts, key, account["uid"]):
            return None
        bound = private_claims.get("secret")
        if bound is not None and not _exists(self.secrets, Key(key.namespace, bound["name"]), bound["uid"]):
            return None
        extra = {_CREDENTIAL_ID: (f"JTI={claims['jti']}",)}
        return AuthenticatedToken(service_account_user(*key, account["uid"], extra=extra), tuple(claims["aud"]))


def _exists(backend: SqliteBackend, key: Key, uid: str) -> bool:
    found = backend.cache.peek(key)
    return found is not None and found.uid == uid
