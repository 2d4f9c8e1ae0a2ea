"""docs/security.md names the attack behind each promise: this keeps the page and the folder the same."""

from __future__ import annotations

import re
from pathlib import Path

from tests.docs.proofs import NODE, functions_of

_ROOT = Path(__file__).parents[2]
_PAGE = (_ROOT / "docs" / "security.md").read_text()
_ROW = re.compile(
    r"^\| ATTACK-(?P<number>\d\d) \| (?P<promise>[^|]+) \| `(?P<file>test_[a-z0-9_]+\.py)` \|$", re.MULTILINE
)


def test_every_promise_has_its_attack_and_every_attack_its_promise() -> None:
    rows = {row["number"]: row["file"] for row in _ROW.finditer(_PAGE)}
    assert list(rows) == [f"{number:02}" for number in range(1, len(rows) + 1)]
    assert sorted(rows.values()) == sorted(path.name for path in (_ROOT / "tests" / "attacks").glob("test_*.py"))


def test_each_file_says_which_attack_it_is_and_tries_something() -> None:
    for row in _ROW.finditer(_PAGE):
        text = (_ROOT / "tests" / "attacks" / row["file"]).read_text()
        assert text.startswith(f'"""ATTACK-{row["number"]}: ')
        assert re.search(r"^def test_", text, re.MULTILINE)


def test_every_link_of_the_page_leads_somewhere() -> None:
    links = re.findall(r"\]\(([^)#]+)\)", _PAGE)
    assert links
    assert [link for link in links if not (_ROOT / "docs" / link).is_file()] == []


def test_every_test_that_the_page_names_exists() -> None:
    nodes = list(NODE.finditer(_PAGE))
    assert nodes
    assert [node[0] for node in nodes if node["name"] not in functions_of(_ROOT / node["file"])] == []
