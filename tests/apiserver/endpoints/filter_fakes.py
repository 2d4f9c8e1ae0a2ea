"""Fakes around a single filter, and an application with the whole filter chain."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from aiohttp import web

from apiserver.authentication.request_header import RequestHeaderConfig
from apiserver.authorization.authorizer import (
    AccessAttributes,
    Decision,
)
from apiserver.endpoints.filters import response_headers as headers
from apiserver.endpoints.filters.chain import FilterConfig, build_filters
from apiserver.metrics import Metrics
from apiserver.request import request_info
from apiserver.request.bytes_in_flight import BytesInFlight
from apiserver.request.context import Handler, RequestContext, User, compose
from apiserver.request.request_info import Query
from tests.apiserver.endpoints.request_contexts import ALICE, FakeConnection

WATCH = "/apis/example.org/v1/widgets?watch=true"
ADMIN = User("admin", groups=("system:masters",))


class FakeAuthorizer:
    """Allows the requests in `allowed`, written 'verb resource[/subresource] [namespace/]name'; all if it is None."""

    def __init__(self, allowed: Sequence[str] | None = None, *, stale: bool = False) -> None:
        self.allowed = allowed
        self.stale = stale
        self.questions: list[str] = []

    async def authorize(self, attributes: AccessAttributes) -> Decision:
        resource = attributes.resource + (f"/{attributes.subresource}" if attributes.subresource else "")
        namespace = f"{attributes.namespace}/" if attributes.namespace else ""
        question = f"{attributes.verb} {resource} {namespace}{attributes.name}"
        self.questions.append(question)
        allowed = self.allowed is None or question in self.allowed
        return Decision(allowed=allowed, reason="by the fake", stale=self.stale)


class FixedAuthenticator:
    """Authenticates every request as `user`."""

    def __init__(self, user: User = ALICE) -> None:
        self.user = user

    async def authenticate(self, context: RequestContext) -> User:
        return self.user


class Gate:
    """A handler that returns once `open` is set."""

    def __init__(self) -> None:
        self.entered = asyncio.Event()
        self.open = asyncio.Event()
        self.finished = asyncio.Event()

    async def __call__(self, context: RequestContext) -> web.StreamResponse:
        self.entered.set()
        await self.open.wait()
        self.finished.set()
        return web.Response()


def raising(error: BaseException) -> Handler:
    async def handler(context: RequestContext) -> web.StreamResponse:
        raise error

    return handler


def application(handler: Handler, **changes: Any) -> web.Application:
    settings: dict[str, Any] = {
        "authenticator": FixedAuthenticator(),
        "authorizer": FakeAuthorizer(),
        "request_headers": RequestHeaderConfig,
        "metrics": Metrics(),
        "served": lambda info: info.resource == "widgets",
        "max_requests_inflight": 10,
        "bytes_in_flight": BytesInFlight(),
        "connection": FakeConnection(),
        "impersonation": False,
        "is_draining": lambda: False,
        **changes,
    }
    call = compose(build_filters(FilterConfig(**settings)), handler)

    async def entry(http: web.Request) -> web.StreamResponse:
        query = Query(http.query_string)
        info = request_info.parse_request_info(http.method, http.path, query)
        return await call(RequestContext(http=http, info=info, query=query, audit_id="audit-1"))

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", entry)
    headers.install(app)
    return app
