"""Service account tokens in Secrets: looked up by their hash, valid while the Secret and the account exist."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import secrets
from collections.abc import Mapping
from dataclasses import dataclass

from apiserver.meta.resource import Key, Object
from apiserver.request.context import User
from apiserver.request.options import DeleteOptions
from registry.embedded.kinds.core_validation import SERVICE_ACCOUNT_NAME, SERVICE_ACCOUNT_TOKEN, SERVICE_ACCOUNT_UID
from registry.embedded.worker import Worker
from registry.rbac.role_index import service_account_user
from registry.sqlite.backend import SqliteBackend
from registry.sqlite.database import Change, Database

SECRETS = "secrets"
SERVICEACCOUNTS = "serviceaccounts"

_TOKEN_BYTES = 48
# a shorter value is a password that a user wrote into the Secret, not a token
_MIN_LENGTH = 32


@dataclass(frozen=True, slots=True)
class _Entry:
    token: bytes
    account: Key
    uid: str


class SecretTokenIndex:
    """Maps tokens to users. A token is found by its hash and then compared in constant time."""

    def __init__(self, *, database: Database, accounts: SqliteBackend) -> None:
        self._database = database
        self._accounts = accounts
        self._digests: dict[Key, bytes] = {}
        self._entries: dict[bytes, dict[Key, _Entry]] = {}

    def load(self, backend: SqliteBackend) -> None:
        """Indexes the stored Secrets and subscribes to changes."""
        for cached in backend.cache:
            self._put(cached.key, cached.object())
        self._database.subscribe(self._on_change)

    def authenticate_token(self, token: str) -> User | None:
        """Returns the user of the token, None if the token is invalid."""
        presented = token.encode(errors="replace")
        for entry in self._entries.get(_digest(presented), {}).values():
            account = self._accounts.cache.peek(entry.account)
            if hmac.compare_digest(entry.token, presented) and account is not None and account.uid == entry.uid:
                return service_account_user(*entry.account, account.uid)
        return None

    def _on_change(self, change: Change) -> None:
        if change.target.resource != SECRETS:
            return
        self._drop(change.target.key)
        if change.type != "DELETED":
            self._put(change.target.key, change.object)

    def _put(self, key: Key, secret: Object) -> None:
        annotations = secret["metadata"].get("annotations") or {}
        token = _decode_base64((secret.get("data") or {}).get("token", ""))
        if secret.get("type") != SERVICE_ACCOUNT_TOKEN or len(token) < _MIN_LENGTH:
            return
        account = Key(key.namespace, annotations.get(SERVICE_ACCOUNT_NAME, ""))
        digest = _digest(token)
        self._digests[key] = digest
        entry = _Entry(token, account, annotations.get(SERVICE_ACCOUNT_UID, ""))
        self._entries.setdefault(digest, {})[key] = entry

    def _drop(self, key: Key) -> None:
        digest = self._digests.pop(key, None)
        if digest is not None:
            entries = self._entries[digest]
            del entries[key]
            if not entries:
                del self._entries[digest]


class TokenController:
    """Writes a token into Secrets of type service-account-token, and deletes such Secrets when their account is
    deleted."""

    def __init__(self, *, database: Database, backends: Mapping[str, SqliteBackend], ca: str) -> None:
        """`ca` is the PEM of the CA that signed the serving certificate."""
        self._database = database
        self._secrets = backends[SECRETS]
        self._accounts = backends[SERVICEACCOUNTS]
        self._ca = ca
        self._worker: Worker[Key] = Worker("service account tokens", self._process)

    def load(self) -> None:
        for cached in self._secrets.cache:
            self._worker.add(cached.key)
        self._database.subscribe(self._on_change)

    async def run(self) -> None:
        await self._worker.run()

    async def join(self) -> None:
        await self._worker.join()

    def _on_change(self, change: Change) -> None:
        key = change.target.key
        if change.target.resource == SECRETS and change.object.get("type") == SERVICE_ACCOUNT_TOKEN:
            self._worker.add(key)
        elif change.target.resource == SERVICEACCOUNTS and change.type != "MODIFIED":
            for cached in self._secrets.cache.items(key.namespace):
                if _account_name(cached.object()) == key.name:
                    self._worker.add(cached.key)

    async def _process(self, key: Key) -> None:
        secret = await self._secrets.read(key, live=True)
        if secret is None or not (name := _account_name(secret)) or secret["metadata"].get("deletionTimestamp"):
            return
        account = await self._accounts.read(Key(key.namespace, name), live=True)
        annotations = secret["metadata"].get("annotations") or {}
        uid = annotations.get(SERVICE_ACCOUNT_UID)
        if account is None:
            # a Secret without the uid has never had an account: it may be created before its account
            if uid:
                await self._secrets.delete(key, secret, DeleteOptions())
            return
        if uid and uid != account["metadata"]["uid"]:
            await self._secrets.delete(key, secret, DeleteOptions())
            return
        updated = self._with_token(secret, account["metadata"]["uid"])
        if updated != secret:
            await self._secrets.update(key, updated, secret, dry_run=False)

    def _with_token(self, secret: Object, uid: str) -> Object:
        metadata, data = secret["metadata"], secret.get("data") or {}
        annotations = metadata.get("annotations") or {}
        token = data.get("token", "") if annotations.get(SERVICE_ACCOUNT_UID) else ""
        if len(_decode_base64(token)) < _MIN_LENGTH:
            token = _encode_base64(secrets.token_urlsafe(_TOKEN_BYTES))
        generated = {
            "token": token,
            "namespace": _encode_base64(metadata["namespace"]),
            "ca.crt": _encode_base64(self._ca),
        }
        return {
            **secret,
            "metadata": {**metadata, "annotations": {**annotations, SERVICE_ACCOUNT_UID: uid}},
            "data": {**data, **generated},
        }


def _account_name(secret: Object) -> str:
    """Returns the account of a Secret of type service-account-token, empty for other Secrets."""
    if secret.get("type") != SERVICE_ACCOUNT_TOKEN:
        return ""
    name: str = (secret["metadata"].get("annotations") or {}).get(SERVICE_ACCOUNT_NAME, "")
    return name


def _digest(token: bytes) -> bytes:
    return hashlib.sha256(token).digest()


def _encode_base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def _decode_base64(text: str) -> bytes:
    try:
        return base64.b64decode(text)
    except (binascii.Error, ValueError):
        return b""
