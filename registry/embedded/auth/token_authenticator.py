"""Authenticates the bearer tokens of the embedded cluster: tokens in Secrets and tokens that expire."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from apiserver.authentication.authenticator import AuthenticationError
from apiserver.authentication.token_review import bearer_token
from apiserver.request.context import RequestContext, User
from registry.embedded.auth.bound_tokens import AUDIENCE, AuthenticatedToken, BoundTokens
from registry.embedded.auth.secret_tokens import SecretTokenIndex


class InvalidBearerToken(Exception):
    """A bearer token is invalid. The message is that of kube-apiserver."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceAccountTokens:
    """All service account tokens: those in Secrets and those that expire."""

    secret_tokens: SecretTokenIndex
    bound_tokens: BoundTokens

    def authenticate_token(self, token: str, audiences: Sequence[str] = (AUDIENCE,)) -> AuthenticatedToken:
        """Returns the user of the token, with those of `audiences` that the token is meant for. Raises
        InvalidBearerToken."""
        user = self.secret_tokens.authenticate_token(token)
        found = (
            AuthenticatedToken(user, (AUDIENCE,)) if user is not None else self.bound_tokens.authenticate_token(token)
        )
        if found is None:
            raise InvalidBearerToken("invalid bearer token")
        common = tuple(each for each in audiences if each in found.audiences)
        if not common:
            actual, requested = (_format_audiences(each) for each in (found.audiences, audiences))
            why = f"token audiences {actual} is invalid for the target audiences {requested}"
            raise InvalidBearerToken(f"[invalid bearer token, {why}]")
        return AuthenticatedToken(found.user, common)


class TokenAuthenticator:
    """Authenticates by `Authorization: Bearer`. Results are not cached, so that deleting an account or a Secret takes
    effect immediately."""

    def __init__(self, tokens: ServiceAccountTokens) -> None:
        self._tokens = tokens

    async def authenticate(self, context: RequestContext) -> User | None:
        """Raises AuthenticationError."""
        token = bearer_token(context)
        if not token:
            return None
        try:
            return self._tokens.authenticate_token(token).user
        except InvalidBearerToken as error:
            raise AuthenticationError(str(error)) from error


def _format_audiences(audiences: Sequence[str]) -> str:
    return "[" + " ".join(f'"{each}"' for each in audiences) + "]"
