"""docs/conformance/requirements.md lists every requirement with a test that proves it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from tests.docs.proofs import Row, problem, rows, unnamed

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "conformance" / "requirements.md"

# Of each section, the numbers that are this process's alone; R-233 repeats section 11.
NUMBERS: Mapping[str, str] = {
    "1": "1-31",
    "2": "32-37",
    "3": "38-46",
    "4": "47-53",
    "5": "54-62",
    "6": "63-75",
    "7": "76-81",
    "8": "82-96",
    "9": "97-105",
    "10": "106-129",
    "11": "130-140",
    "12": "141-150",
    "13": "151-158",
    "14": "159-173",
    "15": "174-182",
    "16": "183-187",
    "17": "188-198",
    "18": "199-210",
    "19": "211-222",
    "20": "223-230",
    "21": "231-232 234-273",
    "22": "274-286",
    "23": "287-295",
    "24": "297-304",
    "25": "307-309 311-313",
    "26": "316-319 321 323",
    "27": "324-343",
    "28": "344-364",
    "29": "366-379",
}


def expanded(ranges: str) -> Sequence[int]:
    """The numbers of '1-3 5': 1, 2, 3 and 5."""
    found: list[int] = []
    for each in ranges.split():
        first, _, last = each.partition("-")
        found += range(int(first), int(last or first) + 1)
    return found


ITEMS: Mapping[str, Sequence[str]] = {
    **{section: [f"R-{number:03}" for number in expanded(ranges)] for section, ranges in NUMBERS.items()},
    "S": [f"CHOICE-{number}" for number in range(1, 12)],
    "N": [f"FACT-{number}" for number in range(1, 12)],
    "C": [f"PEER-{number:02}" for number in range(1, 27)],
    "G": [f"GW-{number}" for number in range(1, 24)],
    "P": [f"VAP-{number}" for number in range(1, 9)],
    "T": [f"API-{number}" for number in range(1, 30)],
}

# The only items that may go without a test, and what kind of thing each is. Nothing asked of the controllers is there.
MAY_GO_WITHOUT: Mapping[str, str] = {
    "R-028": "a word to operators",
    "R-271": "outside of the cluster",
    "R-272": "the load balancer's",
    "R-328": "another product",
    "R-329": "another product",
    "R-331": "another product",
    "R-333": "another product",
    "R-335": "another product",
    "R-336": "another product",
    "R-341": "another product",
    "R-342": "another product",
    "CHOICE-1": "the charts'",
    "CHOICE-4": "another product",
    "CHOICE-5": "another product",
    "PEER-18": "the charts'",
    "GW-23": "not ours",
}


@pytest.fixture(scope="module")
def page() -> list[Row]:
    return rows(PAGE.read_text())


def test_every_item_is_listed_once_in_its_section_and_in_order(page: list[Row]) -> None:
    wanted = [(section, item) for section, items in ITEMS.items() for item in items]
    assert [(row.section, row.item) for row in page] == wanted


def test_there_are_as_many_as_were_asked_for() -> None:
    assert sum(len(expanded(ranges)) for ranges in NUMBERS.values()) == 369


def test_every_item_is_proved_or_has_its_reason(page: list[Row]) -> None:
    judged = [(row.item, problem(row.item, row.proof, ROOT, may_go_without=MAY_GO_WITHOUT)) for row in page]
    wrong = [f"{item}: {text}" for item, text in judged if text]
    assert not wrong, "\n".join(wrong)


def test_every_test_of_a_proof_names_what_it_proves(page: list[Row]) -> None:
    wrong = [f"{row.item}: {test}" for row in page for test in unnamed(row.item, row.proof, ROOT)]
    assert not wrong, "\n".join(wrong)


def test_what_may_go_without_a_test_is_no_requirement_of_the_controllers() -> None:
    assert set(MAY_GO_WITHOUT) <= {item for items in ITEMS.values() for item in items}
    others = {item for section in ("1", "21", "27") for item in ITEMS[section]}
    assert not [item for item in MAY_GO_WITHOUT if item.startswith("R-") and item not in others]


SAMPLE = '''
import pytest

CASES = [pytest.param(1, id="R-211"), pytest.param(2, id="CHOICE-2")]
OTHERS = [pytest.param(3, id="R-300")]

@pytest.mark.parametrize("number", CASES)
def test_one(number: int) -> None:
    """R-220 to R-222, GW-1, PEER-01."""
'''


@pytest.mark.parametrize(
    ("item", "named"),
    [
        pytest.param("R-220", True, id="the first of a range"),
        pytest.param("R-221", True, id="within a range"),
        pytest.param("R-223", False, id="beyond it"),
        pytest.param("R-211", True, id="the id of a parameter in a table"),
        pytest.param("CHOICE-2", True, id="another item in a table"),
        pytest.param("R-300", False, id="a table of another test"),
        pytest.param("GW-1", True, id="an item of another page"),
        pytest.param("GW-11", False, id="one that only begins alike"),
        pytest.param("PEER-0", False, id="one that is part of another"),
    ],
)
def test_what_a_test_names(tmp_path: Path, item: str, named: bool) -> None:
    (tmp_path / "tests" / "x").mkdir(parents=True)
    (tmp_path / "tests" / "x" / "test_x.py").write_text(SAMPLE)
    proof = "`tests/x/test_x.py::test_one`"
    assert unnamed(item, proof, tmp_path) == ([] if named else [proof])
