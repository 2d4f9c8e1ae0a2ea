"""The server of the page: its login, its files, and its way to the cluster."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import Final
from urllib.parse import parse_qs

import orjson
from aiohttp import web

from apiserver.endpoints.filters.error_response import ErrorResponses
from apiserver.meta.errors import MethodNotAllowed, StatusError
from apiserver.request.context import Handler, RequestContext, User, compose
from apiserver.server.app import route_everything
from apiserver.server.http_protocol import connection_of
from apiserver.server.loopback import LoopbackConnection, LoopbackListener, listen_on_loopback
from apiserver.server.socket_owner import is_own, owner_of, owners_are_known
from tenant_apiserver import __version__
from tenant_apiserver.ui.documents import document
from tenant_apiserver.ui.forward import forward
from tenant_apiserver.ui.same_origin import (
    LOGIN,
    PAGE,
    Headers,
    has_wrong_host,
    is_from_other_site,
    new_hostname,
    refusal,
)
from tenant_apiserver.ui.security_headers import set_security_headers
from tenant_apiserver.ui.sessions import Sessions, cookie_values
from tenant_apiserver.ui.static_files import StaticFile, load_static_files
from tenant_apiserver.ui.upstream import Upstream

_CLUSTER_PATHS: Final = frozenset({"api", "apis", "openapi", "version"})
_USER: Final = User(name="the user of the page")
_AGENT: Final = f"tenant-ui/{__version__}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionInfo:
    """The answer of /session. `cluster` is the address of the server, or `stand-alone`; `namespace` that of the user's
    kubeconfig, empty if it has none; `user` is empty if the cluster does not tell."""

    user: str
    cluster: str
    namespace: str
    read_only: bool = False

    def document(self) -> bytes:
        """As JSON."""
        return orjson.dumps(
            {
                "user": self.user,
                "cluster": self.cluster,
                "namespace": self.namespace or None,
                "readOnly": self.read_only,
                "version": __version__,
            }
        )


class PageServer:
    """Listens on loopback. `how_to_log_in` is a sentence for a browser without a session."""

    def __init__(self, upstream: Upstream, info: SessionInfo, *, how_to_log_in: str) -> None:
        self._upstream = upstream
        self._info = info
        self._how_to_log_in = how_to_log_in
        self._files: Mapping[str, StaticFile] = {}
        self._sessions = Sessions(time.monotonic)
        self._listener: LoopbackListener | None = None
        self._address = ("", 0)
        self._hostname = new_hostname()
        self._judging = asyncio.Lock()
        self.knows_accounts = False
        """True if connections of other accounts of the machine are refused."""

    async def start(self, address: str = "127.0.0.1", port: int = 0) -> None:
        """Listens on the port, or on a free one. Raises CannotListen."""
        self._files = await asyncio.to_thread(load_static_files)
        app = route_everything(compose([ErrorResponses(), self._guard], self._answer))
        app.on_response_prepare.append(set_security_headers)
        self._listener = await listen_on_loopback(app, address, port)
        self._address = (address, self._listener.port)
        self.knows_accounts = await owners_are_known(self._address)

    def login_url(self) -> str:
        """A URL that logs one browser in, once. Its hostname is of this start alone."""
        return f"http://{self._hostname}:{self._address[1]}{LOGIN}?code={self._sessions.new_code()}"

    async def close(self) -> None:
        if self._listener is not None:
            await self._listener.close()
        await self._upstream.close()

    async def _guard(self, context: RequestContext, next: Handler) -> web.StreamResponse:
        """Raises StatusError for a request that does not come from the page, or has no session."""
        headers, path = context.http.headers, _path(context)
        if has_wrong_host(headers, self._address[1], self._hostname):
            raise StatusError(421, "MisdirectedRequest", "this server has no such hostname")
        if not await self._is_of_own_account(context.http):
            raise StatusError(403, "Forbidden", "the connection comes from another account of this machine")
        if why := refusal(context.http.method, path, headers):
            if path != PAGE:
                raise StatusError(403, "Forbidden", why)
            return document(HTTPStatus.FORBIDDEN, "This link comes from another site", _type_the_address(headers))
        if self._has_session(headers):
            # from now on, connections of strangers do not make the listener close this one
            connection_of(context.http).identify(_USER)
        elif path != LOGIN:
            return self._without_session(path)
        return await next(context)

    def _without_session(self, path: str) -> web.Response:
        """Raises StatusError for all but the page itself."""
        if path == PAGE:
            return document(HTTPStatus.UNAUTHORIZED, "You are not logged in", self._how_to_log_in)
        raise StatusError(401, "Unauthorized", f"no session: {self._how_to_log_in}")

    async def _answer(self, context: RequestContext) -> web.StreamResponse:
        http, path = context.http, _path(context)
        if path.split("/")[1] in _CLUSTER_PATHS:
            return await forward(http, self._upstream, agent=_AGENT, read_only=self._info.read_only)
        if http.method != "GET" and (http.method != "HEAD" or path == LOGIN):
            raise MethodNotAllowed
        if path == LOGIN:
            return self._log_in(http)
        if path == "/session":
            return web.Response(body=self._info.document(), content_type="application/json")
        name = "index.html" if path == PAGE else path.removeprefix("/static/")
        if (found := self._files.get(name)) is None or path not in (PAGE, f"/static/{name}"):
            raise StatusError(404, "NotFound", "the page has no such file")
        return _file(found, http.headers)

    def _log_in(self, http: web.Request) -> web.Response:
        code = parse_qs(http.raw_path.partition("?")[2]).get("code", [""])[0]
        token = self._sessions.begin(code)
        if token is None and not self._has_session(http.headers):
            title = "This link has been used, or is too old"
            return document(HTTPStatus.UNAUTHORIZED, title, self._how_to_log_in)
        if is_from_other_site(http.headers):
            # a browser does not send a strict cookie along redirects that began on another site
            response = document(HTTPStatus.OK, "Logged in", _type_the_address(http.headers))
            response.headers["Refresh"] = f"0; url={PAGE}"
        else:
            response = web.Response(status=HTTPStatus.SEE_OTHER, headers={"Location": PAGE})
        if token is not None:
            response.set_cookie(self._cookie, token, path="/", httponly=True, samesite="Strict")
        return response

    async def _is_of_own_account(self, http: web.Request) -> bool:
        """False if a process of another account has opened the connection."""
        connection = http.protocol
        assert isinstance(connection, LoopbackConnection)
        if connection.is_trusted is None:
            # one at a time, as many strangers must not occupy all threads of the process
            async with self._judging:
                connection.is_trusted = not self.knows_accounts or await _is_own_connection(http)
        return connection.is_trusted

    def _has_session(self, headers: Headers) -> bool:
        return self._sessions.is_valid(cookie_values(headers.getall("Cookie", ()), self._cookie))

    @property
    def _cookie(self) -> str:
        """Cookies do not tell ports apart, so the name does."""
        return f"tenant-ui-{self._address[1]}"


async def serve_page(server: PageServer, address: str, port: int, announce: Callable[[str], None]) -> None:
    """Serves until it is cancelled. `announce` gets the URL. Raises CannotListen."""
    try:
        await server.start(address, port)
        announce(server.login_url())
        await asyncio.Event().wait()
    finally:
        await server.close()


def _type_the_address(headers: Headers) -> str:
    """The address by which the browser has reached this server."""
    return f"Type the address into the address bar: http://{headers['Host']}/"


def _path(context: RequestContext) -> str:
    """As the client sent it, so that no two parts of this server decode it differently."""
    path = context.http.raw_path.partition("?")[0]
    if not path.startswith("/"):
        raise StatusError(400, "BadRequest", "the target of the request has no path")
    return path


async def _is_own_connection(http: web.Request) -> bool:
    transport = http.transport
    if transport is None:
        return False
    client, server = (transport.get_extra_info(name) for name in ("peername", "sockname"))
    return is_own(await asyncio.to_thread(partial(owner_of, client[:2], server[:2])))


def _file(found: StaticFile, headers: Headers) -> web.Response:
    kept = {"ETag": found.etag, "Cache-Control": "no-cache"}
    if found.etag in headers.get("If-None-Match", ""):
        return web.Response(status=HTTPStatus.NOT_MODIFIED, headers=kept)
    return web.Response(body=found.body, headers={"Content-Type": found.media_type, **kept})
