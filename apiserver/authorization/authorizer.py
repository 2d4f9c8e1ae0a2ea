"""Authorization: access attributes, authorizers that decide on them, and the 403 of a denial (WIRE-B1 to WIRE-B6,
WIRE-B12 to WIRE-B15)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from apiserver.authentication.authenticator import UNAUTHENTICATED
from apiserver.meta.errors import BadRequest, StatusError
from apiserver.meta.resource import GroupResource
from apiserver.meta.selectors import FieldSelector, LabelSelector, Requirement
from apiserver.request.context import ANONYMOUS, RequestContext, User
from apiserver.request.options import field_selector, label_selector
from apiserver.request.request_info import Query, RequestInfo

MASTERS = "system:masters"
_SERVICE_ACCOUNT = "system:serviceaccount:"
HEALTH_PATHS = ("/healthz", "/livez", "/readyz")
STALE_WARNING = "the cluster cannot be reached: access is allowed because it was allowed when it was last checked"

VERBS_WITH_SELECTORS = ("list", "watch", "deletecollection")
_LONG_SELECTOR = 1024
_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessAttributes:
    """The action to authorize: `user` does `verb` on a resource, or on `path` for a non-resource request."""

    user: User
    verb: str
    group: str = ""
    version: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""
    field_requirements: tuple[Requirement, ...] = ()
    label_requirements: tuple[Requirement, ...] = ()

    @property
    def is_resource(self) -> bool:
        return bool(self.resource)


@dataclass(frozen=True, slots=True)
class Decision:
    """The authorizer has no opinion if neither `allowed` nor `denied` is set. `stale` marks a decision from the cache
    that could not be checked again because the cluster is unreachable."""

    allowed: bool = False
    denied: bool = False
    reason: str = ""
    stale: bool = False


NO_OPINION = Decision()


def is_component(user: User) -> bool:
    """True for a service account that is a member of system:masters: a part of the cluster itself. Tokens of service
    accounts never have that group."""
    return MASTERS in user.groups and user.name.startswith(_SERVICE_ACCOUNT)


class Authorizer(Protocol):
    async def authorize(self, attributes: AccessAttributes) -> Decision:
        """Raises StatusError if no decision is possible."""
        ...


class UnionAuthorizer:
    """The first authorizer with an opinion decides. If none has one, the decision has no opinion either."""

    def __init__(self, authorizers: Sequence[Authorizer]) -> None:
        self._authorizers = tuple(authorizers)

    async def authorize(self, attributes: AccessAttributes) -> Decision:
        reasons = []
        for authorizer in self._authorizers:
            decision = await authorizer.authorize(attributes)
            if decision.allowed or decision.denied:
                return decision
            if decision.reason:
                reasons.append(decision.reason)
        return Decision(reason="\n".join(reasons))


class PrivilegedGroups:
    """Allows everything to members of the groups, without a call to the cluster."""

    def __init__(self, groups: Collection[str] = (MASTERS,)) -> None:
        self._groups = frozenset(groups)

    async def authorize(self, attributes: AccessAttributes) -> Decision:
        return NO_OPINION if self._groups.isdisjoint(attributes.user.groups) else Decision(allowed=True)


class AlwaysAllowPaths:
    """Allows all users, even anonymous ones, to access a fixed set of non-resource paths, matched exactly (WIRE-B2)."""

    def __init__(self, paths: Collection[str] = HEALTH_PATHS) -> None:
        self._paths = frozenset(paths)

    async def authorize(self, attributes: AccessAttributes) -> Decision:
        open_to_all = not attributes.is_resource and attributes.path in self._paths
        return Decision(allowed=True) if open_to_all else NO_OPINION


class DenyAnonymous:
    """Denies everything to unauthenticated users, whatever the RBAC of the cluster grants them."""

    async def authorize(self, attributes: AccessAttributes) -> Decision:
        user = attributes.user
        anonymous = user.name == ANONYMOUS.name or UNAUTHENTICATED in user.groups
        return Decision(denied=True) if anonymous else NO_OPINION


def standard_authorizer(inner: Authorizer) -> UnionAuthorizer:
    """Returns the authorizers in the order of WIRE-B1, followed by `inner`."""
    return UnionAuthorizer((PrivilegedGroups(), AlwaysAllowPaths(), DenyAnonymous(), inner))


def request_attributes(user: User, info: RequestInfo, query: Query) -> AccessAttributes:
    """Returns the attributes of a request. An invalid selector is omitted: the handler rejects it (WIRE-B8). Selectors
    of anonymous users are not even parsed, since access without a selector is broader (ATTACK-19)."""
    if not info.is_resource:
        return AccessAttributes(user=user, verb=info.verb, path=info.path)
    fields: tuple[Requirement, ...] = ()
    labels: tuple[Requirement, ...] = ()
    if info.verb in VERBS_WITH_SELECTORS and user.name != ANONYMOUS.name:
        fields, labels = _requirements(field_selector, query), _requirements(label_selector, query)
    return AccessAttributes(
        user=user,
        verb=info.verb,
        group=info.group,
        version=info.version,
        resource=info.resource,
        subresource=info.subresource,
        namespace=info.namespace,
        name=info.name,
        field_requirements=fields,
        label_requirements=labels,
    )


async def authorize_request(
    context: RequestContext, authorizer: Authorizer, *, verb: str = "", name: str | None = None
) -> Decision:
    """Authorizes the request, optionally for another verb or name (WIRE-B15). Raises AccessDenied, and the errors of
    the authorizer."""
    query = context.query
    if query.size("labelSelector") + query.size("fieldSelector") > _LONG_SELECTOR:
        # parsing is then the most expensive part of the request; the outcome is kept
        await asyncio.to_thread(request_attributes, context.user, context.info, query)
    attributes = request_attributes(context.user, context.info, query)
    if verb:
        attributes = replace(attributes, verb=verb)
    if name is not None:
        attributes = replace(attributes, name=name)
    return await authorize_attributes(context, authorizer, attributes)


async def authorize_attributes(
    context: RequestContext, authorizer: Authorizer, attributes: AccessAttributes
) -> Decision:
    """Authorizes any attributes on behalf of a request. Raises AccessDenied, and the errors of the authorizer."""
    decision = await authorizer.authorize(attributes)
    if not decision.allowed:
        raise AccessDenied(attributes, decision.reason)
    if decision.stale:
        context.warn(STALE_WARNING)
    return decision


class AccessDenied(StatusError):
    """The 403 of authorization, with the texts of WIRE-B12 to WIRE-B14."""

    def __init__(self, attributes: AccessAttributes, reason: str = "") -> None:
        self.authorizer_reason = reason
        why = _denial_text(attributes) + (f": {reason}" if reason else "")
        if not attributes.is_resource:
            super().__init__(403, "Forbidden", f"forbidden: {why}", details={})
            return
        resource = GroupResource(attributes.group, attributes.resource)
        name = f" {_quoted(attributes.name)}" if attributes.name else ""
        details = {"name": attributes.name, "group": attributes.group, "kind": attributes.resource}
        super().__init__(
            403,
            "Forbidden",
            f"{resource}{name} is forbidden: {why}",
            details={key: value for key, value in details.items() if value},
        )


def _denial_text(attributes: AccessAttributes) -> str:
    user = f"User {_quoted(attributes.user.name)} cannot {attributes.verb}"
    if not attributes.is_resource:
        return f"{user} path {_quoted(attributes.path)}".translate(_ESCAPES)
    resource = attributes.resource
    if attributes.subresource:
        resource = f"{resource}/{attributes.subresource}"
    namespace = attributes.namespace
    scope = f"in the namespace {_quoted(namespace)}" if namespace else "at the cluster scope"
    text = f"{user} resource {_quoted(resource)} in API group {_quoted(attributes.group)} {scope}"
    return text.translate(_ESCAPES)


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=not text.isprintable())


def _requirements(
    selector_of: Callable[[Query], LabelSelector | FieldSelector], query: Query
) -> tuple[Requirement, ...]:
    try:
        return selector_of(query).requirements
    except BadRequest:
        return ()
