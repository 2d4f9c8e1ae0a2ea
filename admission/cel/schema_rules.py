"""Compiles and evaluates the rules of schemas, x-kubernetes-validations, with Kubernetes' messages
(apiextensions-apiserver/pkg/apiserver/schema/cel). Implements the protocols of apiserver/schema/rules.py."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from admission.cel.budget import Budget, CutOff
from admission.cel.environment import (
    BOOL,
    STRING,
    Activation,
    CompileError,
    Environment,
    EvaluationError,
    IterationLimit,
    Program,
    evaluate,
)
from admission.cel.input_size import EvaluationInput
from admission.cel.library import regex
from admission.cel.library.opaque_types import Type
from admission.cel.piecewise import PieceEvaluator
from admission.cel.schema_values import Converters, escape, visible_properties
from admission.cel.tokenizer import mentions, select_chains, tokens
from apiserver.meta.errors import OMITTED
from apiserver.meta.resource import Schema
from apiserver.schema.rules import RULES, RuleBudget, RuleFailure, RuleProblem

_REASONS = ("FieldValueForbidden", "FieldValueRequired", "FieldValueDuplicate")
_SHORT_TEXT = 256
_LONGEST_MESSAGE = 5 * 1024
_NO_FURTHER = "no further validation rules will be run"
_QUOTED_STEP = re.compile(r"\['((?:[^'\\]|\\.)*)'\]|\.([^.\[]+)")


class SchemaRuleCompiler:
    """The RuleCompiler of this process."""

    def __init__(self) -> None:
        self._converters = Converters()

    def compile(self, schema: Schema, *, is_root: bool) -> SchemaRules:
        return SchemaRules(schema, self._converters, is_root=is_root)

    def new_budget(self) -> Budget:
        return Budget()

    def matches(self, pattern: str, text: str) -> bool:
        """The answers about short texts are cached: most objects have the same few intervals, names and hostnames."""
        return _short_matches(pattern, text) if len(text) <= _SHORT_TEXT else regex.matches(pattern, text)


@functools.lru_cache(maxsize=8192)
def _short_matches(pattern: str, text: str) -> bool:
    return regex.matches(pattern, text)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rule:
    """`without_old` is the program for an absent old value, if the rule may read one that is absent; `error` says why
    the rule does not compile."""

    text: str
    message: str
    reason: str
    field: str
    program: Program | None
    without_old: Program | None = None
    message_program: Program | None = None
    is_transition: bool = False
    error: str = ""

    @property
    def detail(self) -> str:
        return self.message or f"failed rule: {self.text}"

    @property
    def label(self) -> str:
        """Names the rule in the messages of errors."""
        return self.message or self.text


class SchemaRules:
    """The rules of one schema, compiled on first use."""

    def __init__(self, schema: Schema, converters: Converters, *, is_root: bool) -> None:
        self._schema = schema
        self._is_root = is_root
        self._converters = converters
        self._environment = Environment.of_schema_rules()
        self._type = "object" if is_root else str(schema.get("type") or "")

    def compile(self) -> None:
        _ = self._rules

    @property
    def has_loops(self) -> bool:
        programs = (
            program for rule in self._rules for program in (rule.program, rule.without_old, rule.message_program)
        )
        return any(program.shape.depth > 0 for program in programs if program is not None)

    def problems(self) -> Iterator[RuleProblem]:
        for index, (document, rule) in enumerate(zip(self._schema[RULES], self._rules, strict=True)):
            if rule.error:
                yield RuleProblem(index, "rule", rule.error)
            elif unknown := self._undefined_field(rule.text):
                yield RuleProblem(index, "rule", f"compilation failed: ERROR: <input>: undefined field '{unknown}'")
            if document.get("messageExpression") and rule.message_program is None:
                yield RuleProblem(index, "messageExpression", "messageExpression compilation failed")

    def failures(self, value: Any, old: Any, budget: RuleBudget) -> Sequence[RuleFailure]:
        assert isinstance(budget, Budget)
        found: list[RuleFailure] = []
        shown = OMITTED if self._type in ("object", "array") else value
        try:
            evaluation = _Evaluation(self._environment, self._read_values(value, old), budget)
            for rule in self._rules:
                if (failure := self._failure(rule, evaluation, old, shown)) is not None:
                    found.append(failure)
        except CutOff as cut_off:
            text = f"validation failed due to running out of cost budget ({cut_off}), {_NO_FURTHER}"
            found.append(RuleFailure("FieldValueInvalid", self._type, text, ends=True))
        return found

    def _failure(self, rule: _Rule, evaluation: _Evaluation, old: Any, shown: Any) -> RuleFailure | None:
        if rule.error:
            return RuleFailure("FieldValueInvalid", self._type, f"rule compile error: {rule.error}")
        program = rule.program
        if rule.is_transition and old is None:
            program = rule.without_old
        if program is None:
            return None
        try:
            if evaluation.run(program) is True:
                return None
        except EvaluationError as error:
            return RuleFailure("FieldValueInvalid", self._type, _error_text(error, rule), is_transition=True)
        detail = rule.detail
        if rule.message_program is not None:
            detail = _composed_message(evaluation, rule.message_program) or detail
        return RuleFailure(rule.reason, shown, detail, rule.field, is_transition=rule.is_transition)

    @cached_property
    def _rules(self) -> Sequence[_Rule]:
        return [self._compile(document) for document in self._schema[RULES]]

    @cached_property
    def _fields(self) -> frozenset[str] | None:
        """The properties that the rules read, None if they read the value as a whole."""
        found: set[str] = set()
        for document in self._schema[RULES]:
            for text in (document.get("rule") or "", document.get("messageExpression") or ""):
                names = _properties_read(text)
                if names is None:
                    return None
                found |= names
        properties = visible_properties(self._schema, is_root=self._is_root)
        return frozenset(name for name in properties if escape(name) in found)

    def _read_values(self, value: Any, old: Any) -> Mapping[str, Any]:
        convert = self._converters.of(self._schema, is_root=self._is_root)
        fields = self._fields
        if (
            fields is not None
            and isinstance(value, dict)
            and not isinstance(self._schema.get("additionalProperties"), Mapping)
        ):
            value = {name: each for name, each in value.items() if name in fields}
            old = {name: each for name, each in old.items() if name in fields} if isinstance(old, dict) else old
        values = {"self": convert(value)}
        return values if old is None else {**values, "oldSelf": convert(old)}

    def _compile(self, document: Mapping[str, Any]) -> _Rule:
        text = (document.get("rule") or "").strip()
        is_transition = mentions("oldSelf", text)
        program = without_old = None
        error = ""
        try:
            if is_transition and document.get("optionalOldSelf"):
                program = self._program(_replace_old_self(text, "optional.of(oldSelf)"), BOOL)
                without_old = self._program(_replace_old_self(text, "optional.none()"), BOOL)
            elif text:
                program = self._program(text, BOOL)
        except CompileError as problem:
            error = str(problem)
        reason = document.get("reason")
        return _Rule(
            text=text,
            message=(document.get("message") or "").strip(),
            reason=reason if reason in _REASONS else "FieldValueInvalid",
            field=self._field_path(document.get("fieldPath") or ""),
            program=program,
            without_old=without_old,
            message_program=self._message_program(document.get("messageExpression")),
            is_transition=is_transition,
            error=error,
        )

    def _program(self, text: str, expected: Type) -> Program:
        program = self._environment.compile(text)
        if not (program.returns == expected or program.returns == Type.DYN):
            name = "bool" if expected == BOOL else "string"
            raise CompileError(f"cel expression must evaluate to a {name}")
        return program

    def _message_program(self, text: str | None) -> Program | None:
        try:
            return self._program(text.strip(), STRING) if text else None
        except CompileError:
            return None

    def _field_path(self, text: str) -> str:
        """The path of the error below the value: keys of maps are in brackets."""
        path, schema = "", self._schema
        for quoted, name in _QUOTED_STEP.findall(text):
            key = quoted or name
            properties = schema.get("properties") or {}
            path += f".{key}" if key in properties or not schema.get("additionalProperties") else f"[{key}]"
            schema = properties.get(key) or schema.get("additionalProperties") or {}
        return path

    def _undefined_field(self, text: str) -> str:
        for root, fields in select_chains(text):
            schema: Schema | None = self._schema if root in ("self", "oldSelf") else None
            is_root = self._is_root
            for name in fields:
                if schema is None or not (is_root or (schema.get("type") == "object" and schema.get("properties"))):
                    break
                parts = {escape(each): part for each, part in visible_properties(schema, is_root=is_root).items()}
                if name not in parts:
                    return name
                schema, is_root = parts[name], bool(parts[name].get("x-kubernetes-embedded-resource"))
        return ""


class _Evaluation:
    """Evaluates rules with one value."""

    def __init__(self, environment: Environment, values: Mapping[str, Any], budget: Budget) -> None:
        self._environment = environment
        self._values = values
        self._budget = budget
        self._input = EvaluationInput(*values.values())

    @cached_property
    def _activation(self) -> Activation:
        return self._environment.activation(self._values)

    def run(self, program: Program) -> Any:
        """Raises EvaluationError and CutOff."""
        self._budget.check()
        shape = program.shape
        if not shape.depth or self._input.is_short(shape):
            try:
                return evaluate(program, self._activation)
            except IterationLimit:
                # the lists that functions made are longer than the values that they read
                pass
        pieces = PieceEvaluator(self._budget)
        return pieces.evaluate(program, self._environment.activation(self._values, *pieces.functions))


def _composed_message(evaluation: _Evaluation, program: Program) -> str:
    """The result of a messageExpression, empty if it is unusable."""
    try:
        text = evaluation.run(program)
    except EvaluationError:
        return ""
    composed = text.strip() if isinstance(text, str) else ""
    return "" if "\n" in composed or len(composed.encode()) > _LONGEST_MESSAGE else composed


def _error_text(error: EvaluationError, rule: _Rule) -> str:
    text = str(error)
    if text.startswith("no such overload"):
        why = "call arguments did not match a supported operator, function or macro signature for rule"
        return f"'{text}': {why}: {rule.label}"
    return f"{text} evaluating rule: {rule.label}"


def _properties_read(text: str) -> set[str] | None:
    """The names in `self.name` and `oldSelf.name`, None if a whole value is read."""
    code = [token for token in tokens(text) if token.kind != "space"]
    found: set[str] = set()
    for index, token in enumerate(code):
        if token.kind != "word" or token.text not in ("self", "oldSelf") or (index and code[index - 1].kind == "dot"):
            continue
        following = code[index + 1 : index + 4]
        if len(following) < 2 or following[0].kind != "dot" or following[1].kind != "word":
            return None
        if len(following) == 3 and following[2].text == "(":
            return None
        found.add(following[1].text)
    return found


def _replace_old_self(text: str, replacement: str) -> str:
    code = tokens(text)
    return "".join(
        replacement
        if token.kind == "word" and token.text == "oldSelf" and (index == 0 or code[index - 1].kind != "dot")
        else token.text
        for index, token in enumerate(code)
    )
