"""The house rules that no linter checks: sizes, unique names of classes, and sentences that open with their subject."""

from __future__ import annotations

import ast
import functools
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

_ROOT = Path(__file__).parents[1]
_PACKAGES = ("apiserver", "registry", "admission", "controller", "tenant_apiserver")
_FOLDERS = (*_PACKAGES, "benchmarks", "tests")
_MODULE_LINES, _FUNCTION_LINES, _FOLDER_MODULES = 400, 45, 25
_BARE_CLAUSE = re.compile(
    r"(?:^|(?<=[.:] )|(?<=\n\n))((?:What|Who|Whose|Whether|Which|Whoever|Whatever) [^.?!]*)(?!\?)(?:[.!]|$)"
)


@dataclass(frozen=True)
class _Module:
    """The parts of a module that the rules are about; texts and lengths are in lines."""

    path: Path
    length: int
    texts: list[tuple[int, str]] = field(default_factory=list)
    functions: list[tuple[str, int]] = field(default_factory=list)
    classes: list[str] = field(default_factory=list)


def _modules(*folders: str) -> Iterator[_Module]:
    for folder in folders:
        yield from _modules_of(folder)


@functools.cache
def _modules_of(folder: str) -> list[_Module]:
    """Parsed once for all rules."""
    return [_module(path) for path in sorted((_ROOT / folder).rglob("*.py"))]


def _module(path: Path) -> _Module:
    text = path.read_text()
    module = _Module(path.relative_to(_ROOT), len(text.splitlines()))
    for node in _statements(ast.parse(text).body):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            module.texts.append((node.lineno, node.value.value))
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            module.functions.append((node.name, (node.end_lineno or node.lineno) - node.lineno + 1))
        elif isinstance(node, ast.ClassDef):
            module.classes.append(node.name)
    return module


def _statements(block: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """All statements, at any depth. Expressions, which are most of a module's nodes, have no statements inside."""
    for node in block:
        yield node
        for inner in ("body", "orelse", "finalbody", "handlers", "cases"):
            if isinstance(nested := getattr(node, inner, ()), list):
                yield from _statements(nested)


def _bare_clauses(text: str) -> list[str]:
    """Sentences such as `What is served stays.`, whose subject is a clause: `A served hostname stays.` is easier."""
    unwrapped = re.sub(r"(?<!\n)\n(?!\n) *", " ", text.strip())
    return _BARE_CLAUSE.findall(unwrapped)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("What is served stays.", ["What is served stays"]),
        ("Nothing moves. Who asks first\nwins.", ["Who asks first wins"]),
        ("What does a flag do?", []),
        ("The route says what it serves.", []),
    ],
)
def test_a_bare_clause_is_recognised(text: str, found: list[str]) -> None:
    assert _bare_clauses(text) == found


def test_no_sentence_of_a_docstring_opens_with_a_bare_clause() -> None:
    assert [
        f"{module.path}:{line}: {sentence}"
        for module in _modules(*_FOLDERS)
        for line, text in module.texts
        for sentence in _bare_clauses(text)
    ] == []


def test_modules_and_functions_are_short() -> None:
    long = []
    for module in _modules(*_PACKAGES):
        if module.length > _MODULE_LINES:
            long.append(f"{module.path}: {module.length} lines")
        long += [f"{module.path}: {name}: {lines} lines" for name, lines in module.functions if lines > _FUNCTION_LINES]
    assert long == []


def test_no_folder_has_too_many_modules() -> None:
    modules = defaultdict(list)
    for module in _modules(*_PACKAGES, "benchmarks"):
        if module.path.name != "__init__.py":
            modules[module.path.parent].append(module.path.name)
    assert {str(folder): len(found) for folder, found in modules.items() if len(found) > _FOLDER_MODULES} == {}


def test_one_class_has_one_name() -> None:
    homes = defaultdict(list)
    for module in _modules(*_PACKAGES):
        for name in module.classes:
            if not name.startswith("_"):
                homes[name].append(str(module.path))
    assert {name: found for name, found in homes.items() if len(found) > 1} == {}
