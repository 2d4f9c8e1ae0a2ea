"""The house rules that no linter checks: sizes, unique names of classes, and sentences that open with their subject."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

_ROOT = Path(__file__).parents[1]
_PACKAGES = ("apiserver", "registry", "admission", "controller", "tenant_apiserver")
_FOLDERS = (*_PACKAGES, "benchmarks", "tests")
_MODULE_LINES, _FUNCTION_LINES, _FOLDER_MODULES = 400, 45, 25
_BARE_CLAUSE = re.compile(
    r"(?:^|(?<=[.:] )|(?<=\n\n))((?:What|Who|Whose|Whether|Which|Whoever|Whatever) [^.?!]*)(?!\?)(?:[.!]|$)"
)


def _modules(*folders: str) -> Iterator[tuple[Path, ast.Module]]:
    for folder in folders:
        for path in sorted((_ROOT / folder).rglob("*.py")):
            yield path.relative_to(_ROOT), ast.parse(path.read_text())


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
        f"{path}:{node.lineno}: {sentence}"
        for path, tree in _modules(*_FOLDERS)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        for sentence in _bare_clauses(node.value.value)
    ] == []


def test_modules_and_functions_are_short() -> None:
    long = []
    for path, tree in _modules(*_PACKAGES):
        if (lines := len((_ROOT / path).read_text().splitlines())) > _MODULE_LINES:
            long.append(f"{path}: {lines} lines")
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = (node.end_lineno or node.lineno) - node.lineno + 1
                long += [f"{path}: {node.name}: {lines} lines"] * (lines > _FUNCTION_LINES)
    assert long == []


def test_no_folder_has_too_many_modules() -> None:
    modules = defaultdict(list)
    for path, _ in _modules(*_PACKAGES, "benchmarks"):
        if path.name != "__init__.py":
            modules[path.parent].append(path.name)
    assert {str(folder): len(found) for folder, found in modules.items() if len(found) > _FOLDER_MODULES} == {}


def test_one_class_has_one_name() -> None:
    homes = defaultdict(list)
    for path, tree in _modules(*_PACKAGES):
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes[node.name].append(str(path))
    assert {name: found for name, found in homes.items() if len(found) > 1} == {}
