"""The messages that code can tell with a reason, read from its literals: `…` stands for what is computed."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from itertools import product
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

ANY = "…"
_DEEPEST = 8
# the name of a reason or a condition, or its status
_WORD = re.compile("[A-Z][A-Za-z]+")


class Told(NamedTuple):
    reason: str
    message: str


class _Place(NamedTuple):
    """An expression is read in its module, within its function, whose parameters may be `given`."""

    module: ast.Module
    function: ast.FunctionDef | None
    given: Mapping[str, Set[str]] = MappingProxyType({})


class ToldMessages:
    """Those of all calls and tuples in a folder in which a message follows a reason; `named` are modules with constants
    of others."""

    def __init__(self, folder: Path, named: Iterable[Path]) -> None:
        self._modules = [ast.parse(path.read_text()) for path in sorted(folder.rglob("*.py"))]
        others = [ast.parse(path.read_text()) for path in named]
        self._constants = dict(constant for each in (*others, *self._modules) for constant in _constants(each))
        self._functions: dict[str, list[_Place]] = {}
        for module in self._modules:
            for node in ast.walk(module):
                if isinstance(node, ast.FunctionDef):
                    self._functions.setdefault(node.name, []).append(_Place(module, node))

    def of(self, reasons: frozenset[str]) -> Iterator[Told]:
        for place, node in self._nodes():
            for reason, message in self._pairs(node):
                for each in sorted(self._reasons(reason) & reasons):
                    told = (text for text in self._texts(message, place, 0) if text and not _WORD.fullmatch(text))
                    yield from (Told(each, text) for text in told)

    def _nodes(self) -> Iterator[tuple[_Place, ast.AST]]:
        for module in self._modules:
            functions = [each for each in ast.walk(module) if isinstance(each, ast.FunctionDef)]
            inside = {id(node): each for each in functions for node in ast.walk(each)}
            for node in ast.walk(module):
                yield _Place(module, inside.get(id(node))), node

    def _pairs(self, node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
        if isinstance(node, ast.Call):
            yield from zip(node.args, node.args[1:], strict=False)
            named = {each.arg: each.value for each in node.keywords if each.arg}
            if "reason" in named and "message" in named:
                yield named["reason"], named["message"]
            if "parent_message" in named:
                yield node.args[0], named["parent_message"]
        elif isinstance(node, ast.Tuple):
            yield from zip(node.elts, node.elts[1:], strict=False)

    def _reasons(self, node: ast.expr) -> set[str]:
        if isinstance(node, ast.IfExp):
            return self._reasons(node.body) | self._reasons(node.orelse)
        if isinstance(node, ast.Name):
            return {self._constants[node.id]} if node.id in self._constants else set()
        return {node.value} if isinstance(node, ast.Constant) and isinstance(node.value, str) else set()

    def _texts(self, node: ast.expr, place: _Place, depth: int) -> set[str]:
        if isinstance(node, ast.Constant):
            return {str(node.value)} if node.value is not None else set()
        if depth > _DEEPEST:
            return {ANY}
        if isinstance(node, ast.IfExp):
            return self._texts(node.body, place, depth + 1) | self._texts(node.orelse, place, depth + 1)
        if isinstance(node, ast.JoinedStr):
            parts = [self._texts(each, place, depth) for each in node.values]
            return {"".join(each) for each in product(*parts)}
        if isinstance(node, ast.FormattedValue):
            return self._texts(node.value, place, depth + 1)
        if isinstance(node, ast.Name):
            return self._of_name(node, place, depth + 1)
        if isinstance(node, ast.BinOp):
            pairs = product(self._texts(node.left, place, depth + 1), self._texts(node.right, place, depth + 1))
            return {left + right for left, right in pairs}
        if isinstance(node, ast.BoolOp):
            return {text for each in node.values for text in self._texts(each, place, depth + 1)}
        if isinstance(node, ast.Call):
            return self._of_call(node, place, depth + 1)
        if isinstance(node, ast.Attribute):
            return self._of_attribute(node.attr, depth + 1)
        return {ANY}

    def _of_name(self, node: ast.Name, place: _Place, depth: int) -> set[str]:
        name, constant = node.id, self._constants.get(node.id, ANY)
        if place.function is None:
            return {constant}
        assigned = _assigned(place.function, node)
        found = {text for each in assigned for text in self._texts(each, place, depth)}
        if not assigned and name in place.given:
            return {*place.given[name]}
        if not assigned:
            given = self._arguments(place, name)
            found = {text for caller, each in given for text in self._texts(each, caller, depth)}
        return found or {constant}

    def _arguments(self, place: _Place, name: str) -> Iterator[tuple[_Place, ast.expr]]:
        """The expressions that callers in the module pass for a parameter."""
        function = place.function
        if function is None or name not in (parameters := [each.arg for each in function.args.args]):
            return
        at = parameters.index(name) - (parameters[0] == "self")
        for caller, node in self._nodes():
            if caller.module is place.module and isinstance(node, ast.Call) and _called(node) == function.name:
                yield from ((caller, each) for each in node.args[at : at + 1])

    def _of_call(self, node: ast.Call, place: _Place, depth: int) -> set[str]:
        if _called(node) in ("next", "iter"):
            return {text for each in node.args for text in self._texts(each, place, depth)} or {ANY}
        known = self._functions.get(_called(node), [])
        near = [each for each in known if each.module is place.module] or known
        if isinstance(node.func, ast.Attribute):
            near = [each for each in near if _is_method(each)] or near
        found = {
            text for each in near for text in self._returned(self._with_arguments(each, node, place, depth), depth)
        }
        return found or {ANY}

    def _with_arguments(self, called: _Place, node: ast.Call, place: _Place, depth: int) -> _Place:
        parameters = [each.arg for each in called.function.args.args] if called.function is not None else []
        parameters = parameters[1:] if parameters[:1] == ["self"] else parameters
        given = {name: self._texts(each, place, depth) for name, each in zip(parameters, node.args, strict=False)}
        return called._replace(given=given)

    def _returned(self, place: _Place, depth: int) -> Iterator[str]:
        for node in ast.walk(place.function) if place.function is not None else ():
            if isinstance(node, ast.Return) and node.value is not None:
                yield from self._texts(node.value, place, depth)

    def _of_attribute(self, attribute: str, depth: int) -> set[str]:
        """The values that constructors and `replace` are given for an attribute that is told as it is."""
        if attribute in self._constants:
            return {self._constants[attribute]}
        found: set[str] = set()
        for place, node in self._nodes() if attribute in _TOLD_AS_IT_IS else ():
            if isinstance(node, ast.keyword) and node.arg == attribute:
                found |= self._texts(node.value, place, depth)
        return found or {ANY}


_TOLD_AS_IT_IS = ("problem", "vertex_problem", "parent_message")


def _constants(module: ast.Module) -> Iterator[tuple[str, str]]:
    for node in module.body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant):
            yield from ((each.id, str(node.value.value)) for each in node.targets if isinstance(each, ast.Name))


def _assigned(function: ast.FunctionDef, used: ast.Name) -> Sequence[ast.expr]:
    """The values of a name where it is used: of assignments in the blocks around it, the last before it counts alone;
    of a list, each that is appended."""
    appended = [
        node.args[0]
        for node in ast.walk(function)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and (node.func.attr, getattr(node.func.value, "id", "")) == ("append", used.id)
    ]
    if appended:
        return appended
    walrus = [each for each in ast.walk(function) if isinstance(each, ast.NamedExpr) and each.target.id == used.id]
    certain: ast.Assign | None = None
    possible: list[ast.expr] = [each.value for each in walrus]
    for block in _blocks(function):
        around = any(node is used for statement in block for node in ast.walk(statement))
        for each in block:
            if isinstance(each, ast.Assign) and _is_target(each, used.id) and each.lineno <= used.lineno:
                possible.append(each.value)
                if around and (certain is None or each.lineno > certain.lineno):
                    certain = each
    found = possible if certain is None else [certain.value]
    added = [
        each.value
        for each in ast.walk(function)
        if isinstance(each, ast.AugAssign) and getattr(each.target, "id", "") == used.id
    ]
    return [*found, *(ast.BinOp(before, ast.Add(), each) for each in added for before in found)]


def _blocks(function: ast.FunctionDef) -> Iterator[list[ast.stmt]]:
    for node in ast.walk(function):
        for field in ("body", "orelse"):
            if isinstance(block := getattr(node, field, None), list):
                yield block


def _is_target(node: ast.Assign, name: str) -> bool:
    return any(isinstance(each, ast.Name) and each.id == name for each in node.targets)


def _is_method(place: _Place) -> bool:
    return place.function is not None and [each.arg for each in place.function.args.args[:1]] == ["self"]


def _called(node: ast.Call) -> str:
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
