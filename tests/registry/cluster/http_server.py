"""An HTTP server that responds as a test wants."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import orjson
from aiohttp import web

from registry.cluster.client import HttpClusterClient
from registry.cluster.interface import HELMRELEASES, WatchEvent

Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Server:
    """An HTTP server that records requests and responds with `answer`."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, str, dict[str, str], Any]] = []
        self.headers: list[dict[str, str]] = []
        self.answer: Answer = json({"kind": "Thing"})

    async def handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        path, query = request.url.raw_path, dict(request.query)
        self.requests.append((request.method, path, query, orjson.loads(body) if body else None))
        self.headers.append(dict(request.headers))
        return await self.answer(request)


def json(document: Any, status: int = 200) -> Answer:
    async def answer(request: web.Request) -> web.StreamResponse:
        return web.json_response(document, status=status)

    return answer


def stream(*chunks: bytes, cut: bool = False) -> Answer:
    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        response.enable_chunked_encoding()
        await response.prepare(request)
        for chunk in chunks:
            await response.write(chunk)
        if cut:
            assert request.transport is not None
            request.transport.abort()
        return response

    return answer


async def watched(client: HttpClusterClient, **options: Any) -> list[WatchEvent]:
    return [event async for event in client.watch(HELMRELEASES, resource_version="5", **options)]
