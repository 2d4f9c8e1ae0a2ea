"""Tokens of service accounts that end: signed claims, good while the account (and what they are bound to) is there."""

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
"""Whom a token is for unless it says otherwise, and who has issued it."""

_KUBERNETES = "kubernetes.io"
_CREDENTIAL_ID = "authentication.kubernetes.io/credential-id"
# of one machine's own clock, which may be set back a little
_LEEWAY_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class BoundObject:
    """A Secret that a token does not outlive."""

    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class AuthenticatedToken:
    """Who a token stands for, and for whom it is meant."""

    user: User
    audiences: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundTokens:
    """`clock` gives seconds of the epoch."""

    key: SigningKey
    accounts: SqliteBackend
    secrets: SqliteBackend
    clock: Callable[[], float] = time.time

    def issue(
        self, account: Key, uid: str, *, audiences: Sequence[str], seconds: int, bound: BoundObject | None = None
    ) -> tuple[str, int]:
        """A token, and when it ends in seconds of the epoch."""
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
        """None unless the token is of this key, in its time, and of what is still there."""
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
