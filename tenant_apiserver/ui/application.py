"""The server of the page: its login, its files, and its way to the cluster."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict, dataclass
from html import escape
from http import HTTPStatus
from typing import Final

import orjson
from aiohttp import web

from apiserver.meta.errors import StatusError
from tenant_apiserver.ui.forward import forward
from tenant_apiserver.ui.same_origin import cross_origin, wrong_host
from tenant_apiserver.ui.security_headers import SECURITY_HEADERS
from tenant_apiserver.ui.sessions import Sessions
from tenant_apiserver.ui.static_files import StaticFile, load_static_files
from tenant_apiserver.ui.upstream import Upstream

_CLUSTER_PATHS: Final = ("/api", "/apis", "/openapi", "/version")
_NAVIGATION: Final = frozenset({"/", "/login"})
_SHUTDOWN_SECONDS: Final = 0.5

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionInfo:
    """The answer of /session. `namespace` is that of the user's kubeconfig, empty if unknown."""

    user: str
    cluster: str
    namespace: str
    version: str


class PageServer:
    """Listens on loopback. `how_to_log_in` is a sentence for a browser without a session."""

    def __init__(self, upstream: Upstream, info: SessionInfo, *, how_to_log_in: str) -> None:
        self._upstream = upstream
        self._info = info
        self._how_to_log_in = how_to_log_in
        self._files = load_static_files()
        self._sessions = Sessions(time.monotonic)
        self._port = 0
        self._runner: web.AppRunner | None = None

    async def start(self, port: int = 0) -> None:
        """Listens on the port, or on a free one. Raises OSError if it is taken."""
        app = web.Application(middlewares=[self._guard])
        app.router.add_route("*", "/{path:.*}", self._answer)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=_SHUTDOWN_SECONDS)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", port)
        await site.start()
        self._port = int(self._runner.addresses[0][1])

    def login_url(self) -> str:
        """A URL that logs one browser in, once."""
        return f"http://127.0.0.1:{self._port}/login?code={self._sessions.new_code()}"

    async def close(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()
        await self._upstream.close()

    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            response = self._refusal(request) or await handler(request)
        except StatusError as error:
            response = _status(error)
        if not response.prepared:
            response.headers.update(SECURITY_HEADERS)
            response.headers.setdefault("Cache-Control", "no-store")
        return response

    def _refusal(self, request: web.Request) -> web.Response | None:
        """The answer to a request that does not come from the page, or from a browser without a session."""
        if wrong_host(request.headers, self._port):
            return _status(StatusError(421, "MisdirectedRequest", "this server has no such hostname"))
        why = cross_origin(request.method, request.headers, navigation=request.path in _NAVIGATION)
        if why:
            return _status(StatusError(403, "Forbidden", why))
        if request.path == "/login" or self._sessions.is_valid(request.cookies.get(self._cookie, "")):
            return None
        if request.path == "/":
            return self._page(HTTPStatus.UNAUTHORIZED, "You are not logged in")
        return _status(StatusError(401, "Unauthorized", f"no session: {self._how_to_log_in}"))

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        path = request.path
        if path.startswith(_CLUSTER_PATHS):
            return await forward(request, self._upstream)
        if request.method not in ("GET", "HEAD"):
            raise StatusError(405, "MethodNotAllowed", "the page is only read")
        if path == "/login":
            return self._log_in(request.query.get("code", ""))
        if path == "/session":
            return web.Response(body=orjson.dumps(asdict(self._info)), content_type="application/json")
        name = "index.html" if path == "/" else path.removeprefix("/static/")
        if (found := self._files.get(name)) is None or path not in ("/", f"/static/{name}"):
            raise StatusError(404, "NotFound", "there is no such page")
        return _file(found, request.headers)

    def _log_in(self, code: str) -> web.Response:
        token = self._sessions.begin(code)
        if token is None:
            return self._page(HTTPStatus.UNAUTHORIZED, "This link has been used, or is too old")
        response = web.Response(status=HTTPStatus.SEE_OTHER, headers={"Location": "/"})
        response.set_cookie(self._cookie, token, path="/", httponly=True, samesite="Strict")
        return response

    @property
    def _cookie(self) -> str:
        """Cookies do not tell ports apart, so the name does."""
        return f"tenant-ui-{self._port}"

    def _page(self, status: HTTPStatus, title: str) -> web.Response:
        text = (
            f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{escape(title)}</title>'
            f"<h1>{escape(title)}</h1><p>{escape(self._how_to_log_in)}</p></html>\n"
        )
        return web.Response(status=status, text=text, content_type="text/html", charset="utf-8")


async def serve_page(server: PageServer, port: int, announce: Callable[[str], None]) -> None:
    """Serves until it is cancelled. `announce` gets the URL. Raises OSError if the port is taken."""
    try:
        await server.start(port)
        announce(server.login_url())
        await asyncio.Event().wait()
    finally:
        await server.close()


def _file(found: StaticFile, headers: Mapping[str, str]) -> web.Response:
    kept = {"ETag": found.etag, "Cache-Control": "no-cache"}
    if found.etag in headers.get("If-None-Match", ""):
        return web.Response(status=HTTPStatus.NOT_MODIFIED, headers=kept)
    return web.Response(body=found.body, headers={"Content-Type": found.media_type, **kept})


def _status(error: StatusError) -> web.Response:
    return web.Response(status=error.code, body=orjson.dumps(error.status()), content_type="application/json")
