"""The validation of custom resources, as apiextensions-apiserver does it (pkg/registry/customresource). Pure."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from apiserver.meta import errors
from apiserver.meta.errors import NO_FIELD, FieldError
from apiserver.meta.resource import Object
from apiserver.schema.choices import has_many_checks
from apiserver.schema.embedded_resources import embedded_resource_errors
from apiserver.schema.list_types import list_type_errors
from apiserver.schema.rules import RuleCompiler, RuleValidator
from apiserver.schema.validation import SchemaValidator
from registry.embedded.custom.definition import CustomVersion, ScalePaths

_BLOCKING = frozenset(
    ("FieldValueNotSupported", "FieldValueRequired", "FieldValueTooLong", "FieldValueTooMany", "FieldValueTypeInvalid")
)
_NOT_CHECKED = (
    "some validation rules were not checked because the object was invalid; correct the existing errors to complete "
    "validation"
)
_MAX_REPLICAS = 2**31 - 1


class CustomValidation:
    """Validates the objects of one version. Everything is compiled when it is first needed, and once."""

    def __init__(self, version: CustomVersion, compiler: RuleCompiler) -> None:
        self._schema = version.schema
        self._status_schema = (version.schema.get("properties") or {}).get("status")
        self._scale = version.scale
        self._compiler = compiler
        self._validator = SchemaValidator(version.schema, matches=compiler.matches)
        status = self._status_schema
        self._status_validator = SchemaValidator(status, matches=compiler.matches) if status is not None else None
        self._rules: RuleValidator | None = None
        self._has_many_checks = False
        self._compiling = threading.Lock()

    @property
    def is_slow(self) -> bool:
        """True until the first validation, which takes long and may be that of several objects at once; afterwards if a
        rule has loops, which may take the second that the rules of one object have, or if a small object may need many
        checks."""
        return self._rules is None or self._rules.has_loops or self._has_many_checks

    def create_errors(self, obj: Object) -> list[FieldError]:
        problems = self._validator.errors(obj)
        problems += _scale_errors(self._scale, obj)
        problems += embedded_resource_errors(self._schema, obj)
        problems += list_type_errors(self._schema, obj, "")
        return [*problems, *self._rule_errors(obj, None, problems)]

    def update_errors(self, new: Object, old: Object) -> list[FieldError]:
        """Parts that were stored before and do not change are not errors."""
        problems = self._validator.update_errors(new, old)
        problems += _scale_errors(self._scale, new)
        problems += embedded_resource_errors(self._schema, new)
        if found := list_type_errors(self._schema, new, ""):
            problems += [] if list_type_errors(self._schema, old, "") else found
        return [*problems, *self._rule_errors(new, old, problems)]

    def status_errors(self, new: Object, old: Object) -> list[FieldError]:
        """The errors of an update of the status, whose paths start in the status."""
        problems: list[FieldError] = []
        if self._status_validator is not None and "status" in new:
            found = self._status_validator.update_errors(new["status"], old.get("status"))
            problems += [_below_status(each) for each in found]
        if self._scale is not None:
            problems += _scale_status_errors(self._scale, new)
        problems += embedded_resource_errors(self._schema, new)
        if found := list_type_errors(self._schema, new, ""):
            problems += [] if list_type_errors(self._schema, old, "") else found
        return [*problems, *self._rule_errors(new, old, problems)]

    def _rule_errors(self, new: Object, old: Object | None, problems: Sequence[FieldError]) -> list[FieldError]:
        rules = self._rules or self._compile()
        if rules.has_rules and any(each.reason in _BLOCKING for each in problems):
            return [errors.invalid(NO_FIELD, None, _NOT_CHECKED)]
        return rules.errors(new, old)

    def _compile(self) -> RuleValidator:
        with self._compiling:
            if self._rules is None:
                rules = RuleValidator(self._schema, self._compiler)
                rules.compile()
                # takes a third of a second with a large schema; the first validation runs in a thread
                self._has_many_checks = has_many_checks(self._schema)
                self._rules = rules
            return self._rules


def _below_status(error: FieldError) -> FieldError:
    return replace(error, field="status" if error.field in ("", NO_FIELD) else f"status.{error.field}")


def _scale_errors(scale: ScalePaths | None, obj: Object) -> list[FieldError]:
    if scale is None:
        return []
    return [*_replicas_errors(obj, scale.spec_replicas), *_scale_status_errors(scale, obj)]


def _scale_status_errors(scale: ScalePaths, obj: Object) -> list[FieldError]:
    problems = _replicas_errors(obj, scale.status_replicas)
    selector = value_at(obj, scale.label_selector) if scale.label_selector else None
    if selector is not None and not isinstance(selector, str):
        problems.append(
            errors.invalid(scale.label_selector, "", _accessor_error(scale.label_selector, selector, "string"))
        )
    return problems


def _replicas_errors(obj: Object, path: str) -> list[FieldError]:
    replicas = value_at(obj, path)
    if replicas is None:
        return []
    if not isinstance(replicas, int) or isinstance(replicas, bool):
        return [errors.invalid(path, 0, _accessor_error(path, replicas, "int64"))]
    if replicas < 0:
        return [errors.invalid(path, replicas, "should be a non-negative integer")]
    if replicas > _MAX_REPLICAS:
        return [errors.invalid(path, replicas, f"should be less than or equal to {_MAX_REPLICAS}")]
    return []


def _accessor_error(path: str, value: Any, expected: str) -> str:
    types = {str: "string", bool: "bool", int: "int64", float: "float64", list: "[]interface {}"}
    found = types.get(type(value), "map[string]interface {}")
    return f"{path} accessor error: {value} is of the type {found}, expected {expected}"


def value_at(obj: Object, path: str) -> Any:
    """The value at a dotted path with a leading dot, None if there is none."""
    value: Any = obj
    for name in path.removeprefix(".").split("."):
        value = value.get(name) if isinstance(value, dict) else None
    return value
