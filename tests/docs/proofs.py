"""Pages that list numbered items, each with the ids of the tests that prove it or the reason why there is none."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

ROW = re.compile(r"\| (?P<item>[A-Z]+-[A-Z]?\d+) \| (?P<what>[^|]+) \| (?P<proof>[^|]+) \|")
HEADING = re.compile(r"## (?P<section>[A-Z]|\d+)\. .+")
TABLE_HEAD = ("| item | what | proof |", "| --- | --- | --- |")
NODE = re.compile(r"`(?P<file>tests/[a-z0-9_/]+\.py)::(?P<name>(?:Test\w+::)?test_\w+)`")
RANGE = re.compile(r"\b(?P<first>R-\d{3}) to (?P<last>R-\d{3})\b")
WHY_NOT = "why not: "


class Row(NamedTuple):
    section: str
    item: str
    proof: str


def rows(text: str) -> list[Row]:
    """Every row of every table. Raises ValueError for a table line that is none."""
    found = []
    section = ""
    for line in text.splitlines():
        if heading := HEADING.fullmatch(line):
            section = heading["section"]
        elif line.startswith("|") and line not in TABLE_HEAD:
            row = ROW.fullmatch(line)
            if row is None:
                raise ValueError(f"not a row of item, what and proof: {line}")
            found.append(Row(section, row["item"], row["proof"].strip()))
    return found


@cache
def functions_of(path: Path) -> Mapping[str, str]:
    """The test functions in a file, 'TestClass::test_name' for methods, each with its text: decorators, and the tables
    of parameters that they name. None if there is no file."""
    if not path.is_file():
        return {}
    source = _Source(path.read_text())
    tree = ast.parse(source.text)
    tables = {
        target.id: source.of(node)
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    found = dict(_functions("", tree.body, source, tables))
    for each in tree.body:
        if isinstance(each, ast.ClassDef):
            found |= _functions(f"{each.name}::", each.body, source, tables)
    return found


class _Source:
    """Finds the text of a node as `ast.get_source_segment` does, which splits the whole text into lines each time."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._bytes = text.encode()
        self._starts = [0, *accumulate(len(line) + 1 for line in self._bytes.split(b"\n"))]

    def of(self, node: ast.stmt | ast.expr) -> str:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        start = self._starts[node.lineno - 1] + node.col_offset
        return self._bytes[start : self._starts[node.end_lineno - 1] + node.end_col_offset].decode()


def _functions(
    prefix: str, body: Sequence[ast.stmt], source: _Source, tables: Mapping[str, str]
) -> Iterable[tuple[str, str]]:
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            parts = [node, *node.decorator_list]
            named = [each.id for part in node.decorator_list for each in ast.walk(part) if isinstance(each, ast.Name)]
            texts = [source.of(part) for part in parts]
            yield f"{prefix}{node.name}", "\n".join([*texts, *(tables.get(name, "") for name in named)])


def problem(item: str, proof: str, root: Path, *, may_go_without: Mapping[str, str]) -> str:
    """Describes the fault in an item's proof, '' if there is none."""
    if proof == "open":
        return "open"
    if proof.startswith(WHY_NOT):
        allowed = item in may_go_without and len(proof) > len(WHY_NOT)
        return "" if allowed else "may not go without a test"
    for part in proof.split(", "):
        node = NODE.fullmatch(part)
        if node is None:
            return f"no test, and no reason: {part}"
        if node["name"] not in functions_of(root / node["file"]):
            return f"no such test: {part}"
    return ""


def unnamed(item: str, proof: str, root: Path) -> Sequence[str]:
    """The tests of a proof that do not say, in their docstring or in the ids of their parameters, which item they
    prove. A range such as 'R-211 to R-215' says all that are in it."""
    nodes = [node for part in proof.split(", ") if (node := NODE.fullmatch(part))]
    return [node[0] for node in nodes if not _says(functions_of(root / node["file"])[node["name"]], item)]


def _says(text: str, item: str) -> bool:
    if re.search(rf"\b{item}\b", text):
        return True
    return any(each["first"] <= item <= each["last"] for each in RANGE.finditer(text))
