"""Declares the functions that loops.py puts into expressions. They are bound for each evaluation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from cel_expr_python import cel

from admission.cel.library.opaque_types import Functions, Type, bound, function, overload
from admission.cel.loops import FIRST, LIST, OUTER, PIECE, TEST


class LoopFunctions(Protocol):
    def test(self, number: int, elements: Any, outer: list[Any]) -> bool: ...

    def make_list(self, number: int, elements: Any, outer: list[Any]) -> list[Any]: ...

    def piece(self) -> Any: ...

    def outer(self, index: int) -> Any: ...

    def first(self) -> int: ...


def bind(functions: LoopFunctions) -> Sequence[cel.Function]:
    def loop(name: str, impl: Callable[..., Any], returns: Type) -> list[cel.Function]:
        return [bound(name, Type.INT, kind, Type.LIST, returns=returns, impl=impl) for kind in (Type.LIST, Type.MAP)]

    return [
        *loop(TEST, functions.test, Type.BOOL),
        *loop(LIST, functions.make_list, Type.List(Type.DYN)),
        bound(PIECE, returns=Type.DYN, impl=functions.piece),
        bound(OUTER, Type.INT, returns=Type.DYN, impl=functions.outer),
        bound(FIRST, returns=Type.INT, impl=functions.first),
    ]


def functions() -> Functions:
    elements, mapping = Type.List(Type.DYN), Type.MAP

    def loop(name: str, returns: Type) -> Any:
        kinds = (elements, mapping)
        return function(name, *(overload(returns, Type.INT, kind, elements, impl=None) for kind in kinds))

    return (
        loop(TEST, Type.BOOL),
        loop(LIST, elements),
        function(PIECE, overload(Type.DYN, impl=None)),
        function(OUTER, overload(Type.DYN, Type.INT, impl=None)),
        function(FIRST, overload(Type.INT, impl=None)),
    )
