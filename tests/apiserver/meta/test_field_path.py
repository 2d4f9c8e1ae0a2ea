"""Path elements of fieldsV1 that clients send."""

from __future__ import annotations

import pytest

from apiserver.meta.field_path import parse_element


@pytest.mark.parametrize(
    ("element", "canonical"),
    [
        pytest.param("f:spec", "f:spec", id="a field"),
        pytest.param('k:{"b": 1.0, "a": "x"}', 'k:{"a":"x","b":1}', id="sorted keys, and 1.0 is 1"),
        pytest.param("v:1e18", "v:1000000000000000000", id="an integer of 64 bits"),
        pytest.param("v:1e308", "v:1e+308", id="a number of 309 digits"),
        pytest.param("i:07", "i:7", id="an index"),
        pytest.param("x:1", None, id="an unknown kind"),
    ],
)
def test_elements_are_parsed_into_their_canonical_form(element: str, canonical: str | None) -> None:
    assert parse_element(element) == canonical


@pytest.mark.parametrize("depth", [129, 2000, 100_000])
def test_an_element_that_nests_too_deeply_is_invalid(depth: int) -> None:
    with pytest.raises(ValueError, match="nested too deeply"):
        parse_element(f"v:{'[' * depth}{']' * depth}")


@pytest.mark.parametrize("element", ["spec", "k:[]", "v:{", "i:x"])
def test_a_malformed_element_is_invalid(element: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_element(element)
