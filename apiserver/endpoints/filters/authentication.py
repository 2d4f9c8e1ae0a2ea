"""Authenticates the caller. A request whose Connection header names identity headers is rejected (ATTACK-03)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from aiohttp import web

from apiserver.authentication.request_header import RequestHeaderConfig, has_identity_headers
from apiserver.meta.errors import BadRequest, StatusError, Unauthorized
from apiserver.request.context import Handler, RequestContext, User

_MAX_CONNECTION_LENGTH = 1024


class RequestAuthenticator(Protocol):
    async def authenticate(self, context: RequestContext) -> User:
        """The user that sent the request. Raises StatusError."""
        ...


def _ignore_result(result: str) -> None:
    pass


class Authentication:
    """Sets the user of the request context.

    `config` returns the request-header settings: the headers that they name are identity headers. `observe` is called
    with the result of each attempt: success, failure or error. `on_failure` is called for each rejected request.
    """

    def __init__(
        self,
        authenticator: RequestAuthenticator,
        *,
        config: Callable[[], RequestHeaderConfig],
        observe: Callable[[str], None] = _ignore_result,
        on_failure: Callable[[RequestContext, StatusError], None] | None = None,
    ) -> None:
        self._authenticator = authenticator
        self._config = config
        self._observe = observe
        self._on_failure = on_failure

    async def __call__(self, context: RequestContext, next: Handler) -> web.StreamResponse:
        try:
            context.user = await self._authenticate(context)
        except StatusError as error:
            if self._on_failure is not None:
                self._on_failure(context, error)
            raise
        return await next(context)

    async def _authenticate(self, context: RequestContext) -> User:
        headers = context.http.headers
        if "Connection" in headers:
            self._check_connection_header(headers.getall("Connection"))
        try:
            user = await self._authenticator.authenticate(context)
        except StatusError as error:
            self._observe("failure" if isinstance(error, Unauthorized) else "error")
            raise
        self._observe("success")
        return user

    def _check_connection_header(self, values: list[str]) -> None:
        """Proxies drop the headers that Connection names. A client that names an identity header tries to make a proxy
        drop the identity. Nobody has been authenticated yet, so that the length is limited, too (ATTACK-19)."""
        if sum(map(len, values)) > _MAX_CONNECTION_LENGTH:
            raise BadRequest(f"the Connection header may have at most {_MAX_CONNECTION_LENGTH} characters")
        named = [name.strip().lower() for value in values for name in value.split(",")]
        hidden = [name for name in named if name == "authorization" or name.startswith("impersonate-")]
        if hidden or has_identity_headers(named, self._config()):
            raise BadRequest("the Connection header must not name headers of authentication")
