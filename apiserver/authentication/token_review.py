"""Bearer tokens, judged by the host's TokenReview (WIRE-A25 to WIRE-A29)."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from apiserver.authentication.authenticator import AuthenticationError
from apiserver.delegation import review_client as review
from apiserver.delegation.decision_cache import DecisionCache
from apiserver.delegation.review_client import ReviewBackoff
from apiserver.meta.errors import StatusError
from apiserver.request.context import RequestContext, User

STALE_WARNING = "the host cannot be reached: the token is accepted as it was the last time it was checked"
_EXTRA_SPACE = "the provided Authorization header contains extra space before the bearer token, and is ignored"

TokenReviewResult = User | str
"""A user, or why the host refused the token."""

_CACHE_SECONDS = 10.0


class InvalidToken(AuthenticationError):
    """The host looked at the token and refused it; that is kept like an acceptance (WIRE-A29)."""


@dataclass(frozen=True, slots=True)
class TokenReviewer:
    """Asks the host whose a token is. `audiences`, if any, must be among those that the token is for."""

    post: review.ReviewCall
    audiences: tuple[str, ...] = ()
    backoff: ReviewBackoff = field(default_factory=ReviewBackoff)

    async def __call__(self, token: str) -> User:
        """Raises InvalidToken if the host refuses it, AuthenticationError or StatusError if the host cannot tell.

        What the host says of our own right to ask is not for the caller (ATTACK-02): it is a credential that is not
        good.
        """
        spec: dict[str, Any] = {"token": token}
        if self.audiences:
            spec["audiences"] = list(self.audiences)
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": spec}
        try:
            answer = await review.post_with_retries(self.post, body, self.backoff)
        except StatusError as error:
            if error.code >= 500 or error.code == 429:
                raise
            raise AuthenticationError(f"the host does not review the token: {error.message}") from error
        return _user(answer.get("status") or {}, self.audiences)


class BearerTokenAuthenticator:
    """Authenticates by `Authorization: Bearer`. Only a keyed hash of a token is kept."""

    def __init__(
        self,
        review: Callable[[str], Awaitable[User]],
        *,
        tolerance: float = 300.0,
        on_stale: Callable[[], None],
        cache: DecisionCache[TokenReviewResult] | None = None,
    ) -> None:
        self._review = review
        self._on_stale = on_stale
        self._secret = secrets.token_bytes(32)
        self._verdicts = cache or DecisionCache(ttl=_CACHE_SECONDS, tolerance=tolerance, usable_when_stale=_accepted)

    async def authenticate(self, context: RequestContext) -> User | None:
        """Raises AuthenticationError, and ServiceUnavailable if the host is away and the token is not known."""
        token = bearer_token(context)
        if not token:
            return None
        if not token.isascii():
            raise InvalidToken("invalid bearer token")
        key = hmac.digest(self._secret, token.encode(), hashlib.sha256)
        verdict = await self._verdicts.get_or_fetch(key, lambda: self._ask(token))
        if isinstance(verdict.value, str):
            raise InvalidToken(verdict.value)
        if verdict.stale:
            context.warn(STALE_WARNING)
            self._on_stale()
        return verdict.value

    async def _ask(self, token: str) -> TokenReviewResult:
        try:
            return await self._review(token)
        except InvalidToken as refusal:
            return str(refusal)


def bearer_token(context: RequestContext) -> str:
    """The request's token, empty if it has none (WIRE-A25, WIRE-A26)."""
    header = context.http.headers.get("Authorization", "").strip()
    scheme, _, token = header.partition(" ")
    if scheme.lower() != "bearer":
        return ""
    if token.startswith(" "):
        context.warn(_EXTRA_SPACE)
    return token.partition(" ")[0]


def _accepted(verdict: TokenReviewResult) -> bool:
    return isinstance(verdict, User)


def _user(status: Any, audiences: tuple[str, ...]) -> User:
    if not isinstance(status, dict):
        raise InvalidToken("invalid bearer token")
    if status.get("error"):
        raise AuthenticationError(str(status["error"]))
    user = status.get("user") or {}
    if status.get("authenticated") is not True or not user.get("username"):
        raise InvalidToken("invalid bearer token")
    if audiences and not set(audiences) & set(status.get("audiences") or ()):
        raise InvalidToken("the token is for another audience")
    return User(
        name=user["username"],
        uid=user.get("uid") or "",
        groups=tuple(user.get("groups") or ()),
        extra={key: tuple(values or ()) for key, values in (user.get("extra") or {}).items()},
    )
