"""One policy, one binding, one parameter object: what comes of it (H13 to H20, H24, H25)."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cel_expr_python import cel

from admission.cel.environment import Activation, EvaluationError, evaluate
from admission.policy.facts import Expression, Policy, Validation

_LONGEST_MESSAGE = 5 * 1024
_LONGEST_ANNOTATION = 10 * 1024
# Instead of Kubernetes' budget, which counts what every function costs, processor time of the thread: a request of a
# policy that stays within the one stays within the other by far.
_SECONDS = 1.0
OUT_OF_BUDGET = "validation failed due to running out of cost budget, no further validation rules will be run"


@dataclass(frozen=True, slots=True)
class Denial:
    """`index` is the expression's; `binds` is False for what denies whatever the binding's actions are."""

    message: str
    reason: str = "Invalid"
    index: int = 0
    binds: bool = True


@dataclass(frozen=True, slots=True)
class Result:
    denials: tuple[Denial, ...] = ()
    annotations: tuple[tuple[str, str], ...] = ()


class _OutOfBudget(Exception):
    pass


class _Run:
    """Evaluates expressions of a policy; its variables when they are needed, each once."""

    def __init__(self, policy: Policy, activation: Activation, clock: Callable[[], float]) -> None:
        self._policy = policy
        self._activation = activation
        self._clock = clock
        self._end = clock() + _SECONDS
        # looked at first, because it costs less; no thread has more processor time than has passed
        self._earliest = time.perf_counter() + _SECONDS
        self._failed: dict[str, str] = {}
        self._known: set[str] = set()

    def evaluate(self, expression: Expression) -> Any:
        """Raises EvaluationError with the whole text, _OutOfBudget."""
        if expression.program is None:
            raise EvaluationError(f"compilation error: {expression.error}")
        for name in expression.program.variables:
            self._prepare(name)
        try:
            return self._evaluated(expression)
        except EvaluationError as error:
            raise EvaluationError(f"expression '{expression.text}' resulted in error: {self._cause(error)}") from error

    def _evaluated(self, expression: Expression) -> Any:
        assert expression.program is not None
        try:
            return evaluate(expression.program, self._activation)
        finally:
            if time.perf_counter() > self._earliest and self._clock() > self._end:
                raise _OutOfBudget

    def _prepare(self, name: str) -> None:
        """A variable that fails stays unset: what never comes to read it does not fail."""
        if name in self._known:
            return
        self._known.add(name)
        variable = self._policy.variables[name]
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


def evaluate_policy(
    policy: Policy,
    values: Mapping[str, Any],
    *,
    check: cel.Function | None = None,
    clock: Callable[[], float] = time.thread_time,
) -> Result:
    """`values` are those of object, oldObject, request, params, namespaceObject and authorizer, as `flattened` makes
    them. Blocks while `check` waits."""
    values = {name: values[name] for name in policy.reads if name in values}
    try:
        if policy.conditions:
            # they are judged before the namespace is looked at
            conditions = _Run(policy, policy.environment.activation(_without_namespace(values), check), clock)
            if (failed := _conditions(conditions, policy.conditions)) is None:
                return Result()
            if failed:
                return _failed(policy, failed)
        run = _Run(policy, policy.environment.activation(values, check), clock)
        denials = [
            denial
            for index, validation in enumerate(policy.validations)
            if (denial := _validate(run, validation, index, policy)) is not None
        ]
        annotations, errors = _audit(run, policy)
        return Result((*denials, *errors), annotations)
    except _OutOfBudget:
        return _failed(policy, OUT_OF_BUDGET)


def _without_namespace(values: Mapping[str, Any]) -> Mapping[str, Any]:
    kept = {name: value for name, value in values.items() if not name.startswith("namespaceObject.")}
    return {**kept, "namespaceObject": None}


def _failed(policy: Policy, message: str) -> Result:
    return Result() if policy.ignores_errors else Result((Denial(message),))


def _conditions(run: _Run, conditions: Sequence[Expression]) -> str | None:
    """None if one does not hold, whatever else there is; else the errors."""
    errors = []
    for condition in conditions:
        try:
            if run.evaluate(condition) is False:
                return None
        except EvaluationError as error:
            errors.append(str(error))
    distinct = list(dict.fromkeys(errors))
    return distinct[0] if len(distinct) == 1 else f"[{', '.join(distinct)}]" if distinct else ""


def _validate(run: _Run, validation: Validation, index: int, policy: Policy) -> Denial | None:
    try:
        holds = run.evaluate(validation.expression)
    except EvaluationError as error:
        return None if policy.ignores_errors else Denial(str(error), index=index)
    return None if holds is True else Denial(_message(run, validation), validation.reason, index)


def _message(run: _Run, validation: Validation) -> str:
    """H19."""
    composed = ""
    if validation.message_expression is not None:
        try:
            composed = str(run.evaluate(validation.message_expression)).strip()
        except EvaluationError:
            composed = ""
    if len(composed.encode()) > _LONGEST_MESSAGE or "\n" in composed:
        composed = ""
    return composed or validation.message or f"failed expression: {validation.expression.text.strip()}"


def _audit(run: _Run, policy: Policy) -> tuple[tuple[tuple[str, str], ...], list[Denial]]:
    annotations, errors = [], []
    for key, expression in policy.audits:
        try:
            value = run.evaluate(expression)
        except EvaluationError as error:
            if not policy.ignores_errors:
                errors.append(Denial(str(error), binds=False))
            continue
        text = value.strip() if isinstance(value, str) else ""
        if text:
            annotations.append((key, text.encode()[:_LONGEST_ANNOTATION].decode("utf-8", "ignore")))
    return tuple(annotations), errors
