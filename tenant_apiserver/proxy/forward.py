"""Forwards a request to the cluster under impersonation of its caller, and relays the response as it comes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Final

from aiohttp import ClientError, ClientResponse, web
from multidict import CIMultiDict

from apiserver.meta.errors import BadRequest, ServiceUnavailable
from apiserver.request.context import Handler, RequestContext
from apiserver.server.app import request_target
from registry.cluster.interface import ClusterUnreachable
from registry.cluster.upstream import UpstreamClient
from tenant_apiserver.proxy.headers import forwarded_headers, requested_upgrade
from tenant_apiserver.proxy.identity import impersonation_headers
from tenant_apiserver.proxy.impersonation_refusal import ImpersonationRefusals
from tenant_apiserver.proxy.known_resources import KnownResources
from tenant_apiserver.proxy.relay import SMALL, relay
from tenant_apiserver.proxy.upgrade import switch_protocols

_RETRY_SECONDS: Final = 1
_BODILESS: Final = frozenset({"GET", "HEAD"})
_UNAUTHORIZED, _FORBIDDEN = 401, 403

OwnAnswer = Callable[[RequestContext], Awaitable[Handler | None]]
"""Returns the handler of a request that the cluster has refused with a 403, None if the refusal stands; or that of one
that the cluster is not asked for."""


class Forwarder:
    """The handler of every request. The cluster is asked first, as the caller: what it allows is relayed untouched. A
    LIST or WATCH that it refuses is answered by the handler that `own_answer` returns. Only requests for which
    `expired` has a handler, which tells their clients to list again, it is not asked for."""

    def __init__(
        self,
        upstream: UpstreamClient,
        own_answer: OwnAnswer,
        refusals: ImpersonationRefusals,
        *,
        expired: OwnAnswer,
        known: KnownResources,
        shutdown: asyncio.Event,
    ) -> None:
        """`known` learns the resources of the cluster. Forwarded watches end when `shutdown` is set."""
        self._upstream = upstream
        self._own_answer = own_answer
        self._refusals = refusals
        self._expired = expired
        self._known = known
        self._shutdown = shutdown

    async def __call__(self, context: RequestContext) -> web.StreamResponse:
        """Raises BadRequest for a target that cannot be forwarded, ServiceUnavailable if the cluster is gone or does
        not let the proxy impersonate, and a 403 for an identity that cannot."""
        target, headers = _target(context), _headers(context)
        if self._upstream.is_left_by(target):
            raise BadRequest("the target of the request leads out of the cluster's path")
        if protocol := requested_upgrade(context.http.headers):
            headers["Connection"], headers["Upgrade"] = "Upgrade", protocol
            switched = await switch_protocols(context, self._upstream, self._refusals, target, headers)
            self._known.learn(context.info, switched.status)
            return switched
        if (expired := await self._expired(context)) is not None:
            return await expired(context)
        if context.http.method in _BODILESS and not context.http.body_exists:
            return await self._forward(context, target, headers, body=None, attempts=2)
        return await self._forward(context, target, headers, body=context.http.content.iter_any(), attempts=1)

    async def _forward(
        self,
        context: RequestContext,
        target: str,
        headers: CIMultiDict[str],
        *,
        body: AsyncIterator[bytes] | None,
        attempts: int,
    ) -> web.StreamResponse:
        if body is None:
            headers.popall("Content-Length", None)
        try:
            for _ in range(attempts):
                async with self._upstream.forward(context.http.method, target, headers, body) as response:
                    self._known.learn(context.info, response.status)
                    if not _rejects_credentials(context, response):
                        begun = await _begin_refusal(context, response)
                        handler = await self._handler_instead(context, response, begun)
                        if handler is None:
                            return await relay(context, response, shutdown=self._shutdown, begun=begun or b"")
                        # the connection is free for others before the answer, which may be a watch, begins
                        break
                await self._renew_credentials()
            else:
                raise _unavailable("it does not accept the credentials of the proxy")
        except ClusterUnreachable as error:
            raise _unavailable("it does not answer") from error
        answer = await handler(context)
        self._known.learn_own(context.info, answer.status)
        return answer

    async def _handler_instead(
        self, context: RequestContext, response: ClientResponse, begun: bytes | None
    ) -> Handler | None:
        """The handler of a request that the cluster refuses to the caller with the body `begun`, None if its response
        is to be relayed. Raises ServiceUnavailable for a refusal of the impersonation: it says nothing about the
        caller's rights."""
        if begun is None or not response.content.at_eof():
            return None
        self._refusals.check_answer(context.info, response.headers, begun)
        return await self._own_answer(context)

    async def _renew_credentials(self) -> None:
        try:
            await self._upstream.renew_credentials()
        except ClusterUnreachable as error:
            raise _unavailable("it does not accept the credentials of the proxy") from error


async def _begin_refusal(context: RequestContext, response: ClientResponse) -> bytes | None:
    """The body of a 403 that is small, or the beginning of one whose length is not known: a kube-apiserver sends those
    beyond 2 KiB so. None for others, for an application behind services/proxy, which may take its time, and for a body
    that breaks off, which the client is shown."""
    if response.status != _FORBIDDEN or (response.content_length or 0) > SMALL:
        return None
    if response.content_length is None and context.info.subresource == "proxy":
        return None
    begun = bytearray()
    try:
        while len(begun) <= SMALL and (piece := await response.content.readany()):
            begun += piece
    except (ClientError, TimeoutError):
        return None
    return bytes(begun)


def _target(context: RequestContext) -> str:
    """The path and query as the client escaped them. Raises BadRequest, also for targets without a path: `*` would
    become a part of the address of the cluster, and CONNECT ask it for a tunnel."""
    target = request_target(context.http)
    if target[:1] in ("", "?"):
        # of an absolute-form target, which need not have a path
        target = f"/{target}"
    if context.http.method == "CONNECT" or not target.startswith("/"):
        raise BadRequest("the target of the request has no path")
    if context.info.malformed or "#" in target or not target.isascii() or not target.isprintable() or " " in target:
        raise BadRequest("the target of the request has an invalid character or escape")
    return target


def _headers(context: RequestContext) -> CIMultiDict[str]:
    headers = forwarded_headers(context.http.headers, audit_id=context.audit_id, source=context.http.remote or "")
    headers.extend(impersonation_headers(context.user))
    return headers


def _rejects_credentials(context: RequestContext, response: ClientResponse) -> bool:
    """True if the cluster did not authenticate the proxy. A 401 of an application behind services/proxy is its own."""
    return response.status == _UNAUTHORIZED and context.info.subresource != "proxy"


def _unavailable(why: str) -> ServiceUnavailable:
    return ServiceUnavailable(f"the cluster is unavailable: {why}", retry_after=_RETRY_SECONDS)
