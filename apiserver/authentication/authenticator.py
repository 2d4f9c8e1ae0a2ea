"""Who asks: authenticators, and the union that tries them in order (WIRE-A1 to WIRE-A5)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

from apiserver.meta.errors import Unauthorized
from apiserver.request.context import ANONYMOUS, RequestContext, User

AUTHENTICATED = "system:authenticated"
UNAUTHENTICATED = "system:unauthenticated"


class AuthenticationError(Exception):
    """A credential was shown and is not good. Another one may be; if none is, the answer is a 401 (WIRE-A2)."""


class Authenticator(Protocol):
    async def authenticate(self, context: RequestContext) -> User | None:
        """The caller, or None if the request shows no credential of this kind.

        Raises AuthenticationError for a credential that is not good, StatusError to end the request at once.
        """
        ...


class UnionAuthenticator:
    """The first authenticator that knows the caller decides; nobody's credentials at all make them anonymous."""

    def __init__(self, authenticators: Sequence[Authenticator]) -> None:
        self._authenticators = tuple(authenticators)

    async def authenticate(self, context: RequestContext) -> User:
        """Raises Unauthorized if there were credentials and none was good."""
        failed = False
        for authenticator in self._authenticators:
            try:
                user = await authenticator.authenticate(context)
            except AuthenticationError:
                failed = True
                continue
            if user is not None:
                return with_authenticated_group(user)
        if failed:
            raise Unauthorized
        return ANONYMOUS


def with_authenticated_group(user: User) -> User:
    """WIRE-A3."""
    if user.name == ANONYMOUS.name or AUTHENTICATED in user.groups or UNAUTHENTICATED in user.groups:
        return user
    return replace(user, groups=(*user.groups, AUTHENTICATED))
