"""Expressions of a policy or a webhook: compiled when it comes, evaluated for a request, in Kubernetes' words."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from admission.cel.environment import Activation, CompileError, Environment, EvaluationError, Program, evaluate
from admission.cel.library.opaque_types import Type

# Instead of Kubernetes' budget, which counts what every function costs, processor time of the thread: a request of a
# policy that stays within the one stays within the other by far.
_SECONDS = 1.0
OUT_OF_BUDGET = "validation failed due to running out of cost budget, no further validation rules will be run"

Clock = Callable[[], float]


@dataclass(frozen=True, slots=True)
class Expression:
    """`program` is None if the text does not compile, for the reason `error`."""

    text: str
    program: Program | None
    error: str = ""


class OutOfBudget(Exception):
    """All expressions of one run took too long together."""


def compiled(environment: Environment, text: str, returns: Sequence[Type]) -> Expression:
    try:
        return Expression(text, environment.compile(text, returns))
    except CompileError as error:
        return Expression(text, None, str(error))


def reads_of(expressions: Iterable[Expression]) -> frozenset[str]:
    """Which values they read."""
    return frozenset[str]().union(*(each.program.reads for each in expressions if each.program is not None))


def problems_of(expressions: Iterable[Expression]) -> list[str]:
    """Which of them do not compile, and why."""
    return [f"expression '{each.text}': {each.error}" for each in expressions if each.error]


class Run:
    """Evaluates expressions for one request; `variables` when they are needed, each once."""

    def __init__(
        self, activation: Activation, variables: Mapping[str, Expression], *, clock: Clock = time.thread_time
    ) -> None:
        self._variables = variables
        self._activation = activation
        self._clock = clock
        self._end = clock() + _SECONDS
        # looked at first, because it costs less; no thread has more processor time than has passed
        self._earliest = time.perf_counter() + _SECONDS
        self._failed: dict[str, str] = {}
        self._known: set[str] = set()

    def evaluate(self, expression: Expression) -> Any:
        """Raises EvaluationError with the whole text, OutOfBudget."""
        if expression.program is None:
            raise EvaluationError(f"compilation error: {expression.error}")
        for name in expression.program.variables:
            self._prepare(name)
        try:
            return self._evaluated(expression)
        except EvaluationError as error:
            raise EvaluationError(f"expression '{expression.text}' resulted in error: {self._cause(error)}") from error

    def failed_conditions(self, conditions: Sequence[Expression]) -> str | None:
        """None if one of them does not hold, whatever else there is; else the errors, '' if there are none (WIRE-H12).
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

    def _evaluated(self, expression: Expression) -> Any:
        assert expression.program is not None
        try:
            return evaluate(expression.program, self._activation)
        finally:
            if time.perf_counter() > self._earliest and self._clock() > self._end:
                raise OutOfBudget

    def _prepare(self, name: str) -> None:
        """A variable that fails stays unset: what never comes to read it does not fail."""
        if name in self._known:
            return
        self._known.add(name)
        variable = self._variables[name]
        if variable.program is None:
            self._failed[name] = f'composited variable "{name}" fails to compile: {variable.error}'
            return
        for each in variable.program.variables:
            self._prepare(each)
        try:
            self._activation.set_variable(name, self._evaluated(variable))
        except EvaluationError as error:
            self._failed[name] = f'composited variable "{name}" fails to evaluate: {self._cause(error)}'

    def _cause(self, error: EvaluationError) -> str:
        unset = error.unset_variable
        return self._failed.get(unset, str(error)) if unset else str(error)
