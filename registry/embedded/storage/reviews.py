"""Storages of reviews, which are answered and not stored: access, rules, self and token reviews."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any

from apiserver import rest
from apiserver.authentication.authenticator import AUTHENTICATED
from apiserver.authorization.authorizer import AccessAttributes, Authorizer, Decision
from apiserver.meta import errors
from apiserver.meta.errors import FieldError
from apiserver.meta.resource import Object, Resource
from apiserver.request.context import RequestContext, User
from apiserver.schema.pruning_and_defaulting import schema_errors
from registry.embedded.auth.bound_tokens import AUDIENCE
from registry.embedded.auth.token_authenticator import InvalidBearerToken, ServiceAccountTokens
from registry.embedded.kinds.reviews import (
    LOCAL_SUBJECT_ACCESS_REVIEW,
    SELF_SUBJECT_ACCESS_REVIEW,
    SELF_SUBJECT_REVIEW,
    SELF_SUBJECT_RULES_REVIEW,
    SUBJECT_ACCESS_REVIEW,
    TOKEN_REVIEW,
)
from registry.rbac.role_index import RoleIndex, to_policy_rule

Evaluate = Callable[[RequestContext, Object], Awaitable[Object]]
"""(context, review) -> status of the review. Raises StatusError."""


class ReviewStorage(rest.Creater):
    """A create-only resource. A create returns the review with its status."""

    def __init__(self, resource: Resource, evaluate: Evaluate) -> None:
        self._resource = resource
        self._evaluate = evaluate

    @property
    def resource(self) -> Resource:
        return self._resource

    async def create(
        self, context: RequestContext, obj: Object, validate: rest.ValidateFunc, *, dry_run: bool
    ) -> Object:
        spec = obj.get("spec") or {}
        problems = schema_errors(self._resource.properties["spec"], spec, "spec") if "spec" in obj else []
        if problems:
            raise errors.Invalid(self._resource.group_kind, "", problems)
        review = {**obj, "spec": spec}
        async with validate(review, None):
            status = await self._evaluate(context, review)
        metadata = {key: value for key, value in obj["metadata"].items() if key != "managedFields"}
        answered = {**obj, "metadata": metadata, "status": status}
        return answered


def review_storages(
    *, authorizer: Authorizer, index: RoleIndex, tokens: ServiceAccountTokens
) -> Mapping[str, ReviewStorage]:
    """Returns the storages of all reviews by plural name."""
    access = _AccessReviews(authorizer)
    storages = (
        ReviewStorage(SUBJECT_ACCESS_REVIEW, access.review_subject),
        ReviewStorage(LOCAL_SUBJECT_ACCESS_REVIEW, access.review_subject_in_namespace),
        ReviewStorage(SELF_SUBJECT_ACCESS_REVIEW, access.review_caller),
        ReviewStorage(SELF_SUBJECT_RULES_REVIEW, _RulesReview(index)),
        ReviewStorage(SELF_SUBJECT_REVIEW, _review_caller_identity),
        ReviewStorage(TOKEN_REVIEW, _TokenReview(tokens)),
    )
    return {storage.resource.plural: storage for storage in storages}


class _AccessReviews:
    def __init__(self, authorizer: Authorizer) -> None:
        self._authorizer = authorizer

    async def review_subject(self, context: RequestContext, review: Object) -> Object:
        spec = review["spec"]
        problems = _attribute_errors(spec)
        if not spec.get("user") and not spec.get("groups"):
            problems.append(errors.invalid("spec.user", "", "at least one of user or group must be specified"))
        if problems:
            raise errors.Invalid(SUBJECT_ACCESS_REVIEW.group_kind, "", problems)
        return await self._status(_subject(spec), spec)

    async def review_subject_in_namespace(self, context: RequestContext, review: Object) -> Object:
        namespace = review["metadata"].get("namespace", "")
        requested = (review["spec"].get("resourceAttributes") or {}).get("namespace", "")
        if requested != namespace:
            problem = errors.invalid("spec.resourceAttributes.namespace", requested, "must match metadata.namespace")
            raise errors.Invalid(LOCAL_SUBJECT_ACCESS_REVIEW.group_kind, "", [problem])
        return await self.review_subject(context, review)

    async def review_caller(self, context: RequestContext, review: Object) -> Object:
        problems = _attribute_errors(review["spec"])
        if problems:
            raise errors.Invalid(SELF_SUBJECT_ACCESS_REVIEW.group_kind, "", problems)
        return await self._status(context.user, review["spec"])

    async def _status(self, user: User, spec: Mapping[str, Any]) -> Object:
        decision = await self._authorizer.authorize(_attributes(user, spec))
        return _status_of(decision)


class _RulesReview:
    def __init__(self, index: RoleIndex) -> None:
        self._index = index

    async def __call__(self, context: RequestContext, review: Object) -> Object:
        namespace = review["spec"].get("namespace", "")
        if not namespace:
            raise errors.BadRequest("no namespace on request")
        rules = self._index.rules_for(context.user, namespace)
        return {
            "resourceRules": [to_policy_rule(rule) for rule in rules if rule.resources],
            "nonResourceRules": [to_policy_rule(rule) for rule in rules if rule.paths],
            "incomplete": False,
        }


class _TokenReview:
    def __init__(self, tokens: ServiceAccountTokens) -> None:
        self._tokens = tokens

    async def __call__(self, context: RequestContext, review: Object) -> Object:
        token, audiences = review["spec"].get("token", ""), review["spec"].get("audiences") or [AUDIENCE]
        if not token:
            raise errors.BadRequest("token is required for TokenReview in authentication")
        try:
            found = self._tokens.authenticate_token(token, audiences)
        except InvalidBearerToken as error:
            return {"user": {}, "error": str(error)}
        authenticated = replace(found.user, groups=(*found.user.groups, AUTHENTICATED))
        return {"authenticated": True, "user": _user_info(authenticated), "audiences": list(found.audiences)}


async def _review_caller_identity(context: RequestContext, review: Object) -> Object:
    return {"userInfo": _user_info(context.user)}


def _attribute_errors(spec: Mapping[str, Any]) -> list[FieldError]:
    resource, path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    if resource is not None and path is not None:
        why = "cannot be specified in combination with resourceAttributes"
        return [errors.invalid("spec.nonResourceAttributes", path, why)]
    if resource is None and path is None:
        why = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
        return [errors.invalid("spec.resourceAttributes", resource, why)]
    return []


def _attributes(user: User, spec: Mapping[str, Any]) -> AccessAttributes:
    attributes = spec.get("resourceAttributes")
    if attributes is None:
        path = spec.get("nonResourceAttributes") or {}
        return AccessAttributes(user=user, verb=path.get("verb", ""), path=path.get("path", ""))
    return AccessAttributes(
        user=user,
        verb=attributes.get("verb", ""),
        group=attributes.get("group", ""),
        version=attributes.get("version", ""),
        resource=attributes.get("resource", ""),
        subresource=attributes.get("subresource", ""),
        namespace=attributes.get("namespace", ""),
        name=attributes.get("name", ""),
    )


def _subject(spec: Mapping[str, Any]) -> User:
    extra = spec.get("extra") or {}
    return User(
        name=spec.get("user", ""),
        uid=spec.get("uid", ""),
        groups=tuple(spec.get("groups") or ()),
        extra={key: tuple(values) for key, values in extra.items()},
    )


def _status_of(decision: Decision) -> Object:
    status: Object = {"allowed": decision.allowed}
    if decision.denied:
        status["denied"] = True
    if decision.reason:
        status["reason"] = decision.reason
    return status


def _user_info(user: User) -> Object:
    info: Object = {"username": user.name}
    if user.uid:
        info["uid"] = user.uid
    if user.groups:
        info["groups"] = list(user.groups)
    if user.extra:
        info["extra"] = {key: list(values) for key, values in user.extra.items()}
    return info
