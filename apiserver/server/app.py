"""Builds the aiohttp application from endpoints, filters and responders.

It has a single route. Paths are resolved here, after authorization, so that 404 and 405 are a Status and only
authorized callers can learn which paths exist (WIRE-B16).
"""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

from aiohttp import web
from aiohttp.web_urldispatcher import Domain, MatchedSubAppResource, ResourceRoute, UrlMappingMatchInfo

from apiserver.endpoints.installer import Endpoint
from apiserver.endpoints.responsewriters import json_response
from apiserver.meta import errors
from apiserver.request import request_info
from apiserver.request.context import Filter, Handler, RequestContext, compose
from apiserver.request.request_info import MAX_PARAMETERS, Query, RequestInfo

Responder = Callable[[RequestContext], Awaitable[web.StreamResponse | None]]
"""Returns the response for a non-resource path, or None if it does not serve the path."""

_AUDIT_ID_LIMIT = 64


@dataclass(frozen=True, kw_only=True)
class Api:
    """Everything that the server serves: endpoints by (group, version) and 'resource[/subresource]', and responders for
    other paths. `paths` lists the paths for the index at /."""

    endpoints: Mapping[tuple[str, str], Mapping[str, Endpoint]]
    responders: Sequence[Responder]
    paths: Callable[[], Sequence[str]]


def build_app(api: Api, filters: Sequence[Filter]) -> web.Application:
    return route_everything(compose(filters, _Dispatcher(api)))


def route_everything(handler: Handler) -> web.Application:
    """An application in which `handler` gets the requests for all paths."""
    # the handlers limit bodies, with a 413 that is a Status
    app = web.Application(client_max_size=0)

    async def entry(http: web.Request) -> web.StreamResponse:
        return await handler(_context(http))

    app.router.register_resource(_CatchAllResource(entry))
    return app


class _CatchAllResource(MatchedSubAppResource):
    """The single route, which matches every path. aiohttp's own matching is bypassed, because it takes time quadratic
    in the length of the path, and fails on paths with line breaks and on invalid request targets."""

    def __init__(self, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]) -> None:
        super().__init__(Domain("everything"), web.Application())
        self._route = ResourceRoute("*", handler, self, expect_handler=_expect)

    async def resolve(self, request: web.Request) -> tuple[UrlMappingMatchInfo, set[str]]:
        return UrlMappingMatchInfo({}, self._route), set()


async def _expect(http: web.Request) -> None:
    """Answer `Expect: 100-continue`. Other expectations are ignored, as RFC 9110 allows."""
    if http.headers.get("Expect", "").lower() == "100-continue":
        await http.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        # error_response.py interprets a nonzero size as a response whose head has been sent
        http.writer.output_size = 0


def _context(http: web.Request) -> RequestContext:
    raw_path, _, raw_query = request_target(http).partition("?")
    query = Query(raw_query)
    audit_id = http.headers.get("Audit-ID", "")[:_AUDIT_ID_LIMIT] or str(uuid.uuid4())
    try:
        info = request_info.parse_request_info(http.method, raw_path, query)
    except ValueError:
        info = RequestInfo(method=http.method, path=raw_path, verb=http.method.lower(), malformed=True)
    return RequestContext(http=http, info=info, query=query, audit_id=audit_id)


def request_target(http: web.Request) -> str:
    """The path and query as the client sent them, without the scheme and host of an absolute-form target."""
    return http.raw_path if http.raw_path.startswith("/") else str(http.rel_url)


class _Dispatcher:
    def __init__(self, api: Api) -> None:
        self._api = api

    async def __call__(self, context: RequestContext) -> web.StreamResponse:
        info = context.info
        if info.malformed:
            # rejected only here, behind the filters, so that the request is counted, logged and audited (WIRE-B19)
            raise errors.BadRequest("the path of the request has an invalid escape")
        if context.query.has_too_many:
            raise errors.BadRequest(f"the query has more than {MAX_PARAMETERS} parameters")
        if not info.is_resource:
            return await self._respond_outside_resources(context)
        if info.path.startswith("//"):
            # authorization ignores the additional slash, as in kube-apiserver, but nothing is there
            raise errors.UnknownPath
        return await self._handler_for(info)(context)

    def _handler_for(self, info: RequestInfo) -> Handler:
        endpoints = self._api.endpoints.get((info.group, info.version), {})
        name = f"{info.resource}/{info.subresource}" if info.subresource else info.resource
        endpoint = endpoints.get(name)
        if endpoint is None or info.extra_parts or not endpoint.matches_scope(info):
            raise errors.UnknownPath
        handler = endpoint.handler(info)
        if handler is None:
            raise errors.MethodNotAllowed
        return handler

    async def _respond_outside_resources(self, context: RequestContext) -> web.StreamResponse:
        for responder in self._api.responders:
            response = await responder(context)
            if response is not None:
                return response
        if context.info.path.startswith(("/apis/", "/api/")) and context.info.path.strip("/").count("/") == 2:
            raise errors.UnknownPath
        code = 200 if context.info.path in ("/", "/index.html") else 404
        return json_response(context, {"paths": list(self._api.paths())}, code=code, indent=True)
