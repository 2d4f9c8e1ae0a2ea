"""Validation by OpenAPI schemas, with the errors of a CustomResourceDefinition (WIRE-D20): kube-openapi's
pkg/validation/validate, and the ratcheting of apiextensions-apiserver.

A validator is made once for each schema; those of its parts are made when a value first needs them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, Final

from apiserver.json.values import comparable, equal
from apiserver.meta import errors
from apiserver.meta.errors import FieldError
from apiserver.meta.resource import Schema
from apiserver.schema.findings import Findings, TooManyTrials, Trials
from apiserver.schema.formats import INTEGER_FORMATS, STRING_FORMATS, is_in_integer_format
from apiserver.schema.list_types import ItemsByKeys, list_type_errors
from apiserver.schema.patterns import go_pattern

UNRELATED: Final = object()
"""The old value of a part that has none that it could be compared with."""

Matches = Callable[[str, str], bool]
"""(pattern, text) -> whether the pattern is found in the text. Raises ValueError for an invalid pattern."""


def matches_go_pattern(pattern: str, text: str) -> bool:
    """Matches with Python's `re`, whose time some patterns make exponential."""
    return go_pattern(pattern).search(text) is not None


_VALIDATORS: dict[int, tuple[Schema, SchemaValidator]] = {}
_MOST_VALIDATORS = 4096


def schema_errors(schema: Schema, value: Any, path: str) -> list[FieldError]:
    """Validates `value`, whose path is `path`, without formats: those of built-in kinds have checks of their own. The
    validator is kept as long as the process lives, so this is for schemas that are constants."""
    known = _VALIDATORS.get(id(schema))
    if known is None or known[0] is not schema:
        if len(_VALIDATORS) >= _MOST_VALIDATORS:
            _VALIDATORS.clear()
        known = _VALIDATORS[id(schema)] = schema, SchemaValidator(schema, check_formats=False)
    return [*known[1].errors(value, path), *list_type_errors(schema, value, path)]


class SchemaValidator:
    """The validator of one schema: types, bounds, formats, patterns, enums, required fields, and compositions."""

    __slots__ = (
        "_additional",
        "_alternatives",
        "_check_formats",
        "_choices",
        "_enum",
        "_format",
        "_items",
        "_matches",
        "_max_trials",
        "_nullable",
        "_parts",
        "_properties",
        "_required",
        "_schema",
        "_shared",
        "_supported",
        "_type",
        "_types",
    )

    def __init__(
        self,
        schema: Schema,
        shared: dict[int, SchemaValidator] | None = None,
        *,
        check_formats: bool = True,
        matches: Matches = matches_go_pattern,
        max_trials: int | None = None,
    ) -> None:
        """`shared` are the validators of parts by the id of their schemas, which the root keeps alive. Without
        `max_trials`, a value may be judged by any number of alternatives, as in kube-apiserver."""
        self._matches = matches
        self._max_trials = max_trials
        self._schema = schema
        self._shared = {} if shared is None else shared
        self._check_formats = check_formats
        self._types = _types(schema)
        self._type = ",".join(self._types)
        self._format = _known_format(schema) if check_formats else ""
        self._nullable = bool(schema.get("nullable"))
        self._enum: Sequence[Any] = schema.get("enum") or ()
        self._choices: frozenset[Hashable] | None = None
        self._supported = ""
        self._properties: Mapping[str, Schema] = schema.get("properties") or {}
        # a name that is repeated would be looked up in each of many values
        self._required: Sequence[str] = tuple(dict.fromkeys(schema.get("required") or ()))
        self._parts: dict[str, SchemaValidator | None] = {}
        additional, items = schema.get("additionalProperties"), schema.get("items")
        self._additional = additional if isinstance(additional, Mapping) else None
        self._items = items if isinstance(items, Mapping) else None
        self._alternatives = any(name in schema for name in ("anyOf", "oneOf", "allOf", "not"))

    def errors(self, value: Any, path: str = "") -> list[FieldError]:
        """The first errors, at most MAX_ERRORS and a note that there may be more. Fields are in document order, and
        required fields that are missing come after them."""
        return self._judged(value, path, UNRELATED)

    def update_errors(self, value: Any, old: Any, path: str = "") -> list[FieldError]:
        """The errors of an update. Those of a part that equals its old value are left out: it was stored like that."""
        if equal(value, old):
            return []
        return self._judged(value, path, old) if self.errors(value, path) else []

    def _judged(self, value: Any, path: str, old: Any) -> list[FieldError]:
        trials = Trials(self._max_trials)
        found = Findings(trials)
        try:
            self.check(value, path, found, old)
        except TooManyTrials as error:
            return [errors.invalid(path or errors.NO_FIELD, errors.OMITTED, str(error))]
        return found.first_errors()

    def check(self, value: Any, path: str, found: Findings, old: Any = UNRELATED) -> int:
        """Adds the errors to `found`, and returns the number of checks that hold, by which kube-openapi selects the
        errors of alternatives. Raises TooManyTrials."""
        if found.is_trial:
            found.trials.spend()
        start = len(found)
        matches = self._check(value, path, found, old)
        if old is not UNRELATED and len(found) > start and equal(value, old):
            del found[start:]
        return matches

    def _check(self, value: Any, path: str, found: Findings, old: Any) -> int:
        if value is None:
            return self._check_null(path, found)
        matches = 3
        if self._types or self._format:
            matches += 1 + self._check_type(value, path, found)
        if self._alternatives:
            matches += self._check_alternatives(value, path, found)
        if isinstance(value, str):
            matches += 1
            self._check_string(value, path, found)
        elif isinstance(value, list):
            matches += 2 + self._check_list(value, path, found, old)
        elif not isinstance(value, (bool, dict)):
            matches += 2
            self._check_number(value, path, found)
        if self._enum:
            self._check_enum(value, path, found)
        if isinstance(value, dict):
            matches += 1 + self._check_object(value, path, found, old)
        return matches

    def _check_null(self, path: str, found: Findings) -> int:
        if self._types and not self._nullable:
            found.append(_wrong_type(path, self._type, "null"))
            return 0
        return 1

    def _check_type(self, value: Any, path: str, found: Findings) -> int:
        name = _json_type(value)
        if not self._types or name in self._types or (name == "integer" and "number" in self._types):
            return 1
        if not self._format or isinstance(value, (str, list)):
            found.append(_wrong_type(path, self._type, name))
        else:
            formats = {"integer": "int64", "number": "float64"}
            found.append(_wrong_type(path, str(self._schema["format"]), formats.get(name, "")))
        return 0

    def _check_string(self, value: str, path: str, found: Findings) -> None:
        """Reports the first bound that does not hold, and the format."""
        schema = self._schema
        longest, shortest, pattern = schema.get("maxLength"), schema.get("minLength"), schema.get("pattern")
        if longest is not None and len(value) > longest:
            found.append(errors.too_long(path, longest))
        elif shortest is not None and len(value) < shortest:
            found.append(errors.invalid(path, value, f"{path} in body should be at least {shortest} chars long"))
        elif pattern and (problem := self._pattern_problem(pattern, value)) is not None:
            found.append(errors.invalid(path, value, f"{path} in body should match '{problem}'"))
        if self._format in STRING_FORMATS and not STRING_FORMATS[self._format](value):
            found.append(_wrong_type(path, str(schema["format"]), value))

    def _pattern_problem(self, pattern: str, value: str) -> str | None:
        """Returns the pattern that `value` does not match, None if it matches."""
        try:
            return None if self._matches(pattern, value) else pattern
        except ValueError as error:
            return f"{pattern}, but pattern is invalid: {error}"

    def _check_number(self, value: float, path: str, found: Findings) -> None:
        schema = self._schema
        is_integer = self._check_formats and self._types == ("integer",)
        if is_integer and not is_in_integer_format(value, self._format or "int64"):
            which = f"with format {self._format}" if self._format else "(default format)"
            text = f"Checked value must be of type integer {which} in {path}"
            found.append(errors.invalid(errors.NO_FIELD, "", text))
        factor, most, least = schema.get("multipleOf"), schema.get("maximum"), schema.get("minimum")
        if factor is not None and factor <= 0:
            why = f"factor MultipleOf declared for {path} must be positive: {_go_number(factor)}"
            found.append(errors.invalid(path, factor, why))
        elif factor and not float(value / factor).is_integer():
            found.append(errors.invalid(path, value, f"{path} in body should be a multiple of {_go_number(factor)}"))
        if most is not None:
            exclusive = bool(schema.get("exclusiveMaximum"))
            if value > most or (exclusive and value == most):
                text = "less than" if exclusive else "less than or equal to"
                found.append(errors.invalid(path, value, f"{path} in body should be {text} {_go_number(most)}"))
        if least is not None:
            exclusive = bool(schema.get("exclusiveMinimum"))
            if value < least or (exclusive and value == least):
                text = "greater than" if exclusive else "greater than or equal to"
                found.append(errors.invalid(path, value, f"{path} in body should be {text} {_go_number(least)}"))

    def _check_enum(self, value: Any, path: str, found: Findings) -> None:
        if self._choices is None:
            self._choices = frozenset(comparable(each) for each in self._enum)
        if comparable(value) in self._choices:
            return
        if not self._supported:
            # all errors of this part share the text
            choices = (each if isinstance(each, str) else json.dumps(each) for each in self._enum)
            self._supported = errors.supported_values(choices)
        found.append(FieldError("FieldValueNotSupported", path, value, self._supported))

    def _check_list(self, value: Sequence[Any], path: str, found: Findings, old: Any) -> int:
        matches = 0
        if self._items is not None:
            items, olds = self._validator(self._items), ItemsByKeys(self._schema, old)
            for index, each in enumerate(value):
                if found.are_enough:
                    break
                start, where = len(found), f"{path}[{index}]"
                matches += items.check(each, where, found)
                if len(found) > start and (related := olds.like(each)) is not None:
                    del found[start:]
                    items.check(each, where, found, related)
        schema = self._schema
        fewest, most = schema.get("minItems"), schema.get("maxItems")
        if fewest is not None and len(value) < fewest:
            found.append(errors.invalid(path, len(value), f"{path} in body should have at least {fewest} items"))
        if most is not None and len(value) > most:
            found.append(FieldError("FieldValueTooMany", path, len(value), f"must have at most {most} items"))
        if schema.get("uniqueItems") and _has_duplicates(value):
            found.append(errors.invalid(path, "", f"{path} in body shouldn't contain duplicates"))
        return matches

    def _check_object(self, value: Mapping[str, Any], path: str, found: Findings, old: Any) -> int:
        matches = 0
        schema = self._schema
        fewest, most = schema.get("minProperties"), schema.get("maxProperties")
        if fewest is not None and len(value) < fewest:
            found.append(errors.invalid(path, len(value), f"{path} in body should have at least {fewest} properties"))
        if most is not None and len(value) > most:
            found.append(FieldError("FieldValueTooMany", path, len(value), f"must have at most {most} items"))
        prefix = f"{path}." if path else ""
        olds = old if isinstance(old, dict) else {}
        for name, each in value.items():
            if found.are_enough:
                break
            part = self._part(name)
            if part is not None:
                matches += part.check(each, prefix + name, found, olds.get(name, UNRELATED) if olds else UNRELATED)
        for name in self._required:
            if name not in value:
                if found.are_enough:
                    break
                if found.is_trial:
                    found.trials.spend()
                found.append(errors.required(prefix + name))
        return matches

    def _part(self, name: str) -> SchemaValidator | None:
        schema = self._properties.get(name)
        if schema is None:
            return None if self._additional is None else self._validator(self._additional)
        part = self._parts.get(name)
        if part is None:
            part = self._parts[name] = self._validator(schema)
        return part

    def _validator(self, schema: Schema) -> SchemaValidator:
        known = self._shared.get(id(schema))
        if known is None:
            known = self._shared[id(schema)] = SchemaValidator(
                schema, self._shared, check_formats=self._check_formats, matches=self._matches
            )
        return known

    def _check_alternatives(self, value: Any, path: str, found: Findings) -> int:
        schema = self._schema
        added = found.trial()
        matches = 0
        if any_of := schema.get("anyOf"):
            matches += self._check_any_of(any_of, value, path, added)
        if one_of := schema.get("oneOf"):
            matches += self._check_one_of(one_of, value, path, added)
        if all_of := schema.get("allOf"):
            matches += self._check_all_of(all_of, value, path, added)
        if (negated := schema.get("not")) and not self._outcome(negated, value, path, added)[1]:
            added.append(_composite(f'"{path}" must not validate the schema (not)'))
        found.add_new(added)
        return matches

    def _outcome(self, schema: Schema, value: Any, path: str, found: Findings) -> tuple[int, Findings]:
        outcome = found.trial()
        return self._validator(schema).check(value, path, outcome), outcome

    def _check_any_of(self, schemas: Sequence[Schema], value: Any, path: str, found: Findings) -> int:
        best: tuple[int, Findings] | None = None
        for schema in schemas:
            matches, problems = self._outcome(schema, value, path, found)
            if not problems:
                return matches
            if best is None or matches > best[0]:
                best = matches, problems
        found.append(_composite(f'"{path}" must validate at least one schema (anyOf)'))
        found.extend(best[1] if best else ())
        return best[0] if best else 0

    def _check_one_of(self, schemas: Sequence[Schema], value: Any, path: str, found: Findings) -> int:
        outcomes = [self._outcome(schema, value, path, found) for schema in schemas]
        valid = [matches for matches, problems in outcomes if not problems]
        if len(valid) == 1:
            return valid[0]
        what = f"Found {len(valid)} valid alternatives" if valid else "Found none valid"
        found.append(_composite(f'"{path}" must validate one and only one schema (oneOf). {what}'))
        if valid:
            return 0
        # the first of those with the most matches
        matches, problems = max(outcomes, key=lambda outcome: outcome[0])
        found.extend(problems)
        return matches

    def _check_all_of(self, schemas: Sequence[Schema], value: Any, path: str, found: Findings) -> int:
        outcomes = [self._outcome(schema, value, path, found) for schema in schemas]
        for _, problems in outcomes:
            if not found.are_enough:
                found.extend(problems)
        valid = sum(not problems for _, problems in outcomes)
        if valid < len(outcomes):
            what = "" if valid else ". None validated"
            found.append(_composite(f'"{path}" must validate all the schemas (allOf){what}'))
        return sum(matches for matches, _ in outcomes)


def _types(schema: Schema) -> tuple[str, ...]:
    if schema.get("x-kubernetes-int-or-string"):
        return ("integer", "string")
    return (schema["type"],) if schema.get("type") else ()


def _known_format(schema: Schema) -> str:
    """The format without dashes, empty if it is not checked for this type."""
    name = str(schema.get("format") or "")
    match schema.get("type", "string"):
        case "string":
            normalized = name.replace("-", "")
            return normalized if normalized in STRING_FORMATS else ""
        case "integer":
            return name if name in INTEGER_FORMATS else ""
        case "number":
            return name if name in ("float", "double") else ""
        case _:
            return ""


def _wrong_type(path: str, expected: str, found: str) -> FieldError:
    return errors.type_invalid(path, found, f"{path} in body must be of type {expected}: {errors.quoted(found)}")


def _composite(text: str) -> FieldError:
    return errors.invalid(errors.NO_FIELD, "", text)


def _go_number(number: float) -> str:
    return str(int(number)) if float(number).is_integer() and abs(number) < 1e21 else repr(number)


def _has_duplicates(value: Sequence[Any]) -> bool:
    """Without a comparison of each item with each, which takes minutes for as many as a client can send (ATTACK-13)."""
    return len({comparable(each) for each in value}) < len(value)


def _json_type(value: Any) -> str:
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int):
        return "integer"
    if isinstance(value, float):
        return "integer" if value.is_integer() else "number"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, list) else "object"
