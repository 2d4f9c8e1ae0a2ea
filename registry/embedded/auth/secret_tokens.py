"""Tokens of service accounts in Secrets of that type: known by their hash, good as long as the Secret exists."""

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
# what somebody has thought up and put into a Secret by hand is no token
_LEAST_LENGTH = 32


@dataclass(frozen=True, slots=True)
class _Entry:
    token: bytes
    account: Key
    uid: str


class TokenDirectory:
    """Whose a token is. Finds a token by its hash and compares it in constant time."""

    def __init__(self, *, database: Database, accounts: SqliteBackend) -> None:
        self._database = database
        self._accounts = accounts
        self._places: dict[Key, bytes] = {}
        self._entries: dict[bytes, dict[Key, _Entry]] = {}

    def load(self, backend: SqliteBackend) -> None:
        """Take in the Secrets that are stored, and follow them from then on."""
        for cached in backend.cache:
            self._put(cached.key, cached.object())
        self._database.subscribe(self._hear)

    def find(self, token: str) -> User | None:
        """The user that the token is good for, None if it is good for none."""
        given = token.encode(errors="replace")
        for entry in self._entries.get(_digest(given), {}).values():
            account = self._accounts.cache.peek(entry.account)
            if hmac.compare_digest(entry.token, given) and account is not None and account.uid == entry.uid:
                return service_account_user(*entry.account, account.uid)
        return None

    def _hear(self, change: Change) -> None:
        if change.place.resource != SECRETS:
            return
        self._drop(change.place.key)
        if change.type != "DELETED":
            self._put(change.place.key, change.object)

    def _put(self, key: Key, secret: Object) -> None:
        annotations = secret["metadata"].get("annotations") or {}
        token = _decoded((secret.get("data") or {}).get("token", ""))
        if secret.get("type") != SERVICE_ACCOUNT_TOKEN or len(token) < _LEAST_LENGTH:
            return
        account = Key(key.namespace, annotations.get(SERVICE_ACCOUNT_NAME, ""))
        digest = _digest(token)
        self._places[key] = digest
        entry = _Entry(token, account, annotations.get(SERVICE_ACCOUNT_UID, ""))
        self._entries.setdefault(digest, {})[key] = entry

    def _drop(self, key: Key) -> None:
        digest = self._places.pop(key, None)
        if digest is not None:
            entries = self._entries[digest]
            del entries[key]
            if not entries:
                del self._entries[digest]


class TokenController:
    """Fills the Secrets that ask for a token, and removes those whose account is gone."""

    def __init__(self, *, database: Database, backends: Mapping[str, SqliteBackend], ca: str) -> None:
        """`ca` is PEM of who signs the server's certificate."""
        self._database = database
        self._secrets = backends[SECRETS]
        self._accounts = backends[SERVICEACCOUNTS]
        self._ca = ca
        self._worker: Worker[Key] = Worker("service account tokens", self._process)

    def load(self) -> None:
        for cached in self._secrets.cache:
            self._worker.add(cached.key)
        self._database.subscribe(self._hear)

    async def run(self) -> None:
        await self._worker.run()

    async def join(self) -> None:
        await self._worker.join()

    def _hear(self, change: Change) -> None:
        key = change.place.key
        if change.place.resource == SECRETS and change.object.get("type") == SERVICE_ACCOUNT_TOKEN:
            self._worker.add(key)
        elif change.place.resource == SERVICEACCOUNTS and change.type != "MODIFIED":
            for cached in self._secrets.cache.items(key.namespace):
                if _account_of(cached.object()) == key.name:
                    self._worker.add(cached.key)

    async def _process(self, key: Key) -> None:
        secret = await self._secrets.read(key, live=True)
        if secret is None or not (name := _account_of(secret)) or secret["metadata"].get("deletionTimestamp"):
            return
        account = await self._accounts.read(Key(key.namespace, name), live=True)
        annotations = secret["metadata"].get("annotations") or {}
        known = annotations.get(SERVICE_ACCOUNT_UID)
        if account is None:
            # one that has had no account yet may be there before it
            if known:
                await self._secrets.delete(key, secret, DeleteOptions())
            return
        if known and known != account["metadata"]["uid"]:
            await self._secrets.delete(key, secret, DeleteOptions())
            return
        filled = self._filled(secret, account["metadata"]["uid"])
        if filled != secret:
            await self._secrets.update(key, filled, secret, dry_run=False)

    def _filled(self, secret: Object, uid: str) -> Object:
        metadata, data = secret["metadata"], secret.get("data") or {}
        annotations = metadata.get("annotations") or {}
        token = data.get("token", "") if annotations.get(SERVICE_ACCOUNT_UID) else ""
        if len(_decoded(token)) < _LEAST_LENGTH:
            token = _encoded(secrets.token_urlsafe(_TOKEN_BYTES))
        wanted = {"token": token, "namespace": _encoded(metadata["namespace"]), "ca.crt": _encoded(self._ca)}
        return {
            **secret,
            "metadata": {**metadata, "annotations": {**annotations, SERVICE_ACCOUNT_UID: uid}},
            "data": {**data, **wanted},
        }


def _account_of(secret: Object) -> str:
    """The account that a Secret wants a token of, empty for other Secrets."""
    if secret.get("type") != SERVICE_ACCOUNT_TOKEN:
        return ""
    name: str = (secret["metadata"].get("annotations") or {}).get(SERVICE_ACCOUNT_NAME, "")
    return name


def _digest(token: bytes) -> bytes:
    return hashlib.sha256(token).digest()


def _encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text)
    except (binascii.Error, ValueError):
        return b""
