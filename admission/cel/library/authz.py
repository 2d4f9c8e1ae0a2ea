"""The variable `authorizer` and what can be asked of it. Only `check` leaves the expression."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from cel_expr_python import cel

from admission.cel.library.opaque_types import (
    NO_OVERLOAD,
    FunctionError,
    Functions,
    Standin,
    Type,
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

Ask = Callable[[AccessAttributes], Decision]
"""Answers at once or waits, in a thread of its own. Raises StatusError, TimeoutError if it cannot tell."""


def authorizer_variable(attributes: Attributes) -> Standin:
    """`authorizer`, with `authorizer.requestResource`, for the user of a request."""
    resource = attributes.resource
    own = _resource_check(_NOBODY_ELSE, resource.group, resource.plural)
    about = {"subresource": attributes.subresource, "namespace": attributes.namespace, "name": attributes.name}
    return make(_AUTHORIZER, account="", requestResource={**own, **about})


# the request's user; a service account is named instead
_NOBODY_ELSE = ""


def _resource_check(account: str, group: str, resource: str) -> Standin:
    fields = {"subresource": "", "namespace": "", "name": "", "fieldSelector": "", "labelSelector": ""}
    return make(_RESOURCE, account=account, group=group, resource=resource, **fields)


def check_function(user: User, ask: Ask) -> cel.Function:
    """`check`, for the requests of `user`: to be given to each evaluation."""

    def check(value: object, verb: str) -> Standin:
        try:
            decision = ask(_access(value, user, verb))
        except TimeoutError:
            return _decision(error="context deadline exceeded")
        except StatusError as error:
            return _decision(error=error.message)
        return _decision(allowed=decision.allowed, reason=decision.reason)

    return cel.Function("check", [Type.MAP, Type.STRING], True, check, Type.MAP)


def _decision(*, allowed: bool = False, reason: str = "", error: str = "") -> Standin:
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
        field_requirements=_requirements(parse_field_selector_of_any, found["fieldSelector"]),
        label_requirements=_requirements(lambda text: parse_label_selector(text).requirements, found["labelSelector"]),
    )


def parse_field_selector_of_any(text: str) -> Sequence[Requirement]:
    """A field selector on fields that are not known here."""
    names = [part.partition("=")[0].rstrip("!=") for part in text.split(",")]
    return parse_field_selector(text, names).requirements


def _requirements(parse: Callable[[str], Sequence[Requirement]], text: str) -> tuple[Requirement, ...]:
    """None, if the selector does not parse: what is asked then is more."""
    try:
        return tuple(parse(text)) if text else ()
    except BadRequest:
        return ()


def _user(found: Mapping[str, Any], user: User) -> User:
    account = found["account"]
    if account == _NOBODY_ELSE:
        return user
    namespace = account.split(":")[2]
    groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated")
    return User(name=account, groups=groups)


def _path(value: object, path: str) -> Standin:
    if not path.strip():
        raise FunctionError("path must not be empty")
    return make(_PATH, account=expect(value, _AUTHORIZER)["account"], path=path)


def _group(value: object, group: str) -> Standin:
    return make(_GROUP, account=expect(value, _AUTHORIZER)["account"], group=group)


def _service_account(value: object, namespace: str, name: str) -> Standin:
    expect(value, _AUTHORIZER)
    if dns1123_subdomain_errors(name):
        raise FunctionError("Invalid service account name")
    if dns1123_label_errors(namespace):
        raise FunctionError("Invalid service account namespace")
    return make(_AUTHORIZER, account=f"system:serviceaccount:{namespace}:{name}")


def _resource(value: object, resource: str) -> Standin:
    found = expect(value, _GROUP)
    if not resource.strip():
        raise FunctionError("resource must not be empty")
    return _resource_check(found["account"], found["group"], resource)


def _setter(name: str) -> cel.FunctionDecl:
    def impl(value: object, text: str) -> Standin:
        return {**expect(value, _RESOURCE), name: text}

    return method(name, Type.MAP, Type.STRING, impl=impl)


def _decided(value: object, name: str) -> Any:
    if kind_of(value) != _DECISION:
        raise FunctionError(NO_OVERLOAD)
    return expect(value, _DECISION)[name]


def functions() -> Functions:
    text, standin = Type.STRING, Type.MAP
    return (
        method("path", standin, text, impl=_path),
        method("group", standin, text, impl=_group),
        method("serviceAccount", standin, text, text, impl=_service_account),
        method("resource", standin, text, impl=_resource),
        *(_setter(name) for name in ("subresource", "namespace", "name", "fieldSelector", "labelSelector")),
        function("check", overload(standin, standin, text, impl=None, member=True)),
        method("allowed", Type.BOOL, impl=lambda value: _decided(value, "allowed")),
        method("reason", text, impl=lambda value: _decided(value, "reason")),
        method("errored", Type.BOOL, impl=lambda value: bool(_decided(value, "error"))),
        method("error", text, impl=lambda value: _decided(value, "error")),
    )
