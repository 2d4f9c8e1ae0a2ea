"""A policy with one clause less: every way to leave one out."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator, Sequence
from typing import Any

from apiserver.meta.resource import Object

_QUOTED = re.compile(r"'[^']*'")
_OPENING, _CLOSING = "([{", ")]}"
Path = tuple[str | int, ...]


def mutants(policy: Object) -> Iterator[tuple[str, Object]]:
    """What was left out, and the policy without it."""
    spec = policy["spec"]
    for path in _parts(spec):
        yield f"without {_said(path)}", _without(policy, path)
    for path in _expressions(spec):
        text = str(_at(spec, path))
        for change, shorter in shortened(text):
            yield f"{_said(path)}: {change}", _with(policy, path, shorter)


def shortened(expression: str) -> Iterator[tuple[str, str]]:
    """An expression without one operand of && or ||, without one element of a list, without one `!`, with one
    branch of a choice only, and without a call that changes nothing but case."""
    blind = _QUOTED.sub(lambda found: "'" + "_" * (len(found[0]) - 2) + "'", expression)
    for start, end in _groups(blind):
        for operator in ("||", "&&"):
            yield from _operands(expression, blind, start, end, operator)
    for found in re.finditer(r"\[([^\[\]?]*,[^\[\]]*)\]", blind):
        yield from _without_one(expression, blind, found.start(1), found.end(1), ",")
    for found in re.finditer(r"!(?!=)|\.lowerAscii\(\)", blind):
        yield f"without {found[0]} at {found.start()}", expression[: found.start()] + expression[found.end() :]
    choice = re.fullmatch(r"(.*) \? (.*) : (.*)", blind)
    if choice is not None:
        for branch in (2, 3):
            yield f"branch {branch - 1} only", expression[choice.start(branch) : choice.end(branch)]


def _operands(expression: str, blind: str, start: int, end: int, operator: str) -> Iterator[tuple[str, str]]:
    """Those of `||` are split first, since `&&` binds them together."""
    for left, right in _split(blind, start, end, "||") if operator == "&&" else [(start, end)]:
        yield from _without_one(expression, blind, left, right, operator)


def _without_one(expression: str, blind: str, start: int, end: int, separator: str) -> Iterator[tuple[str, str]]:
    operands = _split(blind, start, end, separator)
    if len(operands) < 2:
        return
    for index, (left, right) in enumerate(operands):
        kept = [expression[each[0] : each[1]] for position, each in enumerate(operands) if position != index]
        gone = expression[left:right].strip()
        yield f"without {gone}", expression[:start] + separator.join(kept) + expression[end:]


def _groups(blind: str) -> Iterator[tuple[int, int]]:
    """Where the content of each pair of brackets is, in parts that commas and arguments' names divide."""
    opened = [0]
    for position, character in enumerate(blind):
        if character in _OPENING:
            opened.append(position + 1)
        elif character in _CLOSING:
            yield from _split(blind, opened.pop(), position, ",")
    yield opened.pop(), len(blind)


def _split(blind: str, start: int, end: int, separator: str) -> Sequence[tuple[int, int]]:
    """The parts between separators that are in no further brackets."""
    depth, since, parts = 0, start, []
    for position in range(start, end):
        depth += (blind[position] in _OPENING) - (blind[position] in _CLOSING)
        if depth == 0 and blind.startswith(separator, position):
            parts.append((since, position))
            since = position + len(separator)
    return [*parts, (since, end)]


def _parts(spec: Object) -> Iterator[Path]:
    """What can be left out whole: validations with their reasons, conditions, and every entry of the constraints."""
    for name in ("validations", "matchConditions"):
        for index, _ in enumerate(spec.get(name) or ()):
            yield name, index
    for index, _ in enumerate(spec["validations"]):
        yield "validations", index, "reason"
        yield "validations", index, "message"
        if "messageExpression" in spec["validations"][index]:
            yield "validations", index, "messageExpression"
    for index, rule in enumerate(spec["matchConstraints"]["resourceRules"]):
        for field, values in rule.items():
            for position, _ in enumerate(values):
                yield "matchConstraints", "resourceRules", index, field, position


def _expressions(spec: Object) -> Iterator[Path]:
    for name in ("matchConditions", "variables", "validations"):
        for index, each in enumerate(spec.get(name) or ()):
            yield name, index, "expression"
            if "messageExpression" in each:
                yield name, index, "messageExpression"


def _without(policy: Object, path: Path) -> Object:
    mutant = copy.deepcopy(policy)
    del _at(mutant["spec"], path[:-1])[path[-1]]
    return mutant


def _with(policy: Object, path: Path, text: str) -> Object:
    mutant = copy.deepcopy(policy)
    _at(mutant["spec"], path[:-1])[path[-1]] = text
    return mutant


def _at(document: Any, path: Path) -> Any:
    for step in path:
        document = document[step]
    return document


def _said(path: Path) -> str:
    return ".".join(str(step) for step in path)
