"""A proxy that makes a cluster look unreachable, slow, broken, or compacted."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Collection, Iterator
from contextlib import contextmanager

import aiohttp
from aiohttp import web

from tests.e2e.support.http.recording_proxy import RecordingProxy

RequestFault = Callable[[web.Request], Awaitable[web.StreamResponse | None]]
"""Returns a response in place of the cluster's, or None to forward the request."""

_REASONS = {410: "Expired", 429: "TooManyRequests", 500: "InternalError", 503: "ServiceUnavailable"}


def delay(seconds: float) -> RequestFault:
    """Forwards each request after a delay."""

    async def apply_fault(request: web.Request) -> web.StreamResponse | None:
        await asyncio.sleep(seconds)
        return None

    return apply_fault


def respond_with_status(code: int) -> RequestFault:
    """Responds to every request with a Status of this code."""

    async def apply_fault(request: web.Request) -> web.StreamResponse | None:
        headers = {"Retry-After": "1"} if code in (429, 503) else {}
        return web.json_response(_status(code), status=code, headers=headers)

    return apply_fault


def respond_bad_gateway() -> RequestFault:
    """Responds like a load balancer without a backend: 502 with HTML."""

    async def apply_fault(request: web.Request) -> web.StreamResponse | None:
        return web.Response(status=502, text="<html>Bad Gateway</html>", content_type="text/html")

    return apply_fault


def expire_watches() -> RequestFault:
    """Tells watches that their resourceVersion has expired, alternately by the status and by an ERROR event."""
    turns = iter(range(2**31))

    async def apply_fault(request: web.Request) -> web.StreamResponse | None:
        if "watch" not in request.query:
            return None
        if next(turns) % 2:
            return web.json_response(_status(410), status=410)
        return web.json_response(
            {"type": "ERROR", "object": _status(410)}, dumps=lambda frame: json.dumps(frame) + "\n"
        )

    return apply_fault


def _status(code: int) -> dict[str, object]:
    details = {"details": {"retryAfterSeconds": 1}} if code in (429, 503) else {}
    head = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure"}
    return {**head, "message": "injected fault", "reason": _REASONS[code], "code": code, **details}


class FaultyProxy(RecordingProxy):
    """Forwards requests until one of its context managers injects a fault."""

    _fault: RequestFault | None = None
    _truncates = False
    _withheld = ""
    _released = asyncio.Event()
    held: Collection[str] = ()
    """The label selectors of the lists that `withholding` has held back."""
    _silenced = ""

    @contextmanager
    def silencing(self, plural: str) -> Iterator[None]:
        """The watches of one resource stay open, and get nothing more until the end of the context."""
        self._released, self._silenced = asyncio.Event(), plural
        try:
            yield
        finally:
            self._silenced = ""
            self._loop.call_soon_threadsafe(self._released.set)

    @contextmanager
    def withholding(self, name: str, plural: str) -> Iterator[None]:
        """Withholds this server's lists of one resource until the end of the context, and expires its watch, so that
        it has to list."""
        self._released, self.held, self._withheld = asyncio.Event(), (), plural
        self._loop.call_soon_threadsafe(self._end, name)
        try:
            yield
        finally:
            self._withheld = ""
            self._loop.call_soon_threadsafe(self._released.set)

    @contextmanager
    def injected(self, name: str, apply_fault: RequestFault) -> Iterator[None]:
        """Ends the requests of this server in flight, and applies the fault to all new ones."""
        self._fault = apply_fault
        self._loop.call_soon_threadsafe(self._end, name)
        try:
            yield
        finally:
            self._fault = None

    @contextmanager
    def truncating(self, name: str) -> Iterator[None]:
        """Cuts every response in the middle of its body, also those of writes that the cluster has stored."""
        self._truncates = True
        self._loop.call_soon_threadsafe(self._end, name)
        try:
            yield
        finally:
            self._truncates = False

    @contextmanager
    def disconnected(self, name: str) -> Iterator[None]:
        """Cuts this server off from the cluster."""
        self.disconnect(name)
        try:
            yield
        finally:
            self.reconnect(name)

    def _is_withheld(self, request: web.Request) -> bool:
        # an informer that was cut off asks for one object first, to see whether the cluster is back
        is_probe = request.query.get("limit") == "1"
        return bool(self._withheld) and request.path.endswith(f"/{self._withheld}") and not is_probe

    async def _before_chunk(self, request: web.Request) -> None:
        if self._silenced and "watch" in request.query and request.path.endswith(f"/{self._silenced}"):
            await self._released.wait()

    async def _forward(self, name: str, request: web.Request, body: bytes) -> web.StreamResponse:
        if request.method == "GET" and self._is_withheld(request):
            if "watch" in request.query and request.query.get("resourceVersion"):
                return web.json_response(_status(410), status=410)
            self.held = (*self.held, request.query.get("labelSelector", ""))
            await self._released.wait()
        response = await self._fault(request) if self._fault is not None else None
        return response if response is not None else await super()._forward(name, request, body)

    async def _copy(self, request: web.Request, answer: aiohttp.ClientResponse) -> web.StreamResponse:
        if not self._truncates:
            return await super()._copy(request, answer)
        response = web.StreamResponse(status=answer.status, headers={"Content-Type": "application/json"})
        if "watch" in request.query:
            await response.prepare(request)
            data = await answer.content.readany()
        else:
            data = await answer.read()
            response.content_length = len(data)
            await response.prepare(request)
        await response.write(data[: len(data) // 2])
        raise aiohttp.ClientConnectionError("cut in the middle")
