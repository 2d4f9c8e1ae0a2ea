"""Compiles the expressions of policies and webhooks, and evaluates them for a request with Kubernetes' messages."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from admission.cel.environment import Activation, CompileError, Environment, EvaluationError, Program, evaluate
from admission.cel.library.opaque_types import Type

# Kubernetes limits the cost of an evaluation, which the library cannot measure; this limits the thread's CPU time
# instead. A policy within Kubernetes' budget takes far less.
_SECONDS = 1.0
OUT_OF_BUDGET = "validation failed due to running out of cost budget, no further validation rules will be run"

Clock = Callable[[], float]


@dataclass(frozen=True, slots=True)
class Expression:
    """`program` is None if the text does not compile; `error` says why."""

    text: str
    program: Program | None
    error: str = ""


class OutOfBudget(Exception):
    """The expressions of one evaluator took too much CPU time in total."""


def compile_expression(environment: Environment, text: str, returns: Sequence[Type]) -> Expression:
    try:
        return Expression(text, environment.compile(text, returns))
    except CompileError as error:
        return Expression(text, None, str(error))


def values_read_by(expressions: Iterable[Expression]) -> frozenset[str]:
    """The values that any of the expressions reads."""
    return frozenset[str]().union(*(each.program.reads for each in expressions if each.program is not None))


def compile_problems(expressions: Iterable[Expression]) -> list[str]:
    """A message for each expression that does not compile."""
    return [f"expression '{each.text}': {each.error}" for each in expressions if each.error]


class ExpressionEvaluator:
    """Evaluates expressions for one request. `variables` are evaluated on first use and cached."""

    def __init__(
        self, activation: Activation, variables: Mapping[str, Expression], *, clock: Clock = time.thread_time
    ) -> None:
        self._variables = variables
        self._activation = activation
        self._clock = clock
        self._end = clock() + _SECONDS
        # checked first, because it is cheaper; a thread cannot use more CPU time than has elapsed
        self._earliest = time.perf_counter() + _SECONDS
        self._failed: dict[str, str] = {}
        self._prepared: set[str] = set()

    def evaluate(self, expression: Expression) -> Any:
        """Raises EvaluationError with Kubernetes' complete message, OutOfBudget."""
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
        Raises OutOfBudget."""
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
        assert expression.program is not None
        try:
            return evaluate(expression.program, self._activation)
        finally:
            if time.perf_counter() > self._earliest and self._clock() > self._end:
                raise OutOfBudget

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
