"""Forwards a request of the page to the cluster, and relays the answer while it arrives."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final

from aiohttp import ClientError, web
from multidict import CIMultiDict, CIMultiDictProxy

from apiserver.meta.errors import BadRequest, RequestEntityTooLarge, StatusError
from tenant_apiserver.ui.allowed_requests import is_allowed, is_half_a_dry_run, is_well_formed, is_write
from tenant_apiserver.ui.upstream import Upstream

_REQUEST_HEADERS: Final = ("Accept", "Accept-Encoding", "Content-Type", "If-None-Match")
"""Nothing else of the browser reaches the cluster: no cookie, no Authorization, and no header that names a user."""
_RESPONSE_HEADERS: Final = (
    "Audit-Id",
    "Content-Encoding",
    "Content-Length",
    "Content-Type",
    "ETag",
    "Retry-After",
    "Vary",
    "Warning",
)
_MOST_BODY: Final = 3 * 1024 * 1024
"""As much as a kube-apiserver accepts."""


async def forward(
    request: web.Request, upstream: Upstream, *, agent: str, read_only: bool = False
) -> web.StreamResponse:
    """`agent` is the User-Agent that the cluster logs. Raises StatusError for a request that the page does not need,
    and if the cluster cannot be reached."""
    path, _, query = request.raw_path.partition("?")
    if not is_well_formed(path, query):
        raise BadRequest("the path or the query has characters that the page never sends")
    if not is_allowed(request.method, path):
        raise StatusError(403, "Forbidden", f"the page does not {request.method} {path}: use kubectl for it")
    if read_only and is_write(request.method, path):
        raise StatusError(403, "Forbidden", "the page only reads: it was started with --read-only")
    if request.method == "GET" and request.body_exists:
        raise BadRequest("a GET has no body")
    headers = _passed(request.headers, _REQUEST_HEADERS)
    headers["User-Agent"] = agent
    body = await _body(request) if request.body_exists else None
    if is_half_a_dry_run(request.method, query, body or b""):
        raise BadRequest("dryRun is in the query alone, which the cluster ignores for a deletion that has a body")
    async with upstream.forward(request.method, request.raw_path, headers, _once(body)) as received:
        relayed = _passed(received.headers, _RESPONSE_HEADERS)
        response = web.StreamResponse(status=received.status, reason=received.reason, headers=relayed)
        await response.prepare(request)
        try:
            async for chunk in received.content.iter_any():
                await response.write(chunk)
            await response.write_eof()
        except (ClientError, TimeoutError) as error:
            # the browser sees an incomplete response, instead of one that ends early
            if request.transport is not None:
                request.transport.abort()
            raise ConnectionResetError("the response of the cluster broke off") from error
    return response


async def _body(request: web.Request) -> bytes:
    body = await request.content.read(_MOST_BODY + 1)
    while body and len(body) <= _MOST_BODY and not request.content.at_eof():
        body += await request.content.read(_MOST_BODY + 1 - len(body))
    if len(body) > _MOST_BODY:
        raise RequestEntityTooLarge(f"the body is larger than {_MOST_BODY} bytes")
    return body


def _once(body: bytes | None) -> AsyncIterator[bytes] | None:
    async def chunks() -> AsyncIterator[bytes]:
        if body:
            yield body

    return None if body is None else chunks()


def _passed(headers: CIMultiDictProxy[str], names: tuple[str, ...]) -> CIMultiDict[str]:
    return CIMultiDict((name, value) for name in names for value in headers.getall(name, ()))
