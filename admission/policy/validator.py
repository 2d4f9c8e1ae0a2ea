"""Evaluates one policy with one parameter object (WIRE-H13 to WIRE-H20, WIRE-H24, WIRE-H25)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from admission.cel.environment import EvaluationError
from admission.cel.evaluation import EvaluationOptions, ExpressionEvaluator
from admission.policy.compiled_policy import CompiledPolicy, Validation

_LONGEST_MESSAGE = 5 * 1024
_LONGEST_ANNOTATION = 10 * 1024
_DEFAULTS = EvaluationOptions()


@dataclass(frozen=True, slots=True)
class Denial:
    """`index` is that of the failed validation. `follows_actions` is False for an error that denies the request
    regardless of validationActions."""

    message: str
    reason: str = "Invalid"
    index: int = 0
    follows_actions: bool = True


@dataclass(frozen=True, slots=True)
class PolicyResult:
    denials: tuple[Denial, ...] = ()
    annotations: tuple[tuple[str, str], ...] = ()


def evaluate_policy(
    policy: CompiledPolicy, values: Mapping[str, Any], options: EvaluationOptions = _DEFAULTS
) -> PolicyResult:
    """`values` are object, oldObject, request, params, namespaceObject and authorizer, prepared by
    `flatten_typed_fields`. Blocks while the authorizer is called. Raises CutOff if a limit of ours ended the
    evaluation, and NeedsPieces unless loops are evaluated in pieces."""
    expressions = policy.expressions
    values = {name: values[name] for name in expressions.reads if name in values}
    if expressions.conditions:
        # conditions are evaluated before the namespace is read
        conditions = ExpressionEvaluator(expressions.environment, _without_namespace(values), options)
        if (failed := conditions.check_match_conditions(expressions.conditions)) is None:
            return PolicyResult()
        if failed:
            return PolicyResult() if policy.ignores_errors else PolicyResult((Denial(failed),))
    run = ExpressionEvaluator(expressions.environment, values, options, expressions.variables)
    denials = [
        denial
        for index, validation in enumerate(expressions.validations)
        if (denial := _validate(run, validation, index, policy)) is not None
    ]
    annotations, errors = _audit_annotations(run, policy)
    return PolicyResult((*denials, *errors), annotations)


def _without_namespace(values: Mapping[str, Any]) -> Mapping[str, Any]:
    others = {name: value for name, value in values.items() if not name.startswith("namespaceObject.")}
    return {**others, "namespaceObject": None}


def _validate(run: ExpressionEvaluator, validation: Validation, index: int, policy: CompiledPolicy) -> Denial | None:
    try:
        holds = run.evaluate(validation.expression)
    except EvaluationError as error:
        return None if policy.ignores_errors else Denial(str(error), index=index)
    return None if holds is True else Denial(_denial_message(run, validation), validation.reason, index)


def _denial_message(run: ExpressionEvaluator, validation: Validation) -> str:
    """The result of messageExpression if it is a non-blank line of at most 5 KiB, else `message`, else the expression
    (WIRE-H19)."""
    composed = ""
    if validation.message_expression is not None:
        try:
            composed = str(run.evaluate(validation.message_expression)).strip()
        except EvaluationError:
            composed = ""
    if len(composed.encode()) > _LONGEST_MESSAGE or "\n" in composed:
        composed = ""
    return composed or validation.message or f"failed expression: {validation.expression.text.strip()}"


def _audit_annotations(
    run: ExpressionEvaluator, policy: CompiledPolicy
) -> tuple[tuple[tuple[str, str], ...], list[Denial]]:
    annotations, errors = [], []
    for key, expression in policy.expressions.audits:
        try:
            value = run.evaluate(expression)
        except EvaluationError as error:
            if not policy.ignores_errors:
                errors.append(Denial(str(error), follows_actions=False))
            continue
        text = value.strip() if isinstance(value, str) else ""
        if text:
            annotations.append((key, text.encode()[:_LONGEST_ANNOTATION].decode("utf-8", "ignore")))
    return tuple(annotations), errors
