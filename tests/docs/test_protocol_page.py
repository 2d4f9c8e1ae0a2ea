"""docs/conformance/protocol.md lists every item of the wire protocol with a test that proves it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.docs.proofs import Row, problem, rows

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "conformance" / "protocol.md"

SECTIONS = {"A": 35, "B": 20, "C": 53, "D": 100, "E": 22, "F": 30, "G": 42, "H": 52, "I": 25, "J": 59}
ITEMS = [f"WIRE-{section}{number}" for section, count in SECTIONS.items() for number in range(1, count + 1)]

# The only items that may go without a test, and what kind of thing each is.
MAY_GO_WITHOUT: Mapping[str, str] = {
    "WIRE-A30": "websockets",
    "WIRE-A32": "ruled out",
    "WIRE-C15": "websockets",
    "WIRE-C21": "optional",
    "WIRE-C51": "what kube-apiserver does with the document",
    "WIRE-F24": "websockets",
    "WIRE-H40": "left out",
    "WIRE-I19": "one level for all requests, no rules",
    "WIRE-J28": "optional, as WIRE-C21",
    "WIRE-J52": "left out, as WIRE-H40",
}


@pytest.fixture(scope="module")
def page() -> list[Row]:
    return rows(PAGE.read_text())


def test_every_item_is_listed_once_and_in_order(page: list[Row]) -> None:
    assert [row.item for row in page] == ITEMS


def test_every_item_stands_in_its_section(page: list[Row]) -> None:
    assert [row for row in page if row.item.removeprefix("WIRE-")[0] != row.section] == []


def test_every_item_is_proved_or_has_its_reason(page: list[Row]) -> None:
    judged = [(row.item, problem(row.item, row.proof, ROOT, may_go_without=MAY_GO_WITHOUT)) for row in page]
    wrong = [f"{item}: {text}" for item, text in judged if text]
    assert not wrong, "\n".join(wrong)


def test_what_may_go_without_a_test_is_an_item() -> None:
    assert set(MAY_GO_WITHOUT) <= set(ITEMS)


SAMPLE = """
import pytest

def helper(): ...
def test_one(): ...
async def test_two(): ...

class TestThree:
    def test_four(self): ...
"""


@pytest.mark.parametrize(
    ("item", "proof", "expected"),
    [
        pytest.param("WIRE-A1", "`tests/x/test_x.py::test_one`", "", id="a test"),
        pytest.param("WIRE-A1", "`tests/x/test_x.py::test_one`, `tests/x/test_x.py::test_two`", "", id="two tests"),
        pytest.param("WIRE-A1", "`tests/x/test_x.py::TestThree::test_four`", "", id="a method"),
        pytest.param("WIRE-A30", "why not: no websockets", "", id="a reason where one may stand"),
        pytest.param("WIRE-A1", "open", "open", id="open"),
        pytest.param("WIRE-A1", "why not: no time", "may not go without a test", id="a reason where none may stand"),
        pytest.param("WIRE-A30", "why not: ", "may not go without a test", id="a reason that is none"),
        pytest.param("WIRE-A1", "`tests/x/test_x.py::test_five`", "no such test", id="a test that is not there"),
        pytest.param("WIRE-A1", "`tests/x/test_x.py::test_four`", "no such test", id="a method without its class"),
        pytest.param("WIRE-A1", "`tests/x/test_y.py::test_one`", "no such test", id="a file that is not there"),
        pytest.param(
            "WIRE-A1",
            "`tests/x/test_x.py::test_one`, `tests/x/test_x.py::test_five`",
            "no such test",
            id="the second of two",
        ),
        pytest.param("WIRE-A1", "tests/x/test_x.py::test_one", "no test, and no reason", id="without quotes"),
        pytest.param(
            "WIRE-A1", "`tests/x/test_x.py::helper`", "no test, and no reason", id="a function that is no test"
        ),
        pytest.param("WIRE-A1", "see the code", "no test, and no reason", id="words"),
    ],
)
def test_a_proof_is_judged(tmp_path: Path, item: str, proof: str, expected: str) -> None:
    (tmp_path / "tests" / "x").mkdir(parents=True)
    (tmp_path / "tests" / "x" / "test_x.py").write_text(SAMPLE)
    told = problem(item, proof, tmp_path, may_go_without=MAY_GO_WITHOUT)
    assert told == "" if not expected else told.startswith(expected)


def test_a_line_that_is_no_row_is_not_passed_over() -> None:
    with pytest.raises(ValueError, match="not a row"):
        rows("## A. Authentication\n\n| WIRE-A1 | what |\n")
