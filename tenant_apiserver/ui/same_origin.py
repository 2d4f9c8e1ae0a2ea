"""Refuses requests that a page of another origin makes the browser send. Pure.

A server on loopback is reachable for every page that the user visits. Two ways in are closed here: a hostname of the
attacker that resolves to 127.0.0.1 (DNS rebinding) fails the check of Host, and requests across origins fail the checks
of Origin and Sec-Fetch-Site. The cookie is SameSite=Strict, but all ports of 127.0.0.1 are one site: the checks count
the port.

The origin http://127.0.0.1:PORT is that of whoever has the port: an earlier server can have left a service worker or
cached scripts in the browser, which would run in the page. So each start has a name of its own below `localhost`, which
browsers resolve to loopback without asking anybody, and which nobody can have used before.
"""

from __future__ import annotations

import secrets
from typing import Final

from multidict import CIMultiDictProxy

UNSAFE_HEADER: Final = "X-Tenant-UI"
"""Must be on every request that changes something. A form cannot send it, and a script only to its own origin."""
LOGIN, PAGE = "/login", "/"

_SAFE: Final = frozenset({"GET", "HEAD"})
_HOSTNAMES: Final = ("127.0.0.1", "localhost", "[::1]")
_HTTP_PORT: Final = 80
_OWN, _BY_HAND = "same-origin", "none"

Headers = CIMultiDictProxy[str]


def new_hostname() -> str:
    """A name of loopback (RFC 6761, section 6.3) with 64 random bits."""
    return f"tenants-{secrets.token_hex(8)}.localhost"


def has_wrong_host(headers: Headers, port: int, own: str) -> bool:
    """True unless the only Host is `own`, or a name by which every browser reaches a port of loopback. Browsers leave
    out the port that http has by default (RFC 9110, section 4.2.1)."""
    ports = (f":{port}", "") if port == _HTTP_PORT else (f":{port}",)
    allowed = [[f"{name}{each}"] for name in (own, *_HOSTNAMES) for each in ports]
    return [each.lower() for each in headers.getall("Host", ())] not in allowed


def is_from_other_site(headers: Headers) -> bool:
    """True for what a page of another origin has caused, which includes other ports of the same host. Programs, and
    browsers before 2023, send no Sec-Fetch-Site."""
    return any(each not in (_OWN, _BY_HAND) for each in headers.getall("Sec-Fetch-Site", ()))


def refusal(method: str, path: str, headers: Headers) -> str:
    """The reason why a request is refused; empty if it comes from the page itself, or is a navigation by the user.

    A login may be opened from anywhere, such as the file that `--open` shows: its code is the proof.
    """
    origins = headers.getall("Origin", ())
    if any(each.lower() != f"http://{headers.get('Host', '').lower()}" for each in origins):
        return "the request comes from another origin"
    if "Upgrade" in headers:
        return "connections are not upgraded"
    if method not in _SAFE:
        if not origins or any(each != _OWN for each in headers.getall("Sec-Fetch-Site", ())):
            return "the request does not come from the page"
        return "" if headers.getall(UNSAFE_HEADER, ()) == ["1"] else f"the header {UNSAFE_HEADER}: 1 is missing"
    if all(each == _OWN for each in headers.getall("Sec-Fetch-Site", ())):
        return ""
    if path not in (PAGE, LOGIN) or not _is_navigation(headers):
        return "the request comes from another site"
    return "the link comes from another site" if path == PAGE and is_from_other_site(headers) else ""


def _is_navigation(headers: Headers) -> bool:
    """True for a document in a window of its own, not in a frame of another page."""
    mode, destination = headers.getall("Sec-Fetch-Mode", ()), headers.getall("Sec-Fetch-Dest", ())
    return list(mode) in ([], ["navigate"]) and list(destination) in ([], ["document"])
