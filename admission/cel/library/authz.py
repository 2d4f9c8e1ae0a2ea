"""The CEL variable `authorizer` and its methods (pkg/cel/library/authz.go). Only `check` calls the authorizer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from cel_expr_python import cel

from admission.cel.library.opaque_types import (
    NO_OVERLOAD,
    FunctionError,
    Functions,
    OpaqueValue,
    Type,
    bound,
    expect,
    function,
    kind_of,
    make,
    method,
    overload,
)
from apiserver.admission import Attributes
from apiserver.authorization.authorizer import AccessAttributes, Decision
from apiserver.meta.errors import BadRequest, StatusError
from apiserver.meta.name_validation import dns1123_label_errors, dns1123_subdomain_errors
from apiserver.meta.selectors import Requirement, parse_field_selector, parse_label_selector
from apiserver.request.context import User

_AUTHORIZER = "kubernetes.authorization.Authorizer"
_PATH = "kubernetes.authorization.PathCheck"
_GROUP = "kubernetes.authorization.GroupCheck"
_RESOURCE = "kubernetes.authorization.ResourceCheck"
_DECISION = "kubernetes.authorization.Decision"

AuthorizeFunction = Callable[[AccessAttributes], Decision]
"""Runs in a worker thread and may block. Raises StatusError or TimeoutError if there is no decision."""


def authorizer_variable(attributes: Attributes) -> OpaqueValue:
    """`authorizer`, with `authorizer.requestResource`, for the user of a request."""
    resource = attributes.resource
    own = _resource_check(_REQUEST_USER, resource.group, resource.plural)
    about = {"subresource": attributes.subresource, "namespace": attributes.namespace, "name": attributes.name}
    return make(_AUTHORIZER, account="", requestResource={**own, **about})


# the account of a check on behalf of the request's own user; other checks name a service account
_REQUEST_USER = ""


def _resource_check(account: str, group: str, resource: str) -> OpaqueValue:
    fields = {"subresource": "", "namespace": "", "name": "", "fieldSelector": "", "labelSelector": ""}
    return make(_RESOURCE, account=account, group=group, resource=resource, **fields)


def check_function(user: User, authorize: AuthorizeFunction) -> cel.Function:
    """The CEL function `check` for requests of `user`; it is bound anew for each evaluation."""

    def check(value: object, verb: str) -> OpaqueValue:
        try:
            decision = authorize(_access(value, user, verb))
        except TimeoutError:
            return _decision(error="context deadline exceeded")
        except StatusError as error:
            return _decision(error=error.message)
        return _decision(allowed=decision.allowed, reason=decision.reason)

    return bound("check", Type.MAP, Type.STRING, returns=Type.MAP, impl=check, member=True)


def _decision(*, allowed: bool = False, reason: str = "", error: str = "") -> OpaqueValue:
    return make(_DECISION, allowed=allowed, reason=reason, error=error)


def _access(value: object, user: User, verb: str) -> AccessAttributes:
    if kind_of(value) == _PATH:
        found = expect(value, _PATH)
        return AccessAttributes(user=_user(found, user), verb=verb, path=found["path"])
    found = expect(value, _RESOURCE)
    access = AccessAttributes(
        user=_user(found, user),
        verb=verb,
        group=found["group"],
        version="*",
        resource=found["resource"],
        subresource=found["subresource"],
        namespace=found["namespace"],
        name=found["name"],
    )
    return replace(
        access,
        field_requirements=_requirements(parse_field_selector_on_any_field, found["fieldSelector"]),
        label_requirements=_requirements(lambda text: parse_label_selector(text).requirements, found["labelSelector"]),
    )


def parse_field_selector_on_any_field(text: str) -> Sequence[Requirement]:
    """Parses a field selector that may name any field."""
    names = [part.partition("=")[0].rstrip("!=") for part in text.split(",")]
    return parse_field_selector(text, names).requirements


def _requirements(parse: Callable[[str], Sequence[Requirement]], text: str) -> tuple[Requirement, ...]:
    """Empty if the selector does not parse: the check is then for access without a selector, which is broader."""
    try:
        return tuple(parse(text)) if text else ()
    except BadRequest:
        return ()


def _user(found: Mapping[str, Any], user: User) -> User:
    account = found["account"]
    if account == _REQUEST_USER:
        return user
    namespace = account.split(":")[2]
    groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated")
    return User(name=account, groups=groups)


def _path(value: object, path: str) -> OpaqueValue:
    if not path.strip():
        raise FunctionError("path must not be empty")
    return make(_PATH, account=expect(value, _AUTHORIZER)["account"], path=path)


def _group(value: object, group: str) -> OpaqueValue:
    return make(_GROUP, account=expect(value, _AUTHORIZER)["account"], group=group)


def _service_account(value: object, namespace: str, name: str) -> OpaqueValue:
    expect(value, _AUTHORIZER)
    if dns1123_subdomain_errors(name):
        raise FunctionError("Invalid service account name")
    if dns1123_label_errors(namespace):
        raise FunctionError("Invalid service account namespace")
    return make(_AUTHORIZER, account=f"system:serviceaccount:{namespace}:{name}")


def _resource(value: object, resource: str) -> OpaqueValue:
    found = expect(value, _GROUP)
    if not resource.strip():
        raise FunctionError("resource must not be empty")
    return _resource_check(found["account"], found["group"], resource)


def _setter(name: str) -> cel.FunctionDecl:
    def impl(value: object, text: str) -> OpaqueValue:
        return {**expect(value, _RESOURCE), name: text}

    return method(name, Type.MAP, Type.STRING, impl=impl)


def _decision_field(value: object, name: str) -> Any:
    if kind_of(value) != _DECISION:
        raise FunctionError(NO_OVERLOAD)
    return expect(value, _DECISION)[name]


def functions() -> Functions:
    text, opaque = Type.STRING, Type.MAP
    return (
        method("path", opaque, text, impl=_path),
        method("group", opaque, text, impl=_group),
        method("serviceAccount", opaque, text, text, impl=_service_account),
        method("resource", opaque, text, impl=_resource),
        *(_setter(name) for name in ("subresource", "namespace", "name", "fieldSelector", "labelSelector")),
        function("check", overload(opaque, opaque, text, impl=None, member=True)),
        method("allowed", Type.BOOL, impl=lambda value: _decision_field(value, "allowed")),
        method("reason", text, impl=lambda value: _decision_field(value, "reason")),
        method("errored", Type.BOOL, impl=lambda value: bool(_decision_field(value, "error"))),
        method("error", text, impl=lambda value: _decision_field(value, "error")),
    )
