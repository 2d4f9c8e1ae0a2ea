"""Suggestions for misspelt names."""

from __future__ import annotations

import pytest

from apiserver.meta.suggestion import suggest


@pytest.mark.parametrize(
    ("name", "suggested"),
    [
        pytest.param("dashbord", "; did you mean dashboard?", id="a letter is missing"),
        pytest.param("apii", "; did you mean api?", id="a letter too many"),
        pytest.param("postgres", "", id="like none"),
        pytest.param("", "", id="no name"),
    ],
)
def test_the_known_name_that_is_most_like_a_misspelt_one_is_suggested(name: str, suggested: str) -> None:
    assert suggest(name, ("api", "dashboard")) == suggested


def test_a_message_may_have_a_form_of_its_own() -> None:
    assert suggest("apii", ["api"], " (did you mean {}?)") == " (did you mean api?)"
