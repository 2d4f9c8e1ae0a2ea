"""Every mark of a requirement, such as WIRE-D61 or R-102, is an item of one of the pages that list them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.proofs import rows

_ROOT = Path(__file__).parents[2]
_FOLDERS = ("apiserver", "registry", "admission", "controller", "tenant_apiserver", "benchmarks", "tests", "docs")
_MARK = re.compile(r"\b(?:R-\d{3}|(?:API|ATTACK|CHOICE|FACT|GW|PEER|VAP)-\d+|WIRE-[A-Z]\d+)\b")
_ATTACK = re.compile(r"^\| (ATTACK-\d\d) \|", re.MULTILINE)


@pytest.fixture(scope="module")
def items() -> set[str]:
    listed = {row.item for page in ("conformance/protocol", "conformance/requirements") for row in rows(_page(page))}
    return listed | set(_ATTACK.findall(_page("security")))


def _page(name: str) -> str:
    return (_ROOT / "docs" / f"{name}.md").read_text()


@pytest.mark.parametrize("folder", _FOLDERS)
def test_every_mark_is_an_item_of_a_page(folder: str, items: set[str]) -> None:
    unknown = [
        f"{path.relative_to(_ROOT)}: {mark}"
        for suffix in ("*.py", "*.md")
        for path in sorted((_ROOT / folder).rglob(suffix))
        if path.parent != Path(__file__).parent
        for mark in _MARK.findall(path.read_text())
        if mark not in items
    ]
    assert not unknown, "\n".join(unknown)
