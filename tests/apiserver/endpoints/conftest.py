"""The server that the tests of get, list and watch send their requests to."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest_asyncio
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from apiserver.endpoints.handlers.get import get
from apiserver.endpoints.handlers.list import list_objects
from apiserver.endpoints.handlers.watch import watch
from apiserver.endpoints.responsewriters import status_response
from apiserver.meta import errors
from apiserver.request.context import RequestContext
from apiserver.request.request_info import Query, parse_request_info
from apiserver.storage.watch_cache import WatchCache
from tests.apiserver.endpoints.things_server import THINGS, Server, Things


@pytest_asyncio.fixture
async def server() -> AsyncIterator[Server]:
    cache = WatchCache(THINGS, bookmark_interval=60)
    cache.replace([], 10)
    shutdown = asyncio.Event()
    finished: asyncio.Queue[str] = asyncio.Queue()
    storage = Things(cache)
    handlers: dict[str, Callable[[RequestContext], Awaitable[web.StreamResponse]]] = {
        "get": lambda context: get(context, storage),
        "list": lambda context: list_objects(context, storage),
        "watch": lambda context: watch(context, storage, shutdown),
    }

    async def entry(http: web.Request) -> web.StreamResponse:
        path, _, raw = http.raw_path.partition("?")
        query = Query(raw)
        info = parse_request_info(http.method, path, query)
        context = RequestContext(http=http, info=info, query=query, audit_id="an-id")
        try:
            return await handlers[info.verb](context)
        except errors.StatusError as error:
            return status_response(context, error)
        finally:
            finished.put_nowait(info.verb)

    app = web.Application()
    app.router.add_get("/{path:.*}", entry)
    async with TestClient(TestServer(app), timeout=None) as client:
        yield Server(client, cache, shutdown, finished)
        shutdown.set()
