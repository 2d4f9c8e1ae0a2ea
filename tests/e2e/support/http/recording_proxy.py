"""A proxy between servers and their cluster that records every request and can cut off single servers.

Each server speaks plain HTTP to a port of its own; the proxy speaks to the cluster with one identity.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import yaml
from aiohttp import web

from tests.e2e.support.clusters.credentials import Identity
from tests.e2e.support.clusters.processes import free_port

_WRITES = frozenset(("POST", "PUT", "PATCH", "DELETE"))
# created at the cluster without being stored
_REVIEWS = ("tokenreviews", "subjectaccessreviews")
_HOP_BY_HOP = frozenset(
    ("connection", "keep-alive", "transfer-encoding", "te", "trailer", "upgrade", "host", "content-length")
)


@dataclass(frozen=True, slots=True)
class ForwardedRequest:
    """A forwarded request; `at` is the monotonic time of forwarding."""

    server: str
    at: float
    method: str
    path: str

    @property
    def is_write(self) -> bool:
        """True if a controller wrote an object; leases and reviews do not count."""
        resource = self.path.rpartition("/")[2]
        return self.method in _WRITES and "/leases" not in self.path and resource not in _REVIEWS


RequestObserver = Callable[[int, bool], None]
"""Called before and after each request of one server is forwarded, with its number (from 1) and whether the cluster
has answered."""


class RecordingProxy:
    """`add_server` opens a port for one server; `forwarded` lists the forwarded requests in order."""

    def __init__(self, upstream: str, identity: Identity) -> None:
        self._upstream = upstream
        self._identity = identity
        self._cut: set[str] = set()
        self._live: dict[str, set[asyncio.Task[Any]]] = {}
        self._counts: dict[str, int] = {}
        self._observers: dict[str, RequestObserver] = {}
        self._runners: list[web.AppRunner] = []
        self.forwarded: list[ForwardedRequest] = []
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._session = self._call(self._open_session())

    def add_server(self, name: str, directory: Path, *, observer: RequestObserver | None = None) -> Path:
        """Opens a port for a server of this name and returns its kubeconfig."""
        port = free_port()
        if observer is not None:
            self._observers[name] = observer
        self._call(self._listen(name, port))
        return _kubeconfig(directory / f"{name}.kubeconfig", f"http://127.0.0.1:{port}")

    def disconnect(self, name: str) -> None:
        """Ends the requests of this server in flight, and answers it with nothing until `reconnect`."""
        self._cut.add(name)
        self._loop.call_soon_threadsafe(self._end, name)

    def reconnect(self, name: str) -> None:
        self._cut.discard(name)

    def writes(self, name: str = "") -> Sequence[ForwardedRequest]:
        return [each for each in tuple(self.forwarded) if each.is_write and name in ("", each.server)]

    def close(self) -> None:
        self._call(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(timeout=60)
        self._loop.close()

    def _call(self, coroutine: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(timeout=60)

    async def _open_session(self) -> aiohttp.ClientSession:
        connector = aiohttp.TCPConnector(ssl=self._identity.tls, limit=0)
        return aiohttp.ClientSession(
            connector=connector, timeout=aiohttp.ClientTimeout(total=None), auto_decompress=False
        )

    async def _listen(self, name: str, port: int) -> None:
        async def handle(request: web.Request) -> web.StreamResponse:
            return await self._handle(name, request)

        app = web.Application(client_max_size=64 * 2**20)
        app.router.add_route("*", "/{path:.*}", handle)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", port).start()
        self._runners.append(runner)

    async def _close(self) -> None:
        for name in list(self._live):
            self._end(name)
        for runner in self._runners:
            await runner.cleanup()
        await self._session.close()
        # closing TLS connections takes a few iterations of the event loop
        await asyncio.sleep(0.3)

    def _end(self, name: str) -> None:
        for task in tuple(self._live.get(name, ())):
            task.cancel()

    async def _handle(self, name: str, request: web.Request) -> web.StreamResponse:
        if name in self._cut:
            _drop(request)
            raise web.HTTPBadGateway
        body = await request.read()
        task = asyncio.current_task()
        assert task is not None
        live = self._live.setdefault(name, set())
        live.add(task)
        try:
            return await self._forward(name, request, body)
        except (aiohttp.ClientError, ConnectionError) as error:
            _drop(request)
            raise web.HTTPBadGateway from error
        finally:
            live.discard(task)

    async def _forward(self, name: str, request: web.Request, body: bytes) -> web.StreamResponse:
        number = self._counts[name] = self._counts.get(name, 0) + 1
        observe = self._observers.get(name, _ignore_request)
        observe(number, False)
        self.forwarded.append(ForwardedRequest(name, time.monotonic(), request.method, request.path))
        headers = {key: value for key, value in request.headers.items() if key.lower() not in _HOP_BY_HOP}
        url = self._upstream + request.raw_path
        async with self._session.request(
            request.method, url, data=body or None, headers={**headers, **self._identity.headers}
        ) as answer:
            observe(number, True)
            return await self._copy(request, answer)

    async def _copy(self, request: web.Request, answer: aiohttp.ClientResponse) -> web.StreamResponse:
        headers = {key: value for key, value in answer.headers.items() if key.lower() not in _HOP_BY_HOP}
        response = web.StreamResponse(status=answer.status, headers=headers)
        await response.prepare(request)
        async for chunk in answer.content.iter_any():
            await self._before_chunk(request)
            await response.write(chunk)
        await response.write_eof()
        return response

    async def _before_chunk(self, request: web.Request) -> None:
        """Called before a part of a response is sent."""


def _ignore_request(number: int, answered: bool) -> None:
    """The observer of a server without one."""


def _drop(request: web.Request) -> None:
    """Aborts the connection as a network failure would."""
    with contextlib.suppress(Exception):
        if request.transport is not None:
            request.transport.abort()


def _kubeconfig(path: Path, server: str) -> Path:
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "e2e", "cluster": {"server": server}}],
        "users": [{"name": "e2e", "user": {}}],
        "contexts": [{"name": "e2e", "context": {"cluster": "e2e", "user": "e2e"}}],
        "current-context": "e2e",
    }
    assert urlsplit(server).scheme == "http"
    path.write_text(yaml.safe_dump(document))
    return path
