"""The expressions of a ValidatingAdmissionPolicy that a kube-apiserver would not store
(pkg/apis/admissionregistration/validation). Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from admission.cel.evaluation import Expression
from admission.policy.compiled_policy import compile_policy
from apiserver.meta import errors
from apiserver.meta.errors import FieldError
from apiserver.meta.resource import Object


def expression_errors(policy: Object) -> list[FieldError]:
    """One error for each expression that is missing or does not compile, in the order of Kubernetes."""
    spec: Mapping[str, Any] = policy.get("spec") or {}
    compiled = compile_policy(policy).expressions
    variables = [compiled.variables[each["name"]] for each in _entries(spec, "variables")]
    validations = _entries(spec, "validations")
    found = [
        *_problems("matchConditions", "expression", compiled.conditions, missing=""),
        *_problems("variables", "expression", variables),
    ]
    for index, (document, validation) in enumerate(zip(validations, compiled.validations, strict=True)):
        path = f"spec.validations[{index}]"
        found += _problem(f"{path}.expression", validation.expression)
        if validation.message_expression is not None:
            found += _problem(f"{path}.messageExpression", validation.message_expression)
        elif text := document.get("messageExpression"):
            found.append(errors.invalid(f"{path}.messageExpression", text, "must be non-empty if specified"))
    found += _problems("auditAnnotations", "valueExpression", [each for _, each in compiled.audits])
    return found


def _problems(
    of: str, field: str, expressions: Sequence[Expression], missing: str | None = None
) -> Iterator[FieldError]:
    for index, expression in enumerate(expressions):
        yield from _problem(f"spec.{of}[{index}].{field}", expression, missing)


def _problem(path: str, expression: Expression, missing: str | None = None) -> Iterator[FieldError]:
    """`missing` is the detail of the error for an expression that is missing, which usually names its field."""
    if not expression.text.strip():
        yield errors.required(path, f"{path.rpartition('.')[2]} is not specified" if missing is None else missing)
    elif expression.error:
        yield errors.invalid(path, expression.text, expression.error)


def _entries(spec: Mapping[str, Any], name: str) -> Sequence[Mapping[str, Any]]:
    return spec.get(name) or ()
