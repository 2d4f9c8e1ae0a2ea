"""The Authenticator protocol, and the union that tries authenticators in order (WIRE-A1 to WIRE-A5)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from apiserver.meta.errors import Unauthorized
from apiserver.request.context import ANONYMOUS, RequestContext, User

AUTHENTICATED = "system:authenticated"
UNAUTHENTICATED = "system:unauthenticated"


class AuthenticationError(Exception):
    """A credential is invalid. The request fails with a 401 unless another of its credentials is valid (WIRE-A2)."""


class Authenticator(Protocol):
    async def authenticate(self, context: RequestContext) -> User | None:
        """Returns the caller, or None if the request has no credential of this kind.

        Raises AuthenticationError for an invalid credential, StatusError to reject the request immediately.
        """
        ...


class UnionAuthenticator:
    """Tries authenticators in order; the first that returns a user wins. A request without credentials is anonymous."""

    def __init__(self, authenticators: Sequence[Authenticator]) -> None:
        self._authenticators = tuple(authenticators)

    async def authenticate(self, context: RequestContext) -> User:
        """Raises Unauthorized if there are credentials and none of them is valid."""
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
    """Adds system:authenticated to the groups of an authenticated user (WIRE-A3)."""
    if user.name == ANONYMOUS.name or AUTHENTICATED in user.groups or UNAUTHENTICATED in user.groups:
        return user
    return User(name=user.name, uid=user.uid, groups=(*user.groups, AUTHENTICATED), extra=user.extra)
