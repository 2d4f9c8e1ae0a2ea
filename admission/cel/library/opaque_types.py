"""Opaque CEL types, such as quantities and IP addresses, which Python functions cannot return to the library directly.

A value is a map with its type under the key `KIND`. Its fields are canonical, so that two maps are equal if and only if
the values in Kubernetes are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from cel_expr_python import cel

from admission.cel.library.python_function import for_library

KIND = "kubernetes.io/cel-type"
NO_OVERLOAD = "no such overload"

OpaqueValue = dict[str, Any]
Type: TypeAlias = cel.Type
STRINGS = Type.List(Type.STRING)


class FunctionError(Exception):
    """A function failed. The text is that of Kubernetes."""


def make(kind: str, **fields: Any) -> OpaqueValue:
    return {KIND: kind, **fields}


def kind_of(value: object) -> str:
    """The kind of an opaque value; empty for any other value."""
    kind = value.get(KIND) if isinstance(value, dict) else None
    return kind if isinstance(kind, str) else ""


def expect(value: object, kind: str) -> Mapping[str, Any]:
    """Returns `value` if it is an opaque value of this kind. Raises FunctionError."""
    if kind_of(value) != kind:
        raise FunctionError(NO_OVERLOAD)
    assert isinstance(value, dict)
    return value


def method(name: str, returns: Type, *parameters: Type, impl: Callable[..., Any]) -> cel.FunctionDecl:
    """Declares the method `value.name(…)` of an opaque value."""
    return function(name, overload(returns, Type.MAP, *parameters, impl=impl, member=True))


def function(name: str, *overloads: Callable[[str], cel.Overload]) -> cel.FunctionDecl:
    return cel.FunctionDecl(name, [make_overload(name) for make_overload in overloads])


def overload(
    returns: Type, *parameters: Type, impl: Callable[..., Any] | None, member: bool = False
) -> Callable[[str], cel.Overload]:
    """Without `impl`, the function is bound for each evaluation."""

    def named(name: str) -> cel.Overload:
        kinds = "_".join(parameter.name().lower() for parameter in parameters)
        identity = f"kubernetes_{name}_{'member_' if member else ''}{kinds}"
        called = impl if impl is None else for_library(impl, len(parameters))
        return cel.Overload(identity, returns, list(parameters), member, called)

    return named


def bound(name: str, *parameters: Type, returns: Type, impl: Callable[..., Any], member: bool = False) -> cel.Function:
    """A function that is bound for one evaluation."""
    return cel.Function(name, list(parameters), member, for_library(impl, len(parameters)), returns)


def by_kind(**impls: Callable[..., Any]) -> Callable[..., Any]:
    """Dispatches to one of several implementations by the kind of the first argument."""

    def call(value: object, *arguments: Any) -> Any:
        impl = impls.get(kind_of(value))
        if impl is None:
            raise FunctionError(NO_OVERLOAD)
        return impl(value, *arguments)

    return call


Functions = Sequence[cel.FunctionDecl]
