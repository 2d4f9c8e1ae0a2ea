"""Authentication of bearer tokens by the cluster's TokenReview API (WIRE-A25 to WIRE-A29)."""

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

STALE_WARNING = "the cluster cannot be reached: the token is accepted because it was valid when it was last checked"
_EXTRA_SPACE = "the provided Authorization header contains extra space before the bearer token, and is ignored"

TokenReviewResult = User | str
"""The user of a token, or the reason why the cluster rejected it."""

_CACHE_SECONDS = 10.0


class InvalidToken(AuthenticationError):
    """The cluster reviewed the token and rejected it. The rejection is cached like an acceptance (WIRE-A29)."""


@dataclass(frozen=True, slots=True)
class TokenReviewer:
    """Creates TokenReviews. If `audiences` are set, the token must be issued for at least one of them."""

    post: review.ReviewCall
    audiences: tuple[str, ...] = ()
    backoff: ReviewBackoff = field(default_factory=ReviewBackoff)

    async def __call__(self, token: str) -> User:
        """Raises InvalidToken if the cluster rejects the token, AuthenticationError or StatusError if the review fails.

        If the cluster rejects the review itself, for example with a 403 for the server's own account, the token counts
        as invalid, and the error is not disclosed to the caller (ATTACK-02).
        """
        spec: dict[str, Any] = {"token": token}
        if self.audiences:
            spec["audiences"] = list(self.audiences)
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": spec}
        try:
            response = await review.post_with_retries(self.post, body, self.backoff)
        except StatusError as error:
            if error.code >= 500 or error.code == 429:
                raise
            raise AuthenticationError(f"the cluster does not review the token: {error.message}") from error
        return _user(response.get("status") or {}, self.audiences)


class BearerTokenAuthenticator:
    """Authenticates by `Authorization: Bearer`. The cache stores keyed hashes instead of tokens."""

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
        self._decisions = (
            cache
            if cache is not None
            else DecisionCache(ttl=_CACHE_SECONDS, tolerance=tolerance, usable_when_stale=_is_accepted)
        )

    async def authenticate(self, context: RequestContext) -> User | None:
        """Raises AuthenticationError; ServiceUnavailable if the cluster is unreachable and the token is not cached."""
        token = bearer_token(context)
        return await self.user_of(context, token) if token else None

    async def user_of(self, context: RequestContext, token: str) -> User:
        """The user of a token that came with the request. Raises as `authenticate`."""
        if not token.isascii():
            raise InvalidToken("invalid bearer token")
        key = hmac.digest(self._secret, token.encode(), hashlib.sha256)
        decision = await self._decisions.get_or_fetch(key, lambda: self._review_token(token))
        if isinstance(decision.value, str):
            raise InvalidToken(decision.value)
        if decision.stale:
            context.warn(STALE_WARNING)
            self._on_stale()
        return decision.value

    async def _review_token(self, token: str) -> TokenReviewResult:
        try:
            return await self._review(token)
        except InvalidToken as rejection:
            return str(rejection)


def bearer_token(context: RequestContext) -> str:
    """Returns the request's bearer token, empty if it has none (WIRE-A25, WIRE-A26)."""
    header = context.http.headers.get("Authorization", "").strip()
    scheme, _, token = header.partition(" ")
    if scheme.lower() != "bearer":
        return ""
    if token.startswith(" "):
        context.warn(_EXTRA_SPACE)
    return token.partition(" ")[0]


def _is_accepted(result: TokenReviewResult) -> bool:
    return isinstance(result, User)


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
