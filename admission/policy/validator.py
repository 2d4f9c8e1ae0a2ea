"""One policy, one binding, one parameter object: what comes of it (WIRE-H13 to WIRE-H20, WIRE-H24, WIRE-H25)."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from cel_expr_python import cel

from admission.cel.environment import EvaluationError
from admission.cel.evaluation import OUT_OF_BUDGET, OutOfBudget, Run
from admission.policy.compiled_policy import Policy, Validation

_LONGEST_MESSAGE = 5 * 1024
_LONGEST_ANNOTATION = 10 * 1024


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
            conditions = Run(policy.environment.activation(_without_namespace(values), check), {}, clock=clock)
            if (failed := conditions.failed_conditions(policy.conditions)) is None:
                return Result()
            if failed:
                return _failed(policy, failed)
        run = Run(policy.environment.activation(values, check), policy.variables, clock=clock)
        denials = [
            denial
            for index, validation in enumerate(policy.validations)
            if (denial := _validate(run, validation, index, policy)) is not None
        ]
        annotations, errors = _audit(run, policy)
        return Result((*denials, *errors), annotations)
    except OutOfBudget:
        return _failed(policy, OUT_OF_BUDGET)


def _without_namespace(values: Mapping[str, Any]) -> Mapping[str, Any]:
    kept = {name: value for name, value in values.items() if not name.startswith("namespaceObject.")}
    return {**kept, "namespaceObject": None}


def _failed(policy: Policy, message: str) -> Result:
    return Result() if policy.ignores_errors else Result((Denial(message),))


def _validate(run: Run, validation: Validation, index: int, policy: Policy) -> Denial | None:
    try:
        holds = run.evaluate(validation.expression)
    except EvaluationError as error:
        return None if policy.ignores_errors else Denial(str(error), index=index)
    return None if holds is True else Denial(_message(run, validation), validation.reason, index)


def _message(run: Run, validation: Validation) -> str:
    """WIRE-H19."""
    composed = ""
    if validation.message_expression is not None:
        try:
            composed = str(run.evaluate(validation.message_expression)).strip()
        except EvaluationError:
            composed = ""
    if len(composed.encode()) > _LONGEST_MESSAGE or "\n" in composed:
        composed = ""
    return composed or validation.message or f"failed expression: {validation.expression.text.strip()}"


def _audit(run: Run, policy: Policy) -> tuple[tuple[tuple[str, str], ...], list[Denial]]:
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
