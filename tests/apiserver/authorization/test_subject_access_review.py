"""SubjectAccessReviews: their content, caching, and decisions while the cluster is unreachable (WIRE-B7 to
WIRE-B11)."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from apiserver.authorization.authorizer import AccessAttributes, Decision
from apiserver.authorization.subject_access_review import (
    SubjectAccessReviewAuthorizer,
    UncachedReviews,
    subject_access_review_spec,
)
from apiserver.delegation.decision_cache import DecisionCache
from apiserver.delegation.review_client import ReviewBackoff
from apiserver.meta.errors import ServiceUnavailable, StatusError
from apiserver.meta.resource import Object
from apiserver.meta.selectors import Requirement
from apiserver.request.context import User

ALICE = User("alice", uid="7", groups=("a", "b"), extra={"k/l": ("v",)})
WIDGET = AccessAttributes(
    user=ALICE, verb="get", group="example.org", version="v1", resource="widgets", namespace="ns", name="w"
)


class FakeReviews:
    def __init__(self, **status: Any) -> None:
        self.status = status
        self.error: StatusError | None = None
        self.calls = 0

    async def __call__(self, body: Object) -> Object:
        self.calls += 1
        if self.error is not None:
            raise self.error
        return {**body, "status": self.status}


def test_the_review_names_the_user_and_the_resource() -> None:
    assert subject_access_review_spec(WIDGET) == {
        "user": "alice",
        "uid": "7",
        "groups": ["a", "b"],
        "extra": {"k/l": ["v"]},
        "resourceAttributes": {
            "namespace": "ns",
            "verb": "get",
            "group": "example.org",
            "version": "v1",
            "resource": "widgets",
            "name": "w",
        },
    }


def test_the_review_of_a_path_has_non_resource_attributes_only() -> None:
    assert subject_access_review_spec(AccessAttributes(user=User("bob"), verb="get", path="/metrics")) == {
        "user": "bob",
        "nonResourceAttributes": {"path": "/metrics", "verb": "get"},
    }


def test_the_review_carries_the_selectors_it_supports() -> None:
    listed = replace(
        WIDGET,
        verb="list",
        field_requirements=(Requirement("metadata.name", "In", ("w",)), Requirement("", "In", ("",))),
        label_requirements=(Requirement("a", "Exists"), Requirement("n", "Gt", ("1",))),
    )
    attributes = subject_access_review_spec(listed)["resourceAttributes"]
    assert attributes["fieldSelector"] == {
        "requirements": [{"key": "metadata.name", "operator": "In", "values": ["w"]}]
    }
    assert attributes["labelSelector"] == {"requirements": [{"key": "a", "operator": "Exists"}]}


@pytest.mark.parametrize(
    ("status", "decision"),
    [
        pytest.param({"allowed": True, "reason": "RBAC"}, Decision(allowed=True, reason="RBAC"), id="allowed"),
        pytest.param({"allowed": False}, Decision(), id="no opinion"),
        pytest.param({"allowed": False, "denied": True}, Decision(denied=True), id="denied"),
        pytest.param({"allowed": True, "denied": True}, Decision(denied=True), id="denied and allowed"),
        pytest.param({"allowed": "false"}, Decision(), id="not a boolean"),
        pytest.param({}, Decision(), id="an empty status"),
    ],
)
async def test_the_review_status_becomes_the_decision(status: dict[str, Any], decision: Decision) -> None:
    assert (
        await SubjectAccessReviewAuthorizer(FakeReviews(**status), on_stale=lambda: None).authorize(WIDGET) == decision
    )


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(replace(WIDGET, user=replace(ALICE, name="bob")), id="another user"),
        pytest.param(replace(WIDGET, user=replace(ALICE, groups=("a",))), id="other groups"),
        pytest.param(replace(WIDGET, user=replace(ALICE, uid="8")), id="another uid"),
        pytest.param(replace(WIDGET, user=replace(ALICE, extra={"k/l": ("w",)})), id="other extra"),
        pytest.param(replace(WIDGET, verb="list"), id="another verb"),
        pytest.param(replace(WIDGET, namespace="ns2"), id="another namespace"),
        pytest.param(replace(WIDGET, name="w2"), id="another name"),
        pytest.param(replace(WIDGET, subresource="status"), id="a subresource"),
        pytest.param(replace(WIDGET, label_requirements=(Requirement("a", "Exists"),)), id="a selector"),
    ],
)
async def test_a_cached_decision_is_used_for_equal_attributes_only(other: AccessAttributes) -> None:
    cluster = FakeReviews(allowed=True)
    authorizer = SubjectAccessReviewAuthorizer(cluster, on_stale=lambda: None)
    for attributes in (WIDGET, replace(WIDGET), other, other):
        await authorizer.authorize(attributes)
    assert cluster.calls == 2


@pytest.mark.parametrize(
    "write",
    [
        *(
            pytest.param(replace(WIDGET, verb=verb), id=verb)
            for verb in ("create", "update", "patch", "delete", "deletecollection", "impersonate", "bind")
        ),
        pytest.param(AccessAttributes(user=ALICE, verb="post", path="/reload"), id="post to a path"),
    ],
)
async def test_a_write_is_reviewed_anew(write: AccessAttributes) -> None:
    """A simultaneous write does not share the review of an earlier one, which may be decided before it has arrived."""
    cluster = FakeReviews(allowed=True)
    authorizer = SubjectAccessReviewAuthorizer(cluster, on_stale=lambda: None)
    await asyncio.gather(authorizer.authorize(write), authorizer.authorize(write))
    cluster.status = {"allowed": False}
    assert not (await authorizer.authorize(write)).allowed
    assert cluster.calls == 3


async def test_writes_that_wait_at_one_time_share_the_next_review() -> None:
    cluster, create = FakeReviews(allowed=True), replace(WIDGET, verb="create", name="")
    authorizer = SubjectAccessReviewAuthorizer(cluster, on_stale=lambda: None)
    decisions = await asyncio.gather(*(authorizer.authorize(create) for _ in range(16)))
    assert all(each.allowed for each in decisions)
    assert cluster.calls == 2


async def test_a_write_is_not_allowed_by_an_earlier_decision_while_the_cluster_is_unreachable() -> None:
    cluster = FakeReviews(allowed=True)
    authorizer = SubjectAccessReviewAuthorizer(cluster, on_stale=lambda: None, backoff=ReviewBackoff(steps=1))
    await authorizer.authorize(replace(WIDGET, verb="patch"))
    cluster.error = StatusError(504, "Timeout", "etcdserver: request timed out")
    with pytest.raises(ServiceUnavailable):
        await authorizer.authorize(replace(WIDGET, verb="patch"))


async def test_reads_are_reviewed_anew_for_callers_that_keep_decisions_themselves() -> None:
    cluster = FakeReviews(allowed=True)
    authorizer = SubjectAccessReviewAuthorizer(cluster, on_stale=lambda: None)
    await authorizer.authorize(WIDGET)
    cluster.status = {"allowed": False}
    assert not (await UncachedReviews(authorizer).authorize(WIDGET)).allowed


async def test_reviews_without_a_cache_use_the_last_allow_while_the_cluster_is_unreachable() -> None:
    cluster = FakeReviews(allowed=True)
    authorizer = SubjectAccessReviewAuthorizer(cluster, on_stale=lambda: None)
    await authorizer.authorize(WIDGET)
    cluster.error = ServiceUnavailable("connection refused")
    assert await UncachedReviews(authorizer).authorize(WIDGET) == Decision(allowed=True, stale=True)


async def test_a_decision_on_very_long_attributes_is_not_cached() -> None:
    cluster = FakeReviews(allowed=True)
    authorizer = SubjectAccessReviewAuthorizer(cluster, on_stale=lambda: None)
    for _ in range(2):
        await authorizer.authorize(replace(WIDGET, name="x" * 10_000))
    assert cluster.calls == 2


async def test_a_cached_allow_is_used_while_the_cluster_is_unreachable() -> None:
    now = [0.0]
    stale: list[int] = []
    cluster = FakeReviews(allowed=True)
    cache: DecisionCache[Decision] = DecisionCache(
        ttl=10, tolerance=300, usable_when_stale=lambda decision: decision.allowed, clock=lambda: now[0]
    )
    authorizer = SubjectAccessReviewAuthorizer(cluster, on_stale=lambda: stale.append(1), cache=cache)
    await authorizer.authorize(WIDGET)
    now[0], cluster.error = 60.0, ServiceUnavailable("connection refused")
    assert await authorizer.authorize(WIDGET) == Decision(allowed=True, stale=True)
    assert stale == [1]
    with pytest.raises(ServiceUnavailable):
        await authorizer.authorize(replace(WIDGET, verb="delete"))
