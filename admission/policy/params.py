"""Finds the parameter objects of a policy binding (WIRE-H14)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from admission.matching.match_rules import label_selector_of, labels_of
from admission.policy.compiled_policy import ParamKind, ParamRef
from apiserver.meta.errors import StatusError
from apiserver.meta.resource import Object


class ConfigurationError(Exception):
    """The policy or the binding cannot be evaluated as configured."""


class UnknownParamKind(ConfigurationError):
    """The cluster does not serve the paramKind."""

    def __init__(self, kind: ParamKind) -> None:
        group, _, version = kind.api_version.rpartition("/")
        super().__init__(f"failed to find resource referenced by paramKind: '{group}/{version}, Kind={kind.kind}'")


class ParamObjects(Protocol):
    """The cached objects of one kind; `namespaced` is the scope of the kind."""

    namespaced: bool

    def items(self, namespace: str) -> Iterable[Object]: ...

    async def get(self, namespace: str, name: str) -> Object | None:
        """Reads from the cache, else from the cluster. Raises StatusError."""
        ...


class ParamSource(Protocol):
    async def objects(self, kind: ParamKind) -> ParamObjects:
        """Waits briefly for a kind whose informer has just started. Raises UnknownParamKind, and ConfigurationError if
        it is not synced in time."""
        ...


async def find_params(
    source: ParamSource, kind: ParamKind | None, ref: ParamRef | None, namespace: str
) -> Sequence[Object | None]:
    """Returns `[None]` for a policy or binding without params, and an empty list if the binding does not apply.
    `namespace` is the request's. Raises ConfigurationError."""
    if kind is None or ref is None:
        return [None]
    objects = await source.objects(kind)
    where = _params_namespace(objects, ref, namespace)
    found: Sequence[Object | None] = []
    if ref.name and ref.selector is not None:
        raise ConfigurationError("paramRef.name and paramRef.selector are mutually exclusive")
    if ref.name:
        try:
            one = await objects.get(where, ref.name)
        except StatusError as error:
            raise ConfigurationError(error.message) from error
        found = [one] if one is not None else []
    elif ref.selector is not None:
        found = _select_params(objects, ref, where)
    else:
        raise ConfigurationError("one of name or selector must be provided")
    if not found and ref.denies:
        raise ConfigurationError("no params found for policy binding with `Deny` parameterNotFoundAction")
    return [_with_type_meta(each, kind) for each in found if each is not None]


def _params_namespace(objects: ParamObjects, ref: ParamRef, namespace: str) -> str:
    if not objects.namespaced:
        if ref.namespace:
            raise ConfigurationError("paramRef.namespace must not be provided for a cluster-scoped `paramKind`")
        return ""
    if not ref.namespace and not namespace:
        raise ConfigurationError(
            "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources"
        )
    return ref.namespace or namespace


def _select_params(objects: ParamObjects, ref: ParamRef, namespace: str) -> list[Object]:
    try:
        selector = label_selector_of(ref.selector)
    except ValueError as error:
        raise ConfigurationError(str(error)) from error
    return [each for each in objects.items(namespace) if selector.matches(labels_of(each))]


def _with_type_meta(obj: Object, kind: ParamKind) -> Object:
    return {**obj, "apiVersion": kind.api_version, "kind": kind.kind}
