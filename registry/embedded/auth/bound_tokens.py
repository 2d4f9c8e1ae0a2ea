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
class Binding:
    """A Secret that a token does not outlive."""

    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class Bearer:
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
        self, account: Key, uid: str, *, audiences: Sequence[str], seconds: int, bound: Binding | None = None
    ) -> tuple[str, int]:
        """A token, and when it ends in seconds of the epoch."""
        now = int(self.clock())
        about: dict[str, Any] = {"namespace": account.namespace}
        about["serviceaccount"] = {"name": account.name, "uid": uid}
        if bound is not None:
            about["secret"] = {"name": bound.name, "uid": bound.uid}
        claims = {
            "aud": list(audiences),
            "exp": now + seconds,
            "iat": now,
            "iss": AUDIENCE,
            "jti": str(uuid.uuid4()),
            _KUBERNETES: about,
            "nbf": now,
            "sub": f"system:serviceaccount:{account.namespace}:{account.name}",
        }
        return self.key.sign(claims), now + seconds

    def find(self, token: str) -> Bearer | None:
        """None unless the token is of this key, in its time, and of what is still there."""
        try:
            claims = self.key.read(token)
        except InvalidServiceAccountToken:
            return None
        now = self.clock()
        if not claims["nbf"] - _LEEWAY_SECONDS <= now < claims["exp"]:
            return None
        about: Mapping[str, Any] = claims[_KUBERNETES]
        account = about["serviceaccount"]
        key = Key(about["namespace"], account["name"])
        if not _holds(self.accounts, key, account["uid"]):
            return None
        bound = about.get("secret")
        if bound is not None and not _holds(self.secrets, Key(key.namespace, bound["name"]), bound["uid"]):
            return None
        extra = {_CREDENTIAL_ID: (f"JTI={claims['jti']}",)}
        return Bearer(service_account_user(*key, account["uid"], extra=extra), tuple(claims["aud"]))


def _holds(backend: SqliteBackend, key: Key, uid: str) -> bool:
    found = backend.cache.peek(key)
    return found is not None and found.uid == uid
