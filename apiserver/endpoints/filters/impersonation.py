"""Impersonation (WIRE-A31): rejected behind an aggregator, which has handled it already; otherwise authorized and
applied."""

from __future__ import annotations

import re
from collections.abc import Iterator

from aiohttp import web
from multidict import CIMultiDictProxy

from apiserver.authentication.authenticator import UNAUTHENTICATED, with_authenticated_group
from apiserver.authentication.request_header import decode_extra_key, is_valid_utf8
from apiserver.authorization.authorizer import AccessAttributes, Authorizer, authorize_attributes
from apiserver.meta.errors import BadRequest, StatusError
from apiserver.request.context import ANONYMOUS, Handler, RequestContext, User

_PREFIX = "impersonate-"
_EXTRA_PREFIX = "impersonate-extra-"
_SERVICE_ACCOUNT = re.compile("system:serviceaccount:(?P<namespace>[^:]+):(?P<name>[^:]+)")
_IDENTITY_GROUP = "authentication.k8s.io"


class RejectImpersonation:
    """For a server behind an aggregator, which consumes these headers: a request that still has them tries to bypass
    it."""

    async def __call__(self, context: RequestContext, next: Handler) -> web.StreamResponse:
        if any(name.lower().startswith(_PREFIX) for name in context.http.headers):
            raise StatusError(403, "Forbidden", "forbidden: impersonation is not possible here", details={})
        return await next(context)


class Impersonation:
    """For a server that clients reach directly. `authorizer` decides about the verb `impersonate`."""

    def __init__(self, authorizer: Authorizer) -> None:
        self._authorizer = authorizer

    async def __call__(self, context: RequestContext, next: Handler) -> web.StreamResponse:
        headers = context.http.headers
        if any(name.lower().startswith(_PREFIX) for name in headers):
            requested = requested_user(headers)
            for attributes in required_permissions(context.user, requested):
                await authorize_attributes(context, self._authorizer, attributes)
            context.impersonator, context.user = context.user, effective_user(requested)
        return await next(context)


def requested_user(headers: CIMultiDictProxy[str]) -> User:
    """The user that the headers name. Raises BadRequest if they name none, or more than one."""
    names = [name for name in headers.getall("Impersonate-User", []) if name]
    extra: dict[str, list[str]] = {}
    for header, value in headers.items():
        if header.lower().startswith(_EXTRA_PREFIX):
            extra.setdefault(decode_extra_key(header.lower().removeprefix(_EXTRA_PREFIX)), []).append(value)
    groups = tuple(headers.getall("Impersonate-Group", []))
    uid = headers.get("Impersonate-Uid", "")
    if not names:
        kinds = [kind for kind, value in (("groups", groups), ("uid", uid), ("userextras", extra)) if value]
        raise BadRequest(f"requested {kinds or ['users']} without impersonating a user name")
    if len(names) > 1:
        raise BadRequest("the header Impersonate-User is given more than once")
    user = User(name=names[0], uid=uid, groups=groups, extra={key: tuple(values) for key, values in extra.items()})
    if not is_valid_utf8(user):
        raise BadRequest("the impersonation headers are not UTF-8")
    return user


def required_permissions(user: User, requested: User) -> Iterator[AccessAttributes]:
    """The permissions that `user` needs to impersonate `requested`."""
    account = _SERVICE_ACCOUNT.fullmatch(requested.name)
    if account:
        yield _impersonate_attributes(
            user, resource="serviceaccounts", namespace=account["namespace"], name=account["name"]
        )
    else:
        yield _impersonate_attributes(user, resource="users", name=requested.name)
    for group in requested.groups:
        yield _impersonate_attributes(user, resource="groups", name=group)
    if requested.uid:
        yield _impersonate_attributes(user, group=_IDENTITY_GROUP, resource="uids", name=requested.uid)
    for key, values in requested.extra.items():
        for value in values:
            yield _impersonate_attributes(
                user, group=_IDENTITY_GROUP, resource="userextras", subresource=key, name=value
            )


def effective_user(requested: User) -> User:
    """`requested` with the groups that Kubernetes adds for service accounts, anonymous and authenticated users."""
    groups = requested.groups
    account = _SERVICE_ACCOUNT.fullmatch(requested.name)
    if account and not groups:
        groups = ("system:serviceaccounts", f"system:serviceaccounts:{account['namespace']}")
    if requested.name == ANONYMOUS.name and UNAUTHENTICATED not in groups:
        groups = (*groups, UNAUTHENTICATED)
    return with_authenticated_group(User(name=requested.name, uid=requested.uid, groups=groups, extra=requested.extra))


def _impersonate_attributes(
    user: User, *, resource: str, name: str, group: str = "", subresource: str = "", namespace: str = ""
) -> AccessAttributes:
    return AccessAttributes(
        user=user,
        verb="impersonate",
        group=group,
        version="v1",
        resource=resource,
        subresource=subresource,
        namespace=namespace,
        name=name,
    )
