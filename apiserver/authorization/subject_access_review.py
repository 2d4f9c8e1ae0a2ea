"""Authorization by the cluster's SubjectAccessReview API (WIRE-B7 to WIRE-B11)."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import replace
from typing import Any

from apiserver.authorization.authorizer import AccessAttributes, Decision
from apiserver.delegation import review_client as review
from apiserver.delegation.decision_cache import DecisionCache, call_cluster
from apiserver.delegation.review_client import ReviewBackoff
from apiserver.delegation.shared_calls import SharedCalls
from apiserver.meta.resource import Object
from apiserver.meta.selectors import Requirement
from apiserver.request.context import User

# allow and deny, as in the DelegatingAuthorizationOptions of kubernetes/apiserver
_CACHE_SECONDS = 10.0
# everything else changes something
_CACHED_VERBS = frozenset(("get", "list", "watch", "head", "options"))
_CACHEABLE_LENGTH = 10_000
_LABEL_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist")


class SubjectAccessReviewAuthorizer:
    """Creates a SubjectAccessReview for each decision that is not cached. Only decisions about reads are: a write is
    reviewed anew, and fails while the cluster is unreachable, so that none passes after a revocation (ATTACK-05).
    Equal writes that wait at one time, such as creates of one user in one namespace, share a review that begins after
    all of them have arrived.

    While the cluster is unreachable, reads that were allowed at most `tolerance` seconds ago stay allowed, and
    `on_stale` is called for every such decision.
    """

    def __init__(
        self,
        post: review.ReviewCall,
        *,
        tolerance: float = 300.0,
        on_stale: Callable[[], None],
        backoff: ReviewBackoff | None = None,
        cache: DecisionCache[Decision] | None = None,
    ) -> None:
        self._post = post
        self._on_stale = on_stale
        self._writes = SharedCalls[Decision]()
        self._backoff = backoff or ReviewBackoff()
        self._decisions = (
            cache
            if cache is not None
            else DecisionCache(ttl=_CACHE_SECONDS, tolerance=tolerance, usable_when_stale=_is_allowed)
        )

    async def authorize(self, attributes: AccessAttributes) -> Decision:
        """Raises the cluster's StatusError; ServiceUnavailable if it is unreachable and the decision is not cached."""
        key = _cache_key(attributes)
        fresh = self._decisions.get_fresh(key) if key is not None and _is_read(attributes) else None
        return fresh if fresh is not None else await self._fetch(key, attributes)

    async def authorize_anew(self, attributes: AccessAttributes) -> Decision:
        """As `authorize`, but reads are reviewed anew as well: for callers that keep the decisions themselves, and
        would otherwise keep those that are ten seconds old already."""
        return await self._fetch(_cache_key(attributes), attributes)

    async def _fetch(self, key: Hashable | None, attributes: AccessAttributes) -> Decision:
        if key is None:
            return await call_cluster(lambda: self._review(attributes))
        if not _is_read(attributes):
            return await self._writes.call(key, lambda: call_cluster(lambda: self._review(attributes)))
        cached = await self._decisions.get_or_fetch(key, lambda: self._review(attributes), anew=True)
        if cached.stale:
            self._on_stale()
            return replace(cached.value, stale=True)
        return cached.value

    async def _review(self, attributes: AccessAttributes) -> Decision:
        body = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "spec": subject_access_review_spec(attributes),
        }
        response = await review.post_with_retries(self._post, body, self._backoff)
        status = response.get("status") or {}
        denied = bool(status.get("denied"))
        return Decision(
            # only the boolean true allows, and a denial takes precedence
            allowed=status.get("allowed") is True and not denied,
            denied=denied,
            reason=str(status.get("reason") or ""),
        )


class UncachedReviews:
    """An Authorizer that reviews each access anew."""

    def __init__(self, reviews: SubjectAccessReviewAuthorizer) -> None:
        self._reviews = reviews

    async def authorize(self, attributes: AccessAttributes) -> Decision:
        return await self._reviews.authorize_anew(attributes)


def subject_access_review_spec(attributes: AccessAttributes) -> Object:
    """Returns the SubjectAccessReview spec of `attributes`, without empty fields (WIRE-B7, WIRE-B8)."""
    user = attributes.user
    spec: Object = {
        "user": user.name,
        "uid": user.uid,
        "groups": list(user.groups),
        "extra": {key: list(values) for key, values in user.extra.items()},
    }
    if attributes.is_resource:
        spec["resourceAttributes"] = _resource_attributes(attributes)
    else:
        spec["nonResourceAttributes"] = {"path": attributes.path, "verb": attributes.verb}
    return {key: value for key, value in spec.items() if value}


def _resource_attributes(attributes: AccessAttributes) -> dict[str, Any]:
    review: dict[str, Any] = {
        "namespace": attributes.namespace,
        "verb": attributes.verb,
        "group": attributes.group,
        "version": attributes.version,
        "resource": attributes.resource,
        "subresource": attributes.subresource,
        "name": attributes.name,
    }
    labels = [each for each in attributes.label_requirements if each.operator in _LABEL_OPERATORS]
    # a review with an empty key is invalid; the request gets its own error later
    fields = [each for each in attributes.field_requirements if each.key]
    if fields:
        review["fieldSelector"] = {"requirements": [_requirement(each) for each in fields]}
    if labels:
        review["labelSelector"] = {"requirements": [_requirement(each) for each in labels]}
    return {key: value for key, value in review.items() if value}


def _requirement(requirement: Requirement) -> dict[str, Any]:
    review: dict[str, Any] = {"key": requirement.key, "operator": requirement.operator}
    if requirement.values:
        review["values"] = list(requirement.values)
    return review


def _is_read(attributes: AccessAttributes) -> bool:
    return attributes.verb in _CACHED_VERBS


def _cache_key(attributes: AccessAttributes) -> Hashable | None:
    """Returns what decisions depend on, None for attributes that are too long to be kept (WIRE-B11)."""
    texts = (
        attributes.verb,
        attributes.group,
        attributes.version,
        attributes.resource,
        attributes.subresource,
        attributes.namespace,
        attributes.name,
        attributes.path,
    )
    if sum(map(len, texts)) >= _CACHEABLE_LENGTH:
        return None
    return (texts, _user_key(attributes.user), attributes.field_requirements, attributes.label_requirements)


def _user_key(user: User) -> Hashable:
    return (user.name, user.uid, user.groups, tuple(sorted(user.extra.items())) if user.extra else ())


def _is_allowed(decision: Decision) -> bool:
    return decision.allowed
