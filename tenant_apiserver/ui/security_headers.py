"""The headers of every response: the page loads nothing but its own files, and no other page may embed it."""

from __future__ import annotations

from typing import Final

from aiohttp import web

SECURITY_HEADERS: Final = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


async def set_security_headers(request: web.Request, response: web.StreamResponse) -> None:
    """Called for every response whose head is about to be sent, those of the cluster included."""
    response.headers.pop("Server", None)
    response.headers.update(SECURITY_HEADERS)
    response.headers.setdefault("Cache-Control", "no-store")
