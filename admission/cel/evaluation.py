"""Compiles the expressions of policies and webhooks, and evaluates them for a request with Kubernetes' messages."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cel_expr_python import cel

from admission.cel.budget import Budget, Clock, CutOff
from admission.cel.environment import (
    CompileError,
    Environment,
    EvaluationError,
    IterationLimit,
    Program,
    UnsupportedValue,
    evaluate,
)
from admission.cel.library.opaque_types import Type
from admission.cel.loops import LoopShape, union_of_shapes
from admission.cel.piecewise import PieceEvaluator


@dataclass(frozen=True, slots=True)
class Expression:
    """`program` is None if the text does not compile; `error` says why."""

    text: str
    program: Program | None
    error: str = ""


def compile_expression(environment: Environment, text: str, returns: Sequence[Type]) -> Expression:
    try:
        return Expression(text, environment.compile(text, returns))
    except CompileError as error:
        return Expression(text, None, str(error))


def values_read_by(expressions: Iterable[Expression]) -> frozenset[str]:
    """The values that any of the expressions reads."""
    return frozenset[str]().union(*(each.program.reads for each in expressions if each.program is not None))


def shape_of(expressions: Iterable[Expression]) -> LoopShape:
    """The shape of all expressions together."""
    return union_of_shapes(each.program.shape for each in expressions if each.program is not None)


def compile_problems(expressions: Iterable[Expression]) -> list[str]:
    """A message for each expression that does not compile."""
    return [f"expression '{each.text}': {each.error}" for each in expressions if each.error]


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationOptions:
    """`check` calls the authorizer. With `in_pieces`, loops may have any number of iterations; the caller sets
    `abandoned` if it does not wait for the result any more. `clock` measures the thread's CPU time."""

    check: cel.Function | None = None
    in_pieces: bool = False
    abandoned: threading.Event | None = None
    clock: Clock = time.thread_time


class NeedsPieces(Exception):
    """An expression has too many iterations to be evaluated at once."""


class ExpressionEvaluator:
    """Evaluates expressions for one request. `variables` are evaluated on first use and cached."""

    def __init__(
        self,
        environment: Environment,
        values: Mapping[str, Any],
        options: EvaluationOptions,
        variables: Mapping[str, Expression] | None = None,
    ) -> None:
        self._variables = variables or {}
        # what is evaluated at once is short (input_size.py)
        self._budget = Budget(clock=options.clock, abandoned=options.abandoned) if options.in_pieces else None
        self._pieces = PieceEvaluator(self._budget) if self._budget is not None else None
        check = [options.check] if options.check is not None else []
        functions = self._pieces.functions if self._pieces is not None else ()
        self._activation = environment.activation(values, *check, *functions)
        self._failed: dict[str, str] = {}
        self._prepared: set[str] = set()

    def evaluate(self, expression: Expression) -> Any:
        """Raises EvaluationError with Kubernetes' complete message, CutOff, and NeedsPieces unless loops are
        evaluated in pieces."""
        if expression.program is None:
            raise EvaluationError(f"compilation error: {expression.error}")
        for name in expression.program.variables:
            self._prepare(name)
        try:
            return self._evaluate_program(expression)
        except EvaluationError as error:
            raise EvaluationError(
                f"expression '{expression.text}' resulted in error: {self._error_text(error)}"
            ) from error

    def check_match_conditions(self, conditions: Sequence[Expression]) -> str | None:
        """Returns None if a condition is false, even if others fail; otherwise the errors, '' if all hold (WIRE-H12).
        Raises CutOff, NeedsPieces."""
        errors = []
        for condition in conditions:
            try:
                if self.evaluate(condition) is False:
                    return None
            except EvaluationError as error:
                errors.append(str(error))
        distinct = list(dict.fromkeys(errors))
        return distinct[0] if len(distinct) == 1 else f"[{', '.join(distinct)}]" if distinct else ""

    def _evaluate_program(self, expression: Expression) -> Any:
        program = expression.program
        assert program is not None
        if self._pieces is not None:
            return self._pieces.evaluate(program, self._activation)
        try:
            return evaluate(program, self._activation)
        except IterationLimit as limit:
            raise NeedsPieces from limit
        except UnsupportedValue as error:
            raise CutOff(str(error)) from error

    def _prepare(self, name: str) -> None:
        """Evaluates a variable. One that fails stays unset, so only an expression that actually reads it fails."""
        if name in self._prepared:
            return
        self._prepared.add(name)
        variable = self._variables[name]
        if variable.program is None:
            self._failed[name] = f'composited variable "{name}" fails to compile: {variable.error}'
            return
        for each in variable.program.variables:
            self._prepare(each)
        try:
            self._activation.set_variable(name, self._evaluate_program(variable))
        except EvaluationError as error:
            self._failed[name] = f'composited variable "{name}" fails to evaluate: {self._error_text(error)}'

    def _error_text(self, error: EvaluationError) -> str:
        unset = error.unset_variable
        return self._failed.get(unset, str(error)) if unset else str(error)
