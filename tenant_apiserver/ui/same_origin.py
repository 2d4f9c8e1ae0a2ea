"""Refuses requests that a page of another origin makes the browser send. Pure.

A server on loopback is reachable for every page that the user visits. Two ways in are closed here: a hostname of the
attacker that resolves to 127.0.0.1 (DNS rebinding) fails the check of Host, and requests across origins fail the checks
of Origin and Sec-Fetch-Site. The cookie is SameSite=Strict, but all ports of 127.0.0.1 are one site: the checks count
the port.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

UNSAFE_HEADER: Final = "X-Tenant-UI"
"""Must be on every request that changes something. A form cannot send it, and a script only to its own origin."""

_SAFE: Final = frozenset({"GET", "HEAD"})
_HOSTNAMES: Final = ("127.0.0.1", "localhost", "[::1]")


def allowed_hosts(port: int) -> frozenset[str]:
    """The values of Host by which a browser reaches the server."""
    return frozenset(f"{name}:{port}" for name in _HOSTNAMES)


def wrong_host(headers: Mapping[str, str], port: int) -> bool:
    return headers.get("Host", "").lower() not in allowed_hosts(port)


def cross_origin(method: str, headers: Mapping[str, str], *, navigation: bool) -> str:
    """The reason why a request is refused; empty if it comes from the page itself. `navigation` is true for paths that
    a user opens: those may come from anywhere, such as the terminal that shows the URL."""
    origin = headers.get("Origin")
    if origin is not None and origin.lower() != f"http://{headers.get('Host', '').lower()}":
        return "the request comes from another origin"
    site, safe = headers.get("Sec-Fetch-Site", "same-origin"), method in _SAFE
    if site != "same-origin" and not (safe and (navigation or site == "none")):
        return "the request comes from another site"
    if not safe and headers.get(UNSAFE_HEADER) != "1":
        return f"the header {UNSAFE_HEADER}: 1 is missing"
    return ""
