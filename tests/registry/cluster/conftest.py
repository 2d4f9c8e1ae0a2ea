"""Fixtures of the client tests: an HTTP server and a client of it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from registry.cluster.client import HttpClusterClient
from tests.plain_http import plain_http
from tests.registry.cluster.http_server import Server


@pytest.fixture
async def server() -> Server:
    return Server()


@pytest.fixture
async def address(server: Server) -> AsyncIterator[str]:
    app = web.Application(client_max_size=2**24)
    app.router.add_route("*", "/{path:.*}", server.handle)
    async with TestServer(app, handler_cancellation=True) as running:
        yield str(running.make_url("/"))


@pytest.fixture
async def client(address: str) -> AsyncIterator[HttpClusterClient]:
    configuration = plain_http(address)
    configuration.api_key["BearerToken"] = "Bearer t0"
    client = HttpClusterClient(configuration)
    yield client
    await client.close()
