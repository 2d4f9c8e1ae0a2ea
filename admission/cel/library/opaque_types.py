"""Values of types that the CEL library cannot take from a Python function: quantities, addresses, URLs and the like.

Each is a map with its kind under one key. Two are equal where Kubernetes' values are: what they hold is canonical.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from cel_expr_python import cel

KIND = "kubernetes.io/cel-type"
NO_OVERLOAD = "no such overload"

Standin = dict[str, Any]
Type: TypeAlias = cel.Type
STRINGS = Type.List(Type.STRING)


class FunctionError(Exception):
    """An error of the expression, in Kubernetes' words."""


def make(kind: str, **fields: Any) -> Standin:
    return {KIND: kind, **fields}


def kind_of(value: object) -> str:
    """Empty for what is no stand-in."""
    kind = value.get(KIND) if isinstance(value, dict) else None
    return kind if isinstance(kind, str) else ""


def expect(value: object, kind: str) -> Mapping[str, Any]:
    """`value`, if it is a stand-in of this kind. Raises FunctionError."""
    if kind_of(value) != kind:
        raise FunctionError(NO_OVERLOAD)
    assert isinstance(value, dict)
    return value


def method(name: str, returns: Type, *parameters: Type, impl: Callable[..., Any]) -> cel.FunctionDecl:
    """`value.name(…)` of a stand-in."""
    return function(name, overload(returns, Type.MAP, *parameters, impl=impl, member=True))


def function(name: str, *overloads: Callable[[str], cel.Overload]) -> cel.FunctionDecl:
    return cel.FunctionDecl(name, [make_overload(name) for make_overload in overloads])


def overload(
    returns: Type, *parameters: Type, impl: Callable[..., Any] | None, member: bool = False
) -> Callable[[str], cel.Overload]:
    """Without `impl` the function is given with each evaluation."""

    def named(name: str) -> cel.Overload:
        kinds = "_".join(parameter.name().lower() for parameter in parameters)
        identity = f"kubernetes_{name}_{'member_' if member else ''}{kinds}"
        return cel.Overload(identity, returns, list(parameters), member, impl)

    return named


def by_kind(**impls: Callable[..., Any]) -> Callable[..., Any]:
    """One implementation out of several, by the kind of the first argument."""

    def call(value: object, *arguments: Any) -> Any:
        impl = impls.get(kind_of(value))
        if impl is None:
            raise FunctionError(NO_OVERLOAD)
        return impl(value, *arguments)

    return call


Functions = Sequence[cel.FunctionDecl]
