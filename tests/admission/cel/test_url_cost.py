"""Long URLs take the processor time of a few searches of their text."""

from __future__ import annotations

import re

import pytest

from admission.cel.library.urls import parse
from tests.cpu_time import least_ratio

_SIZE = 300_000
_SEARCH = re.compile(r"[\x00-\x1f]")


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("https://a/" + "a" * _SIZE, id="a path"),
        pytest.param("https://a/" + "%41" * (_SIZE // 3), id="a path of escapes"),
        pytest.param("https://" + "a" * _SIZE, id="a host"),
    ],
)
def test_a_long_url_costs_a_few_searches_of_its_text(text: str) -> None:
    """A policy may call url() with any string of the object: one match for each of its characters takes 8 to 26."""
    assert least_ratio(lambda: parse(text), lambda: _SEARCH.search(text), below=5) < 5
