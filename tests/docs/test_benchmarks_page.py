"""docs/benchmarks.md explains every column of a row that a benchmark prints, and no others.

The columns are read from the code: keywords of `figures.row`, and what is passed to it, or to a `Measurement`, as a
dict.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

_ROOT = Path(__file__).parents[2]
_PAGE = (_ROOT / "docs" / "benchmarks.md").read_text()
_MODULES = {path: ast.parse(path.read_text()) for path in sorted((_ROOT / "benchmarks").rglob("*.py"))}
_CALLS = "calls: …"
Function = ast.FunctionDef | ast.AsyncFunctionDef


def _functions(tree: ast.AST) -> Iterator[Function]:
    for node in ast.walk(tree):
        if isinstance(node, Function):
            yield node


class _Columns:
    """The names that expressions of one module have as keys."""

    def __init__(self, tree: ast.Module) -> None:
        self._tree = tree

    def of_all(self) -> Iterator[str]:
        for function in _functions(self._tree):
            for node in ast.walk(function):
                if isinstance(node, ast.Call):
                    yield from self._of_call(node, function)
                elif isinstance(node, ast.Dict) and "workload" in self._constants(node):
                    yield from self._of(node, function)

    def _of_call(self, call: ast.Call, function: Function) -> Iterator[str]:
        if ast.unparse(call.func) == "figures.row":
            for keyword in call.keywords:
                yield from [keyword.arg] if keyword.arg else self._of(keyword.value, function)
        elif ast.unparse(call.func) == "Measurement":
            for keyword in call.keywords:
                if keyword.arg == "more":
                    yield from self._of(keyword.value, function)

    def _of(self, node: ast.expr, function: Function) -> Iterator[str]:
        """The keys of a dict. Fails for an expression that this test does not know."""
        match node:
            case ast.Dict():
                for key, value in zip(node.keys, node.values, strict=True):
                    yield from self._of(value, function) if key is None else self._of_key(key)
            case ast.Attribute(attr="figures"):
                yield from _updated_figures()
            case ast.Attribute(attr="found"):
                yield _CALLS
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
                yield from self._of_result(name)
            case ast.Name(id=name):
                yield from self._of_variable(name, function)
            case _:
                raise AssertionError(f"the columns of {ast.unparse(node)} are not known")

    def _of_key(self, key: ast.expr) -> Iterator[str]:
        match key:
            case ast.Constant(value=str(text)):
                yield _CALLS if text.startswith("calls: ") else text
            case ast.JoinedStr():
                yield "".join(str(each.value) if isinstance(each, ast.Constant) else "*" for each in key.values)
            case _:
                raise AssertionError(f"the column {ast.unparse(key)} is not known")

    def _of_result(self, name: str) -> Iterator[str]:
        found = [each for each in _functions(self._tree) if each.name == name]
        assert found, f"{name} is in another module"
        for function in found:
            for node in ast.walk(function):
                if isinstance(node, ast.Return) and node.value is not None:
                    yield from self._of(node.value, function)

    def _of_variable(self, name: str, function: Function) -> Iterator[str]:
        if function.args.kwarg is not None and function.args.kwarg.arg == name:
            yield from self._of_keywords(function)
            return
        values = list(_values_of(name, function))
        assert values, f"{name} of {function.name} has no value here"
        for value in values:
            if isinstance(value, str):
                yield value
            elif not _is_row(value):
                yield from self._of(value, function)

    def _of_keywords(self, function: Function) -> Iterator[str]:
        """The names that calls of the function pass beyond its own parameters."""
        own = {each.arg for each in (*function.args.args, *function.args.kwonlyargs)}
        for node in ast.walk(self._tree):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == function.name:
                yield from (each.arg for each in node.keywords if each.arg and each.arg not in own)

    @staticmethod
    def _constants(node: ast.Dict) -> set[object]:
        return {key.value for key in node.keys if isinstance(key, ast.Constant)}


def _is_row(value: ast.expr) -> bool:
    """True for the result of `figures.row`, which is looked at where it is called."""
    return isinstance(value, ast.Call) and ast.unparse(value.func) == "figures.row"


def _values_of(name: str, function: Function) -> Iterator[ast.expr | str]:
    """The values that are assigned to a variable, and the constant keys that it gets."""
    for node in ast.walk(function):
        match node:
            case ast.Assign(targets=[ast.Name(id=target)], value=value) if target == name:
                yield value
            case ast.AnnAssign(target=ast.Name(id=target), value=ast.expr() as value) if target == name:
                yield value
            case ast.AugAssign(target=ast.Name(id=target), value=value) if target == name:
                yield value
            case ast.Assign(targets=[ast.Subscript(value=ast.Name(id=target), slice=ast.Constant(value=str(key)))]):
                if target == name:
                    yield key


def _updated_figures() -> Iterator[str]:
    for tree in _MODULES.values():
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and ast.unparse(node.func).endswith(".figures.update"):
                yield from (each.arg for each in node.keywords if each.arg)


def _columns() -> set[str]:
    found = {name for tree in _MODULES.values() for name in _Columns(tree).of_all()}
    return found - {"workload", "side"}


def _explained() -> set[str]:
    cells = [line.split(" | ")[0] for line in _PAGE.splitlines() if line.startswith("| ") and "`" in line]
    names = {name for cell in cells for name in re.findall(r"`([^`]+)`", cell)}
    return {name for name in names if re.fullmatch(r"[a-z][a-z0-9_-]*", name) or name == _CALLS}


def test_every_column_of_a_row_is_explained() -> None:
    explained = _explained()
    assert {name for name in _columns() if not any(fnmatch(each, name) for each in explained)} == set()


def test_every_explained_column_is_in_a_row() -> None:
    # headings of the table on a terminal, whose names in JSON are beside them
    headings = {"client"}
    columns = _columns()
    assert {name for name in _explained() - headings if not any(fnmatch(name, each) for each in columns)} == set()


def test_columns_are_found_in_each_form_in_which_they_are_passed() -> None:
    """A keyword, a shared dict, a dict that is built up, a result, a name with a part, and those of comparisons."""
    names = {"written_s", "starved_ms", "rss_given_back_mib", "cpu_ms_least", "*_cpu_ms", "times_cpu", "late_ms"}
    assert names | {"median_ms", _CALLS} <= _columns()
