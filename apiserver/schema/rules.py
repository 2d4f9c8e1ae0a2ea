"""Validation by the rules of schemas, x-kubernetes-validations (apiextensions-apiserver/pkg/apiserver/schema/cel).

The rules are written in CEL, which this package does not know: a RuleCompiler is passed in.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from apiserver.json.values import equal
from apiserver.meta import errors
from apiserver.meta.errors import FieldError
from apiserver.meta.resource import Schema
from apiserver.schema.list_types import ItemsByKeys

RULES = "x-kubernetes-validations"


@dataclass(frozen=True, slots=True)
class RuleFailure:
    """A rule that does not hold. `field` is the path below the value, such as '.name'. `is_transition` marks rules that
    compare with the old value; after a failure that `ends` the validation no other rule is evaluated."""

    reason: str
    value: Any
    detail: str
    field: str = ""
    is_transition: bool = False
    ends: bool = False


@dataclass(frozen=True, slots=True)
class RuleProblem:
    """The reason why a part of the rule at `index` is not accepted. `field` is rule or messageExpression."""

    index: int
    field: str
    text: str


class RuleBudget(Protocol):
    """Limits the time of the rules of one object."""

    def check(self) -> None: ...


class CompiledRules(Protocol):
    """The rules of one schema, without those of its parts, compiled on first use."""

    def compile(self) -> None:
        """Compiles them now."""
        ...

    @property
    def has_loops(self) -> bool:
        """True if the time that one of them takes may be longer than the time to read the value. Compiles them."""
        ...

    def failures(self, value: Any, old: Any, budget: RuleBudget) -> Sequence[RuleFailure]:
        """`value` is not None; `old` is None if there is no old value to compare with."""
        ...

    def problems(self) -> Iterable[RuleProblem]:
        """The rules that do not compile, or name fields that the schema does not have."""
        ...


class RuleCompiler(Protocol):
    """The part of a CEL library that schema validation uses: rules, and regular expressions."""

    def compile(self, schema: Schema, *, is_root: bool) -> CompiledRules:
        """`is_root` is True for the schema of a whole object, whose rules see its metadata."""
        ...

    def new_budget(self) -> RuleBudget: ...

    def matches(self, pattern: str, text: str) -> bool:
        """True if a pattern in Go's syntax matches somewhere in the text. Takes time linear in its length. Raises
        ValueError for an invalid pattern."""
        ...


@dataclass(frozen=True, slots=True)
class _Pair:
    """A part and its old value."""

    value: Any
    old: Any

    @property
    def unchanged(self) -> bool:
        return equal(self.value, self.old)


class RuleValidator:
    """The rules of a schema and of its parts, compiled by `compile`, or else when a value first needs them."""

    def __init__(self, schema: Schema, compiler: RuleCompiler) -> None:
        self._compiler = compiler
        self._root = _Node(schema, compiler, is_root=True, shared=_Shared({}, {}))
        self.has_loops = False
        """True if a rule may take longer than it takes to read the object. Known after `compile`."""

    @property
    def has_rules(self) -> bool:
        return self._root.has_rules

    def compile(self) -> None:
        """Compiles all rules. Takes a few milliseconds for each."""
        waiting, seen = [self._root], {id(self._root)}
        while waiting:
            node = waiting.pop()
            if node.rules is not None:
                node.rules.compile()
                self.has_loops = self.has_loops or node.rules.has_loops
            children = [each for each in node.children() if id(each) not in seen]
            seen.update(map(id, children))
            waiting += children

    def errors(self, obj: Any, old: Any = None) -> list[FieldError]:
        """All errors of an object. In an update, a part that equals its old value has errors only in rules that compare
        the two."""
        found: list[FieldError] = []
        if self._root.has_rules:
            walk = _Walk(self._compiler.new_budget(), found)
            walk.visit(self._root, obj, old, "", None)
        return found


@dataclass(frozen=True, slots=True)
class _Shared:
    """Caches findings about schemas by their ids, since the same schema may be part of several others."""

    has_rules: dict[int, bool]
    nodes: dict[int, _Node]


class _Node:
    """A schema with its rules, and those of its parts that have any."""

    def __init__(self, schema: Schema, compiler: RuleCompiler, *, is_root: bool, shared: _Shared) -> None:
        self.schema = schema
        self.has_rules = _has_rules(schema, shared.has_rules)
        self.rules = compiler.compile(schema, is_root=is_root) if schema.get(RULES) else None
        self._compiler = compiler
        self._shared = shared
        additional, items = schema.get("additionalProperties"), schema.get("items")
        self.properties = {name: each for name, each in (schema.get("properties") or {}).items() if self._matters(each)}
        self.additional = additional if isinstance(additional, Mapping) and self._matters(additional) else None
        self.items = items if isinstance(items, Mapping) and self._matters(items) else None
        self.all_of = [each for each in schema.get("allOf") or () if self._matters(each)]

    def child(self, schema: Schema) -> _Node:
        nodes = self._shared.nodes
        if id(schema) not in nodes:
            embedded = bool(schema.get("x-kubernetes-embedded-resource"))
            nodes[id(schema)] = _Node(schema, self._compiler, is_root=embedded, shared=self._shared)
        return nodes[id(schema)]

    def children(self) -> Iterator[_Node]:
        """Yields those that have rules, or parts that have."""
        one = (each for each in (self.additional, self.items) if each is not None)
        yield from (self.child(each) for each in (*self.properties.values(), *one, *self.all_of))

    def _matters(self, schema: Schema) -> bool:
        return _has_rules(schema, self._shared.has_rules)


def _has_rules(schema: Schema, known: dict[int, bool]) -> bool:
    """True if the schema or a part of it has rules."""
    found = known.get(id(schema))
    if found is None:
        parts = [*(schema.get("properties") or {}).values(), *(schema.get("allOf") or ())]
        parts += [part for name in ("items", "additionalProperties") if isinstance(part := schema.get(name), Mapping)]
        found = known[id(schema)] = bool(schema.get(RULES)) or any(_has_rules(part, known) for part in parts)
    return found


class _Walk:
    """The validation of one object."""

    def __init__(self, budget: RuleBudget, found: list[FieldError]) -> None:
        self._budget = budget
        self._found = found
        self._ended = False

    def visit(self, node: _Node, value: Any, old: Any, path: str, parent: _Pair | None) -> None:
        """`parent` is the nearest part around this one that has an old value."""
        if value is None or self._ended:
            return
        pair = parent if old is None else _Pair(value, old)
        if node.rules is not None:
            self._report(node.rules.failures(value, old, self._budget), path, pair)
        for schema in node.all_of:
            self.visit(node.child(schema), value, old, path, parent)
        if isinstance(value, dict):
            self._visit_object(node, value, old, path, pair)
        elif isinstance(value, list) and node.items is not None:
            items, olds = node.child(node.items), ItemsByKeys(node.schema, old)
            for index, each in enumerate(value):
                self.visit(items, each, olds.like(each), f"{path}[{index}]", pair)

    def _visit_object(self, node: _Node, value: Mapping[str, Any], old: Any, path: str, pair: _Pair | None) -> None:
        olds = old if isinstance(old, dict) else {}
        if node.additional is not None:
            additional = node.child(node.additional)
            for name, each in value.items():
                self.visit(additional, each, olds.get(name), f"{path}[{name}]", pair)
        for name, schema in node.properties.items():
            if name in value:
                inside = f"{path}.{name}" if path else name
                self.visit(node.child(schema), value[name], olds.get(name), inside, pair)

    def _report(self, failures: Sequence[RuleFailure], path: str, pair: _Pair | None) -> None:
        for failure in failures:
            if not failure.is_transition and pair is not None and pair.unchanged:
                continue
            field = f"{path}{failure.field}".removeprefix(".") or errors.NO_FIELD
            self._found.append(FieldError(failure.reason, field, failure.value, failure.detail))
            self._ended = self._ended or failure.ends
