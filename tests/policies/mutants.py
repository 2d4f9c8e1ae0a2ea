"""Mutants of a policy: each lacks one of its clauses."""

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
    """Pairs of a description of the omitted clause and the policy without it."""
    spec = policy["spec"]
    for path in _parts(spec):
        yield f"without {_path_text(path)}", _without(policy, path)
    for path in _expressions(spec):
        text = str(_at(spec, path))
        for change, shorter in shortened(text):
            yield f"{_path_text(path)}: {change}", _with(policy, path, shorter)


def shortened(expression: str) -> Iterator[tuple[str, str]]:
    """Every expression that lacks one operand of && or ||, one element of a list, one `!`, one branch of a conditional
    or one lowerAscii() call."""
    masked = _QUOTED.sub(lambda found: "'" + "_" * (len(found[0]) - 2) + "'", expression)
    for start, end in _groups(masked):
        for operator in ("||", "&&"):
            yield from _operands(expression, masked, start, end, operator)
    for found in re.finditer(r"\[([^\[\]?]*,[^\[\]]*)\]", masked):
        yield from _without_one(expression, masked, found.start(1), found.end(1), ",")
    for found in re.finditer(r"!(?!=)|\.lowerAscii\(\)", masked):
        yield f"without {found[0]} at {found.start()}", expression[: found.start()] + expression[found.end() :]
    choice = re.fullmatch(r"(.*) \? (.*) : (.*)", masked)
    if choice is not None:
        for branch in (2, 3):
            yield f"branch {branch - 1} only", expression[choice.start(branch) : choice.end(branch)]


def _operands(expression: str, masked: str, start: int, end: int, operator: str) -> Iterator[tuple[str, str]]:
    """Omits operands of `operator`. Splits at `||` first, because `&&` binds more tightly."""
    for left, right in _split(masked, start, end, "||") if operator == "&&" else [(start, end)]:
        yield from _without_one(expression, masked, left, right, operator)


def _without_one(expression: str, masked: str, start: int, end: int, separator: str) -> Iterator[tuple[str, str]]:
    operands = _split(masked, start, end, separator)
    if len(operands) < 2:
        return
    for index, (left, right) in enumerate(operands):
        others = [expression[each[0] : each[1]] for position, each in enumerate(operands) if position != index]
        omitted = expression[left:right].strip()
        yield f"without {omitted}", expression[:start] + separator.join(others) + expression[end:]


def _groups(masked: str) -> Iterator[tuple[int, int]]:
    """The spans between brackets, split at commas, and the span of the whole expression."""
    opened = [0]
    for position, character in enumerate(masked):
        if character in _OPENING:
            opened.append(position + 1)
        elif character in _CLOSING:
            yield from _split(masked, opened.pop(), position, ",")
    yield opened.pop(), len(masked)


def _split(masked: str, start: int, end: int, separator: str) -> Sequence[tuple[int, int]]:
    """The spans between separators that are not inside nested brackets."""
    depth, since, parts = 0, start, []
    for position in range(start, end):
        depth += (masked[position] in _OPENING) - (masked[position] in _CLOSING)
        if depth == 0 and masked.startswith(separator, position):
            parts.append((since, position))
            since = position + len(separator)
    return [*parts, (since, end)]


def _parts(spec: Object) -> Iterator[Path]:
    """The paths of the parts that can be omitted: validations and their fields, match conditions, and each value in the
    match constraints."""
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


def _path_text(path: Path) -> str:
    return ".".join(str(step) for step in path)
