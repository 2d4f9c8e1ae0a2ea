"""Bearer tokens in a websocket subprotocol: browsers can set no Authorization header for a websocket (KEP-1265's
`base64url.bearer.authorization.k8s.io`)."""

from __future__ import annotations

import base64
import binascii

from apiserver.authentication.authenticator import AuthenticationError
from apiserver.authentication.token_review import BearerTokenAuthenticator
from apiserver.request.context import RequestContext, User
from tenant_apiserver.proxy.headers import TOKEN_PROTOCOL, requested_upgrade, socket_protocols


class SocketTokenAuthenticator:
    """Authenticates a websocket by the token among its subprotocols. As in kube-apiserver, it must be the only one, and
    there must be another subprotocol to answer with."""

    def __init__(self, tokens: BearerTokenAuthenticator) -> None:
        self._tokens = tokens

    async def authenticate(self, context: RequestContext) -> User | None:
        """Raises as BearerTokenAuthenticator."""
        headers = context.http.headers
        if requested_upgrade(headers) != "websocket":
            return None
        offered = socket_protocols(headers)
        found = [each.removeprefix(TOKEN_PROTOCOL) for each in offered if each.startswith(TOKEN_PROTOCOL)]
        if not found:
            return None
        if len(found) > 1 or len(offered) == 1:
            raise AuthenticationError("a websocket has one token, and another subprotocol")
        return await self._tokens.user_of(context, _decoded(found[0]))


def _decoded(text: str) -> str:
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True).decode("ascii")
    except (binascii.Error, ValueError) as error:
        raise AuthenticationError("the token of a websocket is not base64url") from error
