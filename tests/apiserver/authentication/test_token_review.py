"""Bearer tokens and TokenReview (WIRE-A25 to WIRE-A29, ATTACK-02)."""

from __future__ import annotations

from typing import Any

import pytest

from apiserver.authentication.authenticator import AuthenticationError
from apiserver.authentication.token_review import (
    STALE_WARNING,
    BearerTokenAuthenticator,
    InvalidToken,
    TokenReviewer,
    TokenReviewResult,
)
from apiserver.delegation.decision_cache import DecisionCache
from apiserver.delegation.review_client import ReviewBackoff
from apiserver.meta.errors import ServiceUnavailable, StatusError
from apiserver.meta.resource import Object
from apiserver.request.context import User
from tests.apiserver.endpoints.request_contexts import make_context

ALICE: dict[str, Any] = {
    "authenticated": True,
    "user": {"username": "alice", "uid": "7", "groups": ["a"], "extra": {"k": ["v"]}},
}


class FakeReviews:
    def __init__(self, status: dict[str, Any] | None = None) -> None:
        self.status = ALICE if status is None else status
        self.error: StatusError | None = None
        self.bodies: list[Object] = []

    async def __call__(self, body: Object) -> Object:
        self.bodies.append(body)
        if self.error is not None:
            raise self.error
        return {**body, "status": self.status}


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def bearer(cluster: FakeReviews, **kwargs: Any) -> BearerTokenAuthenticator:
    return BearerTokenAuthenticator(TokenReviewer(cluster), on_stale=lambda: None, **kwargs)


async def test_the_token_review_status_becomes_the_user() -> None:
    cluster = FakeReviews()
    context = make_context(headers={"Authorization": "bEARER secret"})
    user = await bearer(cluster).authenticate(context)
    assert user == User(name="alice", uid="7", groups=("a",), extra={"k": ("v",)})
    assert cluster.bodies == [
        {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": "secret"}}
    ]


@pytest.mark.parametrize(
    "header",
    [
        pytest.param("", id="empty"),
        pytest.param("Bearer", id="only a scheme"),
        pytest.param("Bearer ", id="an empty token"),
        pytest.param("Bearer    ", id="spaces"),
        pytest.param("Basic YTpi", id="another scheme"),
    ],
)
async def test_a_header_without_a_bearer_token_has_no_credential(header: str) -> None:
    cluster = FakeReviews()
    assert await bearer(cluster).authenticate(make_context(headers={"Authorization": header})) is None
    assert cluster.bodies == []


async def test_an_extra_space_before_the_token_causes_a_warning() -> None:
    context = make_context(headers={"Authorization": "Bearer  secret"})
    assert await bearer(FakeReviews()).authenticate(context) is None
    assert context.warnings == [
        "the provided Authorization header contains extra space before the bearer token, and is ignored"
    ]


@pytest.mark.parametrize(
    "status",
    [
        pytest.param({"authenticated": False, "user": {"username": "root"}}, id="a user that is not authenticated"),
        pytest.param({"authenticated": True, "user": {}}, id="no username"),
        pytest.param({"authenticated": "true", "user": {"username": "root"}}, id="not a boolean"),
        pytest.param({}, id="an empty status"),
    ],
)
async def test_a_rejected_token_is_cached(status: dict[str, Any]) -> None:
    cluster = FakeReviews(status)
    authenticator = bearer(cluster)
    for _ in range(2):
        with pytest.raises(InvalidToken, match=r"^invalid bearer token$"):
            await authenticator.authenticate(make_context(headers={"Authorization": "Bearer null"}))
    assert len(cluster.bodies) == 1


async def test_a_failed_review_is_not_cached() -> None:
    cluster = FakeReviews({"error": "webhook failed", "authenticated": True, "user": {"username": "root"}})
    authenticator = bearer(cluster)
    for _ in range(2):
        with pytest.raises(AuthenticationError, match=r"^webhook failed$"):
            await authenticator.authenticate(make_context(headers={"Authorization": "Bearer x"}))
    assert len(cluster.bodies) == 2


async def test_a_non_ascii_token_is_rejected_without_a_review() -> None:
    cluster = FakeReviews()
    with pytest.raises(InvalidToken):
        await bearer(cluster).authenticate(make_context(headers={"Authorization": "Bearer tökén"}))
    assert cluster.bodies == []


@pytest.mark.parametrize(
    ("audiences", "accepted"),
    [pytest.param(["us", "them"], True, id="one is accepted"), pytest.param(["them"], False, id="none is accepted")],
)
async def test_a_token_must_be_issued_for_an_accepted_audience(audiences: list[str], accepted: bool) -> None:
    cluster = FakeReviews({**ALICE, "audiences": audiences})
    reviewer = TokenReviewer(cluster, audiences=("us",))
    if accepted:
        assert (await reviewer("t")).name == "alice"
    else:
        with pytest.raises(InvalidToken):
            await reviewer("t")
    assert cluster.bodies[0]["spec"]["audiences"] == ["us"]


async def test_a_cached_token_is_accepted_while_the_cluster_is_unreachable() -> None:
    clock, reviews, stale = Clock(), FakeReviews(), []
    decisions: DecisionCache[TokenReviewResult] = DecisionCache(
        ttl=10, tolerance=300, usable_when_stale=lambda result: isinstance(result, User), clock=clock
    )
    authenticator = BearerTokenAuthenticator(TokenReviewer(reviews), on_stale=lambda: stale.append(1), cache=decisions)
    await authenticator.authenticate(make_context(headers={"Authorization": "Bearer known"}))
    clock.now = 100
    reviews.error = ServiceUnavailable("connection refused")
    context = make_context(headers={"Authorization": "Bearer known"})
    user = await authenticator.authenticate(context)
    assert user is not None
    assert user.name == "alice"
    assert context.warnings == [STALE_WARNING]
    assert stale == [1]
    with pytest.raises(ServiceUnavailable):
        await authenticator.authenticate(make_context(headers={"Authorization": "Bearer unknown"}))


async def test_a_review_that_fails_with_500_is_retried() -> None:
    cluster = FakeReviews()
    cluster.error = StatusError(500, "InternalError", "etcd")
    with pytest.raises(StatusError):
        await TokenReviewer(cluster, backoff=ReviewBackoff(initial_delay=0, steps=5))("t")
    assert len(cluster.bodies) == 5


@pytest.mark.parametrize("code", [401, 403, 404])
async def test_a_review_that_the_server_may_not_create_fails_and_is_not_cached(code: int) -> None:
    cluster = FakeReviews()
    cluster.error = StatusError(code, "Forbidden", "the server's own account may not create tokenreviews")
    authenticator = bearer(cluster)
    for _ in range(2):
        with pytest.raises(AuthenticationError):
            await authenticator.authenticate(make_context(headers={"Authorization": "Bearer x"}))
    assert len(cluster.bodies) == 2
