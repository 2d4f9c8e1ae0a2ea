"""Clauses of the Accept header."""

from __future__ import annotations

import pytest

from apiserver.encoding.accept_header import AcceptClause, accept_clauses


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        pytest.param("", ["*/*"], id="an empty header means anything"),
        pytest.param(" , ", ["*/*"], id="only commas"),
        pytest.param("application/yaml,application/json", ["application/yaml", "application/json"], id="as written"),
        pytest.param("application/json;q=0.5,application/yaml", ["application/yaml", "application/json"], id="by q"),
        pytest.param("*/*,application/*,text/plain", ["text/plain", "application/*", "*/*"], id="exact ones first"),
        pytest.param("text/plain;q=0,*/*;q=0.1", ["*/*", "text/plain"], id="q of 0 is last"),
        pytest.param("text/plain;q=x,*/*", ["text/plain", "*/*"], id="an unreadable q is 1"),
        pytest.param("text/plain;q=7,application/json", ["text/plain", "application/json"], id="a q above 1 is 1"),
        pytest.param("Application/JSON", ["application/json"], id="case does not matter"),
    ],
)
def test_clauses_are_sorted_by_precedence(accept: str, expected: list[str]) -> None:
    assert [clause.media_range for clause in accept_clauses(accept)] == expected


def test_parameters_are_read_without_q_and_quotes() -> None:
    [clause] = accept_clauses('application/json; g="meta.k8s.io" ;V=v1;q=0.3')
    assert clause.parameters == {"g": "meta.k8s.io", "v": "v1"}


@pytest.mark.parametrize(
    ("media_range", "matches"),
    [
        pytest.param("*/*", True, id="anything"),
        pytest.param("application/*", True, id="its kind"),
        pytest.param("application/json", True, id="itself"),
        pytest.param("text/*", False, id="another kind"),
        pytest.param("application/yaml", False, id="another subtype"),
        pytest.param("app/*", False, id="a kind that is only a prefix"),
    ],
)
def test_a_media_range_matches_the_media_types_in_it(media_range: str, matches: bool) -> None:
    assert AcceptClause(media_range, {}).matches("application/json") is matches


def test_clauses_and_parameters_that_no_client_sends_are_ignored() -> None:
    """ATTACK-19: they would take seconds."""
    assert len(accept_clauses("a/b," * 10_000)) == 100
    [clause] = accept_clauses("a/b" + "".join(f";p{number}=x" for number in range(1000)))
    assert len(clause.parameters) == 9
