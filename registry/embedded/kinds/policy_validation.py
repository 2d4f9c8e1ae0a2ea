"""Validation of ValidatingAdmissionPolicies. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from apiserver.json.values import equal
from apiserver.meta import errors
from apiserver.meta.errors import FieldError
from apiserver.meta.resource import Object
from registry.embedded.kinds.kind import NoValidation

_IDENTIFIER = re.compile(r"[_a-zA-Z][_a-zA-Z0-9]*")
_RESERVED = frozenset(
    (
        *("true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if"),
        *("import", "let", "loop", "package", "namespace", "return", "var", "void", "while"),
    )
)


ExpressionErrors = Callable[[Object], list[FieldError]]
"""One error for each expression of a policy that does not compile."""


class PolicyValidation(NoValidation):
    """A stored policy may have expressions that do not compile: only a new one, and a change of the spec, is judged."""

    def __init__(self, expression_errors: ExpressionErrors) -> None:
        self._expression_errors = expression_errors

    def validate(self, obj: Object) -> list[FieldError]:
        variables = (obj.get("spec") or {}).get("variables") or []
        return [
            problem
            for index, variable in enumerate(variables)
            for problem in _variable_errors(variable, f"spec.variables[{index}]")
        ]

    def validate_create(self, obj: Object) -> list[FieldError]:
        return self._expression_errors(obj)

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        return [] if equal(new.get("spec"), old.get("spec")) else self._expression_errors(new)

    def is_slow(self) -> bool:
        # all expressions are compiled
        return True


def _variable_errors(variable: dict[str, Any], path: str) -> list[FieldError]:
    name, problems = variable.get("name") or "", []
    if not name.strip():
        problems.append(errors.required(f"{path}.name", "name is not specified"))
    elif not _IDENTIFIER.fullmatch(name) or name in _RESERVED:
        problems.append(errors.invalid(f"{path}.name", name, "must be a valid CEL identifier"))
    if not (variable.get("expression") or "").strip():
        problems.append(errors.required(f"{path}.expression", "expression is not specified"))
    return problems
