"""Evaluates expressions with long loops: each loop in pieces, and nothing after the budget is exhausted (loops.py)."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from cel_expr_python import cel

from admission.cel.budget import Budget
from admission.cel.environment import (
    Activation,
    CompileError,
    EvaluationError,
    IterationLimit,
    Program,
    UnsupportedValue,
    evaluate,
)
from admission.cel.library.lists import sort_by
from admission.cel.library.opaque_types import FunctionError
from admission.cel.library.pieces import bind
from admission.cel.loops import Loop, LoopResult, PieceText

# The library ends an evaluation after 9,999 iterations. A piece takes about a millisecond.
_TESTED_AT_ONCE = 512
# Building a list takes time quadratic in its length, and loops inside a piece count as well.
_BUILT_AT_ONCE = 64
_UNSUPPORTED = "values are not supported in long loops: unsigned integers, or maps of optionals"
_TOO_MANY = "a loop has too many iterations"


@dataclass(frozen=True, slots=True)
class _Piece:
    elements: list[Any] | dict[Any, Any]
    first: int
    outer: Sequence[Any]


class PieceEvaluator:
    """Evaluates programs with one activation, which must have been created with its `functions`. It implements
    LoopFunctions."""

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._running: list[_Piece] = []
        self._program: Program | None = None
        self._activation: Activation | None = None

    @property
    def functions(self) -> Sequence[cel.Function]:
        return bind(self)

    def evaluate(self, program: Program, activation: Activation) -> Any:
        """Raises EvaluationError, and CutOff even if the expression ignores the errors of its parts."""
        self._budget.check()
        self._program, self._activation = program, activation
        try:
            return self._evaluate(program, activation)
        finally:
            # the collector does not see the cycle, because the native activation has references to our functions
            self._program = self._activation = None

    def _evaluate(self, program: Program, activation: Activation) -> Any:
        main = program
        if program.shape.depth:
            if program.shape.unsupported:
                raise self._budget.end(_UNSUPPORTED)
            # errors quote the expression as it was written
            main = replace(self._compile(program.loops.text), expression=program.expression)
        try:
            value = evaluate(main, activation)
        except IterationLimit as error:
            raise self._budget.end(_TOO_MANY) from error
        except UnsupportedValue as error:
            raise self._budget.end(str(error)) from error
        except EvaluationError:
            self._budget.check()
            raise
        self._budget.check()
        return value

    def piece(self) -> list[Any] | dict[Any, Any]:
        return self._running[-1].elements

    def outer(self, index: int) -> Any:
        return self._running[-1].outer[index]

    def first(self) -> int:
        return self._running[-1].first

    def test(self, number: int, elements: Any, outer: list[Any]) -> bool:
        found, failed = 0, None
        loop = self._loop(number)
        for value in self._values(loop, _TESTED_AT_ONCE, elements, outer):
            if isinstance(value, FunctionError):
                if loop.result is LoopResult.ONE:
                    raise value
                failed = failed or value
            elif loop.result is LoopResult.ONE:
                found += value
            elif value is (loop.result is LoopResult.EXISTS):
                return value
        if failed is not None:
            raise failed
        return found == 1 if loop.result is LoopResult.ONE else loop.result is LoopResult.ALL

    def make_list(self, number: int, elements: Any, outer: list[Any]) -> list[Any]:
        loop = self._loop(number)
        made: list[Any] = []
        range_ = list(elements) if loop.result is LoopResult.SORTED else []
        for value in self._values(loop, _BUILT_AT_ONCE, elements, outer):
            if isinstance(value, FunctionError):
                raise value
            made.extend(value)
        return sort_by(range_, made) if loop.result is LoopResult.SORTED else made

    def _loop(self, number: int) -> Loop:
        assert self._program is not None
        return self._program.loops.loops[number]

    def _compile(self, text: str) -> Program:
        assert self._program is not None
        try:
            return self._program.piece(text)
        except CompileError as error:
            raise self._budget.end(f"its loops cannot be evaluated in pieces: {error}") from error

    def _values(self, loop: Loop, size: int, elements: Any, outer: list[Any]) -> Iterator[Any]:
        """The value of each piece, or its error."""
        is_map = isinstance(elements, dict) and loop.of_pairs
        text = loop.text.plain or loop.text
        size = _BUILT_AT_ONCE if loop.nested else size
        for piece in _pieces(elements, size, outer, pairs=is_map):
            value = self._try_piece(text, piece, is_map=is_map)
            if isinstance(value, IterationLimit):
                text = loop.text
                value = self._try_piece(text, piece, is_map=is_map)
            if isinstance(value, IterationLimit):
                raise self._budget.end(_TOO_MANY)
            yield value

    def _try_piece(self, text: PieceText, piece: _Piece, *, is_map: bool) -> Any:
        """The value of the piece, or the error to return for it. Raises CutOff."""
        assert self._activation is not None
        self._budget.check()
        program = self._compile(text.of_map if is_map else text.of_list)
        self._running.append(piece)
        try:
            return evaluate(program, self._activation)
        except IterationLimit as limit:
            return limit
        except EvaluationError as error:
            return FunctionError(error.status)
        finally:
            self._running.pop()


def _pieces(elements: Any, size: int, outer: Sequence[Any], *, pairs: bool) -> Iterator[_Piece]:
    if pairs:
        items = iter(elements.items())
        while some := dict(itertools.islice(items, size)):
            yield _Piece(some, 0, outer)
        return
    sequence = list(elements)
    for first in range(0, len(sequence), size):
        yield _Piece(sequence[first : first + size], first, outer)
