"""The document of claims survives its annotation, and stays within the limit of annotations."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from admission.tenant.claims import claim_codec
from admission.tenant.claims.claim import Claim, ClaimsDocument, Outcome
from apiserver.meta.object_meta import ANNOTATIONS_LIMIT
from apiserver.meta.resource import Key

AMOUNTS = st.none() | st.integers(0, 2**63).map(str)
OUTCOMES = st.builds(
    Outcome, host=st.none() | st.text(max_size=9), quotas=st.dictionaries(st.text(max_size=9), AMOUNTS)
)
CLAIMS = st.builds(
    Claim,
    id=st.text(),
    holder=st.text(),
    key=st.builds(Key, st.text(), st.text()),
    base=st.integers(0),
    creates=st.booleans(),
    outcomes=st.lists(OUTCOMES, max_size=2).map(tuple),
    wide=st.booleans(),
    time=st.text(),
)
CLAIM = Claim(id="1", holder="one", key=Key("tenant-root", "a"), base=7, creates=False, outcomes=(Outcome(host="x"),))


@given(st.builds(ClaimsDocument, claims=st.lists(CLAIMS, max_size=3).map(tuple), min_version=st.integers(0)))
def test_a_document_survives_its_annotation(document: ClaimsDocument) -> None:
    assert claim_codec.decode(claim_codec.encode(document)) == document


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="nothing"),
        pytest.param("{", id="no JSON"),
        pytest.param("[]", id="no object"),
        pytest.param('{"version": 2, "claims": [], "minResourceVersion": "1"}', id="another version"),
        pytest.param('{"version": 1, "claims": [], "minResourceVersion": "x"}', id="no resourceVersion"),
        pytest.param('{"version": 1, "claims": [{"id": "1"}], "minResourceVersion": "1"}', id="half a claim"),
        pytest.param('{"version": 1, "claims": {"id": 1}, "minResourceVersion": "1"}', id="no list of claims"),
    ],
)
def test_anything_else_is_a_value_error(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011
        claim_codec.decode(text)


def test_a_claim_of_another_type_is_a_value_error() -> None:
    document = json.loads(claim_codec.encode(ClaimsDocument(claims=(CLAIM,))))
    document["claims"][0]["outcomes"][0]["host"] = 7
    with pytest.raises(ValueError, match="not a text"):
        claim_codec.decode(json.dumps(document))


def test_a_claim_with_many_amounts_is_recorded_as_a_wide_one() -> None:
    many = replace(
        CLAIM, outcomes=(Outcome(host="x", quotas={f"count/{number}.example.org": "1" for number in range(1000)}),)
    )
    narrowed = claim_codec.narrowed(many)
    assert narrowed == replace(CLAIM, wide=True)
    assert claim_codec.narrowed(CLAIM) is CLAIM


def test_the_number_and_the_size_of_claims_are_bounded() -> None:
    full = ClaimsDocument(claims=(CLAIM,) * claim_codec.MAX_CLAIMS)
    assert claim_codec.fits(full)
    assert not claim_codec.fits(replace(full, claims=(*full.claims, CLAIM)))
    large = replace(CLAIM, holder="h" * 10_000)
    number = claim_codec.MAX_BYTES // 10_000
    assert claim_codec.fits(ClaimsDocument(claims=(large,) * (number - 1)))
    assert not claim_codec.fits(ClaimsDocument(claims=(large,) * (number + 1)))
    assert claim_codec.MAX_BYTES < ANNOTATIONS_LIMIT
