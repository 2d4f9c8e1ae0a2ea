"""Authentication by the X-Remote-* headers of a front proxy, which are trusted only together with the proxy's client
certificate (WIRE-A11 to WIRE-A19)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from urllib.parse import unquote_to_bytes

from multidict import CIMultiDictProxy

from apiserver.authentication.authenticator import AuthenticationError
from apiserver.authentication.x509 import PeerCertificate, PeerCertificates, Verifier
from apiserver.meta.errors import BadRequest
from apiserver.request.context import RequestContext, User

Headers = CIMultiDictProxy[str]

_STANDARD = ("x-remote-user", "x-remote-uid", "x-remote-group")
_STANDARD_PREFIXES = ("x-remote-extra-",)
_HEX = frozenset("0123456789abcdefABCDEF")


@dataclass(frozen=True, kw_only=True)
class RequestHeaderConfig:
    """The cluster's request-header settings (WIRE-A6). Without `allowed_names` any certificate of the CA is allowed.

    `uid_headers` is empty unless the cluster configures some (WIRE-A8).
    """

    ca_pem: bytes = b""
    allowed_names: tuple[str, ...] = ()
    username_headers: tuple[str, ...] = ("X-Remote-User",)
    uid_headers: tuple[str, ...] = ()
    group_headers: tuple[str, ...] = ("X-Remote-Group",)
    extra_prefixes: tuple[str, ...] = ("X-Remote-Extra-",)

    @cached_property
    def identity_headers(self) -> frozenset[str]:
        """Lower-case names of the headers that carry an identity: the configured and the standard ones."""
        return frozenset({*_STANDARD, *_lower(self.username_headers, self.uid_headers, self.group_headers)})

    @cached_property
    def identity_prefixes(self) -> tuple[str, ...]:
        return (*_STANDARD_PREFIXES, *_lower(self.extra_prefixes))


class RequestHeaderAuthenticator:
    """Authenticates by request headers.

    Identity headers from anyone but a verified front proxy are an invalid credential: the request fails with a 401
    unless another of its credentials is valid (ATTACK-01).
    """

    def __init__(
        self, *, config: Callable[[], RequestHeaderConfig], peers: PeerCertificates, verifier: Verifier
    ) -> None:
        self._config = config
        self._peers = peers
        self._verifier = verifier

    async def authenticate(self, context: RequestContext) -> User | None:
        """Raises BadRequest if the proxy sends more than one username."""
        config = self._config()
        headers = context.http.headers
        if not self._is_proxy(self._peers.get(context.http), config):
            if has_identity_headers(headers, config):
                raise AuthenticationError("identity headers without the certificate of a front proxy")
            return None
        return _user(headers, config)

    def is_front_proxy(self, transport: asyncio.BaseTransport) -> bool:
        """True if a connection has the valid certificate of a front proxy."""
        try:
            return self._is_proxy(self._peers.of(transport), self._config())
        except AuthenticationError:
            return False

    def _is_proxy(self, peer: PeerCertificate | None, config: RequestHeaderConfig) -> bool:
        if peer is None or not self._verifier.verify(peer):
            return False
        if config.allowed_names and peer.common_name not in config.allowed_names:
            raise AuthenticationError(f"x509: subject with cn={peer.common_name} is not in the allowed list")
        return True


def has_identity_headers(names: Iterable[str], config: RequestHeaderConfig) -> bool:
    """True if a front proxy would send one of these headers. Some proxies turn `_` into `-`, so both spellings
    match."""
    exact, prefixes = config.identity_headers, config.identity_prefixes
    for name in names:
        canonical = name.lower().replace("_", "-")
        if canonical in exact or canonical.startswith(prefixes):
            return True
    return False


def _user(headers: Headers, config: RequestHeaderConfig) -> User | None:
    name = ""
    for header in config.username_headers:
        values = headers.getall(header, [])
        if len(values) > 1:
            raise BadRequest(f"the header {header} occurs {len(values)} times")
        name = name or "".join(values)
    if not name:
        return None
    uids = [value for header in config.uid_headers for value in headers.getall(header, []) if value]
    groups = tuple(value for header in config.group_headers for value in headers.getall(header, []))
    extra = _extra(headers, config.extra_prefixes)
    user = User(name=name, uid=uids[0] if uids else "", groups=groups, extra=extra)
    if not is_valid_utf8(user):
        raise AuthenticationError("the identity headers are not UTF-8")
    return user


def _extra(headers: Headers, prefixes: Sequence[str]) -> dict[str, tuple[str, ...]]:
    found: dict[str, list[str]] = {}
    lowered = [prefix.lower() for prefix in prefixes]
    for name, value in headers.items():
        lower = name.lower()
        for prefix in lowered:
            if lower.startswith(prefix):
                found.setdefault(decode_extra_key(lower[len(prefix) :]), []).append(value)
    return {key: tuple(values) for key, values in found.items()}


def is_valid_utf8(user: User) -> bool:
    """True if all strings of `user` are valid UTF-8. Header values may not be, and reviews can carry nothing else."""
    values = (value for each in user.extra.values() for value in each)
    try:
        "".join((user.name, user.uid, *user.groups, *user.extra, *values)).encode()
    except UnicodeEncodeError:
        return False
    return True


def decode_extra_key(key: str) -> str:
    """Percent-decodes the key of an extra value; a key with an invalid escape is returned unchanged (WIRE-A16)."""
    for position, character in enumerate(key):
        digits = key[position + 1 : position + 3]
        if character == "%" and (len(digits) < 2 or not _HEX.issuperset(digits)):
            return key
    return unquote_to_bytes(key).decode("utf-8", "surrogateescape")


def _lower(*names: Sequence[str]) -> Iterable[str]:
    return (name.lower() for each in names for name in each)
