"""The headers that pass the proxy. Pure.

The proxy may impersonate everybody, so the identity of a forwarded request is written by `identity.py` alone. Every
header that could name one is dropped, in each spelling that a server may take for it, and so are those that Connection
names: the next hop would drop the Impersonate headers, and serve the request with the rights of the proxy
(CVE-2022-23652).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Final

from multidict import CIMultiDict, CIMultiDictProxy

_HOP_BY_HOP: Final = frozenset(
    {
        "connection",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
# Credentials, what the proxy sets itself, and what the client may not say of its address.
_OF_THE_PROXY: Final = frozenset(
    {"audit-id", "authorization", "expect", "forwarded", "host", "http2-settings", "via", "x-real-ip"}
)
_NOT_FORWARDED: Final = _HOP_BY_HOP | _OF_THE_PROXY
_LONGEST_COMMON: Final = 64
_PREFIXES: Final = ("impersonate-", "x-forwarded-", "x-remote-")
_SOCKET_PROTOCOLS: Final = "Sec-WebSocket-Protocol"
TOKEN_PROTOCOL: Final = "base64url.bearer.authorization.k8s.io."
"""The prefix of the websocket subprotocol in which browsers send a token."""
_UPGRADES: Final = {"websocket": "websocket", "spdy/3.1": "SPDY/3.1"}


def forwarded_headers(
    received: Mapping[str, str] | CIMultiDictProxy[str], *, audit_id: str, source: str
) -> CIMultiDict[str]:
    """The headers of a request without its identity. `source` is the address of the client, empty if unknown."""
    headers = _passed(received.items(), _is_request_header)
    headers["Audit-ID"] = audit_id
    if source:
        headers["X-Forwarded-For"] = source
    if _SOCKET_PROTOCOLS in headers:
        _remove_token(headers)
    return headers


def answer_headers(received: Mapping[str, str] | CIMultiDictProxy[str]) -> CIMultiDict[str]:
    """The headers of a response that reach the client."""
    return _passed(received.items(), _is_end_to_end)


def requested_upgrade(received: CIMultiDictProxy[str]) -> str:
    """The protocol that a client asks to switch to, empty if none that Kubernetes has. A server may ignore others."""
    if "upgrade" not in _tokens(received.getall("Connection", ())):
        return ""
    return _UPGRADES.get(received.get("Upgrade", "").strip().lower(), "")


def socket_protocols(received: CIMultiDictProxy[str] | CIMultiDict[str]) -> list[str]:
    """The websocket subprotocols that a client offers."""
    return [each.strip() for value in received.getall(_SOCKET_PROTOCOLS, ()) for each in value.split(",")]


def _passed(items: Iterable[tuple[str, str]], passes: Callable[[str], bool]) -> CIMultiDict[str]:
    pairs = list(items)
    headers = CIMultiDict([pair for pair in pairs if passes(pair[0])])
    for name in _tokens(value for name, value in pairs if name.lower() == "connection"):
        headers.popall(name, None)
    return headers


def _is_end_to_end(name: str) -> bool:
    return _is_common_answer(name) if len(name) <= _LONGEST_COMMON else _canonical(name) not in _HOP_BY_HOP


def _is_request_header(name: str) -> bool:
    """True for a header that a client may send through the proxy. The names that clients and servers send are few."""
    return _is_common(name) if len(name) <= _LONGEST_COMMON else _passes(name)


def _passes(name: str) -> bool:
    canonical = _canonical(name)
    return canonical not in _NOT_FORWARDED and not canonical.startswith(_PREFIXES)


_is_common = lru_cache(maxsize=512)(_passes)


@lru_cache(maxsize=512)
def _is_common_answer(name: str) -> bool:
    return _canonical(name) not in _HOP_BY_HOP


def _canonical(name: str) -> str:
    return name.lower().replace("_", "-")


def _tokens(values: Iterable[str]) -> frozenset[str]:
    return frozenset(each.strip().lower() for value in values for each in value.split(","))


def _remove_token(headers: CIMultiDict[str]) -> None:
    kept = [each for each in socket_protocols(headers) if not each.startswith(TOKEN_PROTOCOL)]
    headers.popall(_SOCKET_PROTOCOLS)
    if kept:
        headers[_SOCKET_PROTOCOLS] = ", ".join(kept)
