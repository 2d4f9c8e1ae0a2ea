"""Validates the spec of an application by the schema of its kind, and warns of what clients should know. Pure."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from itertools import islice
from typing import Any

from apiserver.json.values import equal
from apiserver.meta import errors
from apiserver.meta.errors import FieldError
from apiserver.meta.resource import Object, Schema
from apiserver.schema.choices import has_many_checks
from apiserver.schema.rules import RULES, RuleCompiler, RuleValidator
from apiserver.schema.validation import Matches, SchemaValidator
from registry.application.defaulting import TooManyDefaults, with_defaults, with_defaults_if_few
from registry.application.schema import schema_parts, undocumented_paths

PRESET = "resourcesPreset"
LEGACY_PRESETS: Mapping[str, str] = {
    "nano": "t1.nano",
    "micro": "t1.micro",
    "small": "t1.small",
    "medium": "c1.small",
    "large": "c1.medium",
    "xlarge": "c1.large",
    "2xlarge": "c1.xlarge",
}
"""Earlier values of `resourcesPreset`, and the names that they have now."""
MAX_WARNINGS = 20
MAX_TRIALS = 20_000
"""Checks by the alternatives of the schema for one spec: about a second, if all of them are patterns."""
_MOST_COMPARED = 50_000
"""Pairs of characters of two names that are compared for one warning: a few milliseconds. Forty names of fifteen have
nine thousand."""


class ApplicationValidation:
    """The rules are compiled when they are first needed, and once."""

    def __init__(self, schema: Schema, *, compiler: RuleCompiler, matches: Matches) -> None:
        self._schema = schema
        self._validator = SchemaValidator(schema, matches=matches, max_trials=MAX_TRIALS)
        self._has_many_checks = has_many_checks(schema)
        self._rules = RuleValidator({"type": "object", "properties": {"spec": schema}}, compiler)
        self._compiled = not self._rules.has_rules
        self._compiling = threading.Lock()

    @property
    def is_slow(self) -> bool:
        """True until the first validation, which compiles the rules; then if a small spec may need many checks."""
        return not self._compiled or self._has_many_checks

    def create_errors(self, spec: Any) -> list[FieldError]:
        """The errors of a spec as a client sent it: it is judged with its defaults."""
        if not isinstance(spec, dict | None):
            return [_no_object(spec)]
        try:
            shown = with_defaults(self._schema, spec or {})
        except TooManyDefaults as error:
            return [errors.invalid("spec", errors.OMITTED, str(error))]
        return [*self._validator.errors(shown, "spec"), *self._rule_errors(shown, None)]

    def update_errors(self, spec: Any, old: Any) -> list[FieldError]:
        """`old` is the stored spec with its defaults, or without any if they are too many. A fault that was stored
        before and stays is no error."""
        if not isinstance(spec, dict | None):
            return [_no_object(spec)]
        try:
            shown = with_defaults(self._schema, spec or {})
        except TooManyDefaults as error:
            if not equal(spec or {}, old):
                return [errors.invalid("spec", errors.OMITTED, str(error))]
            shown = old
        return [*self._validator.update_errors(shown, old, "spec"), *self._rule_errors(shown, old)]

    def _rule_errors(self, spec: Object, old: Any) -> list[FieldError]:
        if not self._rules.has_rules:
            return []
        with self._compiling:
            if not self._compiled:
                self._rules.compile()
                self._compiled = True
        return self._rules.errors({"spec": spec}, {"spec": old} if isinstance(old, dict) else None)

    def shown(self, spec: Any) -> Any:
        """A spec that a client sends, as clients will see it; what is no object is returned as it is."""
        return with_defaults_if_few(self._schema, spec or {}) if isinstance(spec, dict | None) else spec

    def warnings(self, spec: Any) -> list[str]:
        """Undocumented keys, and earlier names of presets."""
        if not isinstance(spec, dict):
            return []
        texts = undocumented_warnings(self._schema, spec)
        texts += [
            f'{path}: "{value}" is an earlier name of "{LEGACY_PRESETS[value]}"'
            for path, value in _presets(spec, "spec")
        ]
        return texts[:MAX_WARNINGS]


def undocumented_warnings(schema: Schema, spec: Any) -> list[str]:
    """A warning about each of the first undocumented keys of a spec that a client sends."""
    paths = islice(undocumented_paths(schema, spec, "spec"), MAX_WARNINGS)
    return [f'unknown field "{path}": it is kept, and the chart decides{_suggestion(schema, path)}' for path in paths]


def _suggestion(schema: Schema, path: str) -> str:
    """The documented field whose name is most like that of an undocumented one at the top of the spec; empty if none
    is."""
    name = path.removeprefix("spec.")
    names = schema.get("properties") or ()
    if "." in name or "[" in name or len(name) * sum(map(len, names)) > _MOST_COMPARED:
        return ""
    known = {each.lower(): each for each in names}
    near = get_close_matches(name.lower(), known, n=1, cutoff=0.75)
    return f'; did you mean "spec.{known[near[0]]}"?' if near else ""


def rule_problem(schema: Schema, compiler: RuleCompiler) -> str:
    """The first rule of a schema that does not compile, with its reason; empty if all do. Takes a few milliseconds for
    each rule."""
    for path, part, _ in schema_parts(schema):
        if part.get(RULES):
            for problem in compiler.compile(part, is_root=False).problems():
                return f"{path or '.'}: {RULES}[{problem.index}].{problem.field}: {problem.text}"
    return ""


def _presets(value: Any, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, list):
        for index, each in enumerate(value):
            yield from _presets(each, f"{path}[{index}]")
    elif isinstance(value, dict):
        for name, each in value.items():
            if name == PRESET and isinstance(each, str) and each in LEGACY_PRESETS:
                yield f"{path}.{name}", each
            else:
                yield from _presets(each, f"{path}.{name}")


def _no_object(spec: object) -> FieldError:
    names = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array"}
    found = names.get(type(spec), "null")
    return errors.type_invalid("spec", found, f'spec in body must be of type object: "{found}"')
