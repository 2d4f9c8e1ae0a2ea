"""Bearer tokens of the embedded host: those kept in Secrets, and those that end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from apiserver.authentication.authenticator import AuthenticationError
from apiserver.authentication.token_review import bearer_token
from apiserver.request.context import RequestContext, User
from registry.embedded.auth.bound_tokens import AUDIENCE, Bearer, BoundTokens
from registry.embedded.auth.secret_tokens import TokenDirectory


class InvalidBearer(Exception):
    """Why a token is good for nobody, in Kubernetes' words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bearers:
    kept: TokenDirectory
    bound: BoundTokens

    def find(self, token: str, audiences: Sequence[str] = (AUDIENCE,)) -> Bearer:
        """Who the token stands for, with those of `audiences` that it is for. Raises InvalidBearer."""
        user = self.kept.find(token)
        found = Bearer(user, (AUDIENCE,)) if user is not None else self.bound.find(token)
        if found is None:
            raise InvalidBearer("invalid bearer token")
        common = tuple(each for each in audiences if each in found.audiences)
        if not common:
            meant, wanted = (_listed(each) for each in (found.audiences, audiences))
            why = f"token audiences {meant} is invalid for the target audiences {wanted}"
            raise InvalidBearer(f"[invalid bearer token, {why}]")
        return Bearer(found.user, common)


class TokenAuthenticator:
    """Authenticates by `Authorization: Bearer`; no verdict outlives what the token hangs on."""

    def __init__(self, bearers: Bearers) -> None:
        self._bearers = bearers

    async def authenticate(self, context: RequestContext) -> User | None:
        """Raises AuthenticationError."""
        token = bearer_token(context)
        if not token:
            return None
        try:
            return self._bearers.find(token).user
        except InvalidBearer as error:
            raise AuthenticationError(str(error)) from error


def _listed(audiences: Sequence[str]) -> str:
    return "[" + " ".join(f'"{each}"' for each in audiences) + "]"
